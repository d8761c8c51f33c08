"""The requests of a session to its connection.

They match those of the Agents SDK. The ones marked "offbook:" control steps that the SDK leaves to
its model. A connection that does not support a request raises `UsageError`.
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
    """A message of the protocol, verbatim."""

    type: str
    other_data: NotRequired[dict[str, Any]]


class RealtimeModelInputTextContent(TypedDict):
    """A text in a message."""

    type: Literal["input_text"]
    text: str


class RealtimeModelInputImageContent(TypedDict, total=False):
    """An image in a message."""

    type: Literal["input_image"]
    image_url: str
    detail: NotRequired[str]


class RealtimeModelUserInputMessage(TypedDict):
    """A user message, in parts."""

    type: Literal["message"]
    role: Literal["user"]
    content: list[RealtimeModelInputTextContent | RealtimeModelInputImageContent]


RealtimeModelUserInput: TypeAlias = str | RealtimeModelUserInputMessage


@dataclass(slots=True)
class RealtimeModelSendRawMessage:
    """Send this message. `event_id` is added by offbook."""

    message: RealtimeModelRawClientMessage
    event_id: str | None = field(default=None, compare=False)


@dataclass(slots=True)
class RealtimeModelSendUserInput:
    """Add a user message, and request a response with `start_response`.

    All fields except the input are added by offbook.
    """

    user_input: RealtimeModelUserInput
    item_id: str | None = field(default=None, compare=False)
    start_response: bool = field(default=True, compare=False)
    event_id: str | None = field(default=None, compare=False)
    """The event id of the response request."""


@dataclass(slots=True)
class RealtimeModelSendAudio:
    """Send audio, and end the turn with `commit`."""

    audio: bytes
    commit: bool = False


class RealtimeModelSendToolOutput:
    """The output of a call, made from the call or from its id alone."""

    __slots__ = ("event_id", "item_id", "output", "start_response", "tool_call")

    def __init__(
        self,
        tool_call: RealtimeModelToolCallEvent | None = None,
        output: str = "",
        start_response: bool = False,  # noqa: FBT001, FBT002 -- the SDK's signature
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
        self.event_id = event_id  # of the response request
        self.item_id = item_id

    @property
    def call_id(self) -> str:
        """The id of the call."""
        return self.tool_call.call_id

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RealtimeModelSendToolOutput):
            return NotImplemented
        return (self.call_id, self.output, self.start_response) == (
            other.call_id,
            other.output,
            other.start_response,
        )

    def __hash__(self) -> int:
        return hash((self.call_id, self.output))

    def __repr__(self) -> str:
        return (
            f"RealtimeModelSendToolOutput(call_id={self.call_id!r}, output={self.output!r}, "
            f"start_response={self.start_response!r})"
        )


RealtimeModelSendToolCallOutput = RealtimeModelSendToolOutput


@dataclass(frozen=True, slots=True)
class Truncation:
    """The position at which an item is truncated. Added by offbook."""

    item_id: str
    content_index: int
    audio_end_ms: int


@dataclass(slots=True)
class RealtimeModelSendInterrupt:
    """Interrupt the current response.

    offbook: the position at which each item is truncated, and whether the response is cancelled.
    """

    force_response_cancel: bool = False
    response_id: str | None = None
    cancel_response_only: bool = False
    playback_only: bool = False
    truncations: tuple[Truncation, ...] = field(default=(), compare=False)
    event_id: str | None = field(default=None, compare=False)


@dataclass(slots=True)
class RealtimeModelSendSessionUpdate:
    """Change the given settings of the session."""

    session_settings: RealtimeSessionModelSettings


@dataclass(slots=True)
class RealtimeModelSendResponse:
    """offbook: request a response."""

    event_id: str | None = None
    tool_choice: str | None = None
    other_data: Mapping[str, Any] | None = None


@dataclass(slots=True)
class RealtimeModelSendItem:
    """offbook: add an item unchanged, with its own id; for a call with an output, add both."""

    item: RealtimeItem
    event_id: str | None = None


@dataclass(slots=True)
class RealtimeModelSendDelete:
    """offbook: delete an item."""

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
