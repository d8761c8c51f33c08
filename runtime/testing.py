"""Test doubles that are part of the product: on the same interfaces as the real things.

Owns: the clock that is moved by hand.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from typing import Any

from .errors import UsageError

__all__ = ["ManualClock"]


class _ManualTimer:
    __slots__ = ("args", "callback", "cancelled")

    def __init__(self, callback: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.callback = callback
        self.args = args
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True
        self.callback, self.args = _nothing, ()  # it may lie here for long, and must not keep what it would have called


def _nothing() -> None:
    """What a timer that was cancelled would call."""


class ManualClock:
    """A clock that stands still until it is told to move: `ActorSystem(clock=ManualClock())`, then `clock.advance(30)`.

    What becomes due is called within `advance`, in the order of its time; what that sets in motion on the event loop happens when the test next awaits.
    """

    def __init__(self, start: float = 1_000_000.0) -> None:
        self._now = start
        self._order = itertools.count()
        self._timers: list[tuple[float, int, _ManualTimer]] = []

    def time(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> _ManualTimer:
        timer = _ManualTimer(callback, args)
        heapq.heappush(self._timers, (self._now + delay, next(self._order), timer))
        return timer

    @property
    def pending(self) -> tuple[float, ...]:
        """In how many seconds the timers that are set will be due, the nearest first."""
        return tuple(due - self._now for due, _, timer in sorted(self._timers, key=lambda entry: entry[:2]) if not timer.cancelled)

    def advance(self, seconds: float) -> None:
        """Move on, and call what becomes due on the way."""
        if seconds < 0:
            msg = f"ManualClock.advance({seconds}): time does not go back."
            raise UsageError(msg)
        until = self._now + seconds
        while self._timers and self._timers[0][0] <= until:
            due, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, due)
            if not timer.cancelled:
                timer.callback(*timer.args)
        self._now = until
