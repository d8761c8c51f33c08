"""Converts messages of OpenAI's protocol to events for a session.

Both the current spellings and those of the beta are supported. A message of an unknown type is not
an error.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from types import MappingProxyType
from typing import Any, Final

import jiter

from ....runtime.data.chat import Usage
from ..items import (
    AssistantMessageItem,
    RealtimeItem,
    RealtimeToolCallItem,
    SystemMessageItem,
    UserMessageItem,
)
from ..model_events import (
    RealtimeModelAudioDoneEvent,
    RealtimeModelAudioEvent,
    RealtimeModelErrorEvent,
    RealtimeModelEvent,
    RealtimeModelInputAudioTimeoutTriggeredEvent,
    RealtimeModelInputAudioTranscriptionCompletedEvent,
    RealtimeModelInputAudioTranscriptionFailedEvent,
    RealtimeModelInputTokensDetails,
    RealtimeModelItemAcceptedEvent,
    RealtimeModelItemDeletedEvent,
    RealtimeModelItemTruncatedEvent,
    RealtimeModelItemUpdatedEvent,
    RealtimeModelOtherEvent,
    RealtimeModelOutputTextDeltaEvent,
    RealtimeModelOutputTokensDetails,
    RealtimeModelSpeechStartedEvent,
    RealtimeModelSpeechStoppedEvent,
    RealtimeModelToolCallEvent,
    RealtimeModelTranscriptDeltaEvent,
    RealtimeModelTurnEndedEvent,
    RealtimeModelTurnStartedEvent,
    RealtimeModelUsageEvent,
)

__all__ = ["decode", "item_of", "read_message"]


def read_message(data: bytes | str) -> dict[str, Any]:
    """Parse a message. Raise `ValueError` if it is not valid."""
    message = jiter.from_json(data.encode() if isinstance(data, str) else data)
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        msg = "a message of the realtime protocol must be an object with a string 'type'"
        raise ValueError(msg)  # noqa: TRY004 -- the received value is wrong, not its type
    return message


def decode(message: dict[str, Any]) -> list[RealtimeModelEvent]:
    """Convert a message to events.

    Raises `KeyError`, `TypeError` or `ValueError` if a required field is missing or invalid.
    """
    reader = _READERS.get(message["type"])
    return [RealtimeModelOtherEvent(message)] if reader is None else reader(message)


def _audio(message: dict[str, Any]) -> list[RealtimeModelEvent]:
    data = binascii.a2b_base64(message["delta"])
    return [
        RealtimeModelAudioEvent(
            data, message["response_id"], message["item_id"], message.get("content_index", 0)
        )
    ]


def _audio_done(message: dict[str, Any]) -> list[RealtimeModelEvent]:
    return [RealtimeModelAudioDoneEvent(message["item_id"], message.get("content_index", 0))]


def _transcript(message: dict[str, Any]) -> list[RealtimeModelEvent]:
    return [
        RealtimeModelTranscriptDeltaEvent(
            message["item_id"], message["delta"], message["response_id"]
        )
    ]


def _text(message: dict[str, Any]) -> list[RealtimeModelEvent]:
    return [
        RealtimeModelOutputTextDeltaEvent(
            message["item_id"], message["delta"], message["response_id"]
        )
    ]


def _started(message: dict[str, Any]) -> list[RealtimeModelEvent]:
    response = message["response"]
    outside = response.get("conversation_id", "") is None
    return [RealtimeModelTurnStartedEvent(response_id=response["id"], out_of_band=outside)]


def _ended(message: dict[str, Any]) -> list[RealtimeModelEvent]:
    response = message["response"]
    details = response.get("status_details") or {}
    error = details.get("error") or None
    code = (error or {}).get("code") or (error or {}).get("type")
    made: list[RealtimeModelEvent] = []
    if response.get("usage"):
        made.append(_usage(response["usage"]))
    ended = RealtimeModelTurnEndedEvent(
        response_id=response["id"],
        status=response.get("status") or "completed",
        error=error,
        code=code,
    )
    return [*made, ended]


def _usage(given: dict[str, Any]) -> RealtimeModelUsageEvent:
    went_in, came_out = (
        given.get("input_token_details") or {},
        given.get("output_token_details") or {},
    )
    usage = Usage(
        given.get("input_tokens") or 0,
        given.get("output_tokens") or 0,
        went_in.get("cached_tokens") or 0,
        1,
    )
    return RealtimeModelUsageEvent(
        usage,
        RealtimeModelInputTokensDetails(
            *(
                went_in.get(name)
                for name in ("text_tokens", "audio_tokens", "image_tokens", "cached_tokens")
            )
        ),
        RealtimeModelOutputTokensDetails(came_out.get("text_tokens"), came_out.get("audio_tokens")),
    )


def _item_updated(message: dict[str, Any], *, done: bool = False) -> list[RealtimeModelEvent]:
    raw = message["item"]
    item = item_of(raw, message.get("previous_item_id"))
    response_id = message.get("response_id")
    if item is None:
        return [RealtimeModelItemAcceptedEvent(raw["id"])]
    updated = RealtimeModelItemUpdatedEvent(item, response_id=response_id, done=done)
    if (
        done
        and raw["type"] == "function_call"
        and response_id is not None
        and raw.get("status") != "incomplete"
    ):
        call = RealtimeModelToolCallEvent(
            raw.get("name") or "",
            raw.get("call_id") or "",
            raw.get("arguments") or "",
            raw.get("id"),
            message.get("previous_item_id"),
            response_id=response_id,
        )
        return [updated, call]
    return [updated]


def _item_done(message: dict[str, Any]) -> list[RealtimeModelEvent]:
    return _item_updated(message, done=True)


_CONTENT: Final = MappingProxyType({"output_text": "text", "output_audio": "audio"})


def item_of(raw: dict[str, Any], previous: str | None = None) -> RealtimeItem | None:
    """Convert an item of the protocol to an item of the conversation.

    Returns None for an item that is not shown, such as the output of a call.
    """
    before = {"item_id": raw["id"], "previous_item_id": previous}
    if raw["type"] == "function_call":
        status: Any = "in_progress"
        return RealtimeToolCallItem(
            **before,
            call_id=raw.get("call_id"),
            status=status,
            arguments=raw.get("arguments") or "",
            name=raw.get("name") or "",
        )
    if raw["type"] != "message":
        return None
    content = [
        {**part, "type": _CONTENT.get(part["type"], part["type"])}
        for part in raw.get("content") or ()
    ]
    for part in content:
        part.pop("audio", None)
    if raw["role"] == "user":
        return UserMessageItem.model_validate({**before, "content": content})
    if raw["role"] == "system":
        return SystemMessageItem.model_validate({**before, "content": content})
    return AssistantMessageItem.model_validate(
        {**before, "content": content, "status": raw.get("status")}
    )


def _deleted(message: dict[str, Any]) -> list[RealtimeModelEvent]:
    return [RealtimeModelItemDeletedEvent(message["item_id"])]


def _truncated(message: dict[str, Any]) -> list[RealtimeModelEvent]:
    index, end = message.get("content_index", 0), message.get("audio_end_ms", 0)
    return [
        RealtimeModelItemTruncatedEvent(message["item_id"], index, end, message.get("transcript"))
    ]


def _transcribed(message: dict[str, Any]) -> list[RealtimeModelEvent]:
    return [
        RealtimeModelInputAudioTranscriptionCompletedEvent(
            message["item_id"], message["transcript"]
        )
    ]


def _not_transcribed(message: dict[str, Any]) -> list[RealtimeModelEvent]:
    return [
        RealtimeModelInputAudioTranscriptionFailedEvent(message["item_id"], message.get("error"))
    ]


def _speech_started(message: dict[str, Any]) -> list[RealtimeModelEvent]:
    return [RealtimeModelSpeechStartedEvent(message["item_id"], message.get("audio_start_ms", 0))]


def _speech_stopped(message: dict[str, Any]) -> list[RealtimeModelEvent]:
    return [RealtimeModelSpeechStoppedEvent(message["item_id"], message.get("audio_end_ms", 0))]


def _timeout(message: dict[str, Any]) -> list[RealtimeModelEvent]:
    return [
        RealtimeModelInputAudioTimeoutTriggeredEvent(
            message["item_id"], message.get("audio_start_ms", 0), message.get("audio_end_ms", 0)
        )
    ]


def _error(message: dict[str, Any]) -> list[RealtimeModelEvent]:
    error = message["error"]
    return [RealtimeModelErrorEvent(error, code=error.get("code"), event_id=error.get("event_id"))]


_Reader = Callable[[dict[str, Any]], list[RealtimeModelEvent]]
_READERS: Final = MappingProxyType[str, _Reader](
    {
        "response.output_audio.delta": _audio,
        "response.audio.delta": _audio,
        "response.output_audio.done": _audio_done,
        "response.audio.done": _audio_done,
        "response.output_audio_transcript.delta": _transcript,
        "response.audio_transcript.delta": _transcript,
        "response.output_text.delta": _text,
        "response.text.delta": _text,
        "response.created": _started,
        "response.done": _ended,
        "response.output_item.added": _item_updated,
        "response.output_item.done": _item_done,
        "conversation.item.added": _item_updated,
        "conversation.item.created": _item_updated,
        "conversation.item.retrieved": _item_updated,
        "conversation.item.done": _item_updated,
        "conversation.item.deleted": _deleted,
        "conversation.item.truncated": _truncated,
        "conversation.item.input_audio_transcription.completed": _transcribed,
        "conversation.item.input_audio_transcription.failed": _not_transcribed,
        "input_audio_buffer.speech_started": _speech_started,
        "input_audio_buffer.speech_stopped": _speech_stopped,
        "input_audio_buffer.timeout_triggered": _timeout,
        "error": _error,
    }
)
