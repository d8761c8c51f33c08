"""The outcome of an agent, for its parent.

A parent learns about its child only through this; the child's events go to the run's supervisor.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from .chat import Message
from .interrupt import InterruptContext
from .value import Value

__all__ = ["CANCELLED", "EXITED", "FINISHED", "AtOnce", "Outcome", "OutcomeKind", "joined"]

OutcomeKind: TypeAlias = Literal["finished", "exited", "interrupted", "failed", "cancelled"]


class Outcome(Value, frozen=True):
    """The end of an agent, after all its transfers: the outcome of the last agent.

    `broke`: it has finished, and the enclosing loop must end after it.
    """

    kind: OutcomeKind = "finished"
    error: Exception | None = None
    message: Message | None = None
    contexts: tuple[InterruptContext, ...] = ()
    broke: bool = False

    @property
    def finished(self) -> bool:
        """True if it ended normally, so that the next agent may start."""
        return self.kind == "finished"

    def raise_for_error(self) -> None:
        """Raise the error that it failed with, if any."""
        if self.error is not None:
            try:
                raise self.error
            finally:
                del self  # the error's traceback has this frame


FINISHED: Final = Outcome()
EXITED: Final = Outcome("exited")
CANCELLED: Final = Outcome("cancelled")

# The most severe outcome decides for several concurrent agents. An agent that waits for an answer
# is not ended by another one's failure.
_WEIGHT: Final = ("cancelled", "interrupted", "failed", "exited")


def joined(outcomes: Sequence[Outcome]) -> Outcome:
    """Return the joint outcome of several concurrent agents, in the order of their start."""
    for kind in _WEIGHT:
        for outcome in outcomes:
            if outcome.kind == kind:
                if kind == "interrupted":
                    return Outcome(
                        "interrupted",
                        contexts=tuple(context for one in outcomes for context in one.contexts),
                    )
                return outcome
    last = next(
        (outcome.message for outcome in reversed(outcomes) if outcome.message is not None), None
    )
    return Outcome(message=last, broke=any(outcome.broke for outcome in outcomes))


class AtOnce:
    """The outcomes of an agent's children that run, or last ran, concurrently."""

    __slots__ = ("_outcomes", "_playing")

    def __init__(self) -> None:
        self._outcomes: list[Outcome | None] = []
        self._playing = 0

    def begin(self) -> int:
        """Add a child that starts. Returns its index."""
        if not self._playing:
            self._outcomes = []
        self._playing += 1
        self._outcomes.append(None)
        return len(self._outcomes) - 1

    def end(self, index: int, outcome: Outcome | None) -> Outcome | None:
        """Set the outcome of a child; None, if no caller waits for it any more.

        Returns the joint outcome so far.
        """
        self._playing -= 1
        self._outcomes[index] = outcome
        if len(self._outcomes) == 1:
            return outcome
        return joined([one for one in self._outcomes if one is not None])
