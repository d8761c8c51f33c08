"""The panel of one measure, as both pages draw it: a bar for each contender, and how many times the
reference is as fast.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from benchmarks.lab.measure import Series
from benchmarks.lab.plot import Bar, Panel
from benchmarks.lab.report import Measure, duration, ratio

__all__ = ["measure_panel", "where"]


class Field(Protocol):
    """What a panel needs of a contender."""

    key: str
    cannot: Mapping[str, str]


def measure_panel(
    measure: Measure,
    found: Mapping[tuple[str, str], Series],
    fields: Sequence[Field],
    reference: str,
) -> Panel:
    bars: dict[str, Bar | str] = {}
    mine = found.get((measure.key, reference))
    for one in fields:
        series = found.get((measure.key, one.key))
        if series is None:
            bars[one.key] = one.cannot.get(measure.key, "not measured")
            continue
        remark = "" if mine is None or series is mine else ratio(mine.ratio_to(series).median)
        bars[one.key] = Bar(series.p50, series.p99, remark)
    by_operation = any(
        series.by_operation for (key, _), series in found.items() if key == measure.key
    )
    columns = ("p50", "p99") if by_operation else ("median round", "slowest")
    return Panel(measure.title, measure.question, bars, duration, (*columns, f"{reference} is"))


def where(placement: str) -> str:
    return "on one core" if placement == "pinned" else "on all cores"
