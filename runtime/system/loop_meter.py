"""How long the event loop was held, as its own thread has it to answer for.

Owns: the last look at the thread, before what is measured. Time in which the thread could have run and had no processor is not held: on a busy machine
everything takes long. Nor are modules that were imported meanwhile: that is done once. It must never cost much: it looks a few times in each span that matters.
"""

from __future__ import annotations

import gc
import sys
from time import perf_counter

from .loop_sampler import LoopSampler

__all__ = ["LoopMeter", "seconds_without_processor"]


def seconds_without_processor() -> float:
    """For how long this thread has waited for a processor since it began. Where the system does not say (elsewhere than on Linux): 0."""
    try:
        with open("/proc/thread-self/schedstat", "rb") as file:  # noqa: PTH123 -- pathlib takes as long again
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


class LoopMeter:
    """Measures what runs on one loop, in its thread."""

    __slots__ = ("_collections", "_look_at", "_modules", "_span", "_waited", "has_collected", "sampler")

    def __init__(self, slow_after: float) -> None:
        self._span = slow_after / 2  # so old the last look may be: what was waited before is taken for a part of what is measured
        self.sampler = LoopSampler(slow_after)
        self._look_at = 0.0
        self._waited = 0.0
        self._modules = 0
        self._collections = 0
        self.has_collected = False  # whether Python's garbage collector has looked at all objects in the time that `held` was last asked for

    def begin(self) -> float:
        """The time at which something begins to hold the loop."""
        now = perf_counter()
        if now >= self._look_at:
            self._look(now)
            self.sampler.at_work()
        return now

    def held(self, seconds: float) -> float:
        """How much of that time, which ends now, it has held the loop for: at least so much, as far as can be known."""
        waited, modules, collections = self._waited, self._modules, self._collections
        self._look(perf_counter())
        self.has_collected = self._collections > collections
        return 0.0 if self._modules > modules else max(0.0, seconds - (self._waited - waited))

    def _look(self, now: float) -> None:
        self._look_at = now + self._span
        self._waited = seconds_without_processor()
        self._modules = len(sys.modules)
        self._collections = gc.get_stats()[-1]["collections"]
