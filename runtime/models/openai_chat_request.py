"""Conversion of a request to chat completions.

No content is dropped: media that a message of that role cannot hold is moved to another message.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Required, cast

from ..data.chat import Message, Part, TextPart, WrittenSlot
from .openai_parts import PLAIN_CHOICES, SharedArguments, add_shared, chat_part, is_strict
from .protocol import ModelRequest, ModelSettings, ToolChoice, ToolSpec
from .wire.body import encode, written

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

__all__ = ["ChatArguments", "ChatOptions", "chat_items", "chat_options", "chat_request"]

_CHAT: Final = WrittenSlot("chat")


class ChatOptions(SharedArguments, total=False):
    """The arguments of `chat.completions.create`, except the messages."""

    model: Required[str]
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


class ChatArguments(ChatOptions, total=False):
    """The arguments of `chat.completions.create`."""

    messages: Required[list[ChatCompletionMessageParam]]


def chat_request(
    model: str, request: ModelRequest, settings: ModelSettings, *, is_openai: bool
) -> ChatArguments:
    """Return the arguments for a request.

    OpenAI's newer models know only `max_completion_tokens`, most other providers only `max_tokens`.
    """
    return {
        **chat_options(model, request, settings, is_openai=is_openai),
        "messages": _messages(request.messages),
    }


def chat_options(
    model: str, request: ModelRequest, settings: ModelSettings, *, is_openai: bool
) -> ChatOptions:
    """Return the arguments for a request, except its messages."""
    arguments: ChatOptions = {
        "model": model,
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
        arguments["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": schema.name, "schema": dict(schema.schema), "strict": strict},
        }
    return cast(
        "ChatOptions", {name: value for name, value in arguments.items() if value is not None}
    )


def chat_items(messages: Sequence[Message]) -> list[bytes]:
    """Return the messages as JSON; each message is encoded only once."""
    return [
        _CHAT.get(one) or written(one, _CHAT, _message)
        if isinstance(one, Message)
        else encode(_belonging(one))
        for one in _in_order(messages)
    ]


def _messages(messages: Sequence[Message]) -> list[ChatCompletionMessageParam]:
    return [
        _message(one) if isinstance(one, Message) else _belonging(one)
        for one in _in_order(messages)
    ]


def _in_order(messages: Sequence[Message]) -> Sequence[Message | list[Part]]:
    """Return the messages, followed by the media that they cannot hold."""
    if all(type(message.content) is str for message in messages):
        return messages
    ordered: list[Message | list[Part]] = []
    moved: list[Part] = []
    for message in messages:
        # Results must come right after the calls: media moved out of them follows the last one.
        if message.role != "tool" and moved:
            ordered.append(moved)
            moved = []
        ordered.append(message)
        if message.role in {"tool", "assistant", "system"} and not isinstance(message.content, str):
            media = [part for part in message.content if not isinstance(part, TextPart)]
            if media:
                origin = (
                    f"the result of {message.tool_name or 'the tool'}"
                    if message.role == "tool"
                    else f"the {message.role} message above"
                )
                moved += (TextPart(f"(This belongs to {origin}.)"), *media)
    if moved:
        ordered.append(moved)
    return ordered


def _belonging(moved: Sequence[Part]) -> ChatCompletionMessageParam:
    return {"role": "user", "content": [chat_part(part) for part in moved]}


def _message(message: Message) -> ChatCompletionMessageParam:
    if message.role == "user":
        content = message.content
        return {
            "role": "user",
            "content": content
            if isinstance(content, str)
            else [chat_part(part) for part in content],
        }
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.tool_call_id or "", "content": message.text}
    if message.role == "system":
        return {"role": "system", "content": message.text}
    written: ChatCompletionAssistantMessageParam = {"role": "assistant", "content": message.text}
    if message.tool_calls:
        written["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments or "{}"},
            }
            for call in message.tool_calls
        ]
        written["content"] = message.text or None
    if message.refusal:
        written["refusal"] = message.refusal
        written["content"] = message.text or None
    return written


def _tool(spec: ToolSpec) -> ChatCompletionFunctionToolParam:
    parameters = dict(spec.parameters) or {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
    function: FunctionDefinition = {
        "name": spec.name,
        "description": spec.description,
        "parameters": parameters,
    }
    if spec.strict and is_strict(parameters):
        function["strict"] = True
    return {"type": "function", "function": function}


def _tool_choice(choice: ToolChoice) -> ChatCompletionToolChoiceOptionParam:
    if choice in PLAIN_CHOICES:
        return PLAIN_CHOICES[choice]
    return {"type": "function", "function": {"name": choice}}
