"""The tables of `http`, in Markdown: CPU and wall time of a turn, by workload and contender, and
the streams that take three seconds.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.of_http.workloads import WORKLOADS, Workload

__all__ = ["Rounds", "as_markdown", "median_of"]

Rounds = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]
"""By workload and contender."""

_REFERENCE = "offbook"


def median_of(rounds: Rounds, workload: str, contender: str, figure: str) -> float | None:
    found = [float(one[figure]) for one in rounds.get((workload, contender), ()) if figure in one]
    return statistics.median(found) if found else None


def as_markdown(
    rounds: Rounds, titles: Mapping[str, str], missing: Mapping[tuple[str, str], str], heading: str
) -> str:
    """`titles`: of the contenders, in their order; `missing`: why there is no figure."""
    measured = [one for one in WORKLOADS.values() if any(key == one.key for key, _ in rounds)]
    turns = [one for one in measured if one.kind != "paced"]
    lines = [heading, ""]
    if turns:
        lines += [
            "## CPU time of one turn, µs; in brackets, how many times offbook's",
            "",
            *_matrix(rounds, turns, titles, missing),
        ]
        for workload in turns:
            lines += ["", *_one(rounds, workload, titles, missing)]
    for workload in measured:
        if workload.kind == "paced":
            lines += ["", *_paced(rounds, workload, titles)]
    return "\n".join(lines) + "\n"


def _matrix(
    rounds: Rounds,
    workloads: Sequence[Workload],
    titles: Mapping[str, str],
    missing: Mapping[tuple[str, str], str],
) -> list[str]:
    lines = [
        "| | " + " | ".join(one.title for one in workloads) + " |",
        "|---" * (len(workloads) + 1) + "|",
    ]
    for contender, title in titles.items():
        row = []
        for workload in workloads:
            value, mine = (
                median_of(rounds, workload.key, who, "cpu") for who in (contender, _REFERENCE)
            )
            if value is None:
                row.append("failed" if (workload.key, contender) in missing else "-")
            else:
                row.append(
                    f"{value * 1e6:,.0f}"
                    + (f" ({value / mine:.1f})" if mine and contender != _REFERENCE else "")
                )
        lines.append(f"| {title} | " + " | ".join(row) + " |")
    return lines


def _one(
    rounds: Rounds,
    workload: Workload,
    titles: Mapping[str, str],
    missing: Mapping[tuple[str, str], str],
) -> list[str]:
    lines = [
        f"### {workload.title}",
        "",
        "| | CPU, µs | least to most | wall, µs | p50, ms | p99, ms |",
        "|---|---|---|---|---|---|",
    ]
    for contender, title in titles.items():
        found = rounds.get((workload.key, contender))
        if not found:
            why = missing.get((workload.key, contender))
            lines += [f"| {title} | {why} | | | | |"] if why else []
            continue
        cpu = [float(one["cpu"]) * 1e6 for one in found]
        wall, p50, p99 = (
            median_of(rounds, workload.key, contender, figure) or 0.0
            for figure in ("wall", "p50", "p99")
        )
        spread = f"{min(cpu):,.0f} to {max(cpu):,.0f}"
        lines.append(
            f"| {title} | {statistics.median(cpu):,.0f} | {spread} | {wall * 1e6:,.0f} | "
            f"{p50 * 1e3:,.2f} | {p99 * 1e3:,.2f} |"
        )
    return lines


def _paced(rounds: Rounds, workload: Workload, titles: Mapping[str, str]) -> list[str]:
    head = (
        "| | CPU of a stream, µs | first piece behind the server, p50, ms | p99, ms | other "
        "pieces behind it, p50, ms | p99, ms | KiB for each |"
    )
    lines = [f"## {workload.title}", "", head, "|---" * 7 + "|"]
    for contender, title in titles.items():
        if not rounds.get((workload.key, contender)):
            continue
        values = [
            median_of(rounds, workload.key, contender, figure) or 0.0
            for figure in ("cpu", "first_p50", "first_p99", "p50", "p99", "bytes_each")
        ]
        cpu, *times, size = values
        lines.append(
            f"| {title} | {cpu * 1e6:,.0f} | "
            + " | ".join(f"{time * 1e3:,.2f}" for time in times)
            + f" | {size / 1024:,.1f} |"
        )
    return lines
