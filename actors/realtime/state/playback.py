"""How much of the model's speech was heard.

Owns: how much audio of each item has come, when, and the place at which an item is cut. It must never send anything.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ..audio_formats import PCM16, AudioFormat

__all__ = ["AudioItem", "Playback"]

_KEPT: Final = 32


class AudioItem:
    """The audio of one item."""

    __slots__ = ("content_index", "is_cut", "item_id", "received_ms", "response_id", "starts_at", "taken_ms", "void")

    def __init__(self, item_id: str, content_index: int, response_id: str, starts_at: float) -> None:
        self.item_id = item_id
        self.content_index = content_index
        self.response_id = response_id
        self.starts_at = starts_at  # when it begins to be heard, if nothing says otherwise
        self.received_ms = 0.0
        self.taken_ms = 0.0  # what the consumer has taken
        self.is_cut = False
        self.void = False  # of an item that is gone


class Playback:
    """The speech of one session. With a tracker, that says what was heard; without one, audio is taken to play in real time, one item after the other."""

    def __init__(self, now: Callable[[], float], tracker: Any) -> None:
        self.format: AudioFormat = PCM16
        self._now = now
        self._tracker = tracker
        self._items: dict[tuple[str, int], AudioItem] = {}
        self._ends_at = 0.0

    def set_format(self, found: AudioFormat) -> None:
        """In which format audio comes from now on."""
        self.format = found
        if self._tracker is not None and hasattr(self._tracker, "set_audio_format"):
            self._tracker.set_audio_format(found)

    def received(self, item_id: str, content_index: int, response_id: str, size: int) -> float:
        """Audio has come. Returns its milliseconds."""
        ms = self.format.ms(size)
        key = (item_id, content_index)
        item = self._items.get(key)
        if item is None:
            now = self._now()
            item = self._items[key] = AudioItem(item_id, content_index, response_id, max(now, self._ends_at))
            self._ends_at = item.starts_at
            if len(self._items) > _KEPT:
                del self._items[next(iter(self._items))]
        item.received_ms += ms
        self._ends_at = item.starts_at + item.received_ms / 1000
        return ms

    def taken(self, item_id: str, content_index: int, ms: float) -> None:
        """The consumer has taken audio."""
        item = self._items.get((item_id, content_index))
        if item is not None:
            item.taken_ms += ms

    def heard_ms(self, item: AudioItem) -> float:
        """How much of an item was heard: never more than has come."""
        tracker = self._tracker
        if tracker is None:
            elapsed = (self._now() - item.starts_at) * 1000
        elif hasattr(tracker, "heard_ms"):
            elapsed = tracker.heard_ms(item.item_id, item.content_index)
        else:
            elapsed = self._of_state(item)
        return max(0.0, min(elapsed, item.received_ms))

    def _of_state(self, item: AudioItem) -> float:
        """By a tracker that knows the item which is played, and no other."""
        state = self._tracker.get_state()
        keys = list(self._items)
        current = (state["current_item_id"], state["current_item_content_index"])
        if current == (item.item_id, item.content_index):
            return float(state["elapsed_ms"] or 0.0)
        return item.received_ms if current in keys and keys.index((item.item_id, item.content_index)) < keys.index(current) else 0.0

    def unheard(self, active: str | None) -> list[AudioItem]:
        """The items that are being said: of which audio is unheard, or more may come, because their response is active."""
        last = next((one for one in reversed(self._items.values()) if one.response_id == active and not one.is_cut), None)
        found = [one for one in self._items.values() if not one.is_cut and one.received_ms and self.heard_ms(one) < one.received_ms]
        if last is not None and last not in found and not last.void:
            found.append(last)
        return found

    def cut(self, item: AudioItem, end_ms: float) -> None:
        """It is said no further."""
        item.is_cut = True
        self._ends_at = min(self._ends_at, max(self._now(), item.starts_at))
        del end_ms

    def stopped(self) -> None:
        """Nothing is played any more."""
        self._ends_at = self._now()
        if self._tracker is not None and hasattr(self._tracker, "on_interrupted"):
            self._tracker.on_interrupted()

    def gone(self, item_id: str) -> None:
        """An item is not in the conversation any more."""
        for one in self._items.values():
            if one.item_id == item_id:
                one.void = True

    def items(self) -> list[AudioItem]:
        return list(self._items.values())

    def of_response(self, response_id: str) -> list[AudioItem]:
        return [one for one in self._items.values() if one.response_id == response_id]

    def void_all(self) -> None:
        """The connection is gone: what came over it stays playable, and nothing of it can be cut there any more."""
        for one in self._items.values():
            one.void = True
