"""A request in the form that chat completions take.

Owns: the translation of messages, tools and settings. It must never drop what was said: what has no place where it stands is moved to where it has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Required, cast

from ..data.chat import Message, Part, TextPart
from .openai_parts import PLAIN_CHOICES, SharedArguments, add_shared, chat_part, is_strict
from .protocol import ModelRequest, ModelSettings, ToolChoice, ToolSpec

if TYPE_CHECKING:
    from openai.types.chat import (
        ChatCompletionAssistantMessageParam,
        ChatCompletionFunctionToolParam,
        ChatCompletionMessageParam,
        ChatCompletionStreamOptionsParam,
        ChatCompletionToolChoiceOptionParam,
    )
    from openai.types.shared import ReasoningEffort
    from openai.types.shared_params import FunctionDefinition, ResponseFormatJSONSchema

__all__ = ["ChatArguments", "chat_request"]


class ChatArguments(SharedArguments, total=False):
    """The arguments of `chat.completions.create`."""

    model: Required[str]
    messages: Required[list[ChatCompletionMessageParam]]
    seed: int | None
    stop: str | list[str] | None
    presence_penalty: float | None
    frequency_penalty: float | None
    reasoning_effort: ReasoningEffort
    max_tokens: int | None
    max_completion_tokens: int | None
    tools: list[ChatCompletionFunctionToolParam]
    tool_choice: ChatCompletionToolChoiceOptionParam
    parallel_tool_calls: bool
    response_format: ResponseFormatJSONSchema
    stream_options: ChatCompletionStreamOptionsParam


def chat_request(model: str, request: ModelRequest, settings: ModelSettings, *, is_openai: bool) -> ChatArguments:
    """The arguments for a request. OpenAI's newer models know only `max_completion_tokens`, most other providers only `max_tokens`."""
    arguments: ChatArguments = {
        "model": model,
        "messages": _messages(request.messages),
        "seed": settings.seed,
        "stop": list(settings.stop) if isinstance(settings.stop, tuple) else settings.stop,
        "presence_penalty": settings.presence_penalty,
        "frequency_penalty": settings.frequency_penalty,
        "reasoning_effort": settings.reasoning_effort,
    }
    add_shared(arguments, settings)
    if is_openai:
        arguments["max_completion_tokens"] = settings.max_tokens
    else:
        arguments["max_tokens"] = settings.max_tokens
    if request.tools:
        arguments["tools"] = [_tool(spec) for spec in request.tools]
        choice = request.tool_choice or settings.tool_choice
        if choice is not None:
            arguments["tool_choice"] = _tool_choice(choice)
        if settings.parallel_tool_calls is not None:
            arguments["parallel_tool_calls"] = settings.parallel_tool_calls
    if request.output_schema is not None:
        schema = request.output_schema
        strict = schema.strict and is_strict(schema.schema)
        arguments["response_format"] = {"type": "json_schema", "json_schema": {"name": schema.name, "schema": dict(schema.schema), "strict": strict}}
    return cast("ChatArguments", {name: value for name, value in arguments.items() if value is not None})


def _messages(messages: Sequence[Message]) -> list[ChatCompletionMessageParam]:
    written: list[ChatCompletionMessageParam] = []
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


def _flush(moved: list[Part], written: list[ChatCompletionMessageParam]) -> None:
    if moved:
        written.append({"role": "user", "content": [chat_part(part) for part in moved]})
        moved.clear()


def _message(message: Message) -> ChatCompletionMessageParam:
    if message.role == "user":
        content = message.content
        return {"role": "user", "content": content if isinstance(content, str) else [chat_part(part) for part in content]}
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id or "", "content": message.text}
    if message.role == "system":
        return {"role": "system", "content": message.text}
    written: ChatCompletionAssistantMessageParam = {"role": "assistant", "content": message.text}
    if message.tool_calls:
        written["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments or "{}"}} for call in message.tool_calls
        ]
        written["content"] = message.text or None
    if message.refusal:
        written["refusal"] = message.refusal
        written["content"] = message.text or None
    return written


def _tool(spec: ToolSpec) -> ChatCompletionFunctionToolParam:
    parameters = dict(spec.parameters) or {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    function: FunctionDefinition = {"name": spec.name, "description": spec.description, "parameters": parameters}
    if spec.strict and is_strict(parameters):
        function["strict"] = True
    return {"type": "function", "function": function}


def _tool_choice(choice: ToolChoice) -> ChatCompletionToolChoiceOptionParam:
    if choice in PLAIN_CHOICES:
        return PLAIN_CHOICES[choice]
    return {"type": "function", "function": {"name": choice}}
