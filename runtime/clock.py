"""The source of time: one small protocol, so that a test can drive every timer of the runtime.

The module contains the protocol, the clock of an event loop, the clock of the current system, and
waiting by any of them. `testing.py` has a clock that a test moves by hand. No other module may wait
for a time, or read it to make a decision; measuring a duration is allowed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol, Self

if TYPE_CHECKING:
    from types import TracebackType

__all__ = [
    "HERE",
    "Clock",
    "Deadline",
    "LoopClock",
    "Timer",
    "boottime",
    "boottime_of",
    "sleep",
    "use_clock",
]

_of_loops: dict[
    asyncio.AbstractEventLoop, Clock
] = {}  # clocks that were passed to a system; every other loop has its own time


def boottime() -> float:
    """Return seconds since some instant, including time that the machine was suspended.

    The value never jumps. Systems other than Linux return `time.monotonic()`.
    """
    return time.clock_gettime(time.CLOCK_BOOTTIME) if _HAS_BOOTTIME else time.monotonic()


_HAS_BOOTTIME: Final = hasattr(time, "CLOCK_BOOTTIME")


def boottime_of(source: Clock) -> float:
    """Return `boottime` by a system's clock.

    Another process evaluates it too, for example in a lease. A clock without `boottime` counts by
    `monotonic`.
    """
    own: Callable[[], float] = getattr(source, "boottime", source.monotonic)
    return own()


class Timer(Protocol):
    """The result of `Clock.call_later`."""

    def cancel(self) -> None:
        """Cancel the call. Does nothing after the call, or a second time."""


class Clock(Protocol):
    """A source of time. It is used only on the system's event loop."""

    def time(self) -> float:
        """Return seconds since the epoch, for timestamps."""

    def monotonic(self) -> float:
        """Return seconds since some instant, for measuring and deciding; never goes back."""

    def call_later(self, delay: float, callback: Callable[..., object], *args: object) -> Timer:
        """Call `callback(*args)` on the loop, `delay` seconds from now."""


class LoopClock:
    """The clock of an event loop, and the default clock of a system."""

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
    """The clock of the system on the running loop.

    Without a system or a running loop, it is real time.
    """

    __slots__ = ()

    def time(self) -> float:
        clock = _given()
        return time.time() if clock is None else clock.time()

    def monotonic(self) -> float:
        clock = _given()
        return time.monotonic() if clock is None else clock.monotonic()

    def call_later(self, delay: float, callback: Callable[..., Any], *args: Any) -> Timer:
        clock = _given()
        return (
            asyncio.get_running_loop().call_later(delay, callback, *args)
            if clock is None
            else clock.call_later(delay, callback, *args)
        )


HERE: Final[Clock] = _ClockHere()
"""The time of the current system, for code that belongs to no system, such as models."""


def _given() -> Clock | None:
    if not _of_loops:
        return None
    try:
        return _of_loops.get(asyncio.get_running_loop())
    except RuntimeError:
        return None


def use_clock(loop: asyncio.AbstractEventLoop, clock: Clock | None) -> None:
    """Set the clock for everything on a loop; None restores the loop's own time."""
    if clock is not None:
        _of_loops[loop] = clock
    else:
        _of_loops.pop(loop, None)


async def sleep(seconds: float, clock: Clock = HERE) -> None:
    """Wait for `seconds`."""
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
    """`asyncio.timeout` by a clock.

    `async with Deadline(2, clock): ...` raises `TimeoutError` after two seconds. It may be stopped
    and started again.
    """

    __slots__ = ("_clock", "_is_over", "_limit", "_seconds", "_timer")

    def __init__(self, seconds: float, clock: Clock = HERE) -> None:
        self._seconds = seconds
        self._clock = clock
        self._limit = asyncio.timeout(None)
        self._timer: Timer | None = None
        self._is_over = False

    @property
    def clock(self) -> Clock:
        """The clock that counts the time."""
        return self._clock

    @property
    def expired(self) -> bool:
        """True if the deadline ended the block, rather than an error inside it."""
        return self._limit.expired()

    def stop(self) -> None:
        """Pause the deadline."""
        if self._timer is not None:
            self._timer.cancel()

    def start(self) -> None:
        """Restart the full time from now. After the end of the block it does nothing."""
        self.stop()
        if not self._is_over:
            self._timer = self._clock.call_later(self._seconds, self._limit.reschedule, 0)

    async def __aenter__(self) -> Self:
        await self._limit.__aenter__()
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
        self._is_over = True
        await self._limit.__aexit__(kind, error, traceback)
