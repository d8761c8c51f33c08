"""The events that a session shows its consumer.

They match those of the Agents SDK, with additional fields and types of offbook.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ...runtime.agent.run_context import RunContext
from ...runtime.data.chat import Usage
from .agent import RealtimeAgent
from .items import RealtimeItem
from .model_events import RealtimeModelAudioEvent, RealtimeModelEvent

__all__ = [
    "RealtimeAgentEndEvent",
    "RealtimeAgentStartEvent",
    "RealtimeAudio",
    "RealtimeAudioEnd",
    "RealtimeAudioInterrupted",
    "RealtimeError",
    "RealtimeEventInfo",
    "RealtimeGuardrailTripped",
    "RealtimeHandoffEvent",
    "RealtimeHistoryAdded",
    "RealtimeHistoryUpdated",
    "RealtimeInputAudioTimeoutTriggered",
    "RealtimeInputGuardrailTripped",
    "RealtimeRawModelEvent",
    "RealtimeReconnected",
    "RealtimeSessionEvent",
    "RealtimeToolApprovalRequired",
    "RealtimeToolCancelled",
    "RealtimeToolEnd",
    "RealtimeToolStart",
]


@dataclass(slots=True)
class RealtimeEventInfo:
    """The fields that all events have.

    They are the session's context and, added by offbook, a sequence number and the number of events
    dropped before this one.
    """

    context: RunContext
    seq: int = 0
    dropped: int = 0


@dataclass(slots=True)
class RealtimeAgentStartEvent:
    """A response of this agent starts."""

    agent: RealtimeAgent
    info: RealtimeEventInfo
    type: Literal["agent_start"] = "agent_start"
    response_id: str | None = None


@dataclass(slots=True)
class RealtimeAgentEndEvent:
    """A response of this agent has ended."""

    agent: RealtimeAgent
    info: RealtimeEventInfo
    type: Literal["agent_end"] = "agent_end"
    response_id: str | None = None
    status: str = "completed"
    usage: Usage | None = None


@dataclass(slots=True)
class RealtimeHandoffEvent:
    """One agent has handed off to another.

    `reverted` means that the server refused the handoff, which is undone.
    """

    from_agent: RealtimeAgent
    to_agent: RealtimeAgent
    info: RealtimeEventInfo
    type: Literal["handoff"] = "handoff"
    reverted: bool = False


@dataclass(slots=True)
class RealtimeToolStart:
    """A tool starts."""

    agent: RealtimeAgent
    tool: Any
    arguments: str
    info: RealtimeEventInfo
    type: Literal["tool_start"] = "tool_start"
    call_id: str = ""


@dataclass(slots=True)
class RealtimeToolEnd:
    """A tool has ended, successfully or not."""

    agent: RealtimeAgent
    tool: Any
    arguments: str
    output: Any
    info: RealtimeEventInfo
    type: Literal["tool_end"] = "tool_end"
    call_id: str = ""


@dataclass(slots=True)
class RealtimeToolApprovalRequired:
    """A call waits for `approve_tool_call` or `reject_tool_call`."""

    agent: RealtimeAgent
    tool: Any
    call_id: str
    arguments: str
    info: RealtimeEventInfo
    type: Literal["tool_approval_required"] = "tool_approval_required"


@dataclass(slots=True)
class RealtimeToolCancelled:
    """A call was cancelled because the user interrupted. Added by offbook."""

    agent: RealtimeAgent
    tool: Any
    call_id: str
    arguments: str
    info: RealtimeEventInfo
    type: Literal["tool_cancelled"] = "tool_cancelled"


@dataclass(slots=True)
class RealtimeRawModelEvent:
    """An event of the model, before it is processed."""

    data: RealtimeModelEvent
    info: RealtimeEventInfo
    type: Literal["raw_model_event"] = "raw_model_event"


@dataclass(slots=True)
class RealtimeAudioEnd:
    """All audio of an item was shown."""

    info: RealtimeEventInfo
    item_id: str
    content_index: int
    type: Literal["audio_end"] = "audio_end"


@dataclass(slots=True)
class RealtimeAudio:
    """A chunk of audio for playback."""

    audio: RealtimeModelAudioEvent
    item_id: str
    content_index: int
    info: RealtimeEventInfo
    type: Literal["audio"] = "audio"


@dataclass(slots=True)
class RealtimeAudioInterrupted:
    """Stop playback of that item. No more audio of its response follows."""

    info: RealtimeEventInfo
    item_id: str
    content_index: int
    type: Literal["audio_interrupted"] = "audio_interrupted"


@dataclass(slots=True)
class RealtimeError:
    """An error. Unless it is `fatal`, the session continues."""

    error: Any
    info: RealtimeEventInfo
    type: Literal["error"] = "error"
    code: str | None = None
    fatal: bool = False
    call_id: str | None = None


class RealtimeHistoryUpdated:
    """The conversation has changed.

    `history` is a snapshot, made when it is first read. `changed` lists the ids of the changed
    items.
    """

    __slots__ = ("_history", "_make", "changed", "info", "type")

    def __init__(self, history: Any, info: RealtimeEventInfo, changed: Sequence[str] = ()) -> None:
        self._make = history if callable(history) else None
        self._history: tuple[RealtimeItem, ...] | None = (
            None if callable(history) else tuple(history)
        )
        self.changed = tuple(changed)
        self.info = info
        self.type: Literal["history_updated"] = "history_updated"

    @property
    def history(self) -> list[RealtimeItem]:
        """All items, in order."""
        if self._history is None:
            assert self._make is not None
            self._history, self._make = tuple(self._make()), None
        return list(self._history)

    def __repr__(self) -> str:
        return f"RealtimeHistoryUpdated(changed={self.changed!r})"


@dataclass(slots=True)
class RealtimeHistoryAdded:
    """A new item."""

    item: RealtimeItem
    info: RealtimeEventInfo
    type: Literal["history_added"] = "history_added"


@dataclass(slots=True)
class RealtimeGuardrailTripped:
    """Guardrails have tripped on an agent's output."""

    guardrail_results: list[Any]
    message: str
    info: RealtimeEventInfo
    type: Literal["guardrail_tripped"] = "guardrail_tripped"


