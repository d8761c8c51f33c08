"""One iteration over a run's events: by `async for` on any event loop, by `for` in any thread without one.

Owns: what was fetched and not handed out yet, and that whoever leaves before the end cancels the run. It must never wait on a loop that is not its own.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Final

from ..data.events import AgentEvent

if TYPE_CHECKING:
    from .run import Run

__all__ = ["Events"]

# Events that are fetched at once from another thread: going there and back costs as much as fifty events do.
_BATCH: Final = 64


class Events:
    """One iteration over a run's events. When it is dropped before the end, as `break` does, the run is cancelled."""

    __slots__ = ("_ended", "_here", "_run")

    def __init__(self, run: Run) -> None:
        self._run = run
        self._here: deque[AgentEvent] = deque()
        self._ended = False

    def __aiter__(self) -> Events:
        return self

    def __iter__(self) -> Events:
        return self

    async def __anext__(self) -> AgentEvent:
        here = self._here
        if not here:
            run = self._run
            system = run._system
            assert system is not None
            if run._record.result is not None:
                more = self._take_rest()
            elif get_ident() == system.dispatcher.thread:
                # One at a time: what is here with the consumer cannot slow the run down.
                more = await run._take_into(here, 1)
            else:
                more = await run._on_its_loop(partial(run._take_into, here, _BATCH))
            if not more and not here:
                self._ended = True
                run._check()
                raise StopAsyncIteration
        return here.popleft()

    def _take_rest(self) -> bool:
        """What is left of a run that has ended, whether or not its loop is still there."""
        taken = self._run._record.stream.take_now()
        self._here.extend(taken)
        return bool(taken)

    def __next__(self) -> AgentEvent:
        here = self._here
        if not here:
            run = self._run
            if run._record.result is not None:
                more = self._take_rest()
            else:
                more = bool(run._block_on(partial(run._take_into, here, _BATCH), "for event in run", "async for event in run"))
                if not more and run._record.result is not None:
                    more = self._take_rest()
            if not more and not here:
                self._ended = True
                run._check()
                raise StopIteration
        return here.popleft()

    async def aclose(self) -> None:
        """Stop here: the run is cancelled."""
        if not self._ended:
            self._ended = True
            self._run._abandon()

    def __del__(self) -> None:
        if not self._ended:
            self._run._abandon()
