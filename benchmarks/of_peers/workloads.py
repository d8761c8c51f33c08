"""What `peers` asks: W1 to W8, and a turn over HTTP; how much of each makes one round; what is said
of it in one figure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from benchmarks.contenders.base import Load

__all__ = ["WORKLOADS", "Workload", "named"]


@dataclass(frozen=True, slots=True)
class Workload:
    """A question.

    `load` is one round in a process that goes on living; without one, each round is a process of
    its own, and `count` is its size.
    """

    key: str
    name: str  # as `--only` has it
    title: str
    question: str
    shows: Literal[
        "rate", "seconds", "cpu", "bytes", "session"
    ]  # which figure stands in the table: for a rate more is better, for all others less
    load: Load | None = None
    quick: Load | None = None
    count: int = 0
    quick_count: int = 0

    def load_of(self, *, quick: bool) -> Load | None:
        return self.quick if quick else self.load

    def count_of(self, *, quick: bool) -> int:
        return self.quick_count if quick else self.count


WORKLOADS: Final[Mapping[str, Workload]] = {
    one.key: one
    for one in (
        Workload(
            "define_own",
            "W1",
            "W1 define",
            "one definition of an agent with a tool of its own",
            "seconds",
            Load(1000),
            Load(20),
        ),
        Workload(
            "define_shared",
            "W1",
            "W1 define, shared tool",
            "the same with a tool that all share",
            "seconds",
            Load(1000),
            Load(20),
        ),
        Workload(
            "definitions",
            "W1",
            "W1 memory",
            "of one of 2,000 such definitions",
            "bytes",
            count=2_000,
            quick_count=200,
        ),
        Workload(
            "turn",
            "W2",
            "W2 one turn",
            "one run: the model answers at once",
            "rate",
            Load(1000),
            Load(20),
        ),
        Workload(
            "turns_at_once",
            "W2c",
            "W2c 1,000 at once",
            "one of 1,000 runs that are started together",
            "rate",
            Load(1, 1000),
            Load(1, 20),
        ),
        Workload(
            "tool",
            "W3",
            "W3 tool",
            "one run: a call of an async tool, the answer",
            "rate",
            Load(1000),
            Load(20),
        ),
        Workload(
            "transfer",
            "W4",
            "W4 hand-over",
            "one run: one agent hands over, the other answers",
            "rate",
            Load(500),
            Load(10),
        ),
        Workload(
            "in_sequence",
            "W5",
            "W5s 10 in sequence",
            "each model sleeps 50 ms: the time beyond 500 ms",
            "seconds",
            Load(3, 10),
            Load(1, 10),
        ),
        Workload(
            "in_parallel",
            "W5",
            "W5p 100 in parallel",
            "each model sleeps 50 ms: the time beyond 50 ms",
            "seconds",
            Load(5, 100),
            Load(1, 100),
        ),
        Workload(
            "sessions",
            "W6",
            "W6 1,000 sessions",
            "all at once, each model sleeping one second",
            "session",
            count=1_000,
            quick_count=50,
        ),
        Workload(
            "resumes_memory",
            "W7",
            "W7 interrupt, resume",
            "one run: its tool waits for approval; kept in memory, and resumed",
            "rate",
            Load(300),
            Load(5),
        ),
        Workload(
            "resumes_sqlite",
            "W7",
            "W7 the same, SQLite",
            "the same, kept in a file",
            "rate",
            Load(100),
            Load(5),
        ),
        Workload("imports", "W8", "W8 import", "in a fresh interpreter", "seconds"),
        Workload(
            "http_whole",
            "HTTP",
            "HTTP, whole",
            "one turn over HTTP, 50 at once, 60 words: CPU",
            "cpu",
            Load(1000, 50),
            Load(20, 10),
        ),
        Workload(
            "http_stream",
            "HTTP",
            "HTTP, streamed",
            "one turn over HTTP, 50 at once, 60 chunks: CPU",
            "cpu",
            Load(500, 50),
            Load(20, 10),
        ),
    )
}


def named(name: str) -> list[Workload]:
    """Those of a name: W1, W5, HTTP, or the key of one."""
    return [one for one in WORKLOADS.values() if name in (one.name, one.key)]
