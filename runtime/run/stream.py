"""The bounded buffer that carries the events of one run to its consumer.

The supervisor puts events and one consumer takes them, all on the run's loop. When the buffer is
full, the supervisor waits, and the run with it. It never holds more events than its capacity.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from ..data.chat import MessageDelta
from ..data.events import AgentEvent
from ..errors import UsageError

__all__ = ["EventStream"]

_NOTHING: Final[tuple[AgentEvent, ...]] = ()
_FAR_BEHIND: Final = 64
"""With this many waiting events, a consumer counts as slow, and deltas of one message are merged.

A consumer that keeps up gets its turn after at most half as many events.
"""
_NO_BOUND: Final = 1 << 62


class EventStream:
    """A pipe from a run to its consumer."""

    __slots__ = (
        "_buffer",
        "_capacity",
        "_ended",
        "_joins_from",
        "_latest",
        "_more",
        "_never_waits",
        "_open",
        "_reader",
        "_room",
    )

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._joins_from = _FAR_BEHIND if capacity > _FAR_BEHIND else _NO_BOUND
        # Deltas to merge into the last event in the buffer.
        self._more: list[MessageDelta] | None = None
        # The last merged event, whose number the result takes.
        self._latest: AgentEvent | None = None
        # Created with the first event that waits: an empty deque takes 600 bytes.
        self._buffer: deque[AgentEvent] | None = None
        self._open = True  # False: events are dropped
        self._ended = False
        self._never_waits = False  # True: a slow consumer loses events instead of blocking the run
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
        """Merge a delta into the last event, if that is a delta of the same message.

        Happens only if the consumer is slow. Returns True if the delta was merged.
        """
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

    def merge(self, event: AgentEvent) -> bool:
        """Merge a delta that is a numbered event."""
        assert event.delta is not None
        if not self._open or not self.join(event.invocation_id, event.delta):
            return False
        self._latest = event
        return True

    def _put_together(self, more: list[MessageDelta]) -> None:
        """Merge all joined deltas at once, so that the text is copied only once."""
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
        latest, self._latest = self._latest or last, None
        self._buffer[-1] = latest.replace(delta=whole)

    @property
    def has_room_for_two(self) -> bool:
        """True if there is still room after one more event."""
        return (
            self._buffer is None
            or len(self._buffer) + 1 < self._capacity
            or not self._open
            or self._never_waits
        )

    @property
    def has_room(self) -> bool:
        return (
            self._buffer is None
            or len(self._buffer) < self._capacity
            or not self._open
            or self._never_waits
        )

    def keep_apart(self) -> None:
        """Keep every delta as a separate event, however slow the consumer is."""
        self._joins_from = _NO_BOUND

    def never_waits(self) -> None:
        """Never wait for the consumer: one that is too slow gets no further events."""
        self._never_waits = True

    async def wait_for_room(self) -> None:
        """Wait until the consumer has taken events or has left."""
        while not self.has_room:
            self._room = asyncio.get_running_loop().create_future()
            await self._room

    def end(self) -> None:
        """Mark the end: no more events will be put."""
        self._ended = True
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    # --- for the consumer ---

    def discard(self) -> None:
        """Drop the buffered events and all later ones, because nobody consumes them."""
        self._open = False
        self._buffer = self._more = None
        if self._room is not None:
            self._make_room()

    def unblock(self) -> None:
        """Remove the capacity limit, so that an ending run never waits for its consumer."""
        self._capacity = _NO_BOUND
        if self._room is not None:
            self._make_room()

    @property
    def is_discarded(self) -> bool:
        """True if events are dropped."""
        return not self._open

    def take_now(self) -> list[AgentEvent]:
        """Return all remaining events of an ended run. From any thread."""
        if self._more is not None:
            self._put_together(self._more)
        buffer = self._buffer or deque()
        return [buffer.popleft() for _ in range(len(buffer))]

    async def take(self, most: int) -> list[AgentEvent] | tuple[AgentEvent, ...]:
        """Return the next events, at least one; none when there will be no more."""
        while not self._buffer:
            if self._ended or not self._open:
                return _NOTHING
            if self._reader is not None:
                raise UsageError(
                    "two consumers wait for the events of one run. Let one of them iterate and "
                    "pass the events on, or call attach() for the other."
                )
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
        """Return the next event if one is buffered. On the run's loop."""
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
