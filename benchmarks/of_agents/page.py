"""The page that `agents.py` draws, one for each placement: which panels, in which colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contenders.agents_base import REFERENCE, AgentContender
from benchmarks.lab.panels import measure_panel, where
from benchmarks.lab.plot import Bar, Panel, Row, draw
from benchmarks.lab.report import Measure, amount, duration
from benchmarks.of_agents.budgets import Figures

__all__ = ["draw_page"]

_COLOURS = {
    "offbook": "#0b6e4f",
    "openai-agents": "#d1603d",
    "agno": "#5b5f97",
    "autogen-agentchat": "#b08ea2",
    "bare": "#9aa5b1",
}


def draw_page(
    output: Path,
    measures: Sequence[Measure],
    figures: Figures,
    *,
    fields: Sequence[AgentContender],
    machine: Mapping[str, Any],
    rounds: int,
) -> list[Path]:
    rows = {
        one.key: Row(one.title, _COLOURS.get(one.key, "#777777"), bold=one.key == REFERENCE)
        for one in fields
    }
    written = []
    for placement in dict.fromkeys(one.placement for one in figures.series):
        found = {
            (one.measure, one.contender): one
            for one in figures.series
            if one.placement == placement
        }
        measured = {key for key, _ in found}
        panels = [
            measure_panel(measure, found, fields, REFERENCE)
            for measure in measures
            if measure.key in measured and measure.key != "event"
        ]
        panels += _processes(figures, fields)
        if not panels:
            continue
        written += draw(
            output.with_name(f"{output.stem}-{placement.name}.json"),
            title="Agents: what a run costs",
            subtitle=(
                "Shorter is better, and each line of the grid is ten times the one before. The "
                f"process ran {where(placement.name)}."
            ),
            rows=rows,
            panels=panels,
            footnote=(
                f"{machine['processor']}, {machine['cores']} cores, {machine['python']}, "
                f"load {machine['load']}; {rounds} rounds, interleaved. "
                "Ratios are those of operations per second, and medians of the rounds."
            ),
        )
    return written


def _processes(figures: Figures, fields: Sequence[AgentContender]) -> list[Panel]:
    keys = [one.key for one in fields]
    panels = []
    if figures.definitions:
        bars = _bars(
            keys,
            {
                one.contender: Bar(max(one.bytes_each, 1.0), None, "shared")
                for one in figures.definitions
                if not one.own_tool
            },
        )
        panels.append(
            Panel(
                "W1 memory of a definition",
                "with a tool that all share",
                bars,
                amount,
                ("each", "", "tool"),
            )
        )
    if figures.sessions:
        most = {one.contender: one for one in sorted(figures.sessions, key=lambda one: one.count)}
        memory = {
            key: Bar(max(one.bytes_each, 1.0), None, f"{one.count:,}") for key, one in most.items()
        }
        walls = {key: Bar(one.wall_seconds, None, f"{one.count:,}") for key, one in most.items()}
        panels.append(
            Panel(
                "W6 memory of a session",
                "each of very many that wait for their model",
                _bars(keys, memory),
                amount,
                ("each", "", "of"),
            )
        )
        panels.append(
            Panel(
                "W6 wall time of all",
                "each model sleeps one second",
                _bars(keys, walls),
                duration,
                ("wall", "", "of"),
            )
        )
    if figures.imports:
        bars = _bars(
            keys,
            {
                one.contender: Bar(one.seconds, one.slowest)
                for one in figures.imports
                if one.contender in keys
            },
        )
        panels.append(
            Panel("W8 import", "in a fresh interpreter", bars, duration, ("median", "slowest", ""))
        )
    return panels


def _bars(keys: Sequence[str], found: Mapping[str, Bar]) -> dict[str, Bar | str]:
    return {key: found.get(key, "not measured") for key in keys}
