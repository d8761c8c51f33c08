"""The verdicts of `compare`, in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from benchmarks.lab.report import duration
from benchmarks.lab.statistics import Comparison, compare_rounds
from benchmarks.of_compare.checkouts import Checkout
from benchmarks.of_compare.rounds import Compared

__all__ = ["Verdict", "as_markdown", "judge"]


class Verdict:
    """What may be said of the two at one workload: by CPU, which decides, and by the clock."""

    def __init__(self, compared: Compared, *, confidence: float, least: float) -> None:
        self.workload = compared.workload
        self.cpu = compare_rounds(*compared.cpu, confidence=confidence, least=least)
        self.wall = compare_rounds(*compared.wall, confidence=confidence, least=least)
        self.medians = tuple(
            statistics.median(cost for block in costs for cost in block) for costs in compared.cpu
        )

    def as_json(self) -> dict[str, Any]:
        def one(comparison: Comparison) -> dict[str, Any]:
            return {
                "ratio": comparison.ratio,
                "low": comparison.low,
                "high": comparison.high,
                "verdict": comparison.verdict,
            }

        return {
            "workload": self.workload,
            "cpu_seconds": list(self.medians),
            "by_cpu": one(self.cpu),
            "by_clock": one(self.wall),
        }


def judge(found: Sequence[Compared], *, confidence: float, least: float) -> list[Verdict]:
    return [Verdict(compared, confidence=confidence, least=least) for compared in found]


def as_markdown(
    verdicts: Sequence[Verdict],
    checkouts: tuple[Checkout, Checkout],
    titles: dict[str, str],
    heading: str,
) -> str:
    first, second = checkouts
    lines = [
        heading,
        "",
        f"* first: `{first.revision}`, {first.commit[:10]}, {first.subject}",
        f"* second: `{second.revision}`, {second.commit[:10]}, {second.subject}",
        "",
    ]
    lines += [
        "| workload | first, CPU | second, CPU | the second is | by CPU | by the clock |",
        "|---|---|---|---|---|---|",
    ]
    for one in verdicts:
        words = one.cpu.verdict
        if words.startswith("no difference"):
            words += f" (one of up to {one.cpu.resolution:.1%} may be there)"
        row = [
            titles.get(one.workload, one.workload),
            *(duration(cost) for cost in one.medians),
            f"**{words}**",
            _said(one.cpu),
            _said(one.wall),
        ]
        lines.append("| " + " | ".join(row) + " |")
    judged = verdicts[0].cpu
    explained = (
        "The ratio is that of the medians, first to second: above 1, the second costs less. "
        f"In brackets, the interval of {judged.confidence:.0%} "
        "(bootstrap over pairs of processes and neighbouring rounds). The verdict is by "
        f"CPU; a difference under {judged.least:.0%} is none."
    )
    lines += ["", explained]
    return "\n".join(lines) + "\n"


def _said(one: Comparison) -> str:
    return f"{one.ratio:.3f} ({one.low:.3f} to {one.high:.3f})"
