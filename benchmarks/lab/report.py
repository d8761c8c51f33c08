"""The output of a benchmark: tables for the terminal, the budgets, and the JSON file.

It must never know of actors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from benchmarks.lab.measure import Series

__all__ = [
    "Budget",
    "Measure",
    "amount",
    "budget_table",
    "duration",
    "rate",
    "ratio",
    "results_table",
    "series_as_json",
    "write_json",
]


@dataclass(frozen=True, slots=True)
class Measure:
    """A question that the benchmark answers."""

    key: str
    title: str
    question: str  # of what `p50` and `p99` are


@dataclass(frozen=True, slots=True)
class Budget:
    """A figure to be reached, and the figure that was measured."""

    what: str
    target: str
    figure: str
    reached: bool | None  # None: it was not measured
    placement: str = ""
    note: str = ""


def duration(seconds: float) -> str:
    for unit, name in ((1e-6, "ns"), (1e-3, "µs"), (1.0, "ms")):
        if seconds < unit * 0.9995:
            return f"{_three(seconds / unit * 1000)} {name}"
    return f"{_three(seconds)} s"


def rate(per_second: float) -> str:
    return f"{per_second:,.0f}" if per_second >= 100 else _three(per_second)


def amount(size: float) -> str:
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if size >= unit:
            return f"{_three(size / unit)} {name}"
    return f"{size:.0f} B"


def ratio(times: float) -> str:
    return f"{_three(times)}x"


def _three(number: float) -> str:
    """Three significant digits, without an exponent."""
    return (
        f"{number:,.0f}"
        if number >= 99.95
        else f"{number:.1f}"
        if number >= 9.995
        else f"{number:.2f}"
    )


def results_table(
    title: str,
    measures: Sequence[Measure],
    series: Iterable[Series],
    *,
    titles: Mapping[str, str],
    reference: str,
    cannot: Mapping[tuple[str, str], str],
    differs: Mapping[tuple[str, str], str],
) -> Table:
    """A block for each measure, a row for each contender.

    `cannot` and `differs` are by measure and contender.
    """
    found = {(one.measure, one.contender): one for one in series}
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        header_style="bold",
        pad_edge=False,
        box=box.SIMPLE_HEAD,
    )
    table.add_column("measure", no_wrap=True)
    table.add_column("contender", no_wrap=True)
    for name in ("ops/s", "p50", "p99", "CPU/op", f"{reference} is", "quartiles", "by CPU"):
        table.add_column(name, justify="right", no_wrap=True)
    footnotes: dict[str, int] = {}

    def mark(note: str | None) -> str:
        return f" [{footnotes.setdefault(note, len(footnotes) + 1)}]" if note else ""

    for measure in measures:
        mine = found.get((measure.key, reference))
        first = True
        for contender, name in titles.items():
            label = Text(measure.title if first else "", style="bold")
            one = found.get((measure.key, contender))
            if one is not None:
                note = mark(differs.get((measure.key, contender)))
                table.add_row(
                    label,
                    Text(name + note, style="green" if contender == reference else ""),
                    *_row(one, mine),
                )
            elif (why := cannot.get((measure.key, contender))) is not None:
                table.add_row(label, Text(name + mark(why), style="dim"), Text("-", style="dim"))
            else:
                continue
            first = False
        table.add_section()
    notes = (
        ["In brackets: p50 and p99 of whole rounds, divided by their operations."]
        if any(not one.by_operation for one in found.values())
        else []
    )
    notes += [f"[{number}] {note}" for note, number in footnotes.items()]
    _add_notes(table, notes)
    return table


def _add_notes(table: Table, notes: Sequence[str]) -> None:
    table.caption = Text("\n".join(notes)) if notes else None
    table.caption_justify = "left"


def _row(one: Series, mine: Series | None) -> list[str]:
    p50, p99 = duration(one.p50), duration(one.p99)
    if not one.by_operation:
        p50, p99 = f"({p50})", f"({p99})"
    row = [rate(one.rate), p50, p99, duration(one.cpu_per_operation)]
    if mine is None or mine is one:
        return row
    times = mine.ratio_to(one)
    return [
        *row,
        ratio(times.median),
        f"{ratio(times.low)} to {ratio(times.high)}",
        ratio(mine.cpu_ratio_to(one)),
    ]


def budget_table(budgets: Sequence[Budget]) -> Table:
    table = Table(
        title="Budgets",
        title_justify="left",
        title_style="bold",
        header_style="bold",
        pad_edge=False,
        box=box.SIMPLE_HEAD,
    )
    for name in ("budget", "placement", "to be", "is", ""):
        table.add_column(name, no_wrap=True)
    notes = list(dict.fromkeys(budget.note for budget in budgets if budget.note))
    for budget in budgets:
        verdict = {
            True: Text("reached", style="green"),
            False: Text("not reached", style="bold red"),
            None: Text("not measured", style="dim"),
        }
        mark = f" [{notes.index(budget.note) + 1}]" if budget.note else ""
        table.add_row(
            Text(budget.what + mark),
            budget.placement,
            budget.target,
            budget.figure,
            verdict[budget.reached],
        )
    _add_notes(table, [f"[{number}] {note}" for number, note in enumerate(notes, start=1)])
    return table


def series_as_json(series: Sequence[Series], reference: str) -> list[dict[str, Any]]:
    references = {(one.measure, one.placement): one for one in series if one.contender == reference}
    rows = []
    for one in series:
        row: dict[str, Any] = {
            "measure": one.measure,
            "contender": one.contender,
            "placement": one.placement.name,
            "rounds": len(one.rates),
            "operations": one.operations,
            "per_second": {
                "median": one.rate,
                "slowest": min(one.rates),
                "fastest": max(one.rates),
                "rounds": one.rates,
            },
            "seconds": {
                "p50": one.p50,
                "p99": one.p99,
                "of": "operations" if one.by_operation else "rounds",
            },
            "cpu_seconds_per_operation": one.cpu_per_operation,
        }
        mine = references.get((one.measure, one.placement))
        if mine is not None and mine is not one:
            times = mine.ratio_to(one)
            row["reference_is_times"] = {
                "median": times.median,
                "low": times.low,
                "high": times.high,
                "by_cpu": mine.cpu_ratio_to(one),
            }
        rows.append(row)
    return rows


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
