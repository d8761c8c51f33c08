"""The events of one run on their way to its consumer.

Owns: a bounded buffer between the run supervisor, which puts, and one consumer, who takes. When it is full the supervisor waits, and with it the run.
All of it happens on the run's loop. It must never hold more events than it was made for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from ..data.chat import MessageDelta
from ..data.events import AgentEvent, with_delta
from ..errors import UsageError

__all__ = ["EventStream"]

_NOTHING: Final[tuple[AgentEvent, ...]] = ()
_FAR_BEHIND: Final = 64
"""A consumer for whom so many events wait is slow: pieces of one message go together to it. One that keeps up has its turn twice as often."""
_NO_BOUND: Final = 1 << 62


class EventStream:
    """A pipe with one end for the run and one for its consumer."""

    __slots__ = ("_buffer", "_capacity", "_ended", "_joins_from", "_more", "_never_waits", "_open", "_reader", "_room", "was_read")

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._joins_from = _FAR_BEHIND if capacity > _FAR_BEHIND else _NO_BOUND
        self._more: list[MessageDelta] | None = None  # what belongs to the last event in the buffer, which is a piece of a message
        self._buffer: deque[AgentEvent] | None = None  # made with the first event that has to wait: an empty deque takes 600 bytes
        self._open = True  # whether what is put is kept for a consumer
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
        if self._more is not None:
            self._put_together(self._more)
        self._buffer.append(event)
        reader = self._reader
        if reader is not None and not reader.done():
            reader.set_result(None)

    def join(self, invocation_id: str, delta: MessageDelta) -> bool:
        """Have a piece of a message travel with the last event, if that is a piece of the same one, and the consumer is slow. Returns whether it does."""
        buffer = self._buffer
        if buffer is None or len(buffer) < self._joins_from:
            return False
        last = buffer[-1]
        if last.delta is None or last.error is not None or last.invocation_id != invocation_id:
            return False
        if self._more is None:
            self._more = []
        self._more.append(delta)
        return True

    def _put_together(self, more: list[MessageDelta]) -> None:
        """Once for all that have joined, so that no text is copied with each of them."""
        self._more = None
        assert self._buffer is not None
        last = self._buffer[-1]
        assert last.delta is not None
        pieces = (last.delta, *more)
        whole = MessageDelta(
            "".join([piece.content for piece in pieces]),
            "".join([piece.reasoning for piece in pieces]),
            tuple([call for piece in pieces for call in piece.tool_calls]),
        )
        self._buffer[-1] = with_delta(last, whole)

    @property
    def may_be_seen(self) -> bool:
        """Whether a consumer takes events, or may come to take them yet."""
        return self._open

    @property
    def has_room_for_two(self) -> bool:
        """Whether there is still room when one more event was put."""
        return self._buffer is None or len(self._buffer) + 1 < self._capacity or not self._open or self._never_waits

    @property
    def has_room(self) -> bool:
        return self._buffer is None or len(self._buffer) < self._capacity or not self._open or self._never_waits

    def keep_apart(self) -> None:
        """Each piece of a message is an event of its own, however slow the consumer is."""
        self._joins_from = _NO_BOUND

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
        """No consumer looks on any more, or ever did: what is here is dropped, and so is what comes."""
        self._open = False
        self._buffer = self._more = None
        if self._room is not None:
            self._make_room()

    def unblock(self) -> None:
        """The run is about to end: let it, whether or not a consumer takes."""
        self._capacity = _NO_BOUND
        if self._room is not None:
            self._make_room()

    @property
    def is_discarded(self) -> bool:
        """Whether what is put is dropped."""
        return not self._open

    def take_now(self) -> list[AgentEvent]:
        """All that is left, of a run that has ended. From any thread."""
        if self._more is not None:
            self._put_together(self._more)
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
        if self._more is not None and most >= len(buffer):
            self._put_together(self._more)
        taken = [buffer.popleft() for _ in range(min(most, len(buffer)))]
        self._make_room()
        return taken

    def take_one(self) -> AgentEvent | None:
        """The next event, if it is here. On the run's loop."""
        buffer = self._buffer
        if not buffer:
            return None
        if self._more is not None and len(buffer) == 1:
            self._put_together(self._more)
        event = buffer.popleft()
        if self._room is not None:
            self._make_room()
        return event

    def _make_room(self) -> None:
        room = self._room
        if room is not None and not room.done():
            room.set_result(None)
