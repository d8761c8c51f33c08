"""The answer to one question: the medians of its sizes, the exponent with which the largest ones
grow, and whether it is as it should be.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.lab.lines import Chart, Line, draw_lines
from benchmarks.lab.report import amount, duration, ratio
from benchmarks.lab.statistics import fit_power, growth_shape
from benchmarks.of_growth.questions import Question

__all__ = ["Answer", "as_markdown", "draw_page"]

_GREEN, _RED, _AMBER = "#0b6e4f", "#c4452f", "#d99a2b"
_TAIL = 3  # sizes, the largest ones, whose exponent is the verdict
_ALLOWED = {
    "flat": ("falling", "flat"),
    "linear": ("falling", "flat", "less than linear", "linear"),
}


class Answer:
    """`rounds` are the figures of each size."""

    def __init__(self, question: Question, rounds: Mapping[int, Sequence[float]]) -> None:
        self.question = question
        self.rounds = {size: list(figures) for size, figures in sorted(rounds.items())}
        self.points = [
            (float(size), statistics.median(figures)) for size, figures in self.rounds.items()
        ]
        # Where it goes: what is fixed hides the growth at the small sizes.
        self.fit = fit_power(self.points[-_TAIL:])
        self.shape = growth_shape(self.fit)

    @property
    def as_it_should_be(self) -> bool:
        return self.shape in _ALLOWED[self.question.wanted]

    @property
    def said(self) -> str:
        wanted = "flat" if self.question.wanted == "flat" else "at most linear"
        verdict = (
            f"as it should be ({wanted})"
            if self.as_it_should_be
            else f"NOT as it should be, which is {wanted}"
        )
        return (
            f"exponent {self.fit.exponent:+.2f} ± {self.fit.error:.2f} at the largest sizes: "
            f"{self.shape}, {verdict}"
        )

    def shown(self, figure: float) -> str:
        return amount(figure) if self.question.figure == "bytes" else duration(figure)

    def chart(self) -> Chart:
        spread = [(min(figures), max(figures)) for figures in self.rounds.values()]
        fitted = [(size, self.fit.at(size)) for size, _ in self.points[-_TAIL:]]
        lines = [
            Line("median of the rounds", self.points, _GREEN, low_high=spread),
            Line(
                f"fitted: size to the power of {self.fit.exponent:.2f}",
                fitted,
                _AMBER if self.as_it_should_be else _RED,
                measured=False,
            ),
        ]
        return Chart(
            self.question.title,
            f"{self.question.what}\n{self.said}",
            lines,
            self.question.across,
            self.shown,
            binary=self.question.figure == "bytes",
        )

    def as_json(self) -> dict[str, Any]:
        return {
            "question": self.question.key,
            "rounds": {str(size): figures for size, figures in self.rounds.items()},
            "exponent": self.fit.exponent,
            "error": self.fit.error,
            "shape": self.shape,
            "wanted": self.question.wanted,
            "as_it_should_be": self.as_it_should_be,
        }


def as_markdown(answers: Sequence[Answer], heading: str) -> str:
    lines = [heading]
    for answer in answers:
        sizes = [f"{size:,}" for size in answer.rounds]
        lines += [
            "",
            f"## {answer.question.title}",
            "",
            f"{answer.question.what}. **{answer.said[0].upper()}{answer.said[1:]}.**",
            "",
        ]
        lines += [
            f"| {answer.question.across} | " + " | ".join(sizes) + " |",
            "|---" * (len(sizes) + 1) + "|",
        ]
        lines.append(
            "| median | " + " | ".join(answer.shown(figure) for _, figure in answer.points) + " |"
        )
        lines.append(
            "| rounds | "
            + " | ".join(
                f"{answer.shown(min(figures))} to {answer.shown(max(figures))}"
                for figures in answer.rounds.values()
            )
            + " |"
        )
        least = answer.points[0][1]
        lines.append(
            "| to the least size | "
            + " | ".join(ratio(figure / least) for _, figure in answer.points)
            + " |"
        )
    return "\n".join(lines) + "\n"


def draw_page(path: Path, answers: Sequence[Answer], footnote: str) -> list[Path]:
    subtitle = (
        "What one of them costs, over how many there are. Dashed: the power that fits the "
        "largest sizes; a power of 0 is flat, of 1 linear."
    )
    return draw_lines(
        path,
        title="Growth",
        subtitle=subtitle,
        charts=[answer.chart() for answer in answers],
        footnote=footnote,
    )
