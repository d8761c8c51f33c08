"""The events of one run on their way to its consumer.

Owns: a bounded buffer between the run supervisor, which puts, and one consumer, who takes. When it is full the supervisor waits, and with it the run.
All of it happens on the run's loop. It must never hold more events than it was made for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from ..data.events import AgentEvent
from ..errors import UsageError

__all__ = ["EventStream"]

_NOTHING: Final[tuple[AgentEvent, ...]] = ()
_NO_BOUND: Final = 1 << 62


class EventStream:
    """A pipe with one end for the run and one for whoever looks on."""

    __slots__ = ("_buffer", "_capacity", "_ended", "_never_waits", "_open", "_reader", "_room", "was_read")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._buffer: deque[AgentEvent] | None = None  # made with the first event that has to wait: an empty deque takes 600 bytes
        self._open = True  # whether what is put is kept for somebody
        self._ended = False
        self.was_read = False  # whether its consumer has come to the end
        self._never_waits = False  # whether what its consumer does not take in time is dropped
        self._reader: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None

    # --- for the run supervisor ---

    def put(self, event: AgentEvent) -> None:
        """Show an event. Afterwards, `await wait_for_room()` unless `has_room`."""
        if not self._open:
            return
        if self._buffer is None:
            self._buffer = deque()
        elif self._never_waits and len(self._buffer) >= self._capacity:
            self.discard()
            return
        self._buffer.append(event)
        reader = self._reader
        if reader is not None and not reader.done():
            reader.set_result(None)

    @property
    def has_room(self) -> bool:
        return self._buffer is None or len(self._buffer) < self._capacity or not self._open or self._never_waits

    def never_waits(self) -> None:
        """The run needs no consumer: one that does not take its events in time is shown no more of them."""
        self._never_waits = True

    async def wait_for_room(self) -> None:
        """Return when an event may be put: when the consumer has taken some, or has gone away."""
        while not self.has_room:
            self._room = asyncio.get_running_loop().create_future()
            await self._room

    def end(self) -> None:
        """Nothing will be put any more."""
        self._ended = True
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    # --- for the consumer ---

    def discard(self) -> None:
        """Nobody looks on any more, or ever did: what is here is dropped, and so is what comes."""
        self._open = False
        self._buffer = None
        if self._room is not None:
            self._make_room()

    def unblock(self) -> None:
        """The run is about to end: let it, whether or not somebody takes."""
        self._capacity = _NO_BOUND
        if self._room is not None:
            self._make_room()

    @property
    def is_discarded(self) -> bool:
        """Whether what is put is dropped."""
        return not self._open

    def take_now(self) -> list[AgentEvent]:
        """All that is left, of a run that has ended. From any thread."""
        buffer = self._buffer or deque()
        return [buffer.popleft() for _ in range(len(buffer))]

    async def take(self, most: int) -> list[AgentEvent] | tuple[AgentEvent, ...]:
        """The next events, at least one; none at all when there will be no more."""
        while not self._buffer:
            if self._ended or not self._open:
                return _NOTHING
            if self._reader is not None:
                raise UsageError("two consumers wait for the events of one run at once. Let one of them iterate, and hand the events on.")
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        buffer = self._buffer
        taken = [buffer.popleft() for _ in range(min(most, len(buffer)))]
        self._make_room()
        return taken

    def _make_room(self) -> None:
        room = self._room
        if room is not None and not room.done():
            room.set_result(None)
