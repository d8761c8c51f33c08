"""The queue of events for a session's consumer.

It orders and numbers the events. When the consumer is slow, events are dropped, withdrawn or merged
within limits. The producer of an event never waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection
from typing import Any, Final, Literal, TypeAlias

from ....runtime.agent.run_context import RunContext
from ....runtime.errors import MailboxFull
from ..events import RealtimeAudio, RealtimeEventInfo, RealtimeHistoryUpdated, RealtimeSessionEvent

__all__ = ["EventQueue", "Kind"]

Kind: TypeAlias = Literal["plain", "raw", "audio", "history"]
"""`raw` events and deltas are dropped oldest first. `plain` events are never dropped."""

_MOST_PLAIN: Final = 4


class _Slot:
    __slots__ = ("event", "kind", "ms")

    def __init__(self, event: RealtimeSessionEvent, kind: Kind, ms: float) -> None:
        self.event: RealtimeSessionEvent | None = event
        self.kind: Kind = kind
        self.ms = ms


class EventQueue:
    """The events of one session. Several iterators share it."""

    def __init__(
        self, context: RunContext, capacity: int, taken: Callable[[RealtimeAudio, float], object]
    ) -> None:
        self._context = context
        self._capacity = capacity
        self._taken = taken  # called with the audio that the consumer has taken
        self._slots: deque[_Slot] = deque()
        self._raw: deque[_Slot] = deque()
        self._audio: deque[_Slot] = deque()
        self._history: _Slot | None = None
        self._plain = 0
        self._seq = 0
        self._dropped = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._ended = False
        self._error: BaseException | None = None
        self._raised = False
        self.audio_ms = 0.0

    def info(self) -> RealtimeEventInfo:
        """Return the info of the next event."""
        self._seq += 1
        dropped, self._dropped = self._dropped, 0
        return RealtimeEventInfo(self._context, self._seq, dropped)

    @property
    def has_ended(self) -> bool:
        return self._ended

    def put(self, event: RealtimeSessionEvent, kind: Kind = "plain", ms: float = 0.0) -> None:
        """Add an event.

        Raises `MailboxFull` if the consumer is so slow that there is no space for an event that
        must not be dropped.
        """
        if self._ended:
            return
        slot = _Slot(event, kind, ms)
        if kind == "raw":
            self._raw.append(slot)
            if len(self._raw) > self._capacity:
                self._drop(self._raw.popleft())
                self._dropped += 1
        elif kind == "audio":
            self._audio.append(slot)
            self.audio_ms += ms
        elif kind == "history":
            self._coalesce(slot)
        else:
            self._plain += 1
            if self._plain > _MOST_PLAIN * self._capacity:
                msg = (
                    f"{self._plain} events of the session wait for its consumer, which reads "
                    "none, so the session ends. Iterate over the session continuously: `async "
                    "for event in session`."
                )
                raise MailboxFull(msg)
        self._slots.append(slot)
        self._wake()

    def _coalesce(self, slot: _Slot) -> None:
        before, self._history = self._history, slot
        if before is not None and before.event is not None:
            old, new = before.event, slot.event
            if isinstance(old, RealtimeHistoryUpdated) and isinstance(new, RealtimeHistoryUpdated):
                new.changed = tuple(dict.fromkeys((*old.changed, *new.changed)))
            self._drop(before)

    def _drop(self, slot: _Slot) -> None:
        slot.event = None
        while self._slots and self._slots[0].event is None:
            self._slots.popleft()

    def take_back(self, response_ids: Collection[str]) -> float:
        """Remove the audio of these responses that the consumer has not taken.

        Returns its length in milliseconds.
        """
        removed = 0.0
        kept: deque[_Slot] = deque()
        for slot in self._audio:
            event = slot.event
            if isinstance(event, RealtimeAudio) and event.audio.response_id in response_ids:
                removed += slot.ms
                slot.event = None
            elif event is not None:
                kept.append(slot)
        self._audio = kept
        self.audio_ms = max(0.0, self.audio_ms - removed)
        while self._slots and self._slots[0].event is None:
            self._slots.popleft()
        return removed

    def end(self, error: BaseException | None = None) -> None:
        """End the queue. After the queued events, the iteration ends or raises."""
        if not self._ended:
            self._ended, self._error = True, error
            while self._waiters:
                self._wake()

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.pop(0)
            if not waiter.done():
                waiter.set_result(None)
                return

    async def get(self) -> RealtimeSessionEvent | None:
        """Return the next event, or None after the last one.

        Raises the session's final error once.
        """
        while True:
            found = self._next()
            if found is not None:
                return found
            if self._ended:
                if self._error is not None and not self._raised:
                    self._raised = True
                    raise self._error
                return None
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():
                    self._wake()  # it woke a waiter that is gone
                raise

    def _next(self) -> RealtimeSessionEvent | None:
        while self._slots:
            slot = self._slots.popleft()
            event: Any = slot.event
            if event is None:
                continue
            if slot.kind == "raw":
                self._raw.popleft()
            elif slot.kind == "audio":
                self._audio.popleft()
                self.audio_ms -= slot.ms
                self._taken(event, slot.ms)
            elif slot.kind == "history":
                self._history = None
            else:
                self._plain -= 1
            found: RealtimeSessionEvent = event
            return found
        return None
