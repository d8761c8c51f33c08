"""Runs that are on their last life: each of them is taken alone.

A run that ends its process takes along all that this process works on, and each of those has then lost a process, too. One that may lose no further one without
being set aside must not lose it to another one: so the next of them is taken when the one before has ended, or has lived for a while without ending anything.

Owns: the line of those that wait, of one system in one store. It must never take a run: the one whose turn it is does.
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
"""For how long a run is watched before the next one begins."""


class LastLives:
    """One line. A plain object, to be called on the system's loop."""

    __slots__ = ("_clock", "_current", "_members", "_timer", "_waiting")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._members: set[str] = set()  # the runs that have joined, and have not ended
        self._waiting: OrderedDict[str, asyncio.Event] = OrderedDict()
        self._current: str | None = None  # whose turn it is
        self._timer: Timer | None = None

    def join(self, run_id: str) -> bool:
        """Returns False if it is in the line already."""
        if run_id in self._members:
            return False
        self._members.add(run_id)
        return True

    async def wait(self, run_id: str) -> None:
        """Wait until it is the turn of that run, which then has to `leave`, whatever becomes of it."""
        turn = self._waiting[run_id] = asyncio.Event()
        self._let_next()
        await turn.wait()

    def leave(self, run_id: str) -> None:
        """It has ended, or does not wait any more."""
        self._members.discard(run_id)
        self._waiting.pop(run_id, None)
        self._pass_on(run_id)

    def _let_next(self) -> None:
        if self._current is None and self._waiting:
            self._current, turn = self._waiting.popitem(last=False)
            self._timer = self._clock.call_later(ALONE_SECONDS, partial(self._pass_on, self._current))
            turn.set()

    def _pass_on(self, run_id: str) -> None:
        if self._current == run_id:
            self._current = None
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            self._let_next()


class _Lines(dict["StoreAccess", LastLives]):
    """Those of one system."""


def last_lives_of(system: Host, access: StoreAccess) -> LastLives:
    """The line of that system in that store."""
    lines = system.belongings.get(_Lines)
    if lines is None:
        lines = system.belongings[_Lines] = _Lines()
    assert isinstance(lines, _Lines)
    line = lines.get(access)
    if line is None:
        line = lines[access] = LastLives(system.clock)
    return line
