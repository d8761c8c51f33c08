"""What few actors have: timers, and messages that were put aside.

Owns: both, for each actor that has used one of them, in a table of its system: an actor that uses none does not grow by a byte. A message that is put aside
is neither handled nor lost: it goes back to the head of the mailbox, or is answered when the actor ends. It must never hold more messages than it may.
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
    """Those of one actor."""

    __slots__ = ("_stash", "is_stashing", "timers")

    def __init__(self, cell: Cell) -> None:
        self.timers = Timers(cell)
        self.is_stashing = False  # whether the message that is being handled is to be put aside when its handler has ended
        self._stash: list[Envelope] = []  # in the order in which they were put aside

    def stash(self, cell: Cell, capacity: int) -> None:
        """Put the message that is being handled aside."""
        if cell.phase is not OPEN and cell.phase is not RUNNING:
            msg = f"{cell.path}: stash() puts the message aside that is being handled, and none is: call it in a handler."
            raise UsageError(msg, actor=cell.path)
        if not self.is_stashing and len(self._stash) >= capacity:
            msg = f"{cell.path} has put {capacity} messages aside, and may have no more: `stash_capacity` of its class says how many."
            raise MailboxFull(msg, actor=cell.path)
        self.is_stashing = True

    def keep(self, envelope: Envelope) -> None:
        self.is_stashing = False
        self._stash.append(envelope)

    def give_back(self, cell: Cell) -> None:
        """Put all of them at the head of the mailbox, the one that was put aside first before the others."""
        if not self._stash:
            return
        returned = [Returned(envelope.message, envelope.reply_to) for envelope in self._stash]
        try:
            admission = cell.mailbox.put_back(returned)
        except MailboxClosed:
            return  # they are answered at the end
        self._stash.clear()
        cell.admitted(admission)

    def end(self) -> list[Envelope]:
        """The actor has ended. Returns what is to be answered."""
        self.timers.cancel_all()
        left, self._stash = self._stash, []
        return left


def extras_of(cell: Cell) -> Extras:
    """Those of that actor, made on first use."""
    table = cell.system.extras
    found = table.get(cell)
    if found is None:
        with cell.system.lock:
            if cell.ending is not None:
                msg = f"{cell.path} has ended."
                raise ActorDeadError(msg, actor=cell.path)
            found = table.setdefault(cell, Extras(cell))
    return found


def is_stashed(cell: Cell, envelope: Envelope, *, failed: bool = False) -> bool:
    """The handler of that message has ended. Returns whether the message was put aside, so that it is not answered now. One that has failed is not."""
    extras = cell.system.extras.get(cell)
    if extras is None or not extras.is_stashing:
        return False
    if failed:
        extras.is_stashing = False
        return False
    extras.keep(envelope)
    return True


def restart(cell: Cell) -> None:
    """The instance is about to be replaced: its timers end, and what it has put aside is for the next one."""
    extras = cell.system.extras.get(cell)
    if extras is not None:
        extras.timers.cancel_all()
        extras.give_back(cell)


def end(cell: Cell) -> list[Envelope]:
    """The actor has ended. Returns the messages that it had put aside, to be answered."""
    with cell.system.lock:
        extras = cell.system.extras.pop(cell, None)
    return [] if extras is None else extras.end()
