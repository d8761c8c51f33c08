"""Where an actor is in its life, as a value.

Owns: the phases. They are changed by `lifecycle.py`, `cell.py` and `thread_cell.py` only, on the system's loop.
"""

from __future__ import annotations

from enum import Enum

__all__ = ["Phase"]


class Phase(Enum):
    """Where an actor is in its life. The value is what `stats()` and `tree()` show."""

    STARTING = "starting"  # `on_start` has not ended: nothing is handled yet
    OPEN = "open"  # handles messages, or waits for one
    RUNNING = "running"  # an asynchronous handler is under way
    SUSPENDED = "suspended"  # failed, and its supervisor has not decided yet
    RESTARTING = "restarting"  # between the failed instance and the fresh one
    STOPPING = "stopping"  # takes nothing more: stops its children, then itself
    STOPPED = "stopped"
