"""The rounds of `http`: what is asked, how many at once, and how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["WORKLOADS", "Kind", "Workload"]

Kind = Literal["whole", "stream", "tool", "history", "history_stream", "paced"]


@dataclass(frozen=True, slots=True)
class Workload:
    """One question. `turns` make a round."""

    key: str
    title: str
    kind: Kind
    width: int
    turns: int
    tls: bool = False

    def shrunk(self) -> Workload:
        """A round that shows no more than whether it works."""
        width = min(self.width, 10)
        return Workload(
            self.key,
            self.title,
            self.kind,
            width,
            width if self.kind == "paced" else 2 * width,
            self.tls,
        )


WORKLOADS: Final[Mapping[str, Workload]] = {
    one.key: one
    for one in (
        Workload("whole_1", "whole, one at a time", "whole", 1, 200),
        Workload("whole_50", "whole, 50 at once", "whole", 50, 1000),
        Workload("whole_500", "whole, 500 at once", "whole", 500, 1500),
        Workload("stream_1", "60 chunks, one at a time", "stream", 1, 100),
        Workload("stream_50", "60 chunks, 50 at once", "stream", 50, 400),
        Workload("stream_500", "60 chunks, 500 at once", "stream", 500, 1000),
        Workload("tool_50", "a tool call between, 50 at once", "tool", 50, 500),
        Workload("history_50", "whole, after 100 messages, 50 at once", "history", 50, 500),
        Workload(
            "history_stream_50",
            "60 chunks, after 100 messages, 50 at once",
            "history_stream",
            50,
            300,
        ),
        Workload("tls_whole_50", "whole over TLS, 50 at once", "whole", 50, 1000, tls=True),
        Workload("tls_stream_50", "60 chunks over TLS, 50 at once", "stream", 50, 400, tls=True),
        Workload("paced_50", "60 chunks in three seconds, 50 at once", "paced", 50, 50),
        Workload("paced_2000", "60 chunks in three seconds, 2,000 at once", "paced", 2000, 2000),
    )
}
