"""One run in a host for a remote client: events leave in batches, its end as a reply.

It handles a client that leaves, and a run that continues on another host, which must not be
mistaken for one that has ended. While the run is running, at most one batch waits for the client.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from ...agent.run_messages import CancelMode
from ...data.events import AgentEvent
from ...data.run_result import RunStatus
from ...errors import RunCancelled, RunLost
from ..event_batch import pack_events, pack_rest, pack_result, split
from ..link_order import Request
from .clients import ELSEWHERE

if TYPE_CHECKING:
    from ...run.run import Run
    from .clients import ClientPort

__all__ = ["Play"]


class Play:
    """One run that a client has requested."""

    __slots__ = (
        "_batches",
        "_changed",
        "_is_over",
        "_stop",
        "client",
        "is_kept",
        "keys",
        "mode",
        "port",
        "request",
        "run",
        "run_id",
        "said",
        "sent",
        "settled",
    )

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
        # the requested cancellation, if any
        self._stop: tuple[CancelMode, float | None] | None = None
        self._batches: deque[bytes] = deque()
        self._is_over = False  # whether no more events follow
        self._changed = asyncio.Event()
        self.settled = asyncio.Event()  # set once it is known whether the run starts here
        self.keys: tuple[str, ...] = (request.head.get("key", ""), self.run_id)

    def decide(self, mode: str) -> None:
        """Set whether the consumer awaits the run or reads its events."""
        if self.mode == "hold":
            self.mode = mode
            self._changed.set()

    def drop(self) -> None:
        """Discard the events, which are no longer read."""
        self.mode = "await"
        self._batches.clear()
        self._changed.set()

    def client_left(self) -> None:
        """Handle the loss of the client.

        A stored run continues, because another client may follow it.
        """
        self.drop()
        if not self.is_kept:
            self.cancel("immediate", None)

    def cancel(self, mode: CancelMode, timeout: float | None) -> None:
        """Cancel the run, now or as soon as it has started."""
        self._stop = (mode, timeout)
        if self.run is not None:
            self.run.cancel(mode, timeout=timeout)

    def began(self, run: Run) -> None:
        self.run = run
        self.settled.set()
        if self._stop is not None:
            mode, timeout = self._stop
            run.cancel(mode, timeout=timeout)

    async def finish(self, most: int) -> tuple[str, bytes]:
        """Run to the end. Return the reply."""
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
                await run.wait_ended()  # then the next host may have it
                if result.status is RunStatus.DRAINED or self.is_kept:
                    return ELSEWHERE, pack_rest(self._take_rest())
            await self._send(held)
            return "ok", pack_result(result, self._own_id(), self._take_rest())
        finally:
            self._is_over = True
            self._changed.set()

    async def _be_decided(self, run: Run) -> None:
        """Wait until its consumer reads or awaits it.

        A run that has already ended does not wait, so that later runs of its session do not wait,
        either.
        """
        while self.mode == "hold" and run.status is RunStatus.RUNNING:
            self._changed.clear()
            await self._changed.wait()
        self.decide("stream")

    def _own_id(self) -> str | None:
        """Return the client's id of an unstored run. The store knows the ids of the others."""
        return None if self.is_kept or not self.run_id else self.run_id

    async def _show(self, events: list[AgentEvent]) -> list[AgentEvent]:
        """Send events, except those that report that the run paused or was lost to this host.

        Whether they are its end is known once it has ended.
        """
        ends = next(
            (
                index
                for index, event in enumerate(events)
                if isinstance(event.error, RunLost | RunCancelled) and event.delta is None
            ),
            len(events),
        )
        await self._send(events[:ends])
        return events[ends:]

    async def _send(self, events: list[AgentEvent]) -> None:
        self.sent += len(events)
        for part in split(events) if events else ():
            await self._offer(pack_events(part, self._own_id()))

    async def _offer(self, data: bytes) -> None:
        """Wait until the previous batch was read, and leave this one for the reader.

        The remaining batches of a run that has ended are part of the reply.
        """
        while (
            self._batches
            and self.mode == "stream"
            and self.run is not None
            and self.run.status is RunStatus.RUNNING
        ):
            self._changed.clear()
            await self._changed.wait()
        if self.mode == "stream":
            self._batches.append(data)
            self._changed.set()

    def _take_rest(self) -> list[bytes]:
        rest, self._batches = list(self._batches), deque()
        return rest

    async def batches(self) -> AsyncIterator[bytes]:
        """Yield the batches for the reader, to the end."""
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
