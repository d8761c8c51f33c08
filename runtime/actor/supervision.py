"""The decision about a failed child, as data.

The module contains the four directives, and the count of restarts. `lifecycle.py` carries them out.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TypeAlias

from ..backoff import Backoff
from ..errors import UsageError
from ..option_names import suggests_options

__all__ = ["Directive", "Escalate", "Restart", "RestartBudget", "Resume", "Stop", "Supervision"]


@suggests_options
@dataclass(frozen=True, slots=True)
class Restart:
    """Replace the instance with a new one.

    The ref and the queued messages stay; the failed message is not handled again. After
    `max_restarts` within the last `within` seconds, the next failure stops the actor. The children
    of the failed instance are stopped before the new one is created.
    """

    max_restarts: int = 3
    within: float = 60.0
    backoff: Backoff = field(default_factory=Backoff)

    def __post_init__(self) -> None:
        if self.max_restarts < 0:
            msg = (
                "Restart: max_restarts must be a number of restarts, 0 or more, got "
                f"{self.max_restarts}."
            )
            raise UsageError(msg)
        if not self.within > 0:
            msg = f"Restart: within must be a number of seconds above 0, got {self.within}."
            raise UsageError(msg)
        if not isinstance(self.backoff, Backoff):
            msg = (
                "Restart: backoff must be a Backoff, for example Backoff(initial=0.5), "
                f"got {self.backoff!r}."
            )
            raise UsageError(msg)


@dataclass(frozen=True, slots=True)
class Resume:
    """Keep the instance as it is, and continue with the next message.

    After a failure in `__init__` or `on_start` there is no instance that could continue, so it acts
    as `Stop`.
    """


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop the actor. Queued messages are answered with `ActorDeadError`."""


@dataclass(frozen=True, slots=True)
class Escalate:
    """Stop the actor, and let its parent fail with the same error.

    A root has no parent, so it acts as `Stop`.
    """


Directive: TypeAlias = Restart | Resume | Stop | Escalate
Supervision: TypeAlias = Directive


class RestartBudget:
    """The restarts of one actor that still count. Holds at most `max_restarts` instants."""

    __slots__ = ("_instants",)

    def __init__(self) -> None:
        self._instants: deque[float] = deque()

    def spend(self, restart: Restart, now: float) -> int | None:
        """Count a restart at `now`.

        Returns the number of earlier restarts within the span, or None if the limit is reached.
        """
        instants = self._instants
        while instants and now - instants[0] >= restart.within:
            instants.popleft()
        if len(instants) >= restart.max_restarts:
            return None
        instants.append(now)
        return len(instants) - 1
