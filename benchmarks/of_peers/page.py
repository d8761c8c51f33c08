"""The page that `peers` draws: a panel for each workload, a bar for each contender."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.contenders.agents_base import REFERENCE
from benchmarks.lab.plot import Bar, Panel, Row, draw
from benchmarks.lab.report import amount, duration, ratio
from benchmarks.of_peers.table import Cell
from benchmarks.of_peers.workloads import Workload

__all__ = ["draw_page"]

_COLOURS = {
    "offbook": "#0b6e4f",
    "agno": "#5b5f97",
    "autogen-agentchat": "#b08ea2",
    "langchain": "#c9a227",
    "openai-agents": "#d1603d",
    "pydantic-ai": "#a23b72",
    "google-adk": "#3d7ea6",
    "swarm": "#7f8c8d",
    "bare": "#b9c1c9",
}
_SHORTEST = 45  # characters of a reason that fits


def draw_page(
    path: Path,
    cells: Mapping[tuple[str, str], Cell],
    *,
    workloads: Sequence[Workload],
    titles: Mapping[str, str],
    missing: Mapping[tuple[str, str], str],
    footnote: str,
    by_cpu: bool,
) -> list[Path]:
    rows = {
        key: Row(title, _COLOURS.get(key, "#777777"), bold=key == REFERENCE)
        for key, title in titles.items()
    }
    panels: list[Panel] = []
    for workload in workloads:
        bars: dict[str, Bar | str] = {}
        mine = cells.get((workload.key, REFERENCE))
        mine_values = [] if mine is None else mine.cpu_values if by_cpu else mine.values
        mine_value = statistics.median(mine_values) if mine_values else 0.0
        for key in titles:
            cell = cells.get((workload.key, key))
            values = [] if cell is None else cell.cpu_values if by_cpu else cell.values
            if not values or statistics.median(values) <= 0:
                why = missing.get((workload.key, key), "not measured").splitlines()[0]
                bars[key] = why if len(why) <= _SHORTEST else why[: _SHORTEST - 2].rstrip() + " …"
            else:
                value = statistics.median(values)
                remark = (
                    ""
                    if mine is None or mine is cell or not mine_value
                    else ratio(value / mine_value)
                )
                bars[key] = Bar(value, max(values), remark)
        if any(isinstance(bar, Bar) for bar in bars.values()):
            show = amount if workload.shows == "bytes" else duration
            panels.append(
                Panel(
                    workload.title,
                    workload.question,
                    bars,
                    show,
                    ("median", "worst", f"{REFERENCE} is"),
                )
            )
    if not panels:
        return []
    subtitle = (
        f"{'CPU time' if by_cpu else 'By the clock'}: shorter is better, and each line of the "
        "grid is ten times the one before."
    )
    return draw(
        path,
        title="Peers: the same work, each in its own process",
        subtitle=subtitle,
        rows=rows,
        panels=panels,
        footnote=footnote,
    )
