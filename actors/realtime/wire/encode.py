"""Converts the settings, items and requests of a session to messages of OpenAI's protocol."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from ....runtime.errors import UsageError
from ..audio_formats import AudioFormat
from ..items import (
    AssistantMessageItem,
    InputAudio,
    InputImage,
    RealtimeToolCallItem,
    SystemMessageItem,
    UserMessageItem,
    text_of_item,
)
from ..model_inputs import (
    RealtimeModelSendAudio,
    RealtimeModelSendDelete,
    RealtimeModelSendEvent,
    RealtimeModelSendInterrupt,
    RealtimeModelSendItem,
    RealtimeModelSendRawMessage,
    RealtimeModelSendResponse,
    RealtimeModelSendToolOutput,
    RealtimeModelSendUserInput,
)
from ..state.settings import spec_of

__all__ = ["MOST_AUDIO", "audio_messages", "messages_of", "raw_messages", "session_payload"]

MOST_AUDIO: Final = 15 * 1024 * 1024 * 3 // 4 // 6 * 6
"""The limit of audio bytes in one message.

With base64 it amounts to 15 MiB. It is a whole number of samples in every format.
"""

_INPUT: Final = MappingProxyType(
    {
        "input_audio_noise_reduction": "noise_reduction",
        "input_audio_transcription": "transcription",
        "turn_detection": "turn_detection",
        "input_audio_format": "format",
    }
)
_OUTPUT: Final = MappingProxyType(
    {"voice": "voice", "speed": "speed", "output_audio_format": "format"}
)
_PLAIN: Final = (
    "output_modalities",
    "instructions",
    "max_output_tokens",
    "parallel_tool_calls",
    "reasoning",
    "tracing",
    "include",
)


def session_payload(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the given settings to the protocol's form."""
    made: dict[str, Any] = {"type": "realtime"}
    for name in _PLAIN:
        if name in flat:
            made[name] = flat[name]
    if "model_name" in flat:
        made["model"] = flat["model_name"]
    if "prompt" in flat:
        made["prompt"] = _plain(flat["prompt"])
    if "tool_choice" in flat:
        made["tool_choice"] = _tool_choice(flat["tool_choice"])
    if "tools" in flat or "handoffs" in flat:
        made["tools"] = [
            spec_of(one) for name in ("tools", "handoffs") for one in flat.get(name, ())
        ]
    audio: dict[str, Any] = {}
    for side, names in (("input", _INPUT), ("output", _OUTPUT)):
        part = {key: _audio_value(flat[name]) for name, key in names.items() if name in flat}
        if part:
            audio[side] = part
    if audio:
        made["audio"] = audio
    return made


def _audio_value(value: Any) -> Any:
    return (
        value.wire()
        if isinstance(value, AudioFormat)
        else dict(value)
        if isinstance(value, Mapping)
        else value
    )


