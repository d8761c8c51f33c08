"""The tables of the benchmark: contenders side by side, and the budgets beside what was measured.

Owns: the budgets. It must never show a figure of another run.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from benchmarks.lab.report import amount, duration

__all__ = ["Rounds", "as_markdown", "as_rows", "median_of"]

Rounds: TypeAlias = Mapping[str, Sequence[Mapping[str, Mapping[str, float]]]]
"""By contender: for each round, by measure, its figures."""

_MS: Final = 1e-3


def median_of(rounds: Rounds, contender: str, measure: str, figure: str) -> float | None:
    """The median of the rounds, or None where it was not measured."""
    found = [one[measure][figure] for one in rounds.get(contender, ()) if measure in one]
    return statistics.median(found) if found else None


_COLUMNS: Final[Sequence[tuple[str, str, str, Callable[[float], str]]]] = (
    ("output chunk, CPU", "output", "cpu", duration),
    ("wall", "output", "wall", duration),
    ("input chunk, CPU", "input", "cpu", duration),
    ("wall", "input", "wall", duration),
    ("late p50", "latency", "p50", duration),
    ("late p99", "latency", "p99", duration),
    ("idle session", "idle", "bytes", amount),
    ("tasks", "idle", "tasks", "{:.0f}".format),
    ("all closed in", "idle", "close", duration),
)


def _contenders(rounds: Rounds, missing: Mapping[str, str]) -> list[str]:
    lines = [
        "| contender | " + " | ".join(title for title, *_ in _COLUMNS) + " |",
        "|---" * (len(_COLUMNS) + 1) + "|",
    ]
    for name in rounds:
        found = [
            (median_of(rounds, name, measure, figure), write)
            for _, measure, figure, write in _COLUMNS
        ]
        lines.append(
            f"| {name} | "
            + " | ".join("" if value is None else write(value) for value, write in found)
            + " |"
        )
    return [*lines, "", *(f"{name} is not measured: {why}." for name, why in missing.items())]


def _budgets(rounds: Rounds) -> list[tuple[str, str, str, bool]]:
    """Each budget: what, how much it may be, how much it is, whether it is kept."""

    def mine(measure: str, figure: str) -> float:
        found = median_of(rounds, "offbook", measure, figure)
        assert found is not None
        return found

    def beyond(measure: str, figure: str, other: str = "bare") -> tuple[float, float]:
        return mine(measure, figure), median_of(rounds, other, measure, figure) or 0.0

    made: list[tuple[str, str, str, bool]] = []

    def at_most(
        what: str, limit: float, value: float, write: Callable[[float], str] = duration
    ) -> None:
        made.append((what, f"at most {write(limit)}", write(value), value <= limit))

    def times(value: float) -> str:
        return f"{value:.2f} x"

    for measure, what in (
        ("output", "CPU for an output chunk, beside bare"),
        ("input", "CPU for an input chunk, beside bare"),
    ):
        own, bare = beyond(measure, "cpu")
        at_most(what, 1.6, own / bare, times)
    if median_of(rounds, "openai-agents", "output", "cpu"):
        own, sdk = beyond("output", "cpu", "openai-agents")
        at_most("CPU for an output chunk, beside the SDK", 1.0, own / sdk, times)
    for figure, limit in (("p50", 0.2 * _MS), ("p99", 2 * _MS)):
        own, bare = beyond("latency", figure)
        at_most(f"added latency of a chunk, {figure}", limit, max(0.0, own - bare))
    count = f"{mine('crowd', 'count'):,.0f}"
    at_most(f"{count} sessions at real time both ways, p99", 20 * _MS, mine("crowd", "p99"))
    at_most(
        f"{count} sessions at real time both ways, of a core",
        0.6,
        mine("crowd", "core"),
        "{:.0%}".format,
    )
    at_most("speech started to audio_interrupted, p99", 3 * _MS, mine("barge_in", "shown"))
    at_most("speech started to the truncation at the server, p99", 3 * _MS, mine("barge_in", "cut"))
    at_most("call of a tool to its output, p50", _MS, mine("tools", "call"))
    at_most("call of a handoff to the update, p50", _MS, mine("tools", "hand"))
    own, bare = beyond("idle", "bytes")
    at_most("an idle session, beyond the bare connection", 12 * 1024, own - bare, amount)
    own, bare = beyond("idle", "tasks")
    at_most("its tasks, beside the socket's own", 2, own - bare, "{:.0f}".format)
    at_most("its threads", 0, mine("idle", "threads"), "{:.0f}".format)
    at_most(f"{mine('idle', 'count'):,.0f} sessions closed", 1.0, mine("idle", "close"))
    at_most(
        "CPU of a chunk with a long history, beside a short one",
        1.1,
        mine("history", "long") / mine("history", "short"),
        times,
    )
    at_most(
        "reconnect with 100 items, beyond the handshake",
        150 * _MS,
        max(0.0, mine("reconnect", "took") - mine("reconnect", "handshake")),
    )
    at_most(
        "latency of a chunk with SQLite under it, beside none",
        1.1,
        mine("store", "with") / mine("store", "without"),
        times,
    )
    at_most("import of offbook.actors.realtime, CPU", 25 * _MS, mine("import", "took"))
    return made


def as_markdown(rounds: Rounds, missing: Mapping[str, str], heading: Sequence[str]) -> str:
    """The page: contenders side by side, then the budgets."""
    lines = [
        *heading,
        "",
        "## Beside others",
        "",
        *_contenders(rounds, missing),
        "",
        "## Budgets",
        "",
        "| what | budget | is | |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {what} | {limit} | {value} | {'kept' if kept else '**missed**'} |"
        for what, limit, value, kept in _budgets(rounds)
    ]
    return "\n".join(lines) + "\n"


def as_rows(rounds: Rounds) -> list[dict[str, Any]]:
    """The budgets, for the JSON file."""
    return [
        {"what": what, "budget": limit, "is": value, "kept": kept}
        for what, limit, value, kept in _budgets(rounds)
    ]
