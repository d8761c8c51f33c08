"""The phases of a run, and which process owns it.

These values carry everything that several objects must know about a run's progress. The run's
supervisor changes them, and the run's other objects only read them.
"""

from __future__ import annotations

from enum import Enum, IntEnum

__all__ = ["Ownership", "Promise", "RunPhase"]


class RunPhase(IntEnum):
    """The phase of a run. It only moves forward."""

    PENDING = 0
    """The run was created, and its supervisor has not started."""
    OPENING = 1
    """The supervisor finds out where the run starts: a session turn, a checkpoint, a journal."""
    PLAYING = 2
    """Agents are running."""
    STOPPING = 3
    """The run will end at a safe point: running work continues to it, and nothing new starts."""
    ENDING = 4
    """No agent is called any more.

    Running agents are being ended, and their results are saved.
    """
    REFUSED = 5
    """The run could not start. The reason is raised where the run is first awaited or iterated."""
    KEEPING = 6
    """All agents have ended. The end is being written."""
    HOOKS = 7
    """The hook for the end is running."""
    ENDED = 8
    """The run has fully ended."""

    @property
    def is_cuttable(self) -> bool:
        """True if the supervisor's current work may be cancelled.

        Excluded are the agents' work, which the supervisor ends itself, and writes to the store.
        """
        return self in _CUTTABLE


_CUTTABLE = frozenset((RunPhase.PENDING, RunPhase.OPENING, RunPhase.HOOKS))


class Ownership(Enum):
    """The right to write the events of a run."""

    OURS = "ours"
    LOST = "lost"
    """Another process may have claimed the run, so this one writes nothing more."""


class Promise(Enum):
    """What the store tells other processes about a run that has ended here."""

    NONE = "none"
    """Nothing is left to do, or the run waits for an answer."""
    UNFINISHED = "unfinished"
    """Another process must find the run and continue it."""
