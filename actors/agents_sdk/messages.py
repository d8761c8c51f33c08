"""The SDK's items as messages, and back.

A message cannot hold ids, encrypted reasoning, items of provider-side tools, or annotations. The
steps of the stored run contain the items themselves; the messages are for display.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputRefusal,
    ResponseOutputText,
)
from pydantic import BaseModel

from ...runtime.data.chat import FilePart, ImagePart, Message, Part, TextPart, ToolCall, Usage
from ...runtime.models.openai_responses_request import message_items

__all__ = [
    "field_of",
    "items_of_messages",
    "message_of_reply",
    "messages_of_items",
    "output_of_message",
]

_CALL: Final = ("call_id", "name", "arguments")
_ROLES: Final = ("system", "developer", "user", "assistant")
_MESSAGE_ID: Final = "__fake_id__"
"""The SDK's own id for messages without an id from a provider."""


# --- items to messages ---


def message_of_reply(output: Iterable[Any], usage: Any) -> Message:
    """Convert a model's reply to one message."""
    text: list[str] = []
    refusal: list[str] = []
    calls: list[ToolCall] = []
    thoughts: list[str] = []
    for item in output:
        kind = field_of(item, "type")
        if kind == "message":
            for part in field_of(item, "content") or ():
                text.append(field_of(part, "text") or "")
                refusal.append(field_of(part, "refusal") or "")
        elif kind == "function_call":
            calls.append(ToolCall(*(field_of(item, name) for name in _CALL)))
        elif kind == "reasoning":
            thoughts.extend(
                field_of(part, "text") or ""
                for part in field_of(item, "content") or field_of(item, "summary") or ()
            )
    return Message(
        "assistant",
        "".join(text),
        tuple(calls),
        reasoning="\n".join(thoughts) or None,
        usage=_usage(usage),
        refusal="".join(refusal) or None,
    )


def field_of(value: Any, name: str) -> Any:
    """Return a field of a mapping or of an object; None if it does not exist."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _usage(usage: Any) -> Usage | None:
    if usage is None:
        return None
    cached = field_of(field_of(usage, "input_tokens_details"), "cached_tokens") or 0
    requests = getattr(usage, "requests", 1)
    return Usage(usage.input_tokens or 0, usage.output_tokens or 0, cached, requests)


def messages_of_items(items: str | Iterable[Any]) -> tuple[Message, ...]:
    """Convert input items to messages. Items that have no message form are skipped."""
    if isinstance(items, str):
        return (Message("user", items),)
    found: list[Message] = []
    names: dict[Any, str] = {}
    for one in items:
        item = (
            one.model_dump(mode="json", exclude_unset=True) if isinstance(one, BaseModel) else one
        )
        if isinstance(one, Message):
            found.append(one)
        elif isinstance(item, Mapping):
            message = _message(item, names)
            if message is not None:
                _add(found, message)
    return tuple(found)


def _message(item: Mapping[str, Any], names: dict[Any, str]) -> Message | None:
    kind, role = item.get("type"), item.get("role")
    if kind == "function_call":
        names[item.get("call_id")] = str(item.get("name"))
        call = ToolCall(*(str(item.get(name) or "") for name in _CALL))
        return Message("assistant", "", (call,))
    if kind == "function_call_output":
        call_id = item.get("call_id")
        return Message("tool", _parts(item.get("output")), (), call_id, names.get(call_id))
    if kind == "reasoning":
        thoughts = [
            part.get("text", "") for part in item.get("content") or item.get("summary") or ()
        ]
        return Message("assistant", "", reasoning="\n".join(thoughts) or None) if thoughts else None
    if role not in _ROLES:
        return None
    said = _parts(item.get("content"))
    if role == "assistant" and not isinstance(said, str):
        said = "".join(part.text for part in said if isinstance(part, TextPart))
    return Message("system" if role == "developer" else role, said or "")


def _add(found: list[Message], message: Message) -> None:
    """Append a message. The parts of one reply become one message."""
    last = found[-1] if found else None
    if (
        last is None
        or last.role != "assistant"
        or message.role != "assistant"
        or (message.content and (last.content or last.tool_calls))
    ):
        found.append(message)
        return
    content, reasoning = last.content or message.content, last.reasoning or message.reasoning
    found[-1] = Message(
        "assistant",
        content,
        (*last.tool_calls, *message.tool_calls),
        reasoning=reasoning,
        refusal=last.refusal or message.refusal,
    )


def _parts(content: Any) -> str | tuple[Part, ...]:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, Sequence):
        return json.dumps(content, default=str, ensure_ascii=False)
    found = tuple(_part(one) for one in content)
    return (
        "".join(part.text for part in found if isinstance(part, TextPart))
        if all(isinstance(part, TextPart) for part in found)
        else found
    )


def _part(part: Any) -> Part:
    said = part if isinstance(part, Mapping) else {}
    kind = said.get("type")
    if kind in ("input_text", "output_text", "text", "refusal"):
        return TextPart(str(said.get("text") or said.get("refusal") or ""))
    if kind == "input_image" and said.get("image_url"):
        return ImagePart(url=str(said["image_url"]), detail=said.get("detail"))
    file = str(said.get("file_url") or said.get("file_data") or "")
    if kind == "input_file" and ":" in file:  # an address, or data with its media type
        return FilePart(url=file, name=said.get("filename"))
    return TextPart(json.dumps(dict(said), default=str, ensure_ascii=False))


# --- messages to items ---


def items_of_messages(messages: Iterable[Message]) -> list[Any]:
    """Convert messages to input items."""
    return [item for message in messages for item in message_items(message)]


def output_of_message(message: Message) -> list[Any]:
    """Convert a native agent's answer to the output of a model."""
    content: list[Any] = []
    if message.text or not (message.tool_calls or message.refusal):
        content.append(
            ResponseOutputText(type="output_text", text=message.text, annotations=[], logprobs=[])
        )
    if message.refusal:
        content.append(ResponseOutputRefusal(type="refusal", refusal=message.refusal))
    output: list[Any] = []
    if content:
        output.append(
            ResponseOutputMessage(
                id=_MESSAGE_ID,
                type="message",
                role="assistant",
                status="completed",
                content=content,
            )
        )
    return output + [
        ResponseFunctionToolCall(
            type="function_call", call_id=call.id, name=call.name, arguments=call.arguments
        )
        for call in message.tool_calls
    ]
