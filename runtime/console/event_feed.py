"""The events of a run, in batches, as a stream to the browser.

The events of a twentieth of a second are sent as one server-sent event, with the number of the last
one: so a browser receives some twenty per second, however fast the run is, and can resume after a
reconnect. Deltas of one message in one batch are merged. At most one batch of a run is buffered.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from ..data.events import AgentEvent
from ..errors import OffbookError, SystemDraining
from ..observe.event_json import Json, result_json
from ..observe.sse import HEARTBEAT, sse_bytes
from .json_forms import bounded, event_for_page

if TYPE_CHECKING:
    from ..run.run import Run

__all__ = ["Feeds"]

_SPAN: Final = 0.05
_LARGEST: Final = 250
_HEARTBEAT: Final = 15.0
_MOST: Final = 64


class _Over(Exception):
    """There are no more events. A future cannot hold a `StopAsyncIteration`."""


class Feeds:
    """All open streams of one console. On one loop."""

    def __init__(self) -> None:
        self._open: set[asyncio.Future[None]] = set()
        self._is_closed = False

    def close(self) -> None:
        """End all of them: the server exits."""
        self._is_closed = True
        for stop in self._open:
            if not stop.done():
                stop.set_result(None)

    def check(self) -> None:
        """Raise SystemDraining if too many are open, before a run is started for a stream."""
        if len(self._open) >= _MOST:
            msg = f"{_MOST} pages already show live runs, which is the maximum. Close some."
            raise SystemDraining(msg)
        if self._is_closed:
            raise SystemDraining(
                "the console is shutting down. Open it again when it has restarted."
            )

    async def stream(self, run: Run, *, name_first: bool = False) -> AsyncGenerator[bytes, None]:
        """Stream the events of a run. `name_first`: send the run's id first."""
        stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        source = _Source(run, stop)
        self._open.add(stop)
        try:
            if name_first:
                yield sse_bytes("run", {"run_id": run.id}, None)
            while True:
                batch = await source.batch()
                if batch is None:
                    break
                yield sse_bytes("events", _page(batch), batch[-1].seq) if batch else HEARTBEAT  # type: ignore[arg-type]  # a list is JSON, too
            if stop.done():
                yield sse_bytes("closed", {"run_id": run.id}, None)
                return
            result = bounded(result_json(await run))
            assert isinstance(result, dict)
            yield sse_bytes("end", {"run_id": run.id, **result}, None)
        except OffbookError as error:
            yield sse_bytes(
                "problem", {"error": str(error)[:4_000], "type": type(error).__name__}, None
            )
        finally:
            self._open.discard(stop)
            stop.cancel()
            await source.aclose()


class _Source:
    """Reads the events of a run."""

    def __init__(self, run: Run, stop: asyncio.Future[None]) -> None:
        self._events = aiter(run)
        self._stop = stop
        self._coming: asyncio.Future[AgentEvent] | None = None
        self._is_over = False

    async def batch(self) -> list[AgentEvent] | None:
        """Return the next events; an empty list after a long silence.

        None if the run has ended, or the stream must end.
        """
        found: list[AgentEvent] = []
        loop = asyncio.get_running_loop()
        until = loop.time() + _HEARTBEAT
        while len(found) < _LARGEST and not self._is_over:
            if self._coming is None:
                self._coming = asyncio.ensure_future(_next(self._events))
            if not self._coming.done():
                await asyncio.wait(
                    (self._coming, self._stop),
                    timeout=max(0.0, until - loop.time()),
                    return_when=asyncio.FIRST_COMPLETED,
                )
            if self._stop.done():
                return None
            if not self._coming.done():
                return found
            done, self._coming = self._coming, None
            try:
                found.append(done.result())
            except _Over:
                self._is_over = True
                break
            if len(found) == 1:
                until = loop.time() + _SPAN
        return found or (None if self._is_over else [])

    async def aclose(self) -> None:
        # Tell the run first that the consumer has left voluntarily: cancelling the wait would look
        # like the end of this process.
        await self._events.aclose()
        if self._coming is not None:
            self._coming.cancel()
            await asyncio.wait((self._coming,))


async def _next(events: AsyncIterator[AgentEvent]) -> AgentEvent:
    try:
        return await anext(events)
    except StopAsyncIteration:
        raise _Over from None


def _page(batch: list[AgentEvent]) -> list[Json]:
    """Return the events of a batch, with deltas of one message merged."""
    told: list[Json] = []
    last: dict[str, Any] | None = None
    for event in batch:
        found: dict[str, Any] = event_for_page(event)
        if last is not None and _goes_on(last, found):
            last["delta"]["text"] += found["delta"]["text"]
            if "reasoning" in found["delta"]:
                last["delta"]["reasoning"] = (
                    last["delta"].get("reasoning", "") + found["delta"]["reasoning"]
                )
            last["seq"] = found["seq"]
            continue
        told.append(found)
        last = found
    return told


def _goes_on(last: dict[str, Any], found: dict[str, Any]) -> bool:
    if (
        last["kind"] != "delta"
        or found["kind"] != "delta"
        or last["invocation_id"] != found["invocation_id"]
    ):
        return False
    return "tool_calls" not in last["delta"] and "tool_calls" not in found["delta"]
