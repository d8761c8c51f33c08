"""What a session shows its consumer.

Owns: these values, as the Agents SDK has them, with further fields of ours. It must never hold what is not shown.
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
    """What all events have: the context of the session; ours: a number that grows, and how many events were dropped before this one."""

    context: RunContext
    seq: int = 0
    dropped: int = 0


@dataclass(slots=True)
class RealtimeAgentStartEvent:
    """A response of this agent begins."""

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
    """One agent has handed over to another one; `reverted`: the server has refused, and it is taken back."""

    from_agent: RealtimeAgent
    to_agent: RealtimeAgent
    info: RealtimeEventInfo
    type: Literal["handoff"] = "handoff"
    reverted: bool = False


@dataclass(slots=True)
class RealtimeToolStart:
    """A tool begins."""

    agent: RealtimeAgent
    tool: Any
    arguments: str
    info: RealtimeEventInfo
    type: Literal["tool_start"] = "tool_start"
    call_id: str = ""


@dataclass(slots=True)
class RealtimeToolEnd:
    """A tool has ended, whatever came of it."""

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
    """A call was cancelled, because the user has interrupted. Ours."""

    agent: RealtimeAgent
    tool: Any
    call_id: str
    arguments: str
    info: RealtimeEventInfo
    type: Literal["tool_cancelled"] = "tool_cancelled"


@dataclass(slots=True)
class RealtimeRawModelEvent:
    """What the model said, before anything follows from it."""

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
    """A piece of speech, to be played."""

    audio: RealtimeModelAudioEvent
    item_id: str
    content_index: int
    info: RealtimeEventInfo
    type: Literal["audio"] = "audio"


@dataclass(slots=True)
class RealtimeAudioInterrupted:
    """Play no more of that item: no audio of its response comes behind this."""

    info: RealtimeEventInfo
    item_id: str
    content_index: int
    type: Literal["audio_interrupted"] = "audio_interrupted"


@dataclass(slots=True)
class RealtimeError:
    """Something went wrong. Unless it is `fatal`, the session goes on."""

    error: Any
    info: RealtimeEventInfo
    type: Literal["error"] = "error"
    code: str | None = None
    fatal: bool = False
    call_id: str | None = None


class RealtimeHistoryUpdated:
    """The conversation has changed. `history` is a snapshot, made when it is first read; `changed` says which items."""

    __slots__ = ("_history", "_make", "changed", "info", "type")

    def __init__(self, history: Any, info: RealtimeEventInfo, changed: Sequence[str] = ()) -> None:
        self._make = history if callable(history) else None
        self._history: tuple[RealtimeItem, ...] | None = None if callable(history) else tuple(history)
        self.changed = tuple(changed)
        self.info = info
        self.type: Literal["history_updated"] = "history_updated"

    @property
    def history(self) -> list[RealtimeItem]:
        """All items, in their order."""
        if self._history is None:
            assert self._make is not None
            self._history, self._make = tuple(self._make()), None
        return list(self._history)

    def __repr__(self) -> str:
        return f"RealtimeHistoryUpdated(changed={self.changed!r})"


@dataclass(slots=True)
class RealtimeHistoryAdded:
    """An item is new."""

    item: RealtimeItem
    info: RealtimeEventInfo
    type: Literal["history_added"] = "history_added"


@dataclass(slots=True)
class RealtimeGuardrailTripped:
    """Guardrails have found something in what an agent says."""

    guardrail_results: list[Any]
    message: str
    info: RealtimeEventInfo
    type: Literal["guardrail_tripped"] = "guardrail_tripped"


@dataclass(slots=True)
class RealtimeInputGuardrailTripped:
    """Guardrails have found something in what the user says. Ours."""

    guardrail_results: list[Any]
    message: str
    item_id: str | None
    info: RealtimeEventInfo
    type: Literal["input_guardrail_tripped"] = "input_guardrail_tripped"


@dataclass(slots=True)
class RealtimeInputAudioTimeoutTriggered:
    """The user has said nothing for as long as the settings allow."""

    info: RealtimeEventInfo
    type: Literal["input_audio_timeout_triggered"] = "input_audio_timeout_triggered"


@dataclass(slots=True)
class RealtimeReconnected:
    """The connection was lost, or too old, and there is a new one with the same conversation. Ours."""

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
