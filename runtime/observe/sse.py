"""A run as server-sent events, for a browser.

The module defines the encoding of an event, the heartbeat, and the end of the stream. The number of
an event is its `id:`, so a returning browser reports the last event that it has seen in
`Last-Event-ID`: `runner.attach(run_id, after=...)` returns the rest, in any process. Events are
never buffered here: a slow client slows its run down.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import TYPE_CHECKING, Final, Protocol

from ..clock import HERE, Clock
from ..data.events import AgentEvent
from ..data.run_result import RunResult, RunStatus
from ..data.well_formed import well_formed
from ..errors import OffbookError, RunLost, UsageError
from ..run.run import is_follower, only_follows, rest_of
from .event_json import Json, kind_of
from .sse_forms import Form, Show, form_of

if TYPE_CHECKING:
    from ..run.run import Run

__all__ = ["HEARTBEAT", "sse", "sse_bytes"]

HEARTBEAT: Final = b": heartbeat\n\n"


class Until(Protocol):
    """The object that ends streams when it is set: a `Shutdown`, or an `asyncio.Event`."""

    def is_set(self) -> bool: ...
    async def wait(self) -> object: ...


def sse(
    run: Run,
    *,
    show: Show = "answers",
    after: int | None = None,
    until: Until | None = None,
    wait: bool = True,
    heartbeat: float | None = 15,
    deltas: bool = True,
    clock: Clock = HERE,
) -> AsyncGenerator[bytes, None]:
    """Yield the events of a run as server-sent events, each as bytes; the last one is `end`.

        return StreamingResponse(sse(runner.query(text, run_id=id, detached=True)),
                                 media_type="text/event-stream")

    `show` limits what a client may see. `"answers"`: the agents' texts, handoffs, the fact that an
    answer is awaited, and for an error an id that leads to its text in the log. `"progress"`: also
    the names of agents and tools. `"all"`: everything, including arguments, results and error
    texts. A function returns the data of an event, or None to hide it.

    An interrupted run is followed to its end if its store lists it, unless `wait=False`. `until`
    ends the stream when it is set, without an `end`: the client then reconnects to another process.
    `after` omits events that the client has seen; `deltas=False` omits deltas. After `heartbeat`
    seconds without an event, a comment is sent, so that proxies keep the connection and the loss of
    a client is noticed; None: never. When the client disconnects, a detached run continues and any
    other run is cancelled.
    """
    if heartbeat is not None and not heartbeat > 0:
        msg = (
            "sse: heartbeat must be a number of seconds above 0, or None for no heartbeats, "
            f"got {heartbeat}."
        )
        raise UsageError(msg)
    if after is not None and (not isinstance(after, int) or isinstance(after, bool) or after < 0):
        msg = (
            "sse: after must be the number of the last event that the client has (0 or "
            f"more), or None, got {after!r}."
        )
        raise UsageError(msg)
    if until is not None and not (
        callable(getattr(until, "wait", None)) and callable(getattr(until, "is_set", None))
    ):
        msg = f"sse(until={until!r:.80}): until must be a Shutdown or an asyncio.Event."
        raise UsageError(msg)
    return _Stream(form_of(show), until, heartbeat, clock, deltas=deltas).chunks(
        run, after or 0, wait=wait
    )


class _Stream:
    """The stream to one client."""

    def __init__(
        self,
        form: Form,
        until: Until | None,
        heartbeat: float | None,
        clock: Clock,
        *,
        deltas: bool,
    ) -> None:
        self._form = form
        self._until = until
        self._heartbeat = heartbeat
        self._clock = clock
        self._deltas = deltas
        self._last = 0  # number of the last event sent
        self._held: list[
            AgentEvent
        ] = []  # errors of the run as a whole, which are void if the run continues elsewhere

    async def chunks(self, run: Run, after: int, *, wait: bool) -> AsyncGenerator[bytes, None]:
        self._last = after
        following: Run | None = run
        try:
            while following is not None:
                events = self._of(following)
                try:
                    async for chunk in events:
                        yield chunk
                finally:
                    await events.aclose()
                if self._is_over:
                    return
                run, result = following, await following
                if only_follows(run):
                    return  # this process ends, but the run does not
                is_elsewhere = result.status is RunStatus.DRAINED or (
                    isinstance(result.error, RunLost) and not is_follower(run)
                )
                goes_on = is_elsewhere or (wait and result.status is RunStatus.INTERRUPTED)
                following = rest_of(run, self._last) if goes_on else None
            for chunk in self._end(run.id, result):
                yield chunk
        except OffbookError as error:
            yield sse_bytes("end", self._form.failed(run.id, error), None)

    @property
    def _is_over(self) -> bool:
        return self._until is not None and self._until.is_set()

    def _end(self, run_id: str, result: RunResult) -> list[bytes]:
        chunks = [chunk for event in self._held if (chunk := self._chunk(event)) is not None]
        return [*chunks, sse_bytes("end", self._form.end(run_id, result), None)]

    def _chunk(self, event: AgentEvent) -> bytes | None:
        data = self._form.event(event)
        return None if data is None else sse_bytes(kind_of(event), data, event.seq)

    async def _of(self, run: Run) -> AsyncGenerator[bytes, None]:
        """Yield the events of one run, until it ends or pauses."""
        self._held = []
        events = aiter(run)
        coming: asyncio.Future[AgentEvent] | None = None
        over = None if self._until is None else asyncio.ensure_future(self._until.wait())
        try:
            while not self._is_over:
                if coming is None:
                    coming = asyncio.ensure_future(_next(events))
                if not await self._is_there(coming, over):
                    if not self._is_over:
                        yield HEARTBEAT
                    continue
                done, coming = coming, None
                try:
                    event = done.result()
                except _Over:
                    return
                if event.seq <= self._last or (event.delta is not None and not self._deltas):
                    continue
                if event.error is not None and not event.invocation_id:
                    self._held.append(event)
                    continue
                self._last = event.seq
                if (chunk := self._chunk(event)) is not None:
                    yield chunk
        finally:
            # Tell the run first that the client left deliberately: cancelling the wait would look
            # like the end of this process.
            await events.aclose(cancelled=self._is_over)
            waiting = [future for future in (coming, over) if future is not None]
            for future in waiting:
                future.cancel()
            if waiting:
                await asyncio.wait(waiting)

    async def _is_there(
        self, coming: asyncio.Future[AgentEvent], over: asyncio.Future[object] | None
    ) -> bool:
        """Wait for the next event, up to one heartbeat. Returns True if it has arrived."""
        waited: list[asyncio.Future[object]] = [coming]  # type: ignore[list-item]  # only used to check if they are done
        if over is not None:
            waited.append(over)
        late = asyncio.get_running_loop().create_future()
        timer = (
            None if self._heartbeat is None else self._clock.call_later(self._heartbeat, _set, late)
        )
        try:
            await asyncio.wait((*waited, late), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if timer is not None:
                timer.cancel()
            late.cancel()
        return coming.done()


class _Over(Exception):
    """The end of the events, because a future cannot hold a `StopAsyncIteration`."""


async def _next(events: AsyncIterator[AgentEvent]) -> AgentEvent:
    try:
        return await anext(events)
    except StopAsyncIteration:
        raise _Over from None


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def sse_bytes(kind: str, data: Mapping[str, Json], number: int | None) -> bytes:
    """Encode one event."""
    head = "" if number is None else f"id: {number}\n"
    # The text of an error may contain anything.
    text = well_formed(json.dumps(data, ensure_ascii=False, separators=(",", ":")))
    return f"{head}event: {kind}\ndata: {text}\n\n".encode()
