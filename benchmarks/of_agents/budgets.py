"""The budgets of agents and runs, and whether they are reached.

Rates of runs and their ratios are judged by CPU time, what waits by the clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.contenders.agents_base import REFERENCE
from benchmarks.lab.measure import Series
from benchmarks.lab.report import Budget, amount, duration, rate, ratio
from benchmarks.of_agents.census import IDLE, WAITING, Census
from benchmarks.of_agents.footprint import Definitions, Import, Sessions

__all__ = ["Figures", "agent_budgets"]

# The bare loop is a floor, not a peer.
_NO_PEERS = {REFERENCE, "bare"}

# Runs per second of one core, and the ratio to the fastest peer that is measured beside it.
_RUNS = {
    "turn": (30_000, 6.0),
    "turns_at_once": (30_000, 6.0),
    "tool": (15_000, 6.0),
    "transfer": (10_000, 15.0),
    "handoff": (10_000, 15.0),
    "resumes_memory": (3_000, 3.0),
    "resumes_sqlite": (900, 3.0),
}

# At most so many seconds for one of them.
_AT_MOST = {
    "define_shared": 10e-6,
    "define_own": 60e-6,
    "event": 2e-6,
    "in_sequence": 3e-3,
    "in_parallel": 5e-3,
}

_DEFINITION_BYTES = 1500
_SESSION_BYTES = 8 * 1024
_SESSION_WALL = 1.5
_SESSIONS = 10_000
_IMPORT_SECONDS = 0.15
_TRACKED = {IDLE: 10, WAITING: 80}

# One of 200 transfers or handoffs may cost so many times one of 10: they should cost the same, and
# noise may add the rest.
_LONG_RUN = 1.2


@dataclass(slots=True)
class Figures:
    """All measurements of a run of the benchmark."""

    series: list[Series] = field(default_factory=list)
    definitions: list[Definitions] = field(default_factory=list)
    sessions: list[Sessions] = field(default_factory=list)
    objects: list[Census] = field(default_factory=list)
    imports: list[Import] = field(default_factory=list)


def agent_budgets(figures: Figures, titles: Mapping[str, str]) -> list[Budget]:
    """`titles` are those of the measures. Measures that did not run are left out."""
    budgets = []
    for placement in dict.fromkeys(one.placement for one in figures.series):
        found = {
            (one.measure, one.contender): one
            for one in figures.series
            if one.placement == placement
        }
        budgets += list(_by_rounds(found, titles))
    budgets += list(_by_processes(figures))
    return budgets


def _by_rounds(
    found: Mapping[tuple[str, str], Series], titles: Mapping[str, str]
) -> Iterator[Budget]:
    for measure, title in titles.items():
        mine = found.get((measure, REFERENCE))
        if mine is None:
            continue
        place = mine.placement.name
        if measure in _AT_MOST:
            # The median of operations where there are any, so that a garbage collection during one
            # of them does not count.
            limit = _AT_MOST[measure]
            figure = f"{duration(mine.p50)} (CPU {duration(mine.cpu_per_operation)})"
            floor = found.get((measure, "bare"))
            note = (
                f"{title}, {place}: of it {duration(floor.p50)} are the timers of asyncio, "
                "as the bare loop has them"
                if floor is not None
                else ""
            )
            yield Budget(
                title, f"at most {duration(limit)}", figure, mine.p50 <= limit, place, note
            )
        if measure in _RUNS:
            wanted, times = _RUNS[measure]
            by_cpu = 1 / mine.cpu_per_operation
            figure = f"{rate(by_cpu)}/s (by the clock {rate(mine.rate)}/s)"
            yield Budget(title, f"at least {wanted:,}/s", figure, by_cpu >= wanted, place)
            yield from _against_peers(
                title,
                times,
                mine,
                [
                    one
                    for (key, who), one in found.items()
                    if key == measure and who not in _NO_PEERS
                ],
            )
    for what in ("transfers", "handoffs"):
        short, long = found.get((f"{what}_10", REFERENCE)), found.get((f"{what}_200", REFERENCE))
        if short is not None and long is not None:
            times = short.ratio_to(long).median
            figure = f"{ratio(times)} (by CPU {ratio(short.cpu_ratio_to(long))})"
            yield Budget(
                f"one of 200 {what}, to one of 10",
                f"at most {ratio(_LONG_RUN)}",
                figure,
                times <= _LONG_RUN,
                short.placement.name,
            )


def _against_peers(
    title: str, times: float, mine: Series, peers: Sequence[Series]
) -> Iterator[Budget]:
    if peers:
        fastest = min(peers, key=lambda one: one.cpu_per_operation)
        reached = mine.cpu_ratio_to(fastest)
        figure = f"{ratio(reached)} (by the clock {ratio(mine.ratio_to(fastest).median)})"
        yield Budget(
            f"{title}, against {fastest.contender}",
            f"at least {ratio(times)}",
            figure,
            reached >= times,
            mine.placement.name,
        )


def _by_processes(figures: Figures) -> Iterator[Budget]:
    place = "own process"
    for defined in figures.definitions:
        if defined.contender == REFERENCE and not defined.own_tool:
            reached = defined.bytes_each <= _DEFINITION_BYTES
            yield Budget(
                "W1 a definition, shared tool",
                f"at most {_DEFINITION_BYTES:,} B",
                f"{defined.bytes_each:,.0f} B",
                reached,
                place,
            )
    for one in figures.sessions:
        if one.contender == REFERENCE and one.count == _SESSIONS:
            what = f"W6 {one.count:,} sessions"
            yield Budget(
                f"{what}, each",
                f"at most {amount(_SESSION_BYTES)}",
                amount(one.bytes_each),
                one.bytes_each <= _SESSION_BYTES,
                place,
            )
            yield Budget(f"{what}, threads", "none", str(one.threads), one.threads == 0, place)
            times = one.wall_seconds / one.model_seconds
            figure = f"{ratio(times)} (CPU {duration(one.cpu_seconds)})"
            yield Budget(
                f"{what}, wall time",
                f"at most {ratio(_SESSION_WALL)} the model's",
                figure,
                times <= _SESSION_WALL,
                place,
            )
    for counted in figures.objects:
        limit = _TRACKED[counted.what]
        yield Budget(
            f"W6 tracked objects: {counted.what}",
            f"at most {limit}",
            f"{counted.tracked:g}",
            counted.tracked <= limit,
            place,
        )
    for imported in figures.imports:
        if imported.contender == REFERENCE:
            figure = f"{duration(imported.seconds)} (CPU {duration(imported.cpu_seconds)})"
            yield Budget(
                f"W8 import {imported.module}",
                f"at most {duration(_IMPORT_SECONDS)}",
                figure,
                imported.seconds <= _IMPORT_SECONDS,
                place,
            )
            brings = ", ".join(imported.brings) or "nothing heavy"
            yield Budget(
                "W8 and imports with it",
                "no openai",
                brings,
                "openai" not in imported.brings,
                place,
            )
