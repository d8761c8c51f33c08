"""The source of time: one small protocol, so that a test can drive every timer of the runtime.

Owns: the protocol, and the clock of an event loop; `testing.py` has a clock that is moved by hand. It must never wait.
No other file may read the time in order to decide something; measuring a duration is free.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["Clock", "LoopClock", "Timer", "boottime", "boottime_of"]


def boottime() -> float:
    """Seconds since some instant of this machine, which count the time that it was suspended and never jump. Elsewhere than on Linux: the best there is."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if _HAS_BOOTTIME else time.monotonic()


_HAS_BOOTTIME: Final = hasattr(time, "CLOCK_BOOTTIME")


def boottime_of(source: Clock) -> float:
    """The same by a clock of a system: what another process judges as well, such as a lease, goes by it. A clock without one counts in its own way."""
    own: Callable[[], float] = getattr(source, "boottime", source.monotonic)
    return own()


class Timer(Protocol):
    """The result of `Clock.call_later`."""

    def cancel(self) -> None:
        """Do not make the call. Does nothing after the call, or a second time."""


class Clock(Protocol):
    """A source of time. It is used on the system's event loop only."""

    def time(self) -> float:
        """Seconds since the epoch, for time stamps."""

    def monotonic(self) -> float:
        """Seconds since some instant, never going back, for measuring and deciding."""

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> Timer:
        """Call `callback(*args)` on the loop, `delay` seconds from now."""


class LoopClock:
    """The clock of an event loop. A system uses it by default."""

    __slots__ = ("_loop",)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def time(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return self._loop.time()

    def boottime(self) -> float:
        return boottime()

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> Timer:
        return self._loop.call_later(delay, callback, *args)
