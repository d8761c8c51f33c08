"""A run as server-sent events, for a browser.

Owns: the form of each event on the wire, the heartbeat, and the end of the stream. The number of an event is its `id:`, so a browser that comes back says with
`Last-Event-ID` what it has seen: `runner.attach(run_id, after=...)` gives a run that has the rest, in any process. It must never hold events back: one that
is slow slows its run.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import TYPE_CHECKING, Final

from ..clock import HERE, Clock
from ..data.events import AgentEvent
from ..errors import UsageError
from .event_json import Json, event_json, kind_of, result_json

if TYPE_CHECKING:
    from ..run.run import Run

__all__ = ["HEARTBEAT", "sse", "sse_bytes"]

HEARTBEAT: Final = b": heartbeat\n\n"


def sse(run: Run, *, after: int | None = None, heartbeat: float | None = 15, deltas: bool = True, clock: Clock = HERE) -> AsyncGenerator[bytes, None]:
    """The events of a run, each as the bytes of one server-sent event, and last one of the kind `end` that says how the run has ended.

        return StreamingResponse(sse(runner.query(text, run_id=id, detached=True)), media_type="text/event-stream")

    `after` leaves out what a client has seen already; `deltas=False` the pieces of messages. After `heartbeat` seconds without an event, a comment is sent, so
    that proxies keep the connection, and the loss of a client is noticed; None: never. When the client goes away, the run is left: one that is detached goes
    on, another is cancelled.
    """
    if heartbeat is not None and not heartbeat > 0:
        msg = f"sse(heartbeat={heartbeat}): give a number of seconds above 0, or None for none."
        raise UsageError(msg)
    if after is not None and (not isinstance(after, int) or isinstance(after, bool) or after < 0):
        msg = f"sse(after={after!r}): give the number of the last event that the client has: 0 or more, or None."
        raise UsageError(msg)
    return _stream(run, after or 0, heartbeat, deltas=deltas, clock=clock)


async def _stream(run: Run, after: int, heartbeat: float | None, *, deltas: bool, clock: Clock) -> AsyncGenerator[bytes, None]:
    events = aiter(run)
    coming: asyncio.Future[AgentEvent] | None = None
    try:
        while True:
            if coming is None:
                coming = asyncio.ensure_future(_next(events))
            if not await _is_there(coming, heartbeat, clock):
                yield HEARTBEAT
                continue
            done, coming = coming, None
            try:
                event = done.result()
            except _Over:
                break
            if event.seq > after and (deltas or event.delta is None):
                yield sse_bytes(kind_of(event), event_json(event), event.seq)
        yield sse_bytes("end", {"run_id": run.id, **result_json(await run)}, None)
    finally:
        # The client has gone away by its own will, which the run is told first: cancelling the wait would look like the end of this process.
        await events.aclose()
        if coming is not None:
            coming.cancel()
            await asyncio.wait((coming,))


class _Over(Exception):
    """There are no more events. A future cannot hold a `StopAsyncIteration`."""


async def _next(events: AsyncIterator[AgentEvent]) -> AgentEvent:
    try:
        return await anext(events)
    except StopAsyncIteration:
        raise _Over from None


async def _is_there(coming: asyncio.Future[AgentEvent], heartbeat: float | None, clock: Clock) -> bool:
    """Wait for it, for so long. Returns whether it has come."""
    if heartbeat is None:
        await asyncio.wait((coming,))
        return True
    over = asyncio.get_running_loop().create_future()
    timer = clock.call_later(heartbeat, _set, over)
    try:
        await asyncio.wait((coming, over), return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
        over.cancel()
    return coming.done()


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def sse_bytes(kind: str, data: Mapping[str, Json], number: int | None) -> bytes:
    """One event as it goes over the wire."""
    head = "" if number is None else f"id: {number}\n"
    return f"{head}event: {kind}\ndata: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n".encode()
