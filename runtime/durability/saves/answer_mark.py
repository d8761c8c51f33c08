"""The mark that an interrupt was answered: once, by the first step recorded after the answer.

This module never writes: it returns the writes.
"""

from __future__ import annotations

from enum import IntEnum

from ...stores.run_entries import DropEntry
from ...stores.writes import Expect, Put, Write
from ..store_keys import answered_key, answered_prefix, deadline_key
from .save_slot import SAVES_SECONDS

__all__ = ["AnswerMark", "AnswerPhase"]


class AnswerPhase(IntEnum):
    """The state of an answer."""

    FOUND = 1
    """There is an interrupt without an answer."""
    CLAIMED = 2
    """The run continues with this answer.

    Its next step records that in the store: an answer whose run is lost before that does not count.
    """
    WRITTEN = 3
    """The store has recorded it."""


class AnswerMark:
    """The answer with which a run continues."""

    __slots__ = ("_id_key", "_timer", "has_timer", "key", "phase")

    def __init__(self, run_id: str, number: int, answer_id: str | None = None) -> None:
        self.key = answered_key(run_id, number)
        self._timer = deadline_key(run_id, number)
        self.has_timer = False  # whether the interrupts of that save have a deadline
        self._id_key = None if answer_id is None else answered_prefix(run_id) + answer_id
        self.phase = AnswerPhase.FOUND

    def claim(self) -> None:
        if self.phase is AnswerPhase.FOUND:
            self.phase = AnswerPhase.CLAIMED

    @property
    def is_due(self) -> bool:
        """Return whether the next step must record the answer."""
        return self.phase is AnswerPhase.CLAIMED

    def writes(self) -> list[Write]:
        """Return the writes for the next step.

        They are refused if another run has answered the same interrupt.
        """
        if not self.is_due:
            return []
        named = [] if self._id_key is None else [Put(self._id_key, b"\x01", SAVES_SECONDS)]
        timer = [DropEntry(self._timer)] if self.has_timer else []
        return [Expect(self.key), Put(self.key, b"\x01"), *named, *timer]

    def written(self) -> None:
        if self.is_due:
            self.phase = AnswerPhase.WRITTEN
