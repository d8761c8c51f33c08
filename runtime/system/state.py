"""The states of a system."""

from __future__ import annotations

from enum import Enum

__all__ = ["SystemState"]


class SystemState(Enum):
    """The state of a system. It only moves forward, unless a stopped system is entered again."""

    NEW = "new"  # not entered yet: nothing can be spawned
    RUNNING = "running"
    DRAINING = "draining"  # takes no new roots; its actors stay
    STOPPING = "stopping"  # being left: everything stops
    STOPPED = "stopped"
