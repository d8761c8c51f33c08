"""The time for which the event loop was blocked by its own thread.

Time in which the thread was ready but had no processor does not count, because everything is slow
on a busy machine. Neither does importing modules, which happens once. The meter is cheap: it
samples only a few times in each relevant span.
"""

from __future__ import annotations

import gc
import sys
from time import perf_counter

from .loop_sampler import LoopSampler

__all__ = ["LoopMeter", "seconds_without_processor"]


def seconds_without_processor() -> float:
    """Return the seconds that this thread has waited for a processor since it started.

    Systems other than Linux do not report this: 0.
    """
    try:
        with open("/proc/thread-self/schedstat", "rb") as file:  # noqa: PTH123 -- pathlib takes twice as long
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


class LoopMeter:
    """Measures the work on one loop, in its thread."""

    __slots__ = (
        "_collections",
        "_look_at",
        "_modules",
        "_span",
        "_waited",
        "has_collected",
        "sampler",
    )

    def __init__(self, slow_after: float) -> None:
        # The largest age of a sample: earlier waits count as part of the measured time.
        self._span = slow_after / 2
        self.sampler = LoopSampler(slow_after)
        self._look_at = 0.0
        self._waited = 0.0
        self._modules = 0
        self._collections = 0
        # True if Python's garbage collector ran a full collection in the span of the last `held`.
        self.has_collected = False

    def begin(self) -> float:
        """Return the current time, before work that may block the loop."""
        now = perf_counter()
        if now >= self._look_at:
            self._look(now)
            self.sampler.at_work()
        return now

    def held(self, seconds: float) -> float:
        """Return how much of the span that ends now has blocked the loop, as a lower bound."""
        waited, modules, collections = self._waited, self._modules, self._collections
        self._look(perf_counter())
        self.has_collected = self._collections > collections
        return 0.0 if self._modules > modules else max(0.0, seconds - (self._waited - waited))

    def _look(self, now: float) -> None:
        self._look_at = now + self._span
        self._waited = seconds_without_processor()
        self._modules = len(sys.modules)
        self._collections = gc.get_stats()[-1]["collections"]
