"""The parts of a timeline, as plain values: rows of agents with their work, and bands.

They depend neither on events nor on how they are drawn. All times are seconds since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = [
    "BandKind",
    "PartKind",
    "TimelineBand",
    "TimelinePart",
    "TimelineRow",
    "TimelineSpan",
    "overlap",
]

PartKind: TypeAlias = Literal["model", "tool", "own"]
"""The work of an agent: a model call, a tool call, or its own Python code."""

BandKind: TypeAlias = Literal["waits", "lost", "rests"]
"""The reason why a run stood still.

It waited for an answer; its process was lost, and no other one had claimed it yet; or it was
cancelled or drained, and resumed later.
"""


@dataclass(frozen=True, slots=True)
class TimelinePart:
    """One action of an agent."""

    kind: PartKind
    name: str
    start: float
    end: float
    failed: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class TimelineSpan:
    """One run of one agent."""

    agent: str
    run_path: tuple[str, ...]
    start: float
    end: float
    parts: tuple[TimelinePart, ...] = ()
    failed: bool = False


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A row of the timeline: one agent, with each time that it ran.

    An agent that runs several times concurrently has several rows.
    """

    name: str
    depth: int
    """The depth below the first agent."""
    spans: tuple[TimelineSpan, ...]


@dataclass(frozen=True, slots=True)
class TimelineBand:
    """A time in which the whole run stands still."""

    kind: BandKind
    start: float
    end: float
    text: str = ""


def overlap(start: float, end: float, bands: tuple[TimelineBand, ...]) -> float:
    """Return the seconds of a span in which the run stood still."""
    return sum(max(0.0, min(end, band.end) - max(start, band.start)) for band in bands)