def _plain(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else value


def _tool_choice(choice: Any) -> Any:
    if isinstance(choice, str) and choice not in ("auto", "none", "required"):
        return {"type": "function", "name": choice}
    return choice


def audio_messages(event: RealtimeModelSendAudio) -> list[str]:
    """Split audio into messages of an accepted size, followed by the commit."""
    made = []
    audio = event.audio
    for start in range(0, len(audio), MOST_AUDIO):
        piece = base64.b64encode(audio[start : start + MOST_AUDIO]).decode("ascii")
        made.append(f'{{"type":"input_audio_buffer.append","audio":"{piece}"}}')
    if event.commit:
        made.append('{"type":"input_audio_buffer.commit"}')
    return made


def messages_of(event: RealtimeModelSendEvent) -> list[str]:
    """Return the messages for a request, as JSON."""
    if isinstance(event, RealtimeModelSendAudio):
        return audio_messages(event)
    return [
        json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in raw_messages(event)
    ]


def raw_messages(event: RealtimeModelSendEvent) -> list[dict[str, Any]]:
    """Return the messages for a request, before they are encoded as JSON."""
    match event:
        case RealtimeModelSendUserInput():
            item = {**_user_item(event.user_input), **_id(event.item_id)}
            made: list[dict[str, Any]] = [{"type": "conversation.item.create", "item": item}]
            return [*made, _response(event.event_id)] if event.start_response else made
        case RealtimeModelSendToolOutput():
            output = {
                "type": "function_call_output",
                "call_id": event.call_id,
                "output": event.output,
                **_id(event.item_id),
            }
            made = [{"type": "conversation.item.create", "item": output}]
            return [*made, _response(event.event_id)] if event.start_response else made
        case RealtimeModelSendResponse():
            return [_response(event.event_id, event.tool_choice, event.other_data)]
        case RealtimeModelSendInterrupt():
            return _interruption(event)
        case RealtimeModelSendItem():
            return _item_messages(event)
        case RealtimeModelSendDelete():
            return [
                {
                    "type": "conversation.item.delete",
                    "item_id": event.item_id,
                    **_event_id(event.event_id),
                }
            ]
        case RealtimeModelSendRawMessage():
            message = event.message
            if not isinstance(message, Mapping) or not isinstance(message.get("type"), str):
                msg = (
                    "a message of the realtime protocol must be a mapping with a 'type', got "
                    f"{message!r}."
                )
                raise UsageError(msg)
            return [
                {
                    "type": message["type"],
                    **dict(message.get("other_data") or {}),
                    **_event_id(event.event_id),
                }
            ]
        case _:
            msg = (
                f"{type(event).__name__} is not an event that OpenAI's realtime models accept. "
                "Send another event."
            )
            raise UsageError(msg)


def _interruption(event: RealtimeModelSendInterrupt) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = [
        {
            "type": "conversation.item.truncate",
            "item_id": one.item_id,
            "content_index": one.content_index,
            "audio_end_ms": one.audio_end_ms,
        }
        for one in event.truncations
    ]
    if not event.playback_only and event.force_response_cancel:
        made.append(
            {
                "type": "response.cancel",
                **({"response_id": event.response_id} if event.response_id else {}),
                **_event_id(event.event_id),
            }
        )
    return made


def _response(
    event_id: str | None, tool_choice: str | None = None, other: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "response.create", **_event_id(event_id), **dict(other or {})}
    if tool_choice is not None:
        made["response"] = {**made.get("response", {}), "tool_choice": tool_choice}
    return made


def _event_id(event_id: str | None) -> dict[str, str]:
    return {} if event_id is None else {"event_id": event_id}


def _id(item_id: str | None) -> dict[str, str]:
    return {} if item_id is None else {"id": item_id}


def _user_item(given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        return {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": given}],
        }
    return {"type": "message", "role": "user", "content": [dict(part) for part in given["content"]]}


def _item_messages(event: RealtimeModelSendItem) -> list[dict[str, Any]]:
    item = event.item
    made: list[dict[str, Any]]
    if isinstance(item, RealtimeToolCallItem):
        call = {
            "id": item.item_id,
            "type": "function_call",
            "call_id": item.call_id,
            "name": item.name,
            "arguments": item.arguments,
        }
        made = [{"type": "conversation.item.create", "item": call, **_event_id(event.event_id)}]
        if item.output is not None:
            output = {
                "type": "function_call_output",
                "call_id": item.call_id,
                "output": item.output,
            }
            made.append(
                {"type": "conversation.item.create", "item": output, **_event_id(event.event_id)}
            )
        return made
    return [
        {
            "type": "conversation.item.create",
            "item": {"id": item.item_id, **_message(item)},
            **_event_id(event.event_id),
        }
    ]


def _message(item: SystemMessageItem | UserMessageItem | AssistantMessageItem) -> dict[str, Any]:
    """Convert an existing message to one that can be added.

    Speech is replaced by its transcript, because audio of the model cannot be added.
    """
    if isinstance(item, AssistantMessageItem):
        return {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": text_of_item(item)}],
        }
    parts: list[dict[str, Any]] = []
    for part in item.content:
        if isinstance(part, InputImage):
            parts.append(
                {
                    "type": "input_image",
                    "image_url": part.image_url,
                    **({} if part.detail is None else {"detail": part.detail}),
                }
            )
        else:
            text = part.transcript if isinstance(part, InputAudio) else part.text
            parts.append({"type": "input_text", "text": text or ""})
    return {"type": "message", "role": item.role, "content": parts}
