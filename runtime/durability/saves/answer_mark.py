"""What says that an interrupt was answered: once, by the first step that is recorded after the answer.

Owns: where one answer is in its life. It must never write: what is to be written is returned.
"""

from __future__ import annotations

from enum import IntEnum

from ...stores.writes import Expect, Put, Write
from ..store_keys import answered_key

__all__ = ["AnswerMark", "AnswerPhase"]


class AnswerPhase(IntEnum):
    """Where an answer is in its life."""

    FOUND = 1
    """There is an interrupt that was not answered yet."""
    CLAIMED = 2
    """The run continues with this answer. Its next step says so in the store: an answer whose run is lost before that does not count."""
    WRITTEN = 3
    """It says so."""


class AnswerMark:
    """The answer that a run continues with."""

    __slots__ = ("key", "phase")

    def __init__(self, run_id: str, number: int) -> None:
        self.key = answered_key(run_id, number)
        self.phase = AnswerPhase.FOUND

    def claim(self) -> None:
        if self.phase is AnswerPhase.FOUND:
            self.phase = AnswerPhase.CLAIMED

    @property
    def is_due(self) -> bool:
        """Whether the next step has to say so."""
        return self.phase is AnswerPhase.CLAIMED

    def writes(self) -> list[Write]:
        """What the next step has to write. It is refused if another run has answered the same interrupt."""
        return [Expect(self.key), Put(self.key, b"\x01")] if self.is_due else []

    def written(self) -> None:
        if self.is_due:
            self.phase = AnswerPhase.WRITTEN
