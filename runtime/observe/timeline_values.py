"""What a picture of a run over time is made of: rows of agents, what each did when, and the bands in which the whole run stood still.

Owns: these plain values. They know nothing of events, nor of how they are drawn. All times are seconds since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["BandKind", "PartKind", "TimelineBand", "TimelinePart", "TimelineRow", "TimelineSpan", "overlap"]

PartKind: TypeAlias = Literal["model", "tool", "own"]
"""What an agent did: it asked its model, called a tool, or worked by itself, as agents do that are written in Python."""

BandKind: TypeAlias = Literal["waits", "lost", "rests"]
"""Why a run stood still: it waited for an answer; its process was lost, and no other one had taken it yet; it was cancelled or drained, and resumed later."""


@dataclass(frozen=True, slots=True)
class TimelinePart:
    """One thing that an agent did."""

    kind: PartKind
    name: str
    start: float
    end: float
    failed: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class TimelineSpan:
    """One agent at work, once."""

    agent: str
    run_path: tuple[str, ...]
    start: float
    end: float
    parts: tuple[TimelinePart, ...] = ()
    failed: bool = False


@dataclass(frozen=True, slots=True)
class TimelineRow:
    """A line of the picture: one agent, each time that it was at work. One that works several times at once has several rows."""

    name: str
    depth: int
    """How far below the first agent it is."""
    spans: tuple[TimelineSpan, ...]


@dataclass(frozen=True, slots=True)
class TimelineBand:
    """The whole run stands still."""

    kind: BandKind
    start: float
    end: float
    text: str = ""


def overlap(start: float, end: float, bands: tuple[TimelineBand, ...]) -> float:
    """Seconds of that time in which the run stood still."""
    return sum(max(0.0, min(end, band.end) - max(start, band.start)) for band in bands)
