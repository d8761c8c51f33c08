"""What a realtime model is: a description that connects, and the connection that one session has.

Owns: the two protocols, the style of the Agents SDK beside them, and what says how much of the audio was heard. It must never know a wire format.
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
    """What is played."""

    current_item_id: str | None
    current_item_content_index: int | None
    elapsed_ms: float | None


class RealtimePlaybackTracker:
    """Says how much of each item was heard: call `on_play_bytes` or `on_play_ms` with what was played since the last call.

    What was played of an item before another one began is kept.
    """

    def __init__(self) -> None:
        self._format: AudioFormat = PCM16
        self._current: tuple[str, int] | None = None
        self._heard: dict[tuple[str, int], float] = {}

    def on_play_bytes(self, item_id: str, item_content_index: int, bytes: bytes) -> None:  # noqa: A002 -- the SDK's
        """These bytes were played."""
        self.on_play_ms(item_id, item_content_index, self._format.ms(len(bytes)))

    def on_play_ms(self, item_id: str, item_content_index: int, ms: float) -> None:
        """So many milliseconds were played."""
        self._current = key = (item_id, item_content_index)
        self._heard[key] = self._heard.get(key, 0.0) + ms

    def on_interrupted(self) -> None:
        """Nothing is played any more."""
        self._current = None

    def set_audio_format(self, format: RealtimeAudioFormat) -> None:  # noqa: A002 -- the SDK's
        """In which format bytes are counted."""
        self._format = as_audio_format(format)

    def get_state(self) -> RealtimePlaybackState:
        """What is played now."""
        if self._current is None:
            return {"current_item_id": None, "current_item_content_index": None, "elapsed_ms": None}
        item_id, index = self._current
        return {"current_item_id": item_id, "current_item_content_index": index, "elapsed_ms": self._heard[self._current]}

    def heard_ms(self, item_id: str, content_index: int) -> float:
        """How much of that item was played."""
        return self._heard.get((item_id, content_index), 0.0)


class RealtimeModelListener(abc.ABC):
    """Is told by a model in the style of the SDK what happens."""

    @abc.abstractmethod
    async def on_event(self, event: RealtimeModelEvent) -> None:
        """Something has happened."""


class RealtimeModelConfig(TypedDict, total=False):
    """How one session is connected. Without `url`, to OpenAI; `headers` take the place of the key."""

    api_key: str | Callable[[], str | Awaitable[str]]
    url: str
    headers: dict[str, str]
    initial_model_settings: RealtimeSessionModelSettings
    playback_tracker: RealtimePlaybackTracker
    call_id: str


class RealtimeConnection(Protocol):
    """One session's connection."""

    keeps_conversation: bool
    """Whether the far side still has the conversation after a second connect."""

    async def send(self, event: RealtimeModelSendEvent) -> None:
        """Send. A session update returns when it is in force, and raises `ModelError` if it was refused."""

    def events(self) -> AsyncIterator[RealtimeModelEvent]:
        """What comes. Ends with a clean close, and raises on another."""
        raise NotImplementedError

    async def close(self) -> None:
        """End it. Nothing is sent after that."""


@runtime_checkable
class RealtimeModel(Protocol):
    """A description: shared by sessions, holds nothing of one. What has `add_listener` is one in the style of the SDK, which serves one session at a time."""

    async def connect(self, options: RealtimeModelConfig) -> RealtimeConnection:
        """Connect one session."""
        raise NotImplementedError
