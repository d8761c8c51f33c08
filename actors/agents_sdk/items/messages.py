"""Items as understudy's messages, and back.

What a message cannot hold (ids, encrypted reasoning, items of tools that run at the provider, annotations) stays in the items, which are kept beside the
messages as they are.

Owns: this translation, both ways: the only one. It must never lose a text, a call or a result.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputRefusal, ResponseOutputText
from openai.types.responses.response_reasoning_item import Content, ResponseReasoningItem

from ....runtime.data.chat import AudioPart, FilePart, ImagePart, Message, Part, TextPart, ToolCall
from ....runtime.data.chat import Usage as CoreUsage
from ..invocation import as_dict
from ..usage import Usage, input_details
from .response import ModelResponse

__all__ = ["core_usage", "item_of_reply", "items_of_messages", "message_of_output", "message_of_response", "messages_of_items", "usage_of"]

_ROLES: Final = ("system", "developer", "user", "assistant")
_MESSAGE_ID: Final = "__fake_id__"


def core_usage(usage: Usage) -> CoreUsage:
    """The usage, as understudy counts it."""
    cached = getattr(usage.input_tokens_details, "cached_tokens", 0) or 0
    return CoreUsage(usage.input_tokens or 0, usage.output_tokens or 0, cached, usage.requests or 0)


def usage_of(usage: CoreUsage | None) -> Usage:
    """The usage, as the SDK counts it."""
    if usage is None:
        return Usage(requests=1)
    counted = Usage(usage.requests or 1, usage.input_tokens, input_details(usage.cached_tokens), usage.output_tokens)
    counted.total_tokens = usage.total_tokens
    return counted


# --- items to messages ---


def message_of_response(response: ModelResponse) -> Message:
    """What a model has said, as one message."""
    text: list[str] = []
    refusal: list[str] = []
    calls: list[ToolCall] = []
    thoughts: list[str] = []
    for item in response.output:
        kind = getattr(item, "type", None)
        if kind == "message":
            for part in item.content:  # type: ignore[union-attr]  # a message
                if isinstance(part, ResponseOutputText):
                    text.append(part.text or "")
                elif isinstance(part, ResponseOutputRefusal):
                    refusal.append(part.refusal or "")
        elif kind == "function_call":
            calls.append(ToolCall(item.call_id, item.name, item.arguments))  # type: ignore[union-attr, arg-type]  # a call
        elif kind == "reasoning":
            thoughts.extend(part.text for part in (item.content or item.summary))  # type: ignore[union-attr]  # thoughts
    said = "".join(text)
    message = Message("assistant", said, tuple(calls), reasoning="\n".join(thoughts) or None, usage=core_usage(response.usage))
    if not refusal:
        return message
    return Message("assistant", said, tuple(calls), reasoning=message.reasoning, usage=message.usage, refusal="".join(refusal))


def message_of_output(raw: Any, name: str | None) -> Message | None:
    """The result of a call of a function, as a message; None for results of another kind."""
    if not isinstance(raw, Mapping) or raw.get("type") != "function_call_output":
        return None
    output = raw.get("output")
    return Message("tool", output if isinstance(output, str) else _parts(output), (), raw.get("call_id"), name)


def messages_of_items(items: str | Iterable[Any]) -> tuple[Message, ...]:
    """Input as messages. What no message can say is left to the items."""
    if isinstance(items, str):
        return (Message("user", items),)
    found: list[Message] = []
    names: dict[Any, str] = {}
    for one in items:
        item = one if isinstance(one, dict) else as_dict(one)
        if isinstance(one, Message):
            found.append(one)
        elif item is not None:
            message = _message(item, names)
            if message is not None:
                _add(found, message)
    return tuple(found)


def _message(item: Mapping[str, Any], names: dict[Any, str]) -> Message | None:
    kind, role = item.get("type"), item.get("role")
    if kind == "function_call":
        names[item.get("call_id")] = str(item.get("name"))
        return Message("assistant", "", (ToolCall(str(item.get("call_id")), str(item.get("name")), str(item.get("arguments") or "")),))
    if kind == "function_call_output":
        return message_of_output(item, names.get(item.get("call_id")))
    if kind == "reasoning":
        thoughts = [part.get("text", "") for part in item.get("content") or item.get("summary") or ()]
        return Message("assistant", "", reasoning="\n".join(thoughts) or None) if thoughts else None
    if role not in _ROLES:
        return None
    content = item.get("content")
    said = content if isinstance(content, str) else _parts(content)
    if role == "assistant" and not isinstance(said, str):
        said = "".join(part.text for part in said if isinstance(part, TextPart))
    return Message("system" if role == "developer" else role, said or "")


def _add(found: list[Message], message: Message) -> None:
    """Put a message behind the others; the parts of one reply are one."""
    last = found[-1] if found else None
    if last is None or last.role != "assistant" or message.role != "assistant" or (message.content and (last.content or last.tool_calls)):
        found.append(message)
        return
    content, reasoning = last.content or message.content, last.reasoning or message.reasoning
    found[-1] = Message("assistant", content, (*last.tool_calls, *message.tool_calls), reasoning=reasoning, refusal=last.refusal or message.refusal)


def _parts(content: Any) -> str | tuple[Part, ...]:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, Sequence):
        return json.dumps(content, default=str, ensure_ascii=False)
    found = tuple(_part(one) for one in content)
    return "".join(part.text for part in found if isinstance(part, TextPart)) if all(isinstance(part, TextPart) for part in found) else found


def _part(part: Any) -> Part:
    said = part if isinstance(part, Mapping) else as_dict(part) or {}
    kind = said.get("type")
    if kind in ("input_text", "output_text", "text", "refusal"):
        return TextPart(str(said.get("text") or said.get("refusal") or ""))
    if kind == "input_image" and said.get("image_url"):
        media, data = _data_of(str(said["image_url"]))
        detail = said.get("detail")
        return ImagePart(data=data, media_type=media, detail=detail) if data is not None else ImagePart(url=str(said["image_url"]), detail=detail)
    if kind == "input_file" and said.get("file_url"):
        return FilePart(url=str(said["file_url"]), name=said.get("filename"))
    if kind == "input_file" and said.get("file_data"):
        media, data = _data_of(str(said["file_data"]))
        if data is not None:
            return FilePart(data=data, media_type=media, name=said.get("filename"))
    return TextPart(json.dumps(dict(said), default=str, ensure_ascii=False))


def _data_of(url: str) -> tuple[str | None, bytes | None]:
    from base64 import b64decode  # noqa: PLC0415 -- few messages have data in them

    head, comma, body = url.partition(",")
    if not head.startswith("data:") or not head.endswith(";base64") or not comma:
        return None, None
    return head.removeprefix("data:").removesuffix(";base64") or "application/octet-stream", b64decode(body)


# --- messages to items ---


def items_of_messages(messages: Iterable[Message]) -> list[Any]:
    """Messages as input."""
    found: list[Any] = []
    for message in messages:
        if message.role == "tool":
            found.append({"type": "function_call_output", "call_id": message.tool_call_id or "", "output": _output(message.content)})
        elif message.role != "assistant":
            found.append({"role": message.role, "content": _content(message.content)})
        else:
            if message.content or not message.tool_calls:
                found.append({"role": "assistant", "content": message.text})
            found += [{"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments} for call in message.tool_calls]
    return found


def _content(content: str | tuple[Part, ...]) -> Any:
    return content if isinstance(content, str) else [_item_part(part) for part in content]


def _output(content: str | tuple[Part, ...]) -> Any:
    return content if isinstance(content, str) else [_item_part(part) for part in content]


def _item_part(part: Part) -> dict[str, Any]:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text}
    where = part.url or _data_url(part)
    if isinstance(part, ImagePart):
        return {"type": "input_image", "image_url": where, "detail": part.detail or "auto"}
    if isinstance(part, AudioPart):
        return {"type": "input_audio", "input_audio": {"data": where, "format": (part.media_type or "audio/wav").partition("/")[2]}}
    named = {"filename": part.name} if part.name else {}
    return {"type": "input_file", "file_url": where, **named} if part.url else {"type": "input_file", "file_data": where, **named}


def _data_url(part: Any) -> str:
    from base64 import b64encode  # noqa: PLC0415 -- as above

    data = part.data if isinstance(part.data, bytes) else str(part.data or "").encode()
    return f"data:{part.media_type or 'application/octet-stream'};base64,{b64encode(data).decode()}"


def item_of_reply(message: Message) -> list[Any]:
    """A reply of one of understudy's models, as the output of a model of the SDK."""
    found: list[Any] = []
    if message.reasoning:
        found.append(ResponseReasoningItem(id=_MESSAGE_ID, type="reasoning", summary=[], content=[Content(type="reasoning_text", text=message.reasoning)]))
    content: list[Any] = []
    if message.text or not (message.tool_calls or message.refusal):
        content.append(ResponseOutputText(type="output_text", text=message.text, annotations=[], logprobs=[]))
    if message.refusal:
        content.append(ResponseOutputRefusal(type="refusal", refusal=message.refusal))
    if content:
        found.append(ResponseOutputMessage(id=_MESSAGE_ID, type="message", role="assistant", status="completed", content=content))
    return found + [ResponseFunctionToolCall(type="function_call", call_id=call.id, name=call.name, arguments=call.arguments) for call in message.tool_calls]
