"""Draining: waiting until no actor of a system has work left.

The module defines busy, and reports the result. It stops no actor, but notifies root actors that
have `on_drain(timeout)`, which may end by themselves. Meanwhile the system refuses new roots.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..actor.report import DrainReport

if TYPE_CHECKING:
    from .system import ActorSystem

__all__ = ["drain"]


async def drain(system: ActorSystem, timeout: float) -> DrainReport:
    """Wait until no actor is busy, at most `timeout` seconds."""
    clock = system.clock
    started = clock.monotonic()
    for root in tuple(system.roots):
        begin = getattr(root.actor, "on_drain", None)
        if begin is not None:
            begin(timeout)
    over = system.loop.create_future()
    timer = clock.call_later(timeout, _set_done, over)
    try:
        while _is_busy(system) and not over.done():
            quiet: asyncio.Future[None] = system.loop.create_future()
            system.waiting_for_quiet.add(quiet)
            try:
                await asyncio.wait((quiet, over), return_when=asyncio.FIRST_COMPLETED)
            finally:
                system.waiting_for_quiet.discard(quiet)
    finally:
        timer.cancel()
    busy = (
        [cell for cell in system.cells() if cell in system.running or cell.is_busy()]
        if _is_busy(system)
        else []
    )
    return DrainReport(
        drained=not busy,
        seconds=clock.monotonic() - started,
        busy=tuple(cell.path for cell in busy),
        queued=sum(cell.queued() for cell in busy),
    )


def _is_busy(system: ActorSystem) -> bool:
    return (
        bool(system.running)
        or len(system.dispatcher) > 0
        or any(cell.is_busy() for cell in system.threads)
    )


def _set_done(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
