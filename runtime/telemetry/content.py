"""What was said, in the form that OpenTelemetry's conventions for generative AI have for it.

Owns: that form, and the names of models. It must never be asked for unless the program wants content in its spans.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from ..data.chat import Message, Part, TextPart

__all__ = ["as_json", "model_name", "provider_name", "text_of_messages"]

_PROVIDERS: Final = (("OpenAI", "openai"), ("Azure", "azure.ai.openai"))
_DEEPEST: Final = 8


def as_json(messages: Iterable[Message]) -> str:
    """The value of `gen_ai.input.messages` and `gen_ai.output.messages`."""
    return json.dumps([_message(message) for message in messages], ensure_ascii=False)


def _message(message: Message) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if message.role == "tool":
        parts.append({"type": "tool_call_response", "id": message.tool_call_id, "response": message.text})
    elif isinstance(message.content, str):
        if message.content:
            parts.append({"type": "text", "content": message.content})
    else:
        parts += map(_part, message.content)
    if message.reasoning:
        parts.append({"type": "reasoning", "content": message.reasoning})
    parts += ({"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls)
    return {"role": message.role, "parts": parts}


def _part(part: Part) -> dict[str, Any]:
    """Of what is no text only that it was there: a picture or a file is too long for a span."""
    return {"type": "text", "content": part.text} if isinstance(part, TextPart) else {"type": type(part).__name__.removesuffix("Part").lower()}


def text_of_messages(messages: Iterable[Message]) -> str:
    """The query: the text of what users said, the last time."""
    found = [message.text for message in messages if message.role == "user"]
    return found[-1] if found else ""


def model_name(model: object) -> str:
    """What the provider calls it; for a model of several, or around one, that of the first."""
    for _ in range(_DEEPEST):
        name = getattr(model, "model", None)
        if isinstance(name, str):
            return name
        inner = getattr(model, "inner", None)
        if inner is None:
            break
        model = inner
    return type(model).__name__


def provider_name(model: object) -> str:
    """Who answers, as far as the class says."""
    for _ in range(_DEEPEST):
        inner = getattr(model, "inner", None)
        if inner is None:
            break
        model = inner
    kind = type(model).__name__
    if getattr(model, "is_azure", False):
        return "azure.ai.openai"
    return next((name for start, name in _PROVIDERS if kind.startswith(start)), kind)
