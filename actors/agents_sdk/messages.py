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

from ...runtime.data.chat import (
    AudioPart,
    FilePart,
    ImagePart,
    Message,
    Part,
    TextPart,
    ToolCall,
    Usage,
)

__all__ = ["items_of_messages", "message_of_reply", "messages_of_items", "output_of_message"]

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
        kind = _field(item, "type")
        if kind == "message":
            for part in _field(item, "content") or ():
                text.append(_field(part, "text") or "")
                refusal.append(_field(part, "refusal") or "")
        elif kind == "function_call":
            calls.append(
                ToolCall(_field(item, "call_id"), _field(item, "name"), _field(item, "arguments"))
            )
        elif kind == "reasoning":
            thoughts.extend(
                _field(part, "text") or ""
                for part in _field(item, "content") or _field(item, "summary") or ()
            )
    return Message(
        "assistant",
        "".join(text),
        tuple(calls),
        reasoning="\n".join(thoughts) or None,
        usage=_usage(usage),
        refusal="".join(refusal) or None,
    )


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _usage(usage: Any) -> Usage | None:
    if usage is None:
        return None
    cached = _field(_field(usage, "input_tokens_details"), "cached_tokens") or 0
    requests = getattr(usage, "requests", 1)
    return Usage(usage.input_tokens or 0, usage.output_tokens or 0, cached, requests)


def _result_message(item: Mapping[str, Any], name: str | None) -> Message:
    output = item.get("output")
    return Message(
        "tool", output if isinstance(output, str) else _parts(output), (), item.get("call_id"), name
    )


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
        return Message(
            "assistant",
            "",
            (
                ToolCall(
                    str(item.get("call_id")),
                    str(item.get("name")),
                    str(item.get("arguments") or ""),
                ),
            ),
        )
    if kind == "function_call_output":
        return _result_message(item, names.get(item.get("call_id")))
    if kind == "reasoning":
        thoughts = [
            part.get("text", "") for part in item.get("content") or item.get("summary") or ()
        ]
        return Message("assistant", "", reasoning="\n".join(thoughts) or None) if thoughts else None
    if role not in _ROLES:
        return None
    content = item.get("content")
    said = content if isinstance(content, str) else _parts(content)
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
        media, data = _data_of(str(said["image_url"]))
        detail = said.get("detail")
        return (
            ImagePart(data=data, media_type=media, detail=detail)
            if data is not None
            else ImagePart(url=str(said["image_url"]), detail=detail)
        )
    if kind == "input_file" and said.get("file_url"):
        return FilePart(url=str(said["file_url"]), name=said.get("filename"))
    if kind == "input_file" and said.get("file_data"):
        media, data = _data_of(str(said["file_data"]))
        if data is not None:
            return FilePart(data=data, media_type=media, name=said.get("filename"))
    return TextPart(json.dumps(dict(said), default=str, ensure_ascii=False))


def _data_of(url: str) -> tuple[str | None, bytes | None]:
    from base64 import b64decode  # noqa: PLC0415 -- few messages contain data

    head, comma, body = url.partition(",")
    if not head.startswith("data:") or not head.endswith(";base64") or not comma:
        return None, None
    return head.removeprefix("data:").removesuffix(
        ";base64"
    ) or "application/octet-stream", b64decode(body)


# --- messages to items ---


def items_of_messages(messages: Iterable[Message]) -> list[Any]:
    """Convert messages to input items."""
    found: list[Any] = []
    for message in messages:
        if message.role == "tool":
            found.append(
                {
                    "type": "function_call_output",
                    "call_id": message.tool_call_id or "",
                    "output": _content(message.content),
                }
            )
        elif message.role != "assistant":
            found.append({"role": message.role, "content": _content(message.content)})
        else:
            if message.content or not message.tool_calls:
                found.append({"role": "assistant", "content": message.text})
            found += [
                {
                    "type": "function_call",
                    "call_id": call.id,
                    "name": call.name,
                    "arguments": call.arguments,
                }
                for call in message.tool_calls
            ]
    return found


def _content(content: str | tuple[Part, ...]) -> Any:
    return content if isinstance(content, str) else [_item_part(part) for part in content]


def _item_part(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    where = part.url or _data_url(part)
    if isinstance(part, ImagePart):
        return {"type": "input_image", "image_url": where, "detail": part.detail or "auto"}
    if isinstance(part, AudioPart):
        return {
            "type": "input_audio",
            "input_audio": {
                "data": where,
                "format": (part.media_type or "audio/wav").partition("/")[2],
            },
        }
    named = {"filename": part.name} if part.name else {}
    return (
        {"type": "input_file", "file_url": where, **named}
        if part.url
        else {"type": "input_file", "file_data": where, **named}
    )


def _data_url(part: Any) -> str:
    from base64 import b64encode  # noqa: PLC0415 -- as above

    data = part.data if isinstance(part.data, bytes) else str(part.data or "").encode()
    return f"data:{part.media_type or 'application/octet-stream'};base64,{b64encode(data).decode()}"


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
