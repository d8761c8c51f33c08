"""A clock that the test advances. Timers fire only inside `advance`."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from ..errors import UsageError

__all__ = ["ManualClock"]


class _ManualTimer:
    __slots__ = ("args", "callback", "cancelled")

    def __init__(self, callback: Callable[..., object], args: tuple[object, ...]) -> None:
        self.callback = callback
        self.args = args
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True
        # A cancelled timer may stay in the heap for long, and must not keep the callback alive.
        self.callback, self.args = (
            _nothing,
            (),
        )


def _nothing() -> None:
    """Do nothing: the callback of a cancelled timer."""


class ManualClock:
    """A clock that moves only when the test advances it: `ActorSystem(clock=ManualClock())`, then
    `clock.advance(30)`.

    `advance` calls the timers that become due, in the order of their times; their effects on the
    event loop happen when the test next awaits.
    """

    def __init__(self, start: float = 1_000_000.0) -> None:
        self._now = start
        self._order = itertools.count()
        self._timers: list[tuple[float, int, _ManualTimer]] = []

    def time(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    def boottime(self) -> float:
        return self._now

    def call_later(
        self, delay: float, callback: Callable[..., object], *args: object
    ) -> _ManualTimer:
        timer = _ManualTimer(callback, args)
        heapq.heappush(self._timers, (self._now + delay, next(self._order), timer))
        return timer

    @property
    def pending(self) -> tuple[float, ...]:
        """The seconds until each timer is due, the nearest first."""
        return tuple(
            due - self._now
            for due, _, timer in sorted(self._timers, key=lambda entry: entry[:2])
            if not timer.cancelled
        )

    def advance(self, seconds: float) -> None:
        """Move forward, and call the timers that become due."""
        if seconds < 0:
            msg = f"ManualClock.advance(): seconds must be 0 or more, got {seconds}."
            raise UsageError(msg)
        until = self._now + seconds
        while self._timers and self._timers[0][0] <= until:
            due, _, timer = heapq.heappop(self._timers)
            self._now = max(self._now, due)
            if not timer.cancelled:
                timer.callback(*timer.args)
        self._now = until
