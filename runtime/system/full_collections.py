"""Full garbage collections at times that disturb least, for `full_collections="paced"`.

Python makes a full collection when the objects that survived since the last one exceed a quarter of
the older ones. In a service with very many sessions that is every few seconds, for most of a
second, although nearly everything that ends there is freed without a collection. While it is paced,
a full collection is made

* when memory has grown by a quarter since the last one, and the loops had little to do, or
* at once when memory has grown by half.

Memory is the number of allocated blocks, of which every object that can be in a cycle has one, and
the resident memory. Both are read in constant time; counting the objects takes a tenth of a
collection.

The third threshold is raised to what can be allocated until memory has grown by half. Each look at
the memory raises it further, so a loop that is blocked leaves the collections to Python. No code
runs inside a collection: a signal that arrives there would be lost.

Survivors are not frozen. Python never looks at frozen objects again, so a cycle that ends later
would stay for good, and a collection of everything, which that calls for, is no shorter.

The settings are the process's, and so is the state of this module. Nothing is changed if the
collector is disabled, or if the third threshold is not Python's default: then the program has
decided, or the collector is an incremental one.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from ..clock import Clock, Timer
from ..errors import UsageError

__all__ = ["FullCollections", "Memory", "Pacing", "check_full_collections", "process", "used"]

_DEFAULT: Final = 10  # Python's third threshold
_LEAST: Final = 2 * _DEFAULT  # in a small process
_HIGHEST: Final = 2**31 - 1
_EARLY: Final = 1.25
_LATE: Final = 1.5
_INTERVAL: Final = 0.25  # seconds between two looks at the memory
_LITTLE: Final = 0.1  # the share of its time that a loop with little to do uses


def check_full_collections(value: object) -> None:
    """Raise if it is not a value of the option `full_collections`."""
    if value is not None and value != "paced":
        msg = (
            f'full_collections must be "paced" or None, got {value!r:.80}. Pass "paced" to make '
            "full garbage collections when the loop has nothing due, None to leave them to Python."
        )
        raise UsageError(msg)


class Memory(NamedTuple):
    """The memory of the process."""

    blocks: int
    resident: int  # pages; 0 where the system does not report them


def used() -> Memory:
    """Return the memory that this process uses now."""
    try:
        with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 -- pathlib takes twice as long
            pages = int(file.read().split()[1])
    except (OSError, IndexError, ValueError):
        pages = 0
    return Memory(sys.getallocatedblocks(), pages)


class Pacing:
    """The full collections of the process, shared by the systems that pace them.

    From any thread.
    """

    __slots__ = ("_base", "_collections", "_own_third", "_systems", "_used", "lock")

    def __init__(self, used: Callable[[], Memory] = used) -> None:
        self.lock = threading.RLock()  # not held during a collection, but during a fork
        self._used = used
        self._systems: set[FullCollections] = set()
        # The threshold that was set here last; None if the program decides.
        self._own_third: int | None = None
        self._base = Memory(0, 0)  # after the last full collection
        self._collections = 0  # full ones, until then

    def enter(self, system: FullCollections) -> None:
        """Pace the collections from now on, for one more system."""
        with self.lock:
            first = not self._systems
            self._systems.add(system)
            young, _, third = gc.get_threshold()
            if first and gc.isenabled() and young and third == _DEFAULT:
                self._own_third = third
                self._note()

    def leave(self, system: FullCollections) -> None:
        """Undo everything when the last system leaves."""
        with self.lock:
            self._systems.discard(system)
            if not self._systems:
                self._undo()

    def forget(self) -> None:
        """Undo everything in a forked process, in which no system runs."""
        self._systems.clear()
        self._undo()

    def look(self) -> None:
        """Make a full collection if it is time."""
        with self.lock:
            if not self._decides():
                return
            if _full_collections() != self._collections:
                self._note()  # Python has made one, or the program
                return
            now, base = self._used(), self._base
            if now.blocks < base.blocks:
                # Otherwise cycles could fill what a past peak needed.
                base = self._base = Memory(now.blocks, base.resident)
            growth = max(now.blocks / max(base.blocks, 1), now.resident / max(base.resident, 1))
            limit = _EARLY if all(system.is_quiet for system in self._systems) else _LATE
            if growth < limit:
                self._raise_third(now)
                return
        gc.collect()
        with self.lock:
            if self._decides():
                self._note()

    def _decides(self) -> bool:
        """Return True unless the collector is disabled, or the program has set a threshold."""
        if self._own_third is not None and gc.get_threshold()[2] != self._own_third:
            self._own_third = None
        return self._own_third is not None and gc.isenabled()

    def _note(self) -> None:
        """Measure growth from here."""
        self._base = self._used()
        self._collections = _full_collections()
        self._raise_third(self._base)

    def _raise_third(self, now: Memory) -> None:
        """Leave room for the collections of young objects until memory has grown by half."""
        young, middle, _ = gc.get_threshold()
        room = int(self._base.blocks * _LATE) - now.blocks
        rounds = max(room // (max(young, 1) * (middle + 1)), _LEAST)
        self._set_third(min(gc.get_count()[2] + rounds, _HIGHEST))

    def _undo(self) -> None:
        if self._own_third is not None and gc.get_threshold()[2] == self._own_third:
            self._set_third(_DEFAULT)
        self._own_third = None

    def _set_third(self, third: int) -> None:
        young, middle, _ = gc.get_threshold()
        gc.set_threshold(young, middle, third)
        self._own_third = third


def _full_collections() -> int:
    count: int = gc.get_stats()[-1]["collections"]
    return count


process: Final = Pacing()
"""The full collections of this process."""


class FullCollections:
    """The looks at the memory of one system, on its loop."""

    __slots__ = ("_busy", "_clock", "_looked", "_pacing", "_thread_time", "_timer", "is_quiet")

    def __init__(
        self,
        clock: Clock,
        pacing: Pacing = process,
        thread_time: Callable[[], float] = time.thread_time,
    ) -> None:
        self._clock = clock
        self._pacing = pacing
        self._thread_time = thread_time
        self.is_quiet = False  # True if the loop had little to do since the last look
        self._busy = thread_time()
        self._looked = clock.monotonic()
        pacing.enter(self)
        self._timer: Timer = clock.call_later(_INTERVAL, self._look)

    def _look(self) -> None:
        busy, now = self._thread_time(), self._clock.monotonic()
        self.is_quiet = busy - self._busy < _LITTLE * (now - self._looked)
        self._pacing.look()
        # The collection itself does not count as work.
        self._busy, self._looked = self._thread_time(), self._clock.monotonic()
        self._timer = self._clock.call_later(_INTERVAL, self._look)

    def stop(self) -> None:
        """Leave the collections to Python, unless another system paces them."""
        self._timer.cancel()
        self._pacing.leave(self)
