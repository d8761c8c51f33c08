"""Where a run is in its life, and in whose hands it is.

Owns: these values, which say all that several objects have to know of a run's course. The run's supervisor moves them; everything else of a run reads
them. They must never go back.
"""

from __future__ import annotations

from enum import Enum, IntEnum

__all__ = ["Ownership", "Promise", "RunPhase"]


class RunPhase(IntEnum):
    """Where a run is in its life. It moves forward only."""

    PENDING = 0
    """It was made, and its supervisor has not begun."""
    OPENING = 1
    """Its supervisor finds out from where it starts: a turn of its session, a checkpoint, a journal."""
    PLAYING = 2
    """Agents are at work."""
    STOPPING = 3
    """It was asked to end at a safe point: what is under way goes on to the next one, and nothing new begins."""
    ENDING = 4
    """No agent is cast any more. Those at work are being ended, and what they have come to is saved."""
    REFUSED = 5
    """It could not begin. Why is raised where the run is first awaited or iterated."""
    KEEPING = 6
    """No agent is at work. Its end is written."""
    HOOKS = 7
    """The hook at its end is under way."""
    ENDED = 8
    """Nothing will come any more."""

    @property
    def is_cuttable(self) -> bool:
        """Whether what the supervisor is doing may be cancelled: anything but agents' work, which it ends itself, and what is being written."""
        return self in _CUTTABLE


_CUTTABLE = frozenset((RunPhase.PENDING, RunPhase.OPENING, RunPhase.HOOKS))


class Ownership(Enum):
    """Who may write what happens in a run."""

    OURS = "ours"
    LOST = "lost"
    """Another process may have it by now: nothing of it is written here any more."""


class Promise(Enum):
    """What is said to other processes of a run that has ended here."""

    NONE = "none"
    """There is nothing left to do, or it waits for an answer."""
    UNFINISHED = "unfinished"
    """Another process is to find it and to continue it."""
