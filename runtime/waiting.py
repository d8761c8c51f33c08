"""Waiting for room in a bounded mailbox, in a thread or on any event loop.

Owns: the place in the line from standing in it to leaving it, however that ends. Whoever gives up, by timeout or cancellation, has not sent; but for the moment
in which the place is being given already: then the message is in.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from .envelope import Envelope, Place
from .future import waker
from .mailbox import MailboxClosed
from .replies import refuse_late, timeout_error

if TYPE_CHECKING:
    from .cell import Cell

__all__ = ["wait_in_thread", "wait_on_loop"]


def wait_in_thread(cell: Cell, envelope: Envelope, timeout: float | None) -> None:
    """Put, and block the calling thread until there is room for it."""
    event = threading.Event()
    place = Place(envelope, event.set)
    if not _stand_in_line(cell, place):
        return
    try:
        in_time = event.wait(timeout)
    except BaseException:
        cell.mailbox.give_up(place)
        raise
    if not in_time and cell.mailbox.give_up(place):
        raise timeout_error(cell.path, envelope.message, timeout)
    event.wait()  # where giving up came too late, the notification is on its way
    if not place.admitted:
        raise refuse_late(cell, envelope)


async def wait_on_loop(cell: Cell, envelope: Envelope, reply: asyncio.Future[Any] | None = None) -> None:
    """Put, and wait on the calling loop until there is room for it; for a request, no longer than for its reply."""
    loop = asyncio.get_running_loop()
    woken: asyncio.Future[None] = loop.create_future()
    place = Place(envelope, waker(loop, woken))
    if not _stand_in_line(cell, place):
        return
    try:
        if reply is None:
            await woken
        else:
            await asyncio.wait((woken, reply), return_when=asyncio.FIRST_COMPLETED)
    except BaseException:
        cell.mailbox.give_up(place)
        raise
    if not woken.done() and cell.mailbox.give_up(place):
        return  # timed out in the line: the reply has the error
    if not place.admitted:
        raise refuse_late(cell, envelope)


def _stand_in_line(cell: Cell, place: Place) -> bool:
    """Returns False if there was room after all."""
    try:
        admission = cell.mailbox.put_or_wait(place)
    except MailboxClosed:
        raise refuse_late(cell, place.envelope) from None
    if admission is None:
        return True
    cell.admitted(admission)
    return False
