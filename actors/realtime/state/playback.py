"""The part of the model's speech that was heard.

It records how much audio of each item was received, and when, and the position at which an item is
truncated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..audio_formats import PCM16, AudioFormat

__all__ = ["AudioItem", "Playback"]

_KEPT: Final = 32


class AudioItem:
    """The audio of one item."""

    __slots__ = (
        "content_index",
        "is_cut",
        "item_id",
        "received_ms",
        "response_id",
        "starts_at",
        "taken_ms",
        "void",
    )

    def __init__(
        self, item_id: str, content_index: int, response_id: str, starts_at: float
    ) -> None:
        self.item_id = item_id
        self.content_index = content_index
        self.response_id = response_id
        self.starts_at = starts_at  # the start of its playback, unless a tracker reports it
        self.received_ms = 0.0
        self.taken_ms = 0.0  # taken by the consumer
        self.is_cut = False
        self.void = False  # the item was deleted


class Playback:
    """The speech of one session.

    A tracker reports the heard audio. Without one, audio is assumed to play in real time, one item
    after the other.
    """

    def __init__(self, now: Callable[[], float], tracker: Any) -> None:
        self.format: AudioFormat = PCM16
        self._now = now
        self._tracker = tracker
        self._items: dict[tuple[str, int], AudioItem] = {}
        self._ends_at = 0.0

    def set_format(self, found: AudioFormat) -> None:
        """Set the format of the audio from now on."""
        self.format = found
        if self._tracker is not None and hasattr(self._tracker, "set_audio_format"):
            self._tracker.set_audio_format(found)

    def received(self, item_id: str, content_index: int, response_id: str, size: int) -> float:
        """Record received audio. Return its length in milliseconds."""
        ms = self.format.ms(size)
        key = (item_id, content_index)
        item = self._items.get(key)
        if item is None:
            now = self._now()
            item = self._items[key] = AudioItem(
                item_id, content_index, response_id, max(now, self._ends_at)
            )
            self._ends_at = item.starts_at
            if len(self._items) > _KEPT:
                del self._items[next(iter(self._items))]
        item.received_ms += ms
        self._ends_at = item.starts_at + item.received_ms / 1000
        return ms

    def taken(self, item_id: str, content_index: int, ms: float) -> None:
        """Record that the consumer has taken audio."""
        item = self._items.get((item_id, content_index))
        if item is not None:
            item.taken_ms += ms

    def heard_ms(self, item: AudioItem) -> float:
        """Return how much of an item was heard, at most the received audio."""
        tracker = self._tracker
        if tracker is None:
            elapsed = (self._now() - item.starts_at) * 1000
        elif hasattr(tracker, "heard_ms"):
            elapsed = tracker.heard_ms(item.item_id, item.content_index)
        else:
            elapsed = self._of_state(item)
        return max(0.0, min(elapsed, item.received_ms))

    def _of_state(self, item: AudioItem) -> float:
        """Compute the heard audio from a tracker that reports only the current item."""
        state = self._tracker.get_state()
        keys = list(self._items)
        current = (state["current_item_id"], state["current_item_content_index"])
        if current == (item.item_id, item.content_index):
            return float(state["elapsed_ms"] or 0.0)
        return (
            item.received_ms
            if current in keys
            and keys.index((item.item_id, item.content_index)) < keys.index(current)
            else 0.0
        )

    def unheard(self, active: str | None) -> list[AudioItem]:
        """Return the items that are being played.

        Some of their audio is unheard, or more may follow because their response is active.
        """
        last = next(
            (
                one
                for one in reversed(self._items.values())
                if one.response_id == active and not one.is_cut
            ),
            None,
        )
        found = [
            one
            for one in self._items.values()
            if not one.is_cut and one.received_ms and self.heard_ms(one) < one.received_ms
        ]
        if last is not None and last not in found and not last.void:
            found.append(last)
        return found

    def cut(self, item: AudioItem, end_ms: float) -> None:
        """Truncate an item."""
        item.is_cut = True
        self._ends_at = min(self._ends_at, max(self._now(), item.starts_at))
        del end_ms

    def stopped(self) -> None:
        """Record that playback has stopped."""
        self._ends_at = self._now()
        if self._tracker is not None and hasattr(self._tracker, "on_interrupted"):
            self._tracker.on_interrupted()

    def gone(self, item_id: str) -> None:
        """Mark the audio of a deleted item."""
        for one in self._items.values():
            if one.item_id == item_id:
                one.void = True

    def items(self) -> list[AudioItem]:
        return list(self._items.values())

    def of_response(self, response_id: str) -> list[AudioItem]:
        return [one for one in self._items.values() if one.response_id == response_id]

    def void_all(self) -> None:
        """Mark all audio of a lost connection: it can still be played, but not truncated."""
        for one in self._items.values():
            one.void = True
