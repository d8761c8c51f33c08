"""The phases of an actor's life.

Only `lifecycle.py` and the cells set them, on the system's loop (the first one where the actor is
spawned). `lifecycle.py` defines their order.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

__all__ = ["OPEN", "RESTARTING", "RUNNING", "STARTING", "STOPPED", "STOPPING", "SUSPENDED", "Phase"]


class Phase(Enum):
    """The phase of an actor's life. `stats()` and `tree()` show the value."""

    STARTING = "starting"  # `on_start` has not ended: nothing is handled yet
    OPEN = "open"  # handles messages, or waits for one
    RUNNING = "running"  # an asynchronous handler is running
    SUSPENDED = "suspended"  # failed, and the supervisor has not decided yet
    RESTARTING = "restarting"  # between the failed instance and the new one
    STOPPING = "stopping"  # accepts nothing more: stops its children, then itself
    STOPPED = "stopped"


# Python 3.11 takes half a microsecond to read a member from its class, as long as sending a
# message.
STARTING: Final = Phase.STARTING
OPEN: Final = Phase.OPEN
RUNNING: Final = Phase.RUNNING
SUSPENDED: Final = Phase.SUSPENDED
RESTARTING: Final = Phase.RESTARTING
STOPPING: Final = Phase.STOPPING
STOPPED: Final = Phase.STOPPED
