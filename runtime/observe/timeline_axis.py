"""The horizontal axis of a timeline.

Time in which a run stood still is shortened if it would leave too little room for the rest: an
answer may take a day, and the work a second. A later time is never placed before an earlier one.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, pairwise
from typing import Final

from .timeline_values import TimelineBand

__all__ = ["Axis", "duration_text"]

_WIDEST_BAND: Final = 0.2
"""The largest width of one pause, as a share of the total active time."""
_STEPS: Final = (1, 2, 5)
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_ROUND: Final = (60, 120, 300, 600, 1800, 3600, 7200, 21_600, 86_400, 604_800)


class Axis:
    """A scale from times to positions between 0 and 1."""

    def __init__(self, start: float, end: float, bands: tuple[TimelineBand, ...]) -> None:
        self.start, self.end = start, max(end, start)
        rests = _apart(bands, self.start, self.end)
        at_work = (self.end - self.start) - sum(end - start for start, end in rests)
        widest = _WIDEST_BAND * at_work if at_work > 0 else self.end - self.start
        pieces = [
            (time, time_after, False) for time, time_after in _between(self.start, self.end, rests)
        ] + [(*rest, True) for rest in rests]
        pieces.sort()
        weights = [
            min(end - start, widest) if is_rest else end - start for start, end, is_rest in pieces
        ]
        total = sum(weights) or 1.0
        self._times = [self.start, *(end for _, end, _ in pieces)]
        self._places = [0.0, *(weight / total for weight in accumulate(weights))]
        self._rests = rests

    def place(self, time: float) -> float:
        """Return the position of a time."""
        if time <= self.start:
            return 0.0
        if time >= self.end:
            return 1.0
        index = bisect_right(self._times, time) - 1
        before, after = self._times[index], self._times[index + 1]
        share = (time - before) / (after - before) if after > before else 0.0
        return self._places[index] + share * (self._places[index + 1] - self._places[index])

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Return positions with the time since the start, at most `most`; none inside a pause."""
        length = self.end - self.start
        if length <= 0 or most < 1:
            return [(0.0, "0 s")]
        shown = length - sum(
            max(0.0, (end - start) - (self.place(end) - self.place(start)) * length)
            for start, end in self._rests
        )
        step = _step(max(shown, length / 1e6) / most)
        count = min(int(length / step), 50 * most)
        times = [number * step for number in range(count + 1)]
        found = [
            time
            for time in times
            if not any(start < self.start + time < end for start, end in self._rests)
        ]
        return [(self.place(self.start + time), duration_text(time)) for time in found]


def _apart(bands: tuple[TimelineBand, ...], start: float, end: float) -> list[tuple[float, float]]:
    """Return the bands as times that do not overlap."""
    found: list[tuple[float, float]] = []
    for band in sorted(bands, key=lambda band: band.start):
        one, other = max(band.start, found[-1][1] if found else start), min(band.end, end)
        if other > one:
            found.append((one, other))
    return found


def _between(
    start: float, end: float, rests: list[tuple[float, float]]
) -> list[tuple[float, float]]:
    edges = [start, *(edge for rest in rests for edge in rest), end]
    return [
        pair for number, pair in enumerate(pairwise(edges)) if number % 2 == 0 and pair[1] > pair[0]
    ]


def _step(least: float) -> float:
    """Return the next round number of seconds."""
    for step in _ROUND:
        if least > _ROUND[0] / 2 and step >= least:
            return step
    power = 1e-6
    while power < least:
        for factor in _STEPS:
            if factor * power >= least:
                return factor * power
        power *= 10
    return power


def duration_text(seconds: float) -> str:
    """Format a duration: `340 ms`, `4.2 s`, `3 min 20 s`, `2 h 05 min`."""
    if seconds <= 0:
        return "0 s"
    if seconds < 0.9995:  # noqa: PLR2004 -- it would be shown as a thousand milliseconds
        return f"{seconds * 1000:.3g} ms"
    if seconds < _MINUTE - 0.05:
        return f"{seconds:.1f}".removesuffix(".0") + " s"
    if seconds < _HOUR - 0.5:
        return f"{round(seconds) // _MINUTE} min" + (
            f" {round(seconds) % _MINUTE:02} s" if round(seconds) % _MINUTE else ""
        )
    minutes = round(seconds / _MINUTE)
    if seconds < _DAY:
        return f"{minutes // 60} h" + (f" {minutes % 60:02} min" if minutes % 60 else "")
    hours = round(seconds / _HOUR)
    return f"{hours // 24} d" + (f" {hours % 24} h" if hours % 24 else "")
