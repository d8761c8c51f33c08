"""Timers and stashed messages, which few actors have.

They are stored in a table of the system, so that an actor without them does not grow by a byte. A
stashed message is neither handled nor lost: it returns to the head of the mailbox, or is answered
when the actor ends. The stash is bounded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import ActorDeadError, MailboxFull, UsageError
from ..envelope import Envelope, Returned
from ..mailbox import MailboxClosed
from ..phase import OPEN, RUNNING
from .timers import Timers

if TYPE_CHECKING:
    from ..cell import Cell

__all__ = ["Extras", "end", "extras_of", "is_stashed", "restart"]


class Extras:
    """The timers and stashed messages of one actor."""

    __slots__ = ("_stash", "is_stashing", "timers")

    def __init__(self, cell: Cell) -> None:
        self.timers = Timers(cell)
        # True if the current message must be stashed when its handler has ended.
        self.is_stashing = False
        self._stash: list[Envelope] = []  # in the order of their stashing

    def stash(self, cell: Cell, capacity: int) -> None:
        """Stash the current message."""
        if cell.phase is not OPEN and cell.phase is not RUNNING:
            msg = (
                f"{cell.path}: stash() needs a message that is being handled, and there is none. "
                "Call it in a handler."
            )
            raise UsageError(msg, actor=cell.path)
        if not self.is_stashing and len(self._stash) >= capacity:
            msg = (
                f"{cell.path} has stashed {capacity} messages, which is its limit. Call "
                "unstash_all(), or raise `stash_capacity` of its class."
            )
            raise MailboxFull(msg, actor=cell.path)
        self.is_stashing = True

    def keep(self, envelope: Envelope) -> None:
        self.is_stashing = False
        self._stash.append(envelope)

    def give_back(self, cell: Cell) -> None:
        """Put all stashed messages at the head of the mailbox, in the order of their stashing."""
        if not self._stash:
            return
        returned = [Returned(envelope.message, envelope.reply_to) for envelope in self._stash]
        try:
            admission = cell.mailbox.put_back(returned)
        except MailboxClosed:
            return  # answered at the end
        self._stash.clear()
        cell.admitted(admission)

    def end(self) -> list[Envelope]:
        """End with the actor. Returns the messages to answer."""
        self.timers.cancel_all()
        left, self._stash = self._stash, []
        return left


def extras_of(cell: Cell) -> Extras:
    """Return the extras of that actor, created on first use."""
    table = cell.system.extras
    found = table.get(cell)
    if found is None:
        with cell.system.lock:
            if cell.ending is not None:
                msg = f"{cell.path} has ended and can no longer be used. Spawn a new actor."
                raise ActorDeadError(msg, actor=cell.path)
            found = table.setdefault(cell, Extras(cell))
    return found


def is_stashed(cell: Cell, envelope: Envelope, *, failed: bool = False) -> bool:
    """Return True if the handler of the message stashed it, so that it is not answered now.

    The message of a failed handler is not stashed.
    """
    extras = cell.system.extras.get(cell)
    if extras is None or not extras.is_stashing:
        return False
    if failed:
        extras.is_stashing = False
        return False
    extras.keep(envelope)
    return True


def restart(cell: Cell) -> None:
    """Prepare for a new instance: its timers end, and stashed messages are for the new instance."""
    extras = cell.system.extras.get(cell)
    if extras is not None:
        extras.timers.cancel_all()
        extras.give_back(cell)


def end(cell: Cell) -> list[Envelope]:
    """End with the actor. Returns its stashed messages, to be answered."""
    with cell.system.lock:
        extras = cell.system.extras.pop(cell, None)
    return [] if extras is None else extras.end()
