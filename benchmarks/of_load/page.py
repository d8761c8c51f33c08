"""The charts of `load`: the framework's own time, throughput and memory, over the number of
conversations at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.lab.lines import Chart, Line, draw_lines
from benchmarks.lab.report import amount, duration, rate
from benchmarks.lab.statistics import Knee
from benchmarks.of_load.level import Level

__all__ = ["draw_page"]

_GREEN, _ORANGE, _RED, _GREY = "#0b6e4f", "#d99a2b", "#c4452f", "#8a949e"
_LEAST = 1e-5  # seconds: what is drawn of less than that


def draw_page(path: Path, levels: Sequence[Level], knee: Knee, footnote: str) -> list[Path]:
    loads = [one.conversations for one in levels]
    own = [
        Line(name, [(one.conversations, max(getattr(one, name), _LEAST)) for one in levels], colour)
        for name, colour in (("p50", _GREEN), ("p95", _ORANGE), ("p99", _RED))
    ]
    own.append(
        Line(
            "what the provider takes, on average",
            [(one.conversations, one.held) for one in levels],
            _GREY,
            measured=False,
        )
    )
    upright = (knee.load, "knee") if knee.reached and loads[0] <= knee.load <= loads[-1] else None
    asymptotes = [
        Line(
            "without any waiting",
            [
                (load, load / knee.unloaded)
                for load in loads
                if load / knee.unloaded <= knee.most * 3
            ],
            _GREY,
            measured=False,
        ),
        Line("most that was seen", [(load, knee.most) for load in loads], _ORANGE, measured=False),
    ]
    done = Line("turns per second", [(one.conversations, one.per_second) for one in levels], _GREEN)
    across = "conversations at once"
    charts = [
        Chart(
            "The framework's own time of a turn",
            "what a user waits, less what the provider held",
            own,
            across,
            duration,
            upright,
        ),
        Chart(
            "Throughput",
            "turns per second",
            [done, *asymptotes],
            across,
            lambda value: f"{rate(value)}/s",
            upright,
        ),
        Chart(
            "Memory",
            "of the whole process, at most",
            [_line("resident", levels, [one.resident for one in levels])],
            across,
            amount,
            upright,
            binary=True,
        ),
        Chart(
            "CPU",
            "processor time of a turn",
            [_line("CPU", levels, [one.cpu / one.turns for one in levels])],
            across,
            duration,
            upright,
        ),
    ]
    subtitle = "Conversations over real HTTP: several turns each, with a tool and a transfer."
    if failing := [one.conversations for one in levels if one.failed]:
        subtitle += f" From {failing[0]:,} on, some failed: what is drawn is of the others."
    return draw_lines(
        path,
        title="Load: very many conversations at once",
        subtitle=subtitle,
        charts=charts,
        footnote=footnote,
    )


def _line(title: str, levels: Sequence[Level], values: Sequence[float]) -> Line:
    return Line(
        title,
        [
            (one.conversations, max(value, _LEAST))
            for one, value in zip(levels, values, strict=True)
        ],
        _GREEN,
    )
