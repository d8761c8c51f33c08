"""What a session tells its connection.

Owns: these values, as the Agents SDK has them; those of ours say what the SDK leaves to its model. A connection that cannot do what is asked says so by
`UsageError`. It must never know a wire format.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

from .config import RealtimeSessionModelSettings
from .items import RealtimeItem
from .model_events import RealtimeModelToolCallEvent

__all__ = [
    "RealtimeModelInputImageContent",
    "RealtimeModelInputTextContent",
    "RealtimeModelRawClientMessage",
    "RealtimeModelSendAudio",
    "RealtimeModelSendDelete",
    "RealtimeModelSendEvent",
    "RealtimeModelSendInterrupt",
    "RealtimeModelSendItem",
    "RealtimeModelSendRawMessage",
    "RealtimeModelSendResponse",
    "RealtimeModelSendSessionUpdate",
    "RealtimeModelSendToolCallOutput",
    "RealtimeModelSendToolOutput",
    "RealtimeModelSendUserInput",
    "RealtimeModelUserInput",
    "RealtimeModelUserInputMessage",
    "Truncation",
]


class RealtimeModelRawClientMessage(TypedDict):
    """A message of the protocol, as the program wants it."""

    type: str
    other_data: NotRequired[dict[str, Any]]


class RealtimeModelInputTextContent(TypedDict):
    """A text in a message."""

    type: Literal["input_text"]
    text: str


class RealtimeModelInputImageContent(TypedDict, total=False):
    """A picture in a message."""

    type: Literal["input_image"]
    image_url: str
    detail: NotRequired[str]


class RealtimeModelUserInputMessage(TypedDict):
    """A message of the user's, in parts."""

    type: Literal["message"]
    role: Literal["user"]
    content: list[RealtimeModelInputTextContent | RealtimeModelInputImageContent]


RealtimeModelUserInput: TypeAlias = str | RealtimeModelUserInputMessage


@dataclass(slots=True)
class RealtimeModelSendRawMessage:
    """Send this message; `event_id` is ours."""

    message: RealtimeModelRawClientMessage
    event_id: str | None = field(default=None, compare=False)


@dataclass(slots=True)
class RealtimeModelSendUserInput:
    """Put a message in, and with `start_response` have it answered. All but the input is ours."""

    user_input: RealtimeModelUserInput
    item_id: str | None = field(default=None, compare=False)
    start_response: bool = field(default=True, compare=False)
    event_id: str | None = field(default=None, compare=False)
    """Of the wish for a response."""


@dataclass(slots=True)
class RealtimeModelSendAudio:
    """Put audio in, and with `commit` end the turn."""

    audio: bytes
    commit: bool = False


class RealtimeModelSendToolOutput:
    """The output of a call. Made of the call, or of its id alone."""

    __slots__ = ("event_id", "item_id", "output", "start_response", "tool_call")

    def __init__(
        self,
        tool_call: RealtimeModelToolCallEvent | None = None,
        output: str = "",
        start_response: bool = False,  # noqa: FBT001, FBT002 -- the SDK's
        *,
        call_id: str | None = None,
        event_id: str | None = None,
        item_id: str | None = None,
    ) -> None:
        if tool_call is None:
            if call_id is None:
                msg = "RealtimeModelSendToolOutput() needs tool_call=, or call_id="
                raise TypeError(msg)
            tool_call = RealtimeModelToolCallEvent("", call_id, "")
        self.tool_call = tool_call
        self.output = output
        self.start_response = start_response
        self.event_id = event_id  # of the wish for a response
        self.item_id = item_id

    @property
    def call_id(self) -> str:
        """The id of the call."""
        return self.tool_call.call_id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RealtimeModelSendToolOutput):
            return NotImplemented
        return (self.call_id, self.output, self.start_response) == (other.call_id, other.output, other.start_response)

    def __hash__(self) -> int:
        return hash((self.call_id, self.output))

    def __repr__(self) -> str:
        return f"RealtimeModelSendToolOutput(call_id={self.call_id!r}, output={self.output!r}, start_response={self.start_response!r})"


RealtimeModelSendToolCallOutput = RealtimeModelSendToolOutput


@dataclass(frozen=True, slots=True)
class Truncation:
    """Where an item is cut. Ours."""

    item_id: str
    content_index: int
    audio_end_ms: int


@dataclass(slots=True)
class RealtimeModelSendInterrupt:
    """End what is said. Ours: where each item is cut, and whether the response is cancelled."""

    force_response_cancel: bool = False
    response_id: str | None = None
    cancel_response_only: bool = False
    playback_only: bool = False
    truncations: tuple[Truncation, ...] = field(default=(), compare=False)
    event_id: str | None = field(default=None, compare=False)


@dataclass(slots=True)
class RealtimeModelSendSessionUpdate:
    """Change the settings of the session; only those that are named."""

    session_settings: RealtimeSessionModelSettings


@dataclass(slots=True)
class RealtimeModelSendResponse:
    """Ours: begin a response."""

    event_id: str | None = None
    tool_choice: str | None = None
    other_data: Mapping[str, Any] | None = None


@dataclass(slots=True)
class RealtimeModelSendItem:
    """Ours: put an item in as it is, with its own id; of a call with an output, both."""

    item: RealtimeItem
    event_id: str | None = None


@dataclass(slots=True)
class RealtimeModelSendDelete:
    """Ours: remove an item."""

    item_id: str
    event_id: str | None = None


RealtimeModelSendEvent: TypeAlias = (
    RealtimeModelSendRawMessage
    | RealtimeModelSendUserInput
    | RealtimeModelSendAudio
    | RealtimeModelSendToolOutput
    | RealtimeModelSendInterrupt
    | RealtimeModelSendSessionUpdate
    | RealtimeModelSendResponse
    | RealtimeModelSendItem
    | RealtimeModelSendDelete
)