@dataclass(slots=True)
class RealtimeInputGuardrailTripped:
    """Guardrails have tripped on the user's input. Added by offbook."""

    guardrail_results: list[Any]
    message: str
    item_id: str | None
    info: RealtimeEventInfo
    type: Literal["input_guardrail_tripped"] = "input_guardrail_tripped"


@dataclass(slots=True)
class RealtimeInputAudioTimeoutTriggered:
    """The user was silent for as long as the settings allow."""

    info: RealtimeEventInfo
    type: Literal["input_audio_timeout_triggered"] = "input_audio_timeout_triggered"


@dataclass(slots=True)
class RealtimeReconnected:
    """A new connection has replaced a lost or old one, with the same conversation.

    Added by offbook.
    """

    attempt: int
    seconds: float
    replayed: int
    dropped_audio_ms: float
    resumed: bool
    info: RealtimeEventInfo = field(repr=False)
    type: Literal["reconnected"] = "reconnected"


RealtimeSessionEvent: TypeAlias = (
    RealtimeAgentStartEvent
    | RealtimeAgentEndEvent
    | RealtimeHandoffEvent
    | RealtimeToolStart
    | RealtimeToolEnd
    | RealtimeToolApprovalRequired
    | RealtimeToolCancelled
    | RealtimeRawModelEvent
    | RealtimeAudioEnd
    | RealtimeAudio
    | RealtimeAudioInterrupted
    | RealtimeError
    | RealtimeHistoryUpdated
    | RealtimeHistoryAdded
    | RealtimeGuardrailTripped
    | RealtimeInputGuardrailTripped
    | RealtimeInputAudioTimeoutTriggered
    | RealtimeReconnected
)
