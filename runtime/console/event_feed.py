"""The events of a run, in batches, as a stream to the browser.

What a run says within a twentieth of a second goes as one server-sent event, whose number is that of its last: so a browser is told some twenty times in a
second, however fast the run is, and one that comes back says where it was. Pieces of one message that are in one batch are put together.

Owns: the batches, and the number of streams that are open at once. It must never hold more of a run than one batch.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Any, Final

from ..data.events import AgentEvent
from ..errors import SystemDraining, UnderstudyError
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
        """End all of them: the server ends."""
        self._is_closed = True
        for stop in self._open:
            if not stop.done():
                stop.set_result(None)

    def check(self) -> None:
        """Raise, if there is no room for another one: before a run is begun for it."""
        if len(self._open) >= _MOST:
            msg = f"{_MOST} pages look at runs at this moment, and no more can: close some."
            raise SystemDraining(msg)
        if self._is_closed:
            raise SystemDraining("the console is about to end.")

    async def stream(self, run: Run, *, name_first: bool = False) -> AsyncGenerator[bytes, None]:
        """The events of a run. `name_first`: the first thing that is sent is the run's id."""
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
        except UnderstudyError as error:
            yield sse_bytes("problem", {"error": str(error)[:4_000], "type": type(error).__name__}, None)
        finally:
            self._open.discard(stop)
            stop.cancel()
            await source.aclose()


class _Source:
    """Takes events from a run."""

    def __init__(self, run: Run, stop: asyncio.Future[None]) -> None:
        self._events = aiter(run)
        self._stop = stop
        self._coming: asyncio.Future[AgentEvent] | None = None
        self._is_over = False

    async def batch(self) -> list[AgentEvent] | None:
        """The next events: none, if there are none for long; None, if the run has ended, or the stream is to end."""
        found: list[AgentEvent] = []
        loop = asyncio.get_running_loop()
        until = loop.time() + _HEARTBEAT
        while len(found) < _LARGEST and not self._is_over:
            if self._coming is None:
                self._coming = asyncio.ensure_future(_next(self._events))
            if not self._coming.done():
                await asyncio.wait((self._coming, self._stop), timeout=max(0.0, until - loop.time()), return_when=asyncio.FIRST_COMPLETED)
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
        # The consumer has gone away by its own will, which the run is told first: cancelling the wait would look like the end of this process.
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
    """The events of a batch, with pieces of one message put together."""
    told: list[Json] = []
    last: dict[str, Any] | None = None
    for event in batch:
        found: dict[str, Any] = event_for_page(event)
        if last is not None and _goes_on(last, found):
            last["delta"]["text"] += found["delta"]["text"]
            if "reasoning" in found["delta"]:
                last["delta"]["reasoning"] = last["delta"].get("reasoning", "") + found["delta"]["reasoning"]
            last["seq"] = found["seq"]
            continue
        told.append(found)
        last = found
    return told


def _goes_on(last: dict[str, Any], found: dict[str, Any]) -> bool:
    if last["kind"] != "delta" or found["kind"] != "delta" or last["invocation_id"] != found["invocation_id"]:
        return False
    return "tool_calls" not in last["delta"] and "tool_calls" not in found["delta"]
