"""The ids of checkpoints and interrupts.

The id of a paused run's checkpoint is bound to one numbered checkpoint, and the id of an interrupt
contains that of its checkpoint. The module does not access a store.
"""

from __future__ import annotations

from typing import Final, Self

from .chat import new_id

__all__ = ["CheckpointId", "checkpoint_of", "new_interrupt_id"]

_OWN: Final = 24
"""The length of an interrupt's own id, before its checkpoint's id."""


class CheckpointId(str):
    """The id of a paused run's checkpoint: equal to the plain string, and bound to one save.

    `resume()` refuses it once the run has been answered or saved again. As plain text (in JSON, in
    a database) it is the id alone, without the number of the save.
    """

    __slots__ = ("run", "save")

    run: str
    save: int

    def __new__(cls, name: str, run: str, save: int) -> Self:
        made = super().__new__(cls, name)
        made.run, made.save = run, save
        return made

    def __getnewargs__(self) -> tuple[str, str, int]:  # type: ignore[override]  # for copies and pickles
        return str(self), self.run, self.save


def new_interrupt_id(checkpoint_id: str | None) -> str:
    """Return a unique interrupt id.

    If the run is stored, it contains the checkpoint's id, so that an answer finds the run.
    """
    return new_id() if checkpoint_id is None else f"{new_id()}.{checkpoint_id}"


def checkpoint_of(interrupt_id: str) -> str | None:
    """Return the checkpoint's id in an interrupt's id, or None."""
    own, dot, name = interrupt_id.partition(".")
    return name if dot and name and len(own) == _OWN else None
