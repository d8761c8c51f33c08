"""Sending within a run: from one of its actors to another, on the loop that both live on.

Owns: a request that is handled on the spot whenever its receiver is idle. Unlike `ActorRef.request` it never looks at how much time has gone by, so that
the order of what happens in a run depends on nothing but what its actors do. Whoever sends so without end must let others have their turn by count.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from . import lifecycle
from .envelope import Envelope
from .errors import ActorDeadError
from .mailbox import MailboxClosed

if TYPE_CHECKING:
    from .cell import Cell
    from .ref import ActorRef

__all__ = ["OVER", "deliver", "finish", "finish_last", "hand"]

OVER: Final = object()
"""The reply of one that takes nothing any more: it has ended, or is about to."""


class _Reply:
    """Where the reply goes: a future of the loop is made only if somebody has to wait for it."""

    __slots__ = ("error", "future", "given", "value")

    def __init__(self) -> None:
        self.given = False
        self.value: Any = None
        self.error: BaseException | None = None
        self.future: asyncio.Future[Any] | None = None

    def done(self) -> bool:
        return self.given or (self.future is not None and self.future.done())

    def set_result(self, value: Any) -> None:
        self.given = True
        if self.future is not None:
            self.future.set_result(value)
        else:
            self.value = value

    def set_exception(self, error: BaseException) -> None:
        self.given = True
        if self.future is not None:
            self.future.set_exception(error)
        else:
            self.error = error


async def deliver(ref: ActorRef[Any], message: Any) -> Any:
    """Send, and wait for the reply."""
    cell = ref._cell
    reply = _Reply()
    envelope = Envelope(message, reply)
    if cell.is_idle():
        cell.handle(envelope, perf_counter())
        if reply.given:
            if reply.error is not None:
                raise reply.error
            return reply.value
    else:
        try:
            cell.post(envelope)
        except MailboxClosed:
            return OVER
    reply.future = cell.system.loop.create_future()
    try:
        return await reply.future
    except ActorDeadError:
        return OVER


def hand(ref: ActorRef[Any], message: Any) -> None:
    """Send, and do not wait: it is begun before this returns, if the receiver is idle."""
    cell = ref._cell
    if cell.is_idle():
        cell.handle(Envelope(message), perf_counter())
    else:
        ref.tell(message)


def finish_last(cell: Cell) -> None:
    """Have an actor stop as soon as its last child has ended. To be called on the loop."""
    lifecycle.stop_when_childless(cell)


def finish(cell: Cell) -> None:
    """Have an actor stop as soon as its handler has ended. To be called on the loop, by the actor itself or whoever has spawned it."""
    lifecycle.begin_stop(cell)
