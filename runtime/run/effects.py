"""The work that remains after a transition of a run's supervisor, as a value.

A transition returns `Effects`, and the supervisor carries them out in one place.
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
    """A run that was ended early, with the state to save."""

    error: RunCancelled
    image: dict[str, object] | None
    """None if the run has a journal, which already holds the state."""


class Effects:
    """Effects, in the order in which they are carried out.

    Immutable; a plain class, because each event creates one.
    """

    __slots__ = (
        "cut_short",
        "joins_end",
        "leave",
        "reply",
        "suspend",
        "takes_time",
        "wait_for_room",
        "write",
    )

    def __init__(
        self,
        reply: AgentEvent | object | None = None,
        *,
        write: bool = False,
        suspend: bool = False,
        cut_short: CutShort | None = None,
        wait_for_room: bool = False,
        leave: bool = False,
        joins_end: bool = False,
    ) -> None:
        # Write the recorded events even if none of them waits to be shown.
        self.write: Final = write
        # All remaining work waits for an answer: save the run and show its interrupts.
        self.suspend: Final = suspend
        # Save the run as it stood, and show that it was cancelled.
        self.cut_short: Final = cut_short
        self.wait_for_room: Final = wait_for_room  # the consumer must take events first
        # The run has ended: write its end, call its hook, and stop its supervisor.
        self.leave: Final = leave
        # The events are written in one step with the agent's end, which follows.
        self.joins_end: Final = joins_end
        self.reply: Final = reply  # sent to the sender of the message, after everything else
        self.takes_time: Final = write or suspend or wait_for_room or cut_short is not None


NOTHING: Final = Effects()
REFUSE: Final = Effects(OVER)
"""The run is over, and so is its agent."""
WRITE: Final = Effects(write=True)
SUSPEND: Final = Effects(suspend=True)
LEAVE: Final = Effects(leave=True)
