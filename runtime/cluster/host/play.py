"""One run in a host, for a client somewhere else: its events go out in batches, and its end as a reply.

Owns: what becomes of a run whose client is gone, and that a run which goes on elsewhere is not taken for one that has ended. It must never keep more than one
batch that its client has not taken, while the run goes on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from ...agent.run_messages import CancelMode
from ...data.events import AgentEvent
from ...data.run_result import RunStatus
from ...errors import RunCancelled, RunLost
from ..event_batch import pack_events, pack_rest, pack_result, split
from ..link_order import Request

if TYPE_CHECKING:
    from ...run.run import Run
    from .clients import ClientPort

__all__ = ["ELSEWHERE", "Play"]

ELSEWHERE: Final = "elsewhere"
"""The code of a reply: the run goes on, and not here."""


class Play:
    """One run that a client has asked for."""

    __slots__ = ("_batches", "_changed", "_is_over", "_stop", "client", "is_kept", "mode", "port", "request", "run", "run_id", "said", "sent")

    def __init__(self, port: ClientPort, request: Request, said: dict[str, Any]) -> None:
        self.port = port
        self.client = port.name
        self.request = request
        self.said = said
        self.run_id: str = said.get("run_id", "")
        self.mode: str = request.head.get("mode", "hold")  # "await", "stream", or not known yet
        self.run: Run | None = None
        self.is_kept = False
        self.sent = 0
        self._stop: tuple[CancelMode, float | None] | None = None  # how it is to end, if it is
        self._batches: deque[bytes] = deque()
        self._is_over = False  # whether no event will come any more
        self._changed = asyncio.Event()

    def decide(self, mode: str) -> None:
        """Its consumer awaits it, or reads its events."""
        if self.mode == "hold":
            self.mode = mode
            self._changed.set()

    def drop(self) -> None:
        """Its events are not read any more."""
        self.mode = "await"
        self._batches.clear()
        self._changed.set()

    def client_left(self) -> None:
        """A run that is kept goes on: another client may follow it."""
        self.drop()
        if not self.is_kept:
            self.cancel("immediate", None)

    def cancel(self, mode: CancelMode, timeout: float | None) -> None:
        """End it, now or as soon as it has begun."""
        self._stop = (mode, timeout)
        if self.run is not None:
            self.run.cancel(mode, timeout=timeout)

    def began(self, run: Run) -> None:
        self.run = run
        if self._stop is not None:
            mode, timeout = self._stop
            run.cancel(mode, timeout=timeout)

    async def finish(self, most: int) -> tuple[str, bytes]:
        """Play it to its end. Returns the reply."""
        run = self.run
        assert run is not None
        try:
            run.when_finished(self._changed.set)
            await self._be_decided(run)
            held: list[AgentEvent] = []
            if self.mode == "stream":
                async with aclosing(run.batches(most)) as batches:
                    async for batch in batches:
                        held += await self._show(batch)
            result = await run
            if result.status is RunStatus.DRAINED or isinstance(result.error, RunLost):
                await run.wait_ended()  # then the next one may have it
                if result.status is RunStatus.DRAINED or self.is_kept:
                    return ELSEWHERE, pack_rest(self._take_rest())
            await self._send(held)
            return "ok", pack_result(result, self._own_id(), self._take_rest())
        finally:
            self._is_over = True
            self._changed.set()

    async def _be_decided(self, run: Run) -> None:
        """Wait until its consumer reads or awaits it. One that has ended before does not wait: who comes behind it in its session must not, either."""
        while self.mode == "hold" and run.status is RunStatus.RUNNING:
            self._changed.clear()
            await self._changed.wait()
        self.decide("stream")

    def _own_id(self) -> str | None:
        """The id by which the client knows a run that is not kept: the store knows the others by it, too."""
        return None if self.is_kept or not self.run_id else self.run_id

    async def _show(self, events: list[AgentEvent]) -> list[AgentEvent]:
        """Send them on, but for what tells that the run has come to rest, or is lost to this host: whether that is its end is known when it has ended."""
        ends = next((index for index, event in enumerate(events) if isinstance(event.error, RunLost | RunCancelled) and event.delta is None), len(events))
        await self._send(events[:ends])
        return events[ends:]

    async def _send(self, events: list[AgentEvent]) -> None:
        self.sent += len(events)
        for part in split(events) if events else ():
            await self._offer(pack_events(part, self._own_id()))

    async def _offer(self, data: bytes) -> None:
        """Wait until there is room for the batch, and leave it for its reader. What is left of a run that has ended goes with the reply."""
        while self._batches and self.mode == "stream" and self.run is not None and self.run.status is RunStatus.RUNNING:
            self._changed.clear()
            await self._changed.wait()
        if self.mode == "stream":
            self._batches.append(data)
            self._changed.set()

    def _take_rest(self) -> list[bytes]:
        rest, self._batches = list(self._batches), deque()
        return rest

    async def batches(self) -> AsyncIterator[bytes]:
        """For the reader: what is offered, to the end."""
        self.decide("stream")
        while True:
            if self._batches:
                batch = self._batches.popleft()
                self._changed.set()
                yield batch
            elif self._is_over or self.mode != "stream":
                return
            else:
                self._changed.clear()
                await self._changed.wait()
