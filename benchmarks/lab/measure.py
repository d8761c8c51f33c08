"""One round on the stopwatch, many rounds interleaved, and their statistics.

It must never know of actors: any benchmark may use it.

* A *round* is one run of one measure by one contender: it makes what it needs, runs it on the
  stopwatch, and takes it down again.
* Rounds are *interleaved*: every contender has its first round before any has its second, and each
  time another one begins, so that whatever else the machine does hits all of them alike. Therefore
  ratios are taken round by round, between neighbours, and then the median of those.
* The garbage collector runs before the stopwatch starts, so that no round pays for the one before
  it. While it runs, the collector is as users have it: on.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from time import perf_counter_ns, process_time_ns

from benchmarks.lab.machine import Placement

__all__ = ["Entry", "Ratio", "Series", "Stopwatch", "interleave", "percentile", "stamp_cost"]


class Stopwatch:
    """Takes the time of one round: of its `with` blocks, and of each operation that is lapped in
    them.

        with watch as lap:
            for _ in range(n):
                await ref.request(message)
                lap(now())              # `now` is `time.perf_counter_ns`

    Time after the last lap counts for the round, and for no single operation. Without laps, say how
    many operations there were: `watch.operations += n`. CPU time is that of the whole process, with
    all its threads.
    """

    def __init__(self) -> None:
        self.operations = 0
        self.nanoseconds = 0
        self.cpu_nanoseconds = 0
        self.latencies: list[int] = []

    def __enter__(self) -> Callable[[int], None]:
        gc.collect()
        self._stamps: list[int] = []
        self._cpu_started = process_time_ns()
        self._started = perf_counter_ns()
        return self._stamps.append

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.nanoseconds += perf_counter_ns() - self._started
        self.cpu_nanoseconds += process_time_ns() - self._cpu_started
        stamps = self._stamps
        self.operations += len(stamps)
        self.latencies += [
            later - earlier
            for earlier, later in zip([self._started, *stamps], stamps, strict=False)
        ]


@dataclass(frozen=True, slots=True)
class Ratio:
    """The ratio of operations per second to another contender's: the median of the rounds, and the
    quartiles between which half of them are.
    """

    median: float
    low: float
    high: float


@dataclass(slots=True)
class Series:
    """All rounds of one contender at one measure, on one placement."""

    measure: str
    contender: str
    placement: Placement
    rates: list[float] = field(default_factory=list)  # operations per second, by round
    cpu: list[float] = field(default_factory=list)  # CPU seconds per operation, by round
    latencies: list[int] = field(default_factory=list)  # nanoseconds per operation, of all rounds
    operations: int = 0

    def add(self, watch: Stopwatch) -> None:
        if not watch.operations:
            msg = f"{self.contender} did nothing in a round of {self.measure}."
            raise ValueError(msg)
        self.rates.append(watch.operations * 1e9 / watch.nanoseconds)
        self.cpu.append(watch.cpu_nanoseconds / 1e9 / watch.operations)
        self.latencies += watch.latencies
        self.operations += watch.operations

    @property
    def rate(self) -> float:
        return statistics.median(self.rates)

    @property
    def cpu_per_operation(self) -> float:
        return statistics.median(self.cpu)

    @property
    def by_operation(self) -> bool:
        """Whether `p50` and `p99` are of single operations; if not, of whole rounds divided by
        their operations: the median one and the slowest one.
        """
        return bool(self.latencies)

    @property
    def p50(self) -> float:
        return percentile(self.latencies, 50) / 1e9 if self.latencies else 1 / self.rate

    @property
    def p99(self) -> float:
        return percentile(self.latencies, 99) / 1e9 if self.latencies else 1 / min(self.rates)

    def ratio_to(self, other: Series) -> Ratio:
        ratios = [mine / theirs for mine, theirs in zip(self.rates, other.rates, strict=True)]
        low, _, high = (
            statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
        )
        return Ratio(statistics.median(ratios), low, high)

    def cpu_ratio_to(self, other: Series) -> float:
        """The ratio of another contender's CPU time for the same to this one's."""
        return statistics.median(
            theirs / mine for mine, theirs in zip(self.cpu, other.cpu, strict=True)
        )


def percentile(values: Iterable[float], percent: float) -> float:
    """The value that `percent` of them do not exceed (nearest rank)."""
    ranked = sorted(values)
    return ranked[max(0, min(len(ranked) - 1, round(len(ranked) * percent / 100 + 0.5) - 1))]


def stamp_cost() -> float:
    """The seconds that one lap adds to each operation of any contender: measured here and now, the
    best of several.
    """
    best = float("inf")
    for _ in range(5):
        watch = Stopwatch()
        with watch as lap:
            for _ in range(20_000):
                lap(perf_counter_ns())
        best = min(best, watch.nanoseconds / watch.operations / 1e9)
    return best


@dataclass(frozen=True, slots=True)
class Entry:
    """One contender at one measure: `run` is one whole round, and puts the part that counts on the
    stopwatch.
    """

    contender: str
    run: Callable[[Stopwatch], None]


def interleave(
    measure: str,
    entries: Sequence[Entry],
    *,
    rounds: int,
    placements: Sequence[Placement],
    on_round: Callable[[str], None] = lambda _: None,
) -> list[Series]:
    """Run `rounds` rounds of every contender on every placement, in turn; and one before them that
    does not count, to warm up caches and the interpreter.
    """
    series = {
        (entry.contender, placement): Series(measure, entry.contender, placement)
        for placement in placements
        for entry in entries
    }
    for number in range(-1, rounds):
        first = max(number, 0) % len(entries)
        for placement in placements:
            for entry in (*entries[first:], *entries[:first]):
                on_round(entry.contender)
                watch = Stopwatch()
                with placement:
                    entry.run(watch)
                if number >= 0:
                    series[entry.contender, placement].add(watch)
    return list(series.values())
