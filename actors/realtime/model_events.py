"""The events that a connection reports to its session.

They match those of the Agents SDK. Additional fields and types of offbook are marked with
"offbook:".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ...runtime.data.chat import Usage
from .items import RealtimeItem

__all__ = [
    "RealtimeConnectionStatus",
    "RealtimeModelAudioDoneEvent",
    "RealtimeModelAudioEvent",
    "RealtimeModelAudioInterruptedEvent",
    "RealtimeModelCachedTokensDetails",
    "RealtimeModelConnectionStatusEvent",
    "RealtimeModelEndOfStreamEvent",
    "RealtimeModelErrorEvent",
    "RealtimeModelEvent",
    "RealtimeModelExceptionEvent",
    "RealtimeModelInputAudioTimeoutTriggeredEvent",
    "RealtimeModelInputAudioTranscriptionCompletedEvent",
    "RealtimeModelInputAudioTranscriptionFailedEvent",
    "RealtimeModelInputTokensDetails",
    "RealtimeModelItemAcceptedEvent",
    "RealtimeModelItemDeletedEvent",
    "RealtimeModelItemTruncatedEvent",
    "RealtimeModelItemUpdatedEvent",
    "RealtimeModelOtherEvent",
    "RealtimeModelOutputTextDeltaEvent",
    "RealtimeModelOutputTokensDetails",
    "RealtimeModelRawServerEvent",
    "RealtimeModelSpeechStartedEvent",
    "RealtimeModelSpeechStoppedEvent",
    "RealtimeModelToolCallEvent",
    "RealtimeModelTranscriptDeltaEvent",
    "RealtimeModelTurnEndedEvent",
    "RealtimeModelTurnStartedEvent",
    "RealtimeModelUsageEvent",
]

RealtimeConnectionStatus: TypeAlias = Literal["connecting", "connected", "disconnected"]


@dataclass(slots=True)
class RealtimeModelErrorEvent:
    """An error reported by the model; offbook: its `code`, and the `event_id` of the request."""

    error: Any
    type: Literal["error"] = "error"
    code: str | None = None
    event_id: str | None = None


@dataclass(slots=True)
class RealtimeModelToolCallEvent:
    """A call with complete arguments; offbook: the id of its response."""

    name: str
    call_id: str
    arguments: str
    id: str | None = None
    previous_item_id: str | None = None
    type: Literal["function_call"] = "function_call"
    response_id: str | None = field(default=None, compare=False)


@dataclass(slots=True)
class RealtimeModelAudioEvent:
    """A chunk of speech."""

    data: bytes
    response_id: str
    item_id: str
    content_index: int
    type: Literal["audio"] = "audio"


@dataclass(slots=True)
class RealtimeModelAudioInterruptedEvent:
    """The model has interrupted the playback."""

    item_id: str
    content_index: int
    type: Literal["audio_interrupted"] = "audio_interrupted"


@dataclass(slots=True)
class RealtimeModelAudioDoneEvent:
    """All speech of an item was received."""

    item_id: str
    content_index: int
    type: Literal["audio_done"] = "audio_done"


@dataclass(slots=True)
class RealtimeModelInputAudioTranscriptionCompletedEvent:
    """The transcript of the user's speech."""

    item_id: str
    transcript: str
    type: Literal["input_audio_transcription_completed"] = "input_audio_transcription_completed"


@dataclass(slots=True)
class RealtimeModelInputAudioTranscriptionFailedEvent:
    """offbook: the user's speech could not be transcribed."""

    item_id: str
    error: Any
    type: Literal["input_audio_transcription_failed"] = "input_audio_transcription_failed"


@dataclass(slots=True)
class RealtimeModelInputAudioTimeoutTriggeredEvent:
    """The user was silent for as long as the settings allow."""

    item_id: str
    audio_start_ms: int
    audio_end_ms: int
    type: Literal["input_audio_timeout_triggered"] = "input_audio_timeout_triggered"


@dataclass(slots=True)
class RealtimeModelSpeechStartedEvent:
    """offbook: the user starts speaking."""

    item_id: str
    audio_start_ms: int = 0
    type: Literal["speech_started"] = "speech_started"


@dataclass(slots=True)
class RealtimeModelSpeechStoppedEvent:
    """offbook: the user has stopped speaking."""

    item_id: str
    audio_end_ms: int = 0
    type: Literal["speech_stopped"] = "speech_stopped"


@dataclass(slots=True)
class RealtimeModelTranscriptDeltaEvent:
    """A delta of the transcript of the model's speech."""

    item_id: str
    delta: str
    response_id: str
    type: Literal["transcript_delta"] = "transcript_delta"


@dataclass(slots=True)
class RealtimeModelOutputTextDeltaEvent:
    """A delta of the model's text."""

    item_id: str
    delta: str
    response_id: str
    type: Literal["output_text_delta"] = "output_text_delta"


