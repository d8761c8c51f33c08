"""A request in the form that the Responses API takes.

Owns: the translation of messages, tools and settings. A setting that this API does not know is an error, not silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ..data.chat import Message, Part, TextPart
from ..errors import UsageError
from .openai_parts import is_strict, responses_part, shared_settings
from .protocol import ModelRequest, ModelSettings, ToolChoice, ToolSpec

__all__ = ["responses_request"]

_UNKNOWN: Final = ("seed", "stop", "presence_penalty", "frequency_penalty")


def responses_request(model: str, request: ModelRequest, settings: ModelSettings) -> dict[str, Any]:
    """The arguments of `responses.create`."""
    unknown = [name for name in _UNKNOWN if getattr(settings, name) is not None]
    if unknown:
        msg = f"OpenAIResponsesModel({model!r}): the Responses API has no {', '.join(unknown)}; leave it out, or use OpenAIChatModel."
        raise UsageError(msg)
    options: dict[str, Any] = {"max_output_tokens": settings.max_tokens}
    if settings.reasoning_effort is not None:
        options["reasoning"] = {"effort": settings.reasoning_effort, **({"summary": "auto"} if settings.reasoning_effort != "none" else {})}
    if request.tools:
        options["tools"] = [_tool(spec) for spec in request.tools]
        options["tool_choice"] = _tool_choice(request.tool_choice or settings.tool_choice)
        options["parallel_tool_calls"] = settings.parallel_tool_calls
    if request.output_schema is not None:
        schema = request.output_schema
        form = {"type": "json_schema", "name": schema.name, "schema": dict(schema.schema), "strict": schema.strict and is_strict(schema.schema)}
        options["text"] = {"format": form}
    given = {name: value for name, value in options.items() if value is not None}
    return {"model": model, "input": _items(request.messages), "store": False, **given, **shared_settings(settings)}


def _items(messages: Sequence[Message]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for message in messages:
        if message.role == "user":
            content = message.content
            items.append({"role": "user", "content": content if isinstance(content, str) else [responses_part(part) for part in content]})
        elif message.role == "system":
            items.append({"role": "system", "content": message.text})
        elif message.role == "tool":
            items.append({"type": "function_call_output", "call_id": message.tool_call_id or "", "output": _output(message.content)})
        else:
            if message.text or message.refusal:
                items.append({"role": "assistant", "content": message.text or message.refusal})
            media = [] if isinstance(message.content, str) else [part for part in message.content if not isinstance(part, TextPart)]
            if media:
                items.append(
                    {"role": "user", "content": [responses_part(part) for part in (TextPart("(This belongs to the assistant message above.)"), *media)]}
                )
            calls = message.tool_calls
            items += [{"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments or "{}"} for call in calls]
    return items


def _output(content: str | tuple[Part, ...]) -> Any:
    return content if isinstance(content, str) else [responses_part(part) for part in content]


def _tool(spec: ToolSpec) -> dict[str, Any]:
    parameters = dict(spec.parameters) or {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    # Said in either case: this API would take a missing flag for a strict schema.
    return {"type": "function", "name": spec.name, "description": spec.description, "parameters": parameters, "strict": spec.strict and is_strict(parameters)}


def _tool_choice(choice: ToolChoice | None) -> Any:
    return choice if choice is None or choice in {"auto", "none", "required"} else {"type": "function", "name": choice}
