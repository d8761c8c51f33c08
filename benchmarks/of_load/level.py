"""What came out of one load: its figures, and how they stand in the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from benchmarks.lab.report import amount, duration, rate
from benchmarks.lab.statistics import Knee, knee_of

__all__ = ["Level", "as_markdown", "knee_in", "level_of"]

_KINDS = 5  # of failures, the most frequent, which are shown
_BUSY = 0.85  # of a core: from here on, the provider may be what is slow


@dataclass(frozen=True, slots=True)
class Level:
    """All seconds are those of a turn, but for `wall` and `cpu`, which are those of the whole
    load.
    """

    conversations: int
    turns: int
    failed: dict[str, int]
    per_second: float
    p50: float
    p95: float
    p99: float
    held: float  # by the provider, on average
    thought: float
    waited: float
    wall: float
    cpu: float
    provider_cpu: float
    requests: int
    bytes_each: float  # growth of the resident set at most, for each conversation
    resident: int
    threads: int  # more than before
    files: int
    connections: int
    collections: int  # full ones
    longest_collection: float

    @property
    def round_trip(self) -> float:
        """From one turn of a conversation to its next: what the user thinks, and waits."""
        return self.thought + self.waited

    @property
    def provider_share(self) -> float:
        return self.provider_cpu / self.wall


def level_of(figures: dict[str, Any]) -> Level:
    if "own" not in figures:
        often = sorted(figures["failed"].items(), key=lambda kind: -kind[1])[:_KINDS]
        msg = (
            f"With {figures['conversations']:,} conversations, no turn came to its end: "
            f"{dict(often)}"
        )
        raise RuntimeError(msg)
    return Level(
        conversations=figures["conversations"],
        turns=figures["turns"],
        failed=figures["failed"],
        per_second=figures["per_second"],
        p50=figures["own"]["p50"],
        p95=figures["own"]["p95"],
        p99=figures["own"]["p99"],
        held=figures["held_mean"],
        thought=figures["thought_mean"],
        waited=figures["waited_mean"],
        wall=figures["wall_seconds"],
        cpu=figures["cpu_seconds"],
        provider_cpu=figures["provider_cpu_seconds"],
        requests=figures["requests"],
        bytes_each=(figures["resident_most"] - figures["resident_before"])
        / figures["conversations"],
        resident=figures["resident_most"],
        threads=figures["threads_more"],
        files=figures["files_most"],
        connections=figures["connections"],
        collections=figures["collections"],
        longest_collection=figures["longest_collection"],
    )


def knee_in(levels: Sequence[Level]) -> Knee:
    """The least load says what a round trip takes without one."""
    least = min(levels, key=lambda one: one.conversations)
    return knee_of([(one.conversations, one.per_second) for one in levels], least.round_trip)


_COLUMNS = (
    "conversations",
    "turns/s",
    "own p50",
    "own p95",
    "own p99",
    "longest collection",
    "the provider's",
    "CPU/turn",
    "each",
    "threads",
    "files",
    "provider's core",
    "failed",
)


def as_markdown(levels: Sequence[Level], knee: Knee, heading: str) -> str:
    lines = [heading, "", "| " + " | ".join(_COLUMNS) + " |", "|---" * len(_COLUMNS) + "|"]
    for one in levels:
        row = [
            f"{one.conversations:,}",
            rate(one.per_second),
            *(duration(max(own, 0.0)) for own in (one.p50, one.p95, one.p99)),
            duration(one.longest_collection) if one.collections else "none",
            duration(one.held),
        ]
        row += [
            duration(one.cpu / one.turns),
            amount(max(one.bytes_each, 0.0)),
            f"+{one.threads}",
            f"{one.files:,}",
        ]
        row += [
            f"{one.provider_share:.0%}" + (" (!)" if one.provider_share > _BUSY else ""),
            f"{sum(one.failed.values()):,}",
        ]
        lines.append("| " + " | ".join(row) + " |")
    lines += ["", _knee_said(knee)]
    if any(one.provider_share > _BUSY for one in levels):
        lines += [
            "",
            (
                "(!): the provider's process used nearly all of a core there, so that it may be "
                "what was slow. Its own delay is no part of the framework's time."
            ),
        ]
    for one in levels:
        lines += [
            f"\nWith {one.conversations:,}: {count:,} conversations ended with {reason}"
            for reason, count in sorted(one.failed.items(), key=lambda kind: -kind[1])[:_KINDS]
        ]
    return "\n".join(lines) + "\n"


def _knee_said(knee: Knee) -> str:
    rest = (
        f"a round trip without load takes {duration(knee.unloaded)}, and at most "
        f"{rate(knee.most)} turns/s were seen"
    )
    if knee.reached:
        return (
            f"**The knee is at {knee.load:,.0f} conversations**: {rest}. Beyond it, more "
            "conversations wait longer, and no more turns come to their end."
        )
    return f"**The knee was not reached**; it is above {knee.load:,.0f} conversations: {rest}."
