"""Sending between the actors of one run, which live on one loop.

Owns: a request that is handled immediately whenever its receiver is idle. Unlike `ActorRef.request` it must never look at the time, so that the order of
events in a run depends only on what its actors do. A caller that sends in an endless loop therefore has to give way to others by count.
"""

from __future__ import annotations

import asyncio
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from ..errors import ActorDeadError
from . import lifecycle
from .envelope import Envelope
from .mailbox import MailboxClosed

if TYPE_CHECKING:
    from .cell import Cell
    from .loop_cell import LoopCell

__all__ = ["OVER", "deliver", "going_on", "hand", "send_now", "stop_actor"]

OVER: Final = object()
"""The reply of an actor that accepts nothing any more: it has ended, or is about to."""


async def deliver(cell: LoopCell, message: object) -> Any:
    """Send to an actor on the event loop, and wait for the reply."""
    reply = hand(cell, message)
    return await reply if type(reply) is CoroutineType else reply


def hand(cell: LoopCell, message: object) -> Any:
    """Send to an actor on the event loop. Returns the reply, if the actor is idle and has it at once, and else a coroutine of it, to be awaited at once."""
    if cell.is_idle():
        cell.system.monitor.handled += 1
        # An exception is the reply, and nothing more: this is the package's own code, and its caller handles the exception.
        result = cell.context.run(cell.actor.on_receive, message)  # type: ignore[union-attr]  # it is idle, so it is there
        return result if type(result) is not CoroutineType else going_on(cell, result, message)
    future: asyncio.Future[object] = cell.system.loop.create_future()
    try:
        cell.post(Envelope(message, future))
    except MailboxClosed:
        return OVER
    return _reply_of(future)


def going_on(cell: LoopCell, handler: CoroutineType[Any, Any, object], message: object) -> Any:
    """Let the handler of that message, which its actor has begun, go on as all handlers do: in the actor's own task. Returns a coroutine of its reply."""
    future: asyncio.Future[object] = cell.system.loop.create_future()
    cell.begin_handler(handler, Envelope(message, future))
    return _reply_of(future)


async def _reply_of(future: asyncio.Future[object]) -> object:
    try:
        return await future
    except ActorDeadError:
        return OVER


def send_now(cell: LoopCell, message: object) -> None:
    """Send and do not wait. If the receiver is idle, it begins with the message before this returns."""
    if cell.is_idle():
        cell.handle(Envelope(message), cell.system.monitor.begin())
    else:
        cell.own_ref().tell(message)


def stop_actor(cell: Cell, *, hook: bool = True) -> None:
    """Stop an actor as soon as its handler has ended. To be called on the loop, by the actor itself or by its spawner. Without `hook`: see `begin_stop`."""
    lifecycle.begin_stop(cell, hook=hook)
