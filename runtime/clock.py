"""Where the time comes from: one small protocol, so that every timer of the runtime can be driven by a test.

Owns: the protocol and the clock of an event loop. A clock that is moved by hand is in `testing.py`.
Nothing else in the package may ask for the time in order to decide something; measuring how long something took is free.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["Clock", "LoopClock", "Timer"]


class Timer(Protocol):
    """What `Clock.call_later` returns."""

    def cancel(self) -> None:
        """Do not call. After the call, and a second time, it does nothing."""


class Clock(Protocol):
    """A source of time. All of it is used on the system's event loop only."""

    def time(self) -> float:
        """Seconds since the epoch, for time stamps."""

    def monotonic(self) -> float:
        """Seconds since some instant, never going back, for measuring and deciding."""

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> Timer:
        """Call `callback(*args)` on the loop, `delay` seconds from now."""


class LoopClock:
    """The clock of an event loop: what a system uses unless it is given another."""

    __slots__ = ("_loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return self._loop.time()

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> Timer:
        return self._loop.call_later(delay, callback, *args)
