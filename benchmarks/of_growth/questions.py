"""What `growth` asks, at which sizes, and how it should grow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["QUESTIONS", "Question"]


@dataclass(frozen=True, slots=True)
class Question:
    """`figure` is what stands for one operation: CPU seconds, or bytes."""

    key: str
    title: str
    what: str
    across: str  # what the sizes are
    figure: Literal["seconds", "bytes"]
    wanted: Literal["flat", "linear"]  # at most
    sizes: tuple[int, ...]
    quick: tuple[int, ...]


QUESTIONS: Final[Mapping[str, Question]] = {
    one.key: one
    for one in (
        Question(
            "history",
            "A turn, as its history grows",
            "CPU of one turn of a session; its model is given the whole history",
            "messages in the history",
            "seconds",
            "linear",
            (10, 30, 100, 300, 1_000),
            (10, 40),
        ),
        Question(
            "transfers",
            "A transfer, as a run has more of them",
            "CPU of one transfer",
            "transfers in the run",
            "seconds",
            "flat",
            (2, 10, 50, 100, 200),
            (2, 10),
        ),
        Question(
            "at_once",
            "A run, as more are alive at once",
            "CPU of one run of one turn, whose model gives way once",
            "runs at once",
            "seconds",
            "flat",
            (1, 10, 100, 1_000, 10_000),
            (1, 20),
        ),
        Question(
            "idle_sessions",
            "An idle session",
            "memory of one that has had a turn, and is kept in memory",
            "sessions",
            "bytes",
            "flat",
            (1_000, 3_000, 10_000, 30_000),
            (500, 1_000),
        ),
        Question(
            "waiting_runs",
            "A run that waits for its model",
            "memory of one",
            "runs that wait",
            "bytes",
            "flat",
            (1_000, 2_000, 5_000, 10_000),
            (500, 1_000),
        ),
    )
}
