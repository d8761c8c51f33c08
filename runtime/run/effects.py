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


class Effects:
    """In the order in which they are carried out. Never changed once made; a plain class, because each event makes one."""

    __slots__ = ("cut_short", "leave", "reply", "suspend", "takes_time", "wait_for_room", "write")

    def __init__(
        self,
        reply: AgentEvent | object | None = None,
        *,
        write: bool = False,
        suspend: bool = False,
        cut_short: CutShort | None = None,
        wait_for_room: bool = False,
        leave: bool = False,
    ) -> None:
        self.write: Final = write  # what has happened is written; without it, only if there is something that is shown after that
        self.suspend: Final = suspend  # all that is left waits for an answer: the run is kept, and shows its interrupts
        self.cut_short: Final = cut_short  # the run is kept as it stood, and says that it was cancelled
        self.wait_for_room: Final = wait_for_room  # the consumer has to take some events first
        self.leave: Final = leave  # the run has ended: its end is written, its hook called, and its supervisor stops
        self.reply: Final = reply  # what the sender of the message is told, after all the rest
        self.takes_time: Final = write or suspend or wait_for_room or cut_short is not None


NOTHING: Final = Effects()
REFUSE: Final = Effects(OVER)
"""The run is over, and so is its agent."""
WRITE: Final = Effects(write=True)
SUSPEND: Final = Effects(suspend=True)
LEAVE: Final = Effects(leave=True)
