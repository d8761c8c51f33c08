"""A request in the form that chat completions take.

Owns: the translation of messages, tools and settings. It must never drop what was said: what has no place where it stands is moved to where it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..data.chat import Message, Part, TextPart
from .openai_parts import chat_part, is_strict, shared_settings
from .protocol import ModelRequest, ModelSettings, ToolChoice, ToolSpec

__all__ = ["chat_request"]


def chat_request(model: str, request: ModelRequest, settings: ModelSettings, *, limit_name: str) -> dict[str, Any]:
    """The arguments of `chat.completions.create`. `limit_name` is what the provider calls `max_tokens`."""
    options: dict[str, Any] = {
        "seed": settings.seed,
        "stop": list(settings.stop) if isinstance(settings.stop, tuple) else settings.stop,
        "presence_penalty": settings.presence_penalty,
        "frequency_penalty": settings.frequency_penalty,
        "reasoning_effort": settings.reasoning_effort,
        limit_name: settings.max_tokens,
    }
    if request.tools:
        options["tools"] = [_tool(spec) for spec in request.tools]
        options["tool_choice"] = _tool_choice(request.tool_choice or settings.tool_choice)
        options["parallel_tool_calls"] = settings.parallel_tool_calls
    if request.output_schema is not None:
        schema = request.output_schema
        form = {"name": schema.name, "schema": dict(schema.schema), "strict": schema.strict and is_strict(schema.schema)}
        options["response_format"] = {"type": "json_schema", "json_schema": form}
    given = {name: value for name, value in options.items() if value is not None}
    return {"model": model, "messages": _messages(request.messages), **given, **shared_settings(settings)}


def _messages(messages: Sequence[Message]) -> list[dict[str, Any]]:
    written: list[dict[str, Any]] = []
    moved: list[Part] = []
    for message in messages:
        # Results have to stand right after the calls: what was moved out of them comes after the last.
        if message.role != "tool":
            _flush(moved, written)
        written.append(_message(message))
        if message.role in {"tool", "assistant", "system"} and not isinstance(message.content, str):
            media = [part for part in message.content if not isinstance(part, TextPart)]
            if media:
                origin = f"the result of {message.tool_name or 'the tool'}" if message.role == "tool" else f"the {message.role} message above"
                moved += (TextPart(f"(This belongs to {origin}.)"), *media)
    _flush(moved, written)
    return written


def _flush(moved: list[Part], written: list[dict[str, Any]]) -> None:
    if moved:
        written.append({"role": "user", "content": [chat_part(part) for part in moved]})
        moved.clear()


def _message(message: Message) -> dict[str, Any]:
    if message.role == "user":
        content = message.content
        return {"role": "user", "content": content if isinstance(content, str) else [chat_part(part) for part in content]}
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id or "", "content": message.text}
    if message.role == "system":
        return {"role": "system", "content": message.text}
    written: dict[str, Any] = {"role": "assistant", "content": message.text}
    if message.tool_calls:
        calls = [(call.id, {"name": call.name, "arguments": call.arguments or "{}"}) for call in message.tool_calls]
        written["tool_calls"] = [{"id": call_id, "type": "function", "function": function} for call_id, function in calls]
        written["content"] = message.text or None
    if message.refusal:
        written["refusal"] = message.refusal
        written["content"] = message.text or None
    return written


def _tool(spec: ToolSpec) -> dict[str, Any]:
    parameters = dict(spec.parameters) or {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    function: dict[str, Any] = {"name": spec.name, "description": spec.description, "parameters": parameters}
    if spec.strict and is_strict(parameters):
        function["strict"] = True
    return {"type": "function", "function": function}


def _tool_choice(choice: ToolChoice | None) -> Any:
    if choice is None or choice in {"auto", "none", "required"}:
        return choice
    return {"type": "function", "function": {"name": choice}}
