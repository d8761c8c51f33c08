"""The tables of `peers`, in Markdown: a row for each contender, by the clock and by CPU; then each
workload with its spread and its ratio to offbook.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmarks.contenders.agents_base import REFERENCE
from benchmarks.lab.report import amount, duration, rate, ratio
from benchmarks.of_peers.workloads import WORKLOADS, Workload

__all__ = ["Cell", "as_markdown", "cells_of"]

_MISSING = "-"

# The columns of the first table: the title, and the workloads whose figures are in one.
_COLUMNS: Sequence[tuple[str, Sequence[str]]] = (
    ("W1 µs, B", ("define_own", "definitions")),
    ("W2 runs/s", ("turn",)),
    ("W2c runs/s", ("turns_at_once",)),
    ("W3 runs/s", ("tool",)),
    ("W4 runs/s", ("transfer",)),
    ("W5s, W5p ms", ("in_sequence", "in_parallel")),
    ("W6 s, KiB a session", ("sessions",)),
    ("W7 in memory, SQLite /s", ("resumes_memory", "resumes_sqlite")),
    ("W8 s", ("imports",)),
    ("HTTP whole, streamed: CPU µs", ("http_whole", "http_stream")),
)


class Cell:
    """The rounds of one contender at one workload."""

    def __init__(self, workload: Workload, rounds: Sequence[Mapping[str, Any]]) -> None:
        self.workload = workload
        self.rounds = rounds
        by = {
            "rate": "seconds",
            "seconds": "seconds",
            "cpu": "cpu_seconds",
            "bytes": "bytes_each",
            "session": "wall_seconds",
        }[workload.shows]
        self.values = [float(one[by]) for one in rounds]  # less is better, for all of them

    def of(self, name: str) -> float | None:
        """The median of something else that the rounds say."""
        found = [float(one[name]) for one in self.rounds if one.get(name) is not None]
        return statistics.median(found) if found else None

    @property
    def value(self) -> float:
        return statistics.median(self.values)

    def shown(self, value: float) -> str:
        if self.workload.shows == "rate":
            return f"{rate(1 / value)}/s"
        return amount(value) if self.workload.shows == "bytes" else duration(value)

    @property
    def cpu(self) -> float | None:
        return self.of("cpu_seconds")

    @property
    def cpu_values(self) -> list[float]:
        return [
            float(one["cpu_seconds"]) for one in self.rounds if one.get("cpu_seconds") is not None
        ]


def cells_of(
    rounds: Mapping[tuple[str, str], Sequence[Mapping[str, Any]]],
) -> dict[tuple[str, str], Cell]:
    return {
        (workload, contender): Cell(WORKLOADS[workload], found)
        for (workload, contender), found in rounds.items()
        if found
    }


def as_markdown(
    cells: Mapping[tuple[str, str], Cell],
    *,
    workloads: Sequence[Workload],
    titles: Mapping[str, str],
    missing: Mapping[tuple[str, str], str],
    differs: Mapping[tuple[str, str], str],
    heading: str,
) -> str:
    """`titles`: of the contenders, in their order; `missing`: why there is no figure; `differs`:
    what is not alike, both by workload and contender.
    """
    notes: dict[str, int] = {}

    def mark(text: str | None) -> str:
        return f" [{notes.setdefault(text, len(notes) + 1)}]" if text else ""

    keys = {one.key for one in workloads}
    lines = [
        heading,
        "",
        "## By the clock",
        "",
        *_first_table(cells, keys, titles, missing, mark, by_cpu=False),
    ]
    lines += [
        "",
        "## The same by CPU time: what one core does in a second",
        "",
        *_first_table(cells, keys, titles, missing, mark, by_cpu=True),
    ]
    for workload in workloads:
        lines += ["", *_one_workload(cells, workload, titles, missing, differs, mark)]
    better = _where_peers_are_better(cells, workloads, titles)
    lines += [
        "",
        "## Where a peer is better than offbook",
        "",
        *(better or ["Nowhere in this run."]),
    ]
    if notes:
        lines += ["", "## Notes", "", *(f"{number}. {text}" for text, number in notes.items())]
    return "\n".join(lines) + "\n"


def _first_table(
    cells: Mapping[tuple[str, str], Cell],
    keys: set[str],
    titles: Mapping[str, str],
    missing: Mapping[tuple[str, str], str],
    mark: Callable[[str | None], str],
    *,
    by_cpu: bool,
) -> list[str]:
    columns = [(title, parts) for title, parts in _COLUMNS if keys & set(parts)]
    lines = [
        "| | " + " | ".join(title for title, _ in columns) + " |",
        "|---" * (len(columns) + 1) + "|",
    ]
    for contender, title in titles.items():
        row = []
        for _, parts in columns:
            figures = []
            for part in parts:
                cell = cells.get((part, contender))
                figures.append(
                    _brief(cell, by_cpu=by_cpu)
                    if cell is not None
                    else _MISSING + mark(missing.get((part, contender)))
                )
            row.append(
                ", ".join(dict.fromkeys(figures))
                if set(figures) == {figures[0]} and figures[0].startswith(_MISSING)
                else ", ".join(figures)
            )
        lines.append(f"| {title} | " + " | ".join(row) + " |")
    return lines


def _brief(cell: Cell, *, by_cpu: bool) -> str:
    """Without its unit, which the column has."""
    key = cell.workload.key
    value = cell.cpu if by_cpu and cell.cpu is not None else cell.value
    if cell.workload.shows == "rate":
        return rate(1 / value)
    if key == "sessions":
        return f"{value:.3g}, {(cell.of('bytes_each') or 0.0) / 1024:.0f}"
    if key == "imports":
        return f"{value:.2f}"
    if key == "definitions":
        return f"{value:,.0f}"
    return f"{value * 1e3:,.1f}" if key in ("in_sequence", "in_parallel") else f"{value * 1e6:,.0f}"


def _one_workload(
    cells: Mapping[tuple[str, str], Cell],
    workload: Workload,
    titles: Mapping[str, str],
    missing: Mapping[tuple[str, str], str],
    differs: Mapping[tuple[str, str], str],
    mark: Callable[[str | None], str],
) -> list[str]:
    lines = [f"## {workload.title}: {workload.question}", ""]
    lines += [
        "| contender | median | rounds | CPU | p50 | p99 | offbook is | by CPU |",
        "|---|---|---|---|---|---|---|---|",
    ]
    mine = cells.get((workload.key, REFERENCE))
    for contender, title in titles.items():
        cell = cells.get((workload.key, contender))
        if cell is None:
            why = missing.get((workload.key, contender))
            lines.append(f"| {title} | {_MISSING}{mark(why)} | | | | | | |")
            continue
        best, worst = sorted((min(cell.values), max(cell.values)))
        p50, p99, cpu = cell.of("p50"), cell.of("p99"), cell.cpu
        row = [
            title + mark(differs.get((workload.key, contender))),
            cell.shown(cell.value),
            f"{cell.shown(best)} to {cell.shown(worst)}",
        ]
        row += [duration(one) if one is not None else "" for one in (cpu, p50, p99)]
        if mine is None or mine is cell:
            row += ["", ""]
        else:
            row.append(ratio(cell.value / mine.value) if mine.value > 0 < cell.value else "")
            row.append(ratio(cpu / mine.cpu) if cpu and mine.cpu else "")
        lines.append("| " + " | ".join(row) + " |")
    return lines


def _where_peers_are_better(
    cells: Mapping[tuple[str, str], Cell], workloads: Sequence[Workload], titles: Mapping[str, str]
) -> list[str]:
    """By the figure that the workload shows, and, where that is one of the clock, by CPU, too: a
    neighbour on the machine shifts the clock.
    """
    lines = []
    for workload in workloads:
        mine = cells.get((workload.key, REFERENCE))
        if mine is None:
            continue
        for contender, title in titles.items():
            theirs = cells.get((workload.key, contender))
            if theirs is None or contender == REFERENCE:
                continue
            apart = max(theirs.values) < min(mine.values)
            by_cpu = theirs.cpu is not None and mine.cpu is not None and theirs.cpu < mine.cpu
            if theirs.value < mine.value and (apart or by_cpu):
                sure = "in every round" if apart else "in the median; rounds overlap"
                cpu = f"; by CPU {ratio(mine.cpu / theirs.cpu)}" if theirs.cpu and mine.cpu else ""
                lines.append(
                    f"* {workload.title}: {title}, {theirs.shown(theirs.value)} to "
                    f"{mine.shown(mine.value)} ({sure}{cpu})"
                )
    return lines
