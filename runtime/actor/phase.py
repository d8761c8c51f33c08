"""Where an actor is in its life, as a value.

Owns: the phases. They are changed by `lifecycle.py`, `cell.py` and `thread_cell.py` only, on the system's loop.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

__all__ = ["OPEN", "RESTARTING", "RUNNING", "STARTING", "STOPPED", "STOPPING", "SUSPENDED", "Phase"]


class Phase(Enum):
    """Where an actor is in its life. The value is what `stats()` and `tree()` show."""

    STARTING = "starting"  # `on_start` has not ended: nothing is handled yet
    OPEN = "open"  # handles messages, or waits for one
    RUNNING = "running"  # an asynchronous handler is under way
    SUSPENDED = "suspended"  # failed, and its supervisor has not decided yet
    RESTARTING = "restarting"  # between the failed instance and the fresh one
    STOPPING = "stopping"  # takes nothing more: stops its children, then itself
    STOPPED = "stopped"


# Python 3.11 takes half a microsecond to read a member from its class: as long as to send a message.
STARTING: Final = Phase.STARTING
OPEN: Final = Phase.OPEN
RUNNING: Final = Phase.RUNNING
SUSPENDED: Final = Phase.SUSPENDED
RESTARTING: Final = Phase.RESTARTING
STOPPING: Final = Phase.STOPPING
STOPPED: Final = Phase.STOPPED