@dataclass(slots=True)
class RealtimeModelItemUpdatedEvent:
    """An item is new or has changed; offbook: its response, and whether it is complete."""

    item: RealtimeItem
    type: Literal["item_updated"] = "item_updated"
    response_id: str | None = None
    done: bool = False


@dataclass(slots=True)
class RealtimeModelItemAcceptedEvent:
    """offbook: the model has accepted an item that is not shown, such as the output of a call."""

    item_id: str
    type: Literal["item_accepted"] = "item_accepted"


@dataclass(slots=True)
class RealtimeModelItemDeletedEvent:
    """An item was deleted."""

    item_id: str
    type: Literal["item_deleted"] = "item_deleted"


@dataclass(slots=True)
class RealtimeModelItemTruncatedEvent:
    """offbook: an item was truncated.

    `transcript` is the remaining text, if the model reports it.
    """

    item_id: str
    content_index: int = 0
    audio_end_ms: int = 0
    transcript: str | None = None
    type: Literal["item_truncated"] = "item_truncated"


@dataclass(slots=True)
class RealtimeModelConnectionStatusEvent:
    """The status of the connection."""

    status: RealtimeConnectionStatus
    type: Literal["connection_status"] = "connection_status"


@dataclass(slots=True)
class RealtimeModelEndOfStreamEvent:
    """No more events follow."""

    type: Literal["end_of_stream"] = "end_of_stream"


@dataclass(slots=True)
class RealtimeModelTurnStartedEvent:
    """A response starts; offbook: whether it is outside the conversation."""

    type: Literal["turn_started"] = "turn_started"
    response_id: str | None = None
    out_of_band: bool = False


@dataclass(slots=True)
class RealtimeModelCachedTokensDetails:
    """Tokens from the provider's cache."""

    text_tokens: int | None = None
    audio_tokens: int | None = None
    image_tokens: int | None = None


@dataclass(slots=True)
class RealtimeModelInputTokensDetails:
    """Input tokens, by kind."""

    text_tokens: int | None = None
    audio_tokens: int | None = None
    image_tokens: int | None = None
    cached_tokens: int | None = None
    cached_tokens_details: RealtimeModelCachedTokensDetails | None = None


@dataclass(slots=True)
class RealtimeModelOutputTokensDetails:
    """Output tokens, by kind."""

    text_tokens: int | None = None
    audio_tokens: int | None = None


@dataclass(slots=True)
class RealtimeModelUsageEvent:
    """The token usage of a response."""

    usage: Usage
    input_tokens_details: RealtimeModelInputTokensDetails | None = None
    output_tokens_details: RealtimeModelOutputTokensDetails | None = None
    type: Literal["usage"] = "usage"


@dataclass(slots=True)
class RealtimeModelTurnEndedEvent:
    """A response has ended; offbook: its status, and the error if it failed."""

    type: Literal["turn_ended"] = "turn_ended"
    response_id: str | None = None
    status: str = "completed"
    error: Any = None
    code: str | None = None


@dataclass(slots=True)
class RealtimeModelOtherEvent:
    """A message that a session ignores."""

    data: Any
    type: Literal["other"] = "other"


@dataclass(slots=True)
class RealtimeModelExceptionEvent:
    """The model has raised an exception; `context` describes the operation."""

    exception: Exception
    context: str | None = None
    type: Literal["exception"] = "exception"


@dataclass(slots=True)
class RealtimeModelRawServerEvent:
    """A message of the server, unchanged."""

    data: Any
    type: Literal["raw_server_event"] = "raw_server_event"


RealtimeModelEvent: TypeAlias = (
    RealtimeModelErrorEvent
    | RealtimeModelToolCallEvent
    | RealtimeModelAudioEvent
    | RealtimeModelAudioInterruptedEvent
    | RealtimeModelAudioDoneEvent
    | RealtimeModelInputAudioTranscriptionCompletedEvent
    | RealtimeModelInputAudioTranscriptionFailedEvent
    | RealtimeModelInputAudioTimeoutTriggeredEvent
    | RealtimeModelSpeechStartedEvent
    | RealtimeModelSpeechStoppedEvent
    | RealtimeModelTranscriptDeltaEvent
    | RealtimeModelOutputTextDeltaEvent
    | RealtimeModelItemUpdatedEvent
    | RealtimeModelItemAcceptedEvent
    | RealtimeModelItemDeletedEvent
    | RealtimeModelItemTruncatedEvent
    | RealtimeModelConnectionStatusEvent
    | RealtimeModelEndOfStreamEvent
    | RealtimeModelTurnStartedEvent
    | RealtimeModelUsageEvent
    | RealtimeModelTurnEndedEvent
    | RealtimeModelOtherEvent
    | RealtimeModelExceptionEvent
    | RealtimeModelRawServerEvent
)
