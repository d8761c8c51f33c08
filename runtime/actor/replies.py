"""Replies to askers.

The module sets replies, in our own futures or the loop's, and creates the errors for messages that
are not handled. If the asker has given up, the reply is dropped. A failure to deliver a reply never
raises.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..errors import ActorDeadError, ActorFailed, AskTimeout, HandlerCancelled, MailboxFull
from .envelope import Envelope, Returned
from .extras.timers import Tick
from .future import ActorFuture
from .messages import Control, Terminated
from .receive import handler_name

if TYPE_CHECKING:
    from .cell import Cell

__all__ = [
    "DEAD",
    "DROPPED",
    "GONE",
    "LEFT",
    "answer",
    "answer_error",
    "cancelled_error",
    "crashed_error",
    "dead_error",
    "full_error",
    "refuse",
    "refuse_all",
    "refuse_late",
    "room_error",
    "timeout_error",
]

# The reasons for a dead letter.
DEAD: Final = "the actor has stopped"
DROPPED: Final = "the mailbox dropped it for a newer one"
LEFT: Final = "the actor stopped before it handled the message"


_COUNTED: Final = (Envelope, Returned)  # excludes notices and timer messages


class _Gone:
    """A placeholder for the future of an asker that has given up.

    Its message is still handled, but no longer refers to the asker.
    """

    __slots__ = ()

    def done(self) -> bool:
        return True


GONE: Final = _Gone()


def answer(reply_to: Any, value: Any) -> None:
    """Set the reply, unless the asker has given up.

    If the future is the loop's, call it on the loop's thread.
    """
    if type(reply_to) is ActorFuture:
        reply_to.resolve(value)
    elif not reply_to.done():
        reply_to.set_result(value)


def answer_error(reply_to: Any, error: BaseException) -> None:
    """Set an exception as the reply, unless the asker has given up.

    If the future is the loop's, call it on the loop's thread.
    """
    if type(reply_to) is ActorFuture:
        reply_to.resolve(error=error)
    elif not reply_to.done():
        if isinstance(error, StopIteration):  # futures of asyncio refuse it
            stopped, error = (
                error,
                RuntimeError(
                    "The handler raised StopIteration. Return a value instead, or raise another "
                    "error."
                ),
            )
            error.__cause__ = stopped
        reply_to.set_exception(error)


def refuse(cell: Cell, envelope: Envelope, reason: str) -> None:
    """Answer an envelope that will not be handled. From any thread."""
    message, reply_to = envelope.message, envelope.reply_to
    if isinstance(message, Control | Terminated) or type(envelope) is Tick:
        return  # the runtime's own message, useless to an ended actor
    if reply_to is not None:
        error = dead_error(cell, message, reason)
        if type(reply_to) is ActorFuture:
            reply_to.resolve(error=error)
        else:
            cell.system.on_loop(answer_error, reply_to, error)
    cell.system.monitor.dead_letter(message, cell.own_ref(), reason)


def refuse_all(cell: Cell, envelopes: list[Envelope], reason: str) -> None:
    """Answer envelopes that will not be handled. From any thread."""
    monitor = cell.system.monitor
    if not monitor.is_watched():
        # Without a subscriber, messages without an asker are only counted, so that a large number
        # of them does not block the loop.
        monitor.count_dead_letters(
            sum(type(envelope) in _COUNTED and envelope.reply_to is None for envelope in envelopes)
        )
        envelopes = [envelope for envelope in envelopes if envelope.reply_to is not None]
    for envelope in envelopes:
        refuse(cell, envelope, reason)


def refuse_late(cell: Cell, envelope: Envelope) -> ActorDeadError | MailboxFull:
    """Turn a message that came after the end into a dead letter.

    Returns the error for its sender.
    """
    cell.system.monitor.dead_letter(envelope.message, cell.own_ref(), DEAD)
    return dead_error(cell, envelope.message, DEAD)


# --- the errors ---


def dead_error(cell: Cell, message: Any, reason: str) -> ActorDeadError | MailboxFull:
    path = cell.path
    if reason == DROPPED:
        text = (
            f"The mailbox of {path} was full (capacity={cell.mailbox.capacity}), and dropped "
            "this message for a newer one. Send it again, or set a larger capacity."
        )
        return MailboxFull(text, actor=path, message=message)
    text = f"{path}: {reason}. Spawn a new one, or watch() it to be notified when it ends."
    return ActorDeadError(text, actor=path, message=message)


def full_error(cell: Cell, message: object) -> MailboxFull:
    path = cell.path
    text = (
        f"The mailbox of {path} is full (capacity={cell.mailbox.capacity}). Await room "
        "with `await ref.send(message)`, enlarge the mailbox, or send less."
    )
    return MailboxFull(text, actor=path, message=message)


def timeout_error(path: str, message: object, timeout: float | None) -> AskTimeout:
    text = (
        f"{path} has not replied within {timeout:g} seconds. The message was sent, and may still "
        "be handled. Pass a larger timeout, or check why the actor is slow."
    )
    return AskTimeout(text, actor=path, message=message)


def room_error(path: str, message: object, timeout: float | None) -> AskTimeout:
    text = (
        f"The mailbox of {path} was full for {timeout:g} seconds. The message was not sent. Send "
        "it again later."
    )
    return AskTimeout(text, actor=path, message=message)


def cancelled_error(cell: Cell, message: object) -> HandlerCancelled | ActorDeadError:
    path = cell.path
    if cell.system.closing:
        text = (
            f"{path}: the system was left while the actor was in {handler_name(message)}, "
            "before it replied. Call drain() first to complete such work."
        )
        return ActorDeadError(text, actor=path, message=message)
    text = (
        f"{path} was cancelled in {handler_name(message)} before it replied. Send the message "
        "again if handling it twice is safe."
    )
    return HandlerCancelled(text, actor=path, message=message)


def crashed_error(cell: Cell, message: object, error: BaseException) -> ActorFailed:
    path = cell.path
    text = (
        f"{path} crashed with {type(error).__name__} in {handler_name(message)} while it "
        "handled this message. Its supervisor decides whether it restarts."
    )
    return ActorFailed(text, actor=path, message=message)
