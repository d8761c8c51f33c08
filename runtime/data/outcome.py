"""How an agent has ended, as its parent hears of it.

Owns: `Outcome` and the kinds of it. A parent hears of its child by this and nothing else; the child's events go to the run supervisor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from ..quick_init import quick
from .chat import Message
from .interrupt import InterruptContext

__all__ = ["CANCELLED", "EXITED", "FINISHED", "AtOnce", "Outcome", "OutcomeKind", "joined"]

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

# What becomes of several that play at once, the weightiest first, if one of them has ended so. One that waits for something is not ended by another's failure.
_WEIGHT: Final = ("cancelled", "interrupted", "failed", "exited")


def joined(outcomes: Sequence[Outcome]) -> Outcome:
    """What has become of several that have played at once, in the order in which they were cast."""
    for kind in _WEIGHT:
        for outcome in outcomes:
            if outcome.kind == kind:
                if kind == "interrupted":
                    return Outcome("interrupted", contexts=tuple(context for one in outcomes for context in one.contexts))
                return outcome
    last = next((outcome.message for outcome in reversed(outcomes) if outcome.message is not None), None)
    return Outcome(message=last, broke=any(outcome.broke for outcome in outcomes))


class AtOnce:
    """How those have ended that one agent has cast and that are, or last were, at work at the same time."""

    __slots__ = ("_outcomes", "_playing")

    def __init__(self) -> None:
        self._outcomes: list[Outcome | None] = []
        self._playing = 0

    def begin(self) -> int:
        """Another one is cast. Returns its place among them."""
        if not self._playing:
            self._outcomes = []
        self._playing += 1
        self._outcomes.append(None)
        return len(self._outcomes) - 1

    def end(self, index: int, outcome: Outcome | None) -> Outcome | None:
        """It has ended; None, if no caller waits for it any more. Returns what has become of all of them so far."""
        self._playing -= 1
        self._outcomes[index] = outcome
        if len(self._outcomes) == 1:
            return outcome
        return joined([one for one in self._outcomes if one is not None])
