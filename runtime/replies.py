"""What whoever asked is told, and by whom a message is said to be handled.

Owns: the giving of replies, to a future of ours or of the loop's, and the answer to what nobody will handle. A reply that nobody waits for any more is dropped.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pykka import messages as pykka_messages

from .future import ActorFuture
from .messages import Control, Terminated

if TYPE_CHECKING:
    from .cell import Cell
    from .mailbox import Envelope

__all__ = ["DEAD", "DROPPED", "LEFT", "answer", "answer_error", "handler_name", "refuse"]

# Why a message is a dead letter.
DEAD: Final = "the actor has stopped"
DROPPED: Final = "the mailbox dropped it for a newer one"
LEFT: Final = "the actor stopped before it came to the message"


def handler_name(message: Any) -> str:
    """What handles this message: the method that a proxy calls, or `on_receive`."""
    if isinstance(message, pykka_messages.ProxyCall):
        return ".".join(message.attr_path)
    return "on_receive"


def answer(reply_to: Any, value: Any) -> None:
    """Give the reply, if anybody still waits for it. On the loop's thread."""
    if type(reply_to) is ActorFuture:
        reply_to.settle(value)
    elif not reply_to.done():
        reply_to.set_result(value)


def answer_error(reply_to: Any, error: BaseException) -> None:
    """Give an exception as the reply, if anybody still waits for it. On the loop's thread."""
    if type(reply_to) is ActorFuture:
        reply_to.settle(error=error)
    elif not reply_to.done():
        if isinstance(error, StopIteration):  # what no future of asyncio takes
            stopped, error = error, RuntimeError("The handler raised StopIteration.")
            error.__cause__ = stopped
        reply_to.set_exception(error)


def refuse(cell: Cell, envelope: Envelope, reason: str) -> None:
    """Answer an envelope that nobody will handle. From any thread."""
    message, reply_to = envelope.message, envelope.reply_to
    if isinstance(message, Control | Terminated):
        return  # the runtime's own: news for an actor that is no more
    if reply_to is not None:
        error = cell.dead_error(message, reason)
        if type(reply_to) is ActorFuture:
            reply_to.settle(error=error)
        else:
            cell.system.on_loop(answer_error, reply_to, error)
    cell.system.monitor.dead_letter(message, cell.own_ref(), reason)
