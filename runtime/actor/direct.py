"""Direct messages between the actors of one run, which live on one loop.

A request is handled immediately if its receiver is idle. Unlike `ActorRef.request` this never
depends on time, so the order of events in a run depends only on its actors. A caller that sends in
an endless loop must therefore yield after a number of messages.
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

__all__ = ["OVER", "deliver", "hand", "send_now", "stop_actor"]

OVER: Final = object()
"""The reply of an actor that accepts no more messages: it has ended, or is about to."""


async def deliver(cell: LoopCell, message: object) -> Any:
    """Send to an actor on the event loop, and wait for the reply."""
    reply = hand(cell, message)
    return await reply if type(reply) is CoroutineType else reply


def hand(cell: LoopCell, message: object) -> Any:
    """Send to an actor on the event loop.

    Returns the reply if the actor is idle and replies at once, otherwise a coroutine for it, which
    must be awaited at once.
    """
    if cell.is_idle():
        reply = cell.reply_now(message)
        return _reply_of(reply.reply_to) if type(reply) is Envelope else reply
    future: asyncio.Future[object] = cell.system.loop.create_future()
    try:
        cell.post(Envelope(message, future))
    except MailboxClosed:
        return OVER
    return _reply_of(future)


async def _reply_of(future: asyncio.Future[object]) -> object:
    try:
        return await future
    except ActorDeadError:
        return OVER


def send_now(cell: LoopCell, message: object) -> None:
    """Send without waiting.

    An idle receiver starts on the message before this returns.
    """
    if cell.is_idle():
        cell.handle_measured(Envelope(message))
    else:
        cell.own_ref().tell(message)


def stop_actor(cell: Cell, *, hook: bool = True) -> None:
    """Stop an actor as soon as its handler has ended.

    Only the actor itself or its spawner calls this, on the loop. Without `hook`: see `begin_stop`.
    """
    lifecycle.begin_stop(cell, hook=hook)
