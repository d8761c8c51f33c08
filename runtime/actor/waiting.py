"""Waiting for room in a bounded mailbox, in a thread or on any event loop.

A sender that gives up, by timeout or cancellation, has not sent the message, unless the message is
being admitted at that very moment. No ticket remains in the queue, however the wait ends.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from .envelope import Envelope, QueueTicket
from .future import LOOK_AT_LOOP, waker
from .mailbox import MailboxClosed
from .replies import refuse_late, room_error

if TYPE_CHECKING:
    from .cell import Cell

__all__ = ["wait_in_thread", "wait_on_loop"]


def wait_in_thread(cell: Cell, envelope: Envelope, timeout: float | None) -> None:
    """Put an envelope, and block the calling thread until there is room."""
    event = threading.Event()
    ticket = QueueTicket(envelope, event.set)
    if not _stand_in_line(cell, ticket):
        return
    try:
        in_time = _wait(event, timeout, cell.system.look_at_loop)
    except BaseException:
        cell.mailbox.give_up(ticket)
        raise
    if not in_time and cell.mailbox.give_up(ticket):
        raise room_error(cell.path, envelope.message, timeout)
    event.wait()  # if giving up came too late, the notification is on its way
    if not ticket.admitted:
        raise refuse_late(cell, envelope)


async def wait_on_loop(
    cell: Cell, envelope: Envelope, reply: asyncio.Future[object] | None = None
) -> None:
    """Put an envelope, and await space on the calling loop; a request until its reply is set."""
    loop = asyncio.get_running_loop()
    woken: asyncio.Future[None] = loop.create_future()
    ticket = QueueTicket(envelope, waker(loop, woken))
    if not _stand_in_line(cell, ticket):
        return
    try:
        if reply is None and cell.system.loop is loop:
            await woken
        elif reply is None:
            while not woken.done():
                await asyncio.wait((woken,), timeout=LOOK_AT_LOOP)
                cell.system.look_at_loop()
        else:
            await asyncio.wait((woken, reply), return_when=asyncio.FIRST_COMPLETED)
    except BaseException:
        cell.mailbox.give_up(ticket)
        raise
    if not woken.done() and cell.mailbox.give_up(ticket):
        return  # timed out while waiting for room: the reply has the error
    if not ticket.admitted:
        raise refuse_late(cell, envelope)


def _stand_in_line(cell: Cell, ticket: QueueTicket) -> bool:
    """Queue for room. Returns False if there was room after all."""
    try:
        admission = cell.mailbox.put_or_wait(ticket)
    except MailboxClosed:
        raise refuse_late(cell, ticket.envelope) from None
    if admission is None:
        return True
    cell.admitted(admission)
    return False


def _wait(event: threading.Event, timeout: float | None, look_at_loop: Callable[[], None]) -> bool:
    """Wait, and check periodically if the loop was closed, as it cannot wake this thread then."""
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        left = (
            LOOK_AT_LOOP
            if deadline is None
            else min(LOOK_AT_LOOP, max(0.0, deadline - time.monotonic()))
        )
        if event.wait(left):
            return True
        if deadline is not None and time.monotonic() >= deadline:
            return False
        look_at_loop()
