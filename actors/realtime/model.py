"""The protocols of a realtime model and of one session's connection.

Models in the style of the Agents SDK are supported, too. The playback tracker reports how much of
the audio was heard.
"""

from __future__ import annotations

import abc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypedDict, runtime_checkable

from .audio_formats import PCM16, AudioFormat, as_audio_format
from .config import RealtimeAudioFormat, RealtimeSessionModelSettings
from .model_events import RealtimeModelEvent
from .model_inputs import RealtimeModelSendEvent

__all__ = [
    "RealtimeConnection",
    "RealtimeModel",
    "RealtimeModelConfig",
    "RealtimeModelListener",
    "RealtimePlaybackState",
    "RealtimePlaybackTracker",
]


class RealtimePlaybackState(TypedDict):
    """The current state of the playback."""

    current_item_id: str | None
    current_item_content_index: int | None
    elapsed_ms: float | None


class RealtimePlaybackTracker:
    """Reports how much of each item was heard.

    Call `on_play_bytes` or `on_play_ms` with the audio played since the last call. The played
    amount of earlier items is retained.
    """

    def __init__(self) -> None:
        self._format: AudioFormat = PCM16
        self._current: tuple[str, int] | None = None
        self._heard: dict[tuple[str, int], float] = {}

    def on_play_bytes(self, item_id: str, item_content_index: int, bytes: bytes) -> None:  # noqa: A002 -- the SDK's signature
        """Record that these bytes were played."""
        self.on_play_ms(item_id, item_content_index, self._format.ms(len(bytes)))

    def on_play_ms(self, item_id: str, item_content_index: int, ms: float) -> None:
        """Record that this many milliseconds were played."""
        self._current = key = (item_id, item_content_index)
        self._heard[key] = self._heard.get(key, 0.0) + ms

    def on_interrupted(self) -> None:
        """Record that playback has stopped."""
        self._current = None

    def set_audio_format(self, format: RealtimeAudioFormat) -> None:  # noqa: A002 -- the SDK's signature
        """Set the format in which bytes are counted."""
        self._format = as_audio_format(format)

    def get_state(self) -> RealtimePlaybackState:
        """Return the current playback state."""
        if self._current is None:
            return {"current_item_id": None, "current_item_content_index": None, "elapsed_ms": None}
        item_id, index = self._current
        return {
            "current_item_id": item_id,
            "current_item_content_index": index,
            "elapsed_ms": self._heard[self._current],
        }

    def heard_ms(self, item_id: str, content_index: int) -> float:
        """Return how many milliseconds of that item were played."""
        return self._heard.get((item_id, content_index), 0.0)


class RealtimeModelListener(abc.ABC):
    """Receives the events of a model in the style of the SDK."""

    @abc.abstractmethod
    async def on_event(self, event: RealtimeModelEvent) -> None:
        """Handle an event."""


class RealtimeModelConfig(TypedDict, total=False):
    """The connection settings of one session.

    The default `url` is OpenAI's. `headers` replace the key.
    """

    api_key: str | Callable[[], str | Awaitable[str]]
    url: str
    headers: dict[str, str]
    initial_model_settings: RealtimeSessionModelSettings
    playback_tracker: RealtimePlaybackTracker
    call_id: str


class RealtimeConnection(Protocol):
    """One session's connection."""

    keeps_conversation: bool
    """Whether the server still has the conversation after a reconnect."""

    async def send(self, event: RealtimeModelSendEvent) -> None:
        """Send a request.

        A session update returns when it is in force, and raises `ModelError` if it was refused.
        """

    def events(self) -> AsyncIterator[RealtimeModelEvent]:
        """Yield the received events. End on a clean close, and raise on any other."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the connection. Nothing is sent after that."""


@runtime_checkable
class RealtimeModel(Protocol):
    """A model definition, shared by sessions, which stores nothing of a session.

    A model with `add_listener` is in the style of the SDK, and serves one session at a time.
    """

    async def connect(self, options: RealtimeModelConfig) -> RealtimeConnection:
        """Connect one session."""
        raise NotImplementedError
