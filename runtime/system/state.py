"""The states of a system.

Owns: `SystemState`. It must never hold a system.
"""

from __future__ import annotations

from enum import Enum

__all__ = ["SystemState"]


class SystemState(Enum):
    """Moves forward only, but for a system that is entered again after it was left."""

    NEW = "new"  # not entered yet: nothing can be spawned
    RUNNING = "running"
    DRAINING = "draining"  # takes no new roots; its actors stay
    STOPPING = "stopping"  # being left: everything stops
    STOPPED = "stopped"
