"""Scheduling: in turns on the event loop, each actor with work handles a few messages.

The dispatcher is the ready queue of one system. An actor is in it at most once (its mailbox ensures
that), so the queue is never longer than the number of actors. It never blocks the loop for long: a
turn ends after `_TURN_SECONDS`, and the next one follows after other work on the loop.
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

# Long enough that the loop's own work around a turn (some 10 µs) does not matter, short enough not
# to delay anything else on the loop.
_TURN_SECONDS = 0.002

# The time between two turns in which tasks may handle their own requests directly.
_CREDIT_SECONDS = 0.001
_REQUEST_SECONDS = 0.000001  # approximate cost of a request, without its handler


class Dispatcher:
    """The ready queue, and the turns that empty it."""

    __slots__ = (
        "_armed",
        "_attention",
        "_context",
        "_loop",
        "_on_closed",
        "_on_quiet",
        "_ready",
        "credit",
        "thread",
        "visiting",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        *,
        on_closed: Callable[[], None],
        on_quiet: Callable[[], None],
    ) -> None:
        self._loop = loop
        self._on_closed = on_closed  # called when a turn is needed and the loop is closed
        self._on_quiet = on_quiet  # called when a turn has left no work
        self.thread = get_ident()  # the loop's own thread
        self._ready: deque[Cell] = deque()
        self._attention: deque[Cell] = deque()
        self.visiting: Cell | None = None  # the actor that handles messages in the current turn
        # Remaining seconds in which tasks may handle their own requests without a turn: see
        # `ActorRef.request`.
        self.credit = _CREDIT_SECONDS
        # True if a turn is scheduled. Two threads may both find that none is: then one of the two
        # turns finds no work.
        self._armed = False
        # A turn must not keep the context of the caller that scheduled it.
        self._context = contextvars.copy_context()

    def __len__(self) -> int:
        return len(self._ready) + len(self._attention)

    def ready(self, cell: Cell) -> None:
        """Let the actor handle messages in its turn. From any thread."""
        # Before reading `_armed`: a turn does the two in the opposite order.
        self._ready.append(cell)
        if not self._armed:
            self._arm()

    def attend(self, cell: Cell) -> None:
        """Let a busy actor handle its control lane, before any actor handles work.

        From any thread.
        """
        self._attention.append(cell)
        if not self._armed:
            self._arm()

    def spend(self, seconds: float) -> None:
        """Account for a request that was handled in its own task."""
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
