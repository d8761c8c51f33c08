"""What is left to do when the supervisor of a run has made a transition, as a value.

Owns: `Effects`, which the supervisor's transitions return and which it carries out in one place. It must never do any of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..actor.direct import OVER
from ..data.events import AgentEvent
from ..errors import RunCancelled

__all__ = ["LEAVE", "NOTHING", "REFUSE", "SUSPEND", "WRITE", "CutShort", "Effects"]


@dataclass(frozen=True, slots=True)
class CutShort:
    """A run that was ended before its end, and is kept as it stood then."""

    error: RunCancelled
    image: dict[str, object] | None
    """None where each step is in the journal, which holds it already."""


@dataclass(frozen=True, slots=True)
class Effects:
    """In the order in which they are carried out."""

    reply: AgentEvent | object | None = None
    """What the sender of the message is told, after all the rest."""
    write: bool = False
    """What has happened is written. Without it, only if there is something that is shown after that."""
    suspend: bool = False
    """All that is left waits for an answer: the run is kept, and shows its interrupts."""
    cut_short: CutShort | None = None
    """The run is kept as it stood, and says that it was cancelled."""
    wait_for_room: bool = False
    """The consumer has to take some events first."""
    leave: bool = False
    """The run has ended: its end is written, its hook called, and its supervisor stops."""

    @property
    def take_time(self) -> bool:
        """Whether something is to be waited for."""
        return self.write or self.suspend or self.wait_for_room or self.cut_short is not None


NOTHING: Final = Effects()
REFUSE: Final = Effects(OVER)
"""The run is over, and so is its agent."""
WRITE: Final = Effects(write=True)
SUSPEND: Final = Effects(suspend=True)
LEAVE: Final = Effects(leave=True)
