"""Serialized recovery of runs that are on their last attempt.

A run that crashes its process also takes down every other run in it, and the crash counts against
each of them. A run on its last attempt must not become stuck because of another run. So the next
one is taken only when the one before has ended, or has survived for a while. This module manages
the queue of one system in one store; the waiting run itself is taken elsewhere.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..clock import Clock, Timer
    from .store_access import StoreAccess

__all__ = ["LastLives", "last_lives_of"]

ALONE_SECONDS: Final = 5.0
"""Seconds for which a run is watched before the next one starts."""


class LastLives:
    """One queue. A plain object, for use on the system's event loop."""

    __slots__ = ("_clock", "_current", "_members", "_timer", "_waiting")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._members: set[str] = set()  # runs that have joined and have not ended
        self._waiting: OrderedDict[str, asyncio.Event] = OrderedDict()
        self._current: str | None = None  # the run whose turn it is
        self._timer: Timer | None = None

    def join(self, run_id: str) -> bool:
        """Join the queue. Returns False if the run is in it already."""
        if run_id in self._members:
            return False
        self._members.add(run_id)
        return True

    async def wait(self, run_id: str) -> None:
        """Wait for the turn of that run. It must then `leave`, in any case."""
        turn = self._waiting[run_id] = asyncio.Event()
        self._let_next()
        await turn.wait()

    def leave(self, run_id: str) -> None:
        """Leave the queue: the run has ended, or no longer waits."""
        self._members.discard(run_id)
        self._waiting.pop(run_id, None)
        self._pass_on(run_id)

    def _let_next(self) -> None:
        if self._current is None and self._waiting:
            self._current, turn = self._waiting.popitem(last=False)
            self._timer = self._clock.call_later(
                ALONE_SECONDS, partial(self._pass_on, self._current)
            )
            turn.set()

    def _pass_on(self, run_id: str) -> None:
        if self._current == run_id:
            self._current = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._let_next()


class _Lines(dict["StoreAccess", LastLives]):
    """The queues of one system."""


def last_lives_of(system: Host, access: StoreAccess) -> LastLives:
    """Return the queue of that system in that store."""
    lines = system.belongings.get(_Lines)
    if lines is None:
        lines = system.belongings[_Lines] = _Lines()
    assert isinstance(lines, _Lines)
    line = lines.get(access)
    if line is None:
        line = lines[access] = LastLives(system.clock)
    return line
