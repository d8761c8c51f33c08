"""Who is next: takes turns on the event loop, and lets the actors that have something to do handle a few messages each.

Owns: the ready queue of one system. An actor is in it at most once (its mailbox sees to that), so it never holds more than there are actors.
It must never hold the loop for long: a turn ends after `_TURN_SECONDS`, and goes on after the loop has had a look at everything else.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable
from threading import get_ident
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..actor.cell import Cell

__all__ = ["Dispatcher"]

# Long enough that the loop's own work around a turn (some 10 µs) does not count, short enough that nothing else on the loop notices it.
_TURN_SECONDS = 0.002

# For how long requests may be answered on the spot, between two turns.
_CREDIT_SECONDS = 0.001
_REQUEST_SECONDS = 0.000001  # what a request costs beside its handler, roughly


class Dispatcher:
    """The ready queue, and the turns that empty it."""

    __slots__ = ("_armed", "_attention", "_context", "_loop", "_on_closed", "_on_quiet", "_ready", "credit", "thread", "visiting")

    def __init__(self, loop: asyncio.AbstractEventLoop, *, on_closed: Callable[[], None], on_quiet: Callable[[], None]) -> None:
        self._loop = loop
        self._on_closed = on_closed  # called when somebody is to be woken and the loop is closed
        self._on_quiet = on_quiet  # called when a turn has left nothing to do
        self.thread = get_ident()  # the loop's own
        self._ready: deque[Cell] = deque()
        self._attention: deque[Cell] = deque()
        self.visiting: Cell | None = None  # who is handling messages right now, in a turn
        # Seconds that may still be spent on answering requests where they are made, without a turn: see `ActorRef.request`.
        self.credit = _CREDIT_SECONDS
        # Whether a turn is on its way. Two threads may both find that it is not: then one of the two turns finds nothing.
        self._armed = False
        self._context = contextvars.copy_context()  # a turn must not keep the context of whoever happened to wake it

    def __len__(self) -> int:
        return len(self._ready) + len(self._attention)

    def ready(self, cell: Cell) -> None:
        """Let the actor handle messages, when its turn comes. From any thread."""
        self._ready.append(cell)  # before looking at `_armed`: the turn looks the other way round
        if not self._armed:
            self._arm()

    def attend(self, cell: Cell) -> None:
        """Let a busy actor look at its control lane, before anybody handles anything else. From any thread."""
        self._attention.append(cell)
        if not self._armed:
            self._arm()

    def spend(self, seconds: float) -> None:
        """A request was answered on the spot."""
        self.credit -= seconds + _REQUEST_SECONDS

    def _arm(self) -> None:
        self._armed = True
        try:
            if get_ident() == self.thread:
                self._loop.call_soon(self._turn, context=self._context)
            else:
                self._loop.call_soon_threadsafe(self._turn, context=self._context)
        except RuntimeError:
            if not self._loop.is_closed():
                raise
            self._on_closed()

    def _turn(self) -> None:
        self._armed = False
        self.credit = _CREDIT_SECONDS
        ready, attention = self._ready, self._attention
        until = perf_counter() + _TURN_SECONDS
        try:
            while ready or attention:
                while attention:
                    attention.popleft().attend()
                if ready:
                    self.visiting = cell = ready.popleft()
                    if cell.visit():
                        ready.append(cell)
                    self.visiting = None
                if perf_counter() > until:
                    break
        finally:
            self.visiting = None
            if not ready and not attention:
                self._on_quiet()
            elif not self._armed:
                self._arm()
