"""Conversion of a request to the Responses API.

A setting that this API does not know raises an error instead of being ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Required, cast

from ..data.chat import Message, Part, TextPart, WrittenSlot
from ..errors import UsageError
from .openai_parts import PLAIN_CHOICES, SharedArguments, add_shared, is_strict, responses_part
from .protocol import ModelRequest, ModelSettings, ToolChoice, ToolSpec
from .wire.body import written

if TYPE_CHECKING:
    from openai.types.responses import (
        FunctionToolParam,
        ResponseFunctionCallOutputItemListParam,
        ResponseInputItemParam,
        ResponseTextConfigParam,
    )
    from openai.types.responses.response_create_params import ToolChoice as ToolChoiceParam
    from openai.types.shared_params import Reasoning

__all__ = [
    "ResponsesArguments",
    "ResponsesOptions",
    "message_items",
    "responses_items",
    "responses_options",
    "responses_request",
]

_RESPONSES: Final = WrittenSlot("responses")

_UNKNOWN: Final = ("seed", "stop", "presence_penalty", "frequency_penalty")


class ResponsesOptions(SharedArguments, total=False):
    """The arguments of `responses.create`, except the messages."""

    model: Required[str]
    store: Required[bool]
    max_output_tokens: int | None
    reasoning: Reasoning
    tools: list[FunctionToolParam]
    tool_choice: ToolChoiceParam
    parallel_tool_calls: bool | None
    text: ResponseTextConfigParam


class ResponsesArguments(ResponsesOptions, total=False):
    """The arguments of `responses.create`."""

    input: Required[list[ResponseInputItemParam]]


def responses_request(
    model: str, request: ModelRequest, settings: ModelSettings
) -> ResponsesArguments:
    """Return the arguments for a request."""
    return {
        **responses_options(model, request, settings),
        "input": [item for message in request.messages for item in message_items(message)],
    }


def responses_options(
    model: str, request: ModelRequest, settings: ModelSettings
) -> ResponsesOptions:
    """Return the arguments for a request, except its messages."""
    unknown = [name for name in _UNKNOWN if getattr(settings, name) is not None]
    if unknown:
        msg = (
            f"OpenAIResponsesModel({model!r}): the Responses API has no {', '.join(unknown)}. "
            "Omit it, or use OpenAIChatModel."
        )
        raise UsageError(msg)
    arguments: ResponsesOptions = {
        "model": model,
        "store": False,
        "max_output_tokens": settings.max_tokens,
    }
    add_shared(arguments, settings)
    effort = settings.reasoning_effort
    if effort is not None:
        arguments["reasoning"] = (
            {"effort": effort} if effort == "none" else {"effort": effort, "summary": "auto"}
        )
    if request.tools:
        arguments["tools"] = [_tool(spec) for spec in request.tools]
        arguments["parallel_tool_calls"] = settings.parallel_tool_calls
        choice = request.tool_choice or settings.tool_choice
        if choice is not None:
            arguments["tool_choice"] = _tool_choice(choice)
    if request.output_schema is not None:
        schema = request.output_schema
        strict = schema.strict and is_strict(schema.schema)
        arguments["text"] = {
            "format": {
                "type": "json_schema",
                "name": schema.name,
                "schema": dict(schema.schema),
                "strict": strict,
            }
        }
    return cast(
        "ResponsesOptions", {name: value for name, value in arguments.items() if value is not None}
    )


def responses_items(messages: Sequence[Message]) -> list[bytes]:
    """Return the messages as JSON; each message is encoded only once.

    An empty message is omitted.
    """
    return [
        text
        for message in messages
        if (text := (_RESPONSES.get(message) or written(message, _RESPONSES, message_items))[1:-1])
    ]


def message_items(message: Message) -> list[ResponseInputItemParam]:
    """Convert a message to input items."""
    if message.role == "user":
        content = message.content
        return [
            {
                "role": "user",
                "content": content
                if isinstance(content, str)
                else [responses_part(part) for part in content],
            }
        ]
    if message.role == "system":
        return [{"role": "system", "content": message.text}]
    if message.role == "tool":
        return [
            {
                "type": "function_call_output",
                "call_id": message.tool_call_id or "",
                "output": _output(message.content),
            }
        ]
    items: list[ResponseInputItemParam] = []
    if message.text or message.refusal:
        items.append({"role": "assistant", "content": message.text or message.refusal or ""})
    media = (
        []
        if isinstance(message.content, str)
        else [part for part in message.content if not isinstance(part, TextPart)]
    )
    if media:
        items.append(
            {
                "role": "user",
                "content": [
                    responses_part(part)
                    for part in (TextPart("(This belongs to the assistant message above.)"), *media)
                ],
            }
        )
    items.extend(
        {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": call.arguments or "{}",
        }
        for call in message.tool_calls
    )
    return items


def _output(content: str | tuple[Part, ...]) -> str | ResponseFunctionCallOutputItemListParam:
    if isinstance(content, str):
        return content
    # The same form under another name
    return cast(
        "ResponseFunctionCallOutputItemListParam", [responses_part(part) for part in content]
    )


def _tool(spec: ToolSpec) -> FunctionToolParam:
    parameters = dict(spec.parameters) or {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
    # Always sent: this API treats a missing flag as a strict schema.
    return {
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": parameters,
        "strict": spec.strict and is_strict(parameters),
    }


def _tool_choice(choice: ToolChoice) -> ToolChoiceParam:
    if choice in PLAIN_CHOICES:
        return PLAIN_CHOICES[choice]
    return {"type": "function", "name": choice}
