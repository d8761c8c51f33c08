"""How an agent has ended, as its parent hears of it.

Owns: `Outcome` and the kinds of it. A parent hears of its child by this and nothing else; the child's events go to the run supervisor.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from .chat import Message
from .interrupt import InterruptContext
from .values import quick

__all__ = ["CANCELLED", "EXITED", "FINISHED", "Outcome", "OutcomeKind"]

OutcomeKind: TypeAlias = Literal["finished", "exited", "interrupted", "failed", "cancelled"]


@quick
@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of an agent, after all the transfers that it made: it is the last agent's.

    `broke` says that it has finished, and that the loop around it is to end after it.
    """

    kind: OutcomeKind = "finished"
    error: Exception | None = None
    message: Message | None = None
    contexts: tuple[InterruptContext, ...] = ()
    broke: bool = False

    @property
    def finished(self) -> bool:
        """Whether it came to its end, so that what follows it may begin."""
        return self.kind == "finished"

    def raise_for_error(self) -> None:
        """Raise what it failed with, if it failed."""
        if self.error is not None:
            raise self.error


FINISHED: Final = Outcome()
EXITED: Final = Outcome("exited")
CANCELLED: Final = Outcome("cancelled")
