"""The page that `actors.py` draws, one for each placement: which panels, in which colours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.contenders import REFERENCE
from benchmarks.contenders.base import Contender
from benchmarks.lab.measure import Series
from benchmarks.lab.panels import measure_panel, where
from benchmarks.lab.plot import Bar, Panel, Row, draw
from benchmarks.lab.report import Measure, duration
from benchmarks.of_actors.idle import Idle

__all__ = ["draw_page"]

_COLOURS = {
    "offbook": "#0b6e4f",
    "offbook-from-thread": "#58a586",
    "offbook-thread-actor": "#a3cdb9",
    "pykka": "#d1603d",
    "autogen-core": "#5b5f97",
    "asyncio": "#9aa5b1",
}


def draw_page(
    output: Path,
    measures: Sequence[Measure],
    series: Sequence[Series],
    idles: Sequence[Idle],
    *,
    fields: Sequence[Contender],
    machine: Mapping[str, Any],
    rounds: int,
) -> list[Path]:
    rows = {
        one.key: Row(one.title, _COLOURS.get(one.key, "#777777"), bold=one.key == REFERENCE)
        for one in fields
    }
    placements = list(dict.fromkeys(one.placement for one in series))
    written = []
    for placement in placements:
        found = {(one.measure, one.contender): one for one in series if one.placement == placement}
        panels = [measure_panel(measure, found, fields, REFERENCE) for measure in measures]
        if idles:
            panels += _idle(idles, fields)
        written += draw(
            output.with_name(f"{output.stem}-{placement.name}.json"),
            title="Actors: what one of them costs",
            subtitle=(
                "Shorter is better, and each line of the grid is ten times the one before. The "
                f"process ran {where(placement.name)}."
            ),
            rows=rows,
            panels=panels,
            footnote=(
                f"{machine['processor']}, {machine['cores']} cores, {machine['python']}; "
                f"{rounds} rounds, interleaved. "
                "Ratios are those of operations per second, and medians of the rounds."
            ),
        )
    return written


def _idle(idles: Sequence[Idle], fields: Sequence[Contender]) -> list[Panel]:
    """The panels of the idle actors: each contender with the largest number that was measured."""
    most = {idle.contender: idle for idle in sorted(idles, key=lambda idle: idle.count)}
    memory: dict[str, Bar | str] = {one.key: "not measured" for one in fields}
    spawning = dict(memory)
    for key, idle in most.items():
        memory[key] = Bar(idle.bytes_per_actor, None, f"{idle.count:,}")
        spawning[key] = Bar(idle.spawn_seconds / idle.count, None, f"{idle.count:,}")
    return [
        Panel(
            "memory",
            "each of very many idle actors",
            memory,
            lambda size: f"{size:,.0f} B",
            ("each", "", "of"),
        ),
        Panel(
            "spawning very many",
            "each of them, with the garbage collector at work",
            spawning,
            duration,
            ("each", "", "of"),
        ),
    ]
