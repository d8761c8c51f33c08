"""One iteration over a run's events: by `async for` on any event loop, by `for` in any thread without one.

Owns: events that were fetched and not handed out yet, and that a consumer which leaves before the end cancels the run. It must never wait on a loop that is
not its own.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Final, Protocol

from ..data.events import AgentEvent
from ..system.loop_door import LoopDoor
from .run_record import RunRecord

__all__ = ["Events"]

_BATCH: Final = 64
"""Events that are fetched at once from another thread: going there and back costs as much as fifty events do."""


class Abandon(Protocol):
    """What is called when a consumer leaves before the end."""

    def __call__(self, *, cancelled: bool = False) -> None: ...


class Events:
    """One iteration over a run's events. When it is dropped before the end, as `break` does, the run is cancelled."""

    __slots__ = ("_abandon", "_door", "_ended", "_here", "_record")

    def __init__(self, record: RunRecord, door: LoopDoor, abandon: Abandon, replayed: Iterable[AgentEvent] = ()) -> None:
        self._record = record
        self._door = door
        self._abandon = abandon  # called if the consumer leaves before the end; it keeps the run alive
        self._here: deque[AgentEvent] = deque(replayed)
        self._ended = False

    def __aiter__(self) -> Events:
        return self

    def __iter__(self) -> Events:
        return self

    async def __anext__(self) -> AgentEvent:
        here = self._here
        if not here:
            try:
                if self._record.result is not None:
                    more = self._take_rest()
                elif self._door.is_here and (event := self._record.take_one()) is not None:
                    return event  # without a turn of the loop, as long as there are any
                elif self._door.is_here:
                    # One at a time: events that lie here cannot slow the run down.
                    more = await self._take(1)
                else:
                    more = await self._door.call(partial(self._take, _BATCH))
            except asyncio.CancelledError:
                self._look_at_consumer()
                raise
            if not more and not here:
                self._end()
                raise StopAsyncIteration
        return here.popleft()

    def _look_at_consumer(self) -> None:
        """A wait was cancelled. If that was the consumer, it has left; if a wait for one event ran out of time, the consumer comes again."""
        task = asyncio.current_task()
        if task is not None and getattr(task.get_coro(), "cr_code", None) is not Events.__anext__.__code__:
            # A timeout around the wait has taken its request back by the next turn of the loop.
            task.get_loop().call_soon(self._leave_if_cancelled, task)

    def _leave_if_cancelled(self, consumer: asyncio.Task[object]) -> None:
        if consumer.cancelling() and not self._ended:
            self._ended = True
            self._abandon(cancelled=True)

    async def take_some(self, most: int) -> list[AgentEvent]:
        """The next events: as many as are here, `most` of them; none at the end."""
        here = self._here
        if len(here) < most:
            try:
                if self._record.result is not None:
                    self._take_rest()
                elif self._door.is_here:
                    await self._take(most)
                else:
                    await self._door.call(partial(self._take, most))
            except asyncio.CancelledError:
                self._look_at_consumer()
                raise
        if not here:
            self._end()
        return [here.popleft() for _ in range(min(most, len(here)))]

    def __next__(self) -> AgentEvent:
        here = self._here
        if not here:
            record = self._record
            if record.result is not None:
                more = self._take_rest()
            else:
                ended = lambda: record.result is not None  # noqa: E731 -- read where the wait ends
                more = bool(self._door.block(partial(self._take, _BATCH), "for event in run", "async for event in run", has_ended=ended))
                if not more and record.result is not None:
                    more = self._take_rest()
            if not more and not here:
                self._end()
                raise StopIteration
        return here.popleft()

    async def _take(self, most: int) -> bool:
        """Fetch the next events, on the run's own loop. Returns False at the end, when nothing of the run is left.

        What is taken is put here in the same step, so that it is not lost if the consumer's wait is cancelled meanwhile.
        """
        self._record.check()
        if self._here:
            return True  # a wait that was cancelled has had them put here
        taken = await self._record.take(most)
        self._here.extend(taken)
        return bool(taken)

    def _take_rest(self) -> bool:
        """What is left of a run that has ended, whether or not its loop is still there."""
        taken = self._record.take_now()
        self._here.extend(taken)
        return bool(taken)

    def _end(self) -> None:
        self._ended = self._record.was_read = True
        self._record.check()

    async def aclose(self) -> None:
        """Stop here: the run is cancelled."""
        if not self._ended:
            self._ended = True
            self._abandon()

    def __del__(self) -> None:
        if not self._ended:
            self._abandon()
