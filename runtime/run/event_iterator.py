"""One iteration over a run's events.

It supports `async for` on any event loop and `for` in a thread without one. It holds fetched events
until the consumer takes them, and cancels the run if the consumer leaves early. It only waits on
its own loop.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Final, Protocol

from ..data.events import AgentEvent
from ..errors import OffbookError
from ..system.loop_bridge import LoopBridge
from .run_progress import RunProgress

__all__ = ["Events"]

_BATCH: Final = 64
"""The number of events fetched at once from another thread.

One round trip costs as much as fifty events.
"""


class Abandon(Protocol):
    """The callback for a consumer that leaves before the end."""

    def __call__(self, *, cancelled: bool = False) -> None: ...


class Events:
    """One iteration over a run's events.

    If it is dropped before the end, for example by `break`, the run is cancelled.
    """

    __slots__ = ("_abandon", "_bridge", "_ended", "_here", "_is_replay", "_progress")

    def __init__(
        self,
        progress: RunProgress,
        bridge: LoopBridge,
        abandon: Abandon,
        replayed: Iterable[AgentEvent] | None = None,
    ) -> None:
        self._progress = progress
        self._bridge = bridge
        self._abandon = abandon  # called if the consumer leaves early; it keeps the run alive
        self._here: deque[AgentEvent] = deque(replayed or ())
        # True: the buffered events belong to another consumer
        self._is_replay = replayed is not None
        self._ended = False

    def __aiter__(self) -> Events:
        return self

    def __iter__(self) -> Events:
        return self

    async def __anext__(self) -> AgentEvent:
        here = self._here
        if not here:
            try:
                if self._progress.result is not None:
                    more = self._take_rest()
                elif self._bridge.is_here and (event := self._progress.take_one()) is not None:
                    return event  # without a turn of the loop while events are ready
                elif self._bridge.is_here:
                    # One at a time, because events buffered here cannot slow the run down.
                    more = await self._take(1)
                else:
                    more = await self._bridge.call(partial(self._take, _BATCH))
            except asyncio.CancelledError:
                self._look_at_consumer()
                raise
            if not more and not here:
                self._end()
                raise StopAsyncIteration
        return here.popleft()

    def _look_at_consumer(self) -> None:
        """Find out whether a cancelled wait means that the consumer has left.

        A consumer whose wait for one event timed out comes back.
        """
        task = asyncio.current_task()
        if (
            task is not None
            and getattr(task.get_coro(), "cr_code", None) is not Events.__anext__.__code__
        ):
            # By the next turn of the loop, a timeout around the wait has withdrawn its
            # cancellation.
            task.get_loop().call_soon(self._leave_if_cancelled, task)

    def _leave_if_cancelled(self, consumer: asyncio.Task[object]) -> None:
        if consumer.cancelling() and not self._ended:
            self._ended = True
            self._abandon(cancelled=True)

    async def take_some(self, most: int) -> list[AgentEvent]:
        """Return the ready events, at most `most`; an empty list at the end."""
        here = self._here
        if len(here) < most:
            try:
                if self._progress.result is not None:
                    self._take_rest()
                elif self._bridge.is_here:
                    await self._take(most)
                else:
                    await self._bridge.call(partial(self._take, most))
            except asyncio.CancelledError:
                self._look_at_consumer()
                raise
        if not here:
            self._end()
        return [here.popleft() for _ in range(min(most, len(here)))]

    def __next__(self) -> AgentEvent:
        here = self._here
        if not here:
            progress = self._progress
            if progress.result is not None:
                more = self._take_rest()
            else:
                ended = lambda: progress.result is not None  # noqa: E731 -- read where the wait ends
                try:
                    more = bool(
                        self._bridge.block(
                            partial(self._take, _BATCH),
                            "for event in run",
                            "async for event in run",
                            has_ended=ended,
                        )
                    )
                except OffbookError:
                    raise
                except BaseException:  # raised by a signal; its handler may keep this iteration
                    self._ended = True
                    self._abandon(cancelled=True)
                    raise
                if not more and progress.result is not None:
                    more = self._take_rest()
            if not more and not here:
                self._end()
                raise StopIteration
        return here.popleft()

    async def _take(self, most: int) -> bool:
        """Fetch the next events, on the run's own loop.

        Returns False at the end. The events are stored here in the same step, so that they survive
        a cancelled wait.
        """
        self._progress.check()
        if self._here:
            return True  # stored by a wait that was cancelled
        taken = await self._progress.take(most)
        self._here.extend(taken)
        return bool(taken)

    def _take_rest(self) -> bool:
        """Fetch the remaining events of an ended run, even if its loop is closed."""
        taken = [] if self._is_replay else self._progress.take_now()
        self._here.extend(taken)
        return bool(taken)

    def _end(self) -> None:
        self._ended = True
        self._progress.check()

    async def aclose(self, *, cancelled: bool = False) -> None:
        """Stop the iteration, which cancels the run.

        `cancelled`: the consumer did not choose to stop, for example because its process ends.
        """
        if not self._ended:
            self._ended = True
            self._abandon(cancelled=cancelled)

    def __del__(self) -> None:
        if not self._ended:
            self._abandon()
