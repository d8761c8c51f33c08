"""The source of time: one small protocol, so that a test can drive every timer of the runtime.

Owns: the protocol, the clock of an event loop, that of the system that runs here, and waiting by any of them; `testing.py` has a clock that is moved by hand.
No other file may wait for a time, or read it in order to decide something; measuring a duration is free. It must never know what is waited for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["HERE", "Clock", "Deadline", "LoopClock", "Timer", "boottime", "boottime_of", "sleep", "use_clock"]

_of_loops: dict[asyncio.AbstractEventLoop, Clock] = {}  # of the systems that were given a clock; all other loops have their own time


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

    boottime = staticmethod(boottime)

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> Timer:
        return self._loop.call_later(delay, callback, *args)


class _ClockHere:
    """The clock of the system that is entered on the running loop; without one, or where no loop is running, the real time."""

    __slots__ = ()

    def time(self) -> float:
        clock = _given()
        return time.time() if clock is None else clock.time()

    def monotonic(self) -> float:
        clock = _given()
        return time.monotonic() if clock is None else clock.monotonic()

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> Timer:
        clock = _given()
        return asyncio.get_running_loop().call_later(delay, callback, *args) if clock is None else clock.call_later(delay, callback, *args)


HERE: Final[Clock] = _ClockHere()
"""The time of whichever system runs where it is asked: for what belongs to none, such as models."""


def _given() -> Clock | None:
    if not _of_loops:
        return None
    try:
        return _of_loops.get(asyncio.get_running_loop())
    except RuntimeError:
        return None


def use_clock(loop: asyncio.AbstractEventLoop, clock: Clock | None) -> None:
    """Make that the clock of all that runs on the loop; None: its own time."""
    if clock is not None:
        _of_loops[loop] = clock
    else:
        _of_loops.pop(loop, None)


async def sleep(seconds: float, clock: Clock = HERE) -> None:
    """Wait for a time."""
    over = asyncio.get_running_loop().create_future()
    timer = clock.call_later(seconds, _set, over)
    try:
        await over
    finally:
        timer.cancel()


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Deadline:
    """`asyncio.timeout` by a clock: `async with Deadline(2, clock): ...` raises `TimeoutError` after two seconds. It may be stopped and started again."""

    __slots__ = ("_clock", "_is_over", "_limit", "_seconds", "_timer")

    def __init__(self, seconds: float, clock: Clock = HERE) -> None:
        self._seconds = seconds
        self._clock = clock
        self._limit = asyncio.timeout(None)
        self._timer: Timer | None = None
        self._is_over = False

    @property
    def expired(self) -> bool:
        """Whether it was the deadline that has ended the block, and not an error of its own."""
        return self._limit.expired()

    def stop(self) -> None:
        """Let the time stand still."""
        if self._timer is not None:
            self._timer.cancel()

    def start(self) -> None:
        """Begin to count from now on. After the end of the block it does nothing."""
        self.stop()
        if not self._is_over:
            self._timer = self._clock.call_later(self._seconds, self._limit.reschedule, 0)

    async def __aenter__(self) -> Self:
        await self._limit.__aenter__()
        self.start()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.stop()
        self._is_over = True
        await self._limit.__aexit__(kind, error, traceback)
