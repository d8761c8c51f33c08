"""What may be said of noisy figures: a ratio with its interval and a verdict, the exponent with
which something grows, the knee of a curve.

Everything here is a function of its arguments: the bootstrap draws from a generator with a fixed
seed, so that one file of figures gives one verdict.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Comparison", "Fit", "Knee", "compare_rounds", "fit_power", "growth_shape", "knee_of"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How the second of two compares with the first: the ratio of their medians, and the interval
    in which it is with `confidence`.
    """

    ratio: float  # of the first one's cost to the second one's: above 1, the second is faster
    low: float
    high: float
    confidence: float
    least: float  # a difference smaller than this share is none

    @property
    def verdict(self) -> str:
        if self.low > 1 and self.ratio >= 1 + self.least:
            return "faster"
        if self.high < 1 and self.ratio <= 1 / (1 + self.least):
            return "slower"
        return "no difference that this run can see"

    @property
    def resolution(self) -> float:
        """The share by which the two may still differ: what this run could not see."""
        return max(self.high / self.ratio, self.ratio / self.low) - 1


def compare_rounds(
    first: Sequence[Sequence[float]],
    second: Sequence[Sequence[float]],
    *,
    confidence: float = 0.99,
    least: float = 0.02,
    draws: int = 4000,
    seed: int = 1,
) -> Comparison:
    """Compare the costs of two, by block and round.

    A block is a pair of processes, and its rounds are neighbours in time.

    The bootstrap draws blocks, and then the same rounds of both in each: a process has a speed of
    its own (its addresses, its hashes), which more of its rounds do not make surer, and what a
    neighbour on the machine does hits both rounds of a pair.
    """
    pairs = [
        list(zip(mine, theirs, strict=True)) for mine, theirs in zip(first, second, strict=True)
    ]
    if not pairs or not all(pairs):
        msg = "a comparison needs at least one block, and a round in each"
        raise ValueError(msg)
    chance = random.Random(seed)
    ratios = sorted(
        _ratio(
            [
                pair
                for _ in pairs
                for block in [chance.choice(pairs)]
                for pair in chance.choices(block, k=len(block))
            ]
        )
        for _ in range(draws)
    )
    tail = (1 - confidence) / 2
    low, high = ratios[int(draws * tail)], ratios[min(draws - 1, int(draws * (1 - tail)))]
    return Comparison(
        _ratio([pair for block in pairs for pair in block]), low, high, confidence, least
    )


def _ratio(pairs: Sequence[tuple[float, float]]) -> float:
    return statistics.median(mine for mine, _ in pairs) / statistics.median(
        theirs for _, theirs in pairs
    )


@dataclass(frozen=True, slots=True)
class Fit:
    """y = factor * x ** exponent, and the standard error of the exponent."""

    exponent: float
    error: float
    factor: float

    def at(self, x: float) -> float:
        return float(self.factor * x**self.exponent)


def fit_power(points: Sequence[tuple[float, float]]) -> Fit:
    """The straight line of least squares through the logarithms."""
    if len({x for x, _ in points}) < 2 or any(x <= 0 or y <= 0 for x, y in points):
        msg = f"an exponent needs two sizes or more, and figures above zero: {list(points)}"
        raise ValueError(msg)
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    mean_x, mean_y = statistics.fmean(xs), statistics.fmean(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    exponent = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread
    left = sum((y - mean_y - exponent * (x - mean_x)) ** 2 for x, y in zip(xs, ys, strict=True))
    error = math.sqrt(left / (len(xs) - 2) / spread) if len(xs) > 2 else 0.0
    return Fit(exponent, error, math.exp(mean_y - exponent * mean_x))


def growth_shape(fit: Fit) -> str:
    """What the exponent says in a word.

    Between flat and linear, a part that is flat and one that is linear add up; README.md says how
    to read it.
    """
    if abs(fit.exponent) <= 0.15:
        return "flat"
    if fit.exponent < 0:
        return "falling"
    if fit.exponent < 0.85:
        return "less than linear"
    return "linear" if fit.exponent <= 1.15 else "more than linear"


@dataclass(frozen=True, slots=True)
class Knee:
    """Where a closed system stops getting faster with more load: the load at which its two
    asymptotes cross.
    """

    load: float
    most: float  # the highest throughput that was seen
    unloaded: float  # the seconds of one round trip when there is little load
    reached: bool  # whether the system was seen beyond it; otherwise the knee is at `load` or above


def knee_of(points: Sequence[tuple[float, float]], unloaded: float, *, behind: float = 0.8) -> Knee:
    """From throughput by load.

    With little load, the throughput is `load / unloaded`; with much, it is `most`, whatever the
    load.

    It is reached if the throughput at the highest load is below `behind` of what the first
    asymptote has there.
    """
    if not points or unloaded <= 0:
        msg = "a knee needs at least one load, and the time of a round trip without one"
        raise ValueError(msg)
    most = max(throughput for _, throughput in points)
    load, throughput = max(points)
    return Knee(most * unloaded, most, unloaded, throughput < behind * load / unloaded)
