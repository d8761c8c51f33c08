"""A run in a cluster, as its caller sees it, across the loss of its host.

It has one stream of events without gap or repetition, and one result. Its entry in the line of its
key (`line.py`) is sent again, under the same id, when a host is lost or drained. A run never starts
twice: if it is not stored, and may have been started, it ends with `HostLost`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, get_args

from ...agent.run_messages import CancelMode
from ...codec.packing import unpack
from ...data.chat import MessageDelta
from ...data.events import AgentEvent
from ...data.run_result import RunResult, RunStatus
from ...errors import ModelRetry, UsageError
from ...tracing import span
from ..errors import ClusterBusy, ClusterError, HostLost
from ..event_batch import read_events, read_rest, read_result
from ..transport import HostGone
from .line import Entry

if TYPE_CHECKING:
    from .link import Call
    from .routes import Routes

__all__ = ["ClusterRun"]

_MODES: Final = get_args(CancelMode)


class ClusterRun:
    """One run, requested when this is made: `async for event in run`, or `await run`."""

    def __init__(
        self,
        routes: Routes,
        kind: str,
        key: str,
        run_id: str,
        body: bytes,
        checkpoint_id: str | None = None,
        *,
        in_order: bool = True,
    ) -> None:
        self.id = run_id
        self.checkpoint_id = checkpoint_id
        self.host: str | None = None
        """The host that has it, as far as is known."""
        self._kind = kind
        self._mode = "hold"
        self._call: Call | None = None
        self._call_changed = asyncio.Event()
        self._result: RunResult | None = None
        self._last_seq = 0
        self._piece: AgentEvent | None = None  # the last delta of an incomplete message
        self._piece_of: Call | None = None  # the call that it came from
        self._iterated = False
        self._stop: dict[str, Any] = {}  # the requested cancellation, if any
        head = {"mode": self._mode}
        self._entry = Entry(
            kind,
            body,
            f"run {run_id}",
            head=head,
            check_lost=self._check_repeatable,
            on_sent=self._ask,
        )
        # Added at once, so that the requests of one client stay in order.
        routes.lines.add(key, self._entry, in_order=in_order)
        self._task = asyncio.get_running_loop().create_task(
            self._carry(), name=f"run {run_id} in a cluster"
        )
        self._task.add_done_callback(_look)

    def __repr__(self) -> str:
        return f"<ClusterRun {self.id}: {self.status.value}>"

    @property
    def status(self) -> RunStatus:
        if self._result is not None:
            return self._result.status
        return RunStatus.FAILED if self._task.done() else RunStatus.RUNNING

    # --- sending and resending ---

    def _ask(self, call: Call) -> None:
        self._call, self.host = call, call.link.host
        self._call_changed.set()
        if self._stop:
            self._tell_stop(call)

    async def _carry(self) -> RunResult:
        """Wait for the answer of any host."""
        with span("cluster.route", run=self.id):
            try:
                reply = await self._entry.reply()
            except ClusterError as error:
                error.run = error.run or self.id
                raise
        if reply.code == "error":
            raise unpack(reply.body, opaque=True)
        if reply.code == "busy":
            seconds = float(unpack(reply.body))
            msg = (
                f"host {self.host!r} is at its limit of runs. Try again in {seconds:g} s, or add "
                "hosts to the cluster."
            )
            raise ClusterBusy(msg, retry_after=seconds, run=self.id)
        self._result = read_result(reply.body)
        return self._result

    def _check_repeatable(self, call: Call, gone: HostGone) -> None:
        """Raise `HostLost` if the run may have been started, and is not stored."""
        if call.link.steps or self._kind == "follow":
            return
        msg = (
            f"host {gone.host!r}, which had run {self.id}, is lost, and the run's steps were not "
            "stored. Start it again; with durability='step' another host continues such a run."
        )
        raise HostLost(msg, run=self.id) from gone

    # --- the end ---

    def __await__(self) -> Generator[object, None, RunResult]:
        return self._awaited().__await__()

    async def _awaited(self) -> RunResult:
        if not self._iterated:
            self._decide("await")
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if not self._task.done() and (self._call is None or not self._call.link.steps):
                # the caller was cancelled; a stored run continues, and can be followed
                self.cancel()
            raise

    def _decide(self, mode: str) -> None:
        """Tell the host whether the events are read."""
        if self._mode != "hold":
            return
        self._mode = self._entry.head["mode"] = mode
        call = self._call
        if call is None or self._task.done():
            return
        if call.link.is_unsent(call):
            call.request.head["mode"] = mode
        elif mode == "await":  # reading the events tells the host
            call.link.post("mode", {"of": call.request.id, "mode": mode})

    def cancel(
        self, mode: CancelMode = "immediate", *, timeout: float | None = None
    ) -> ClusterCancel:
        """End the run, as `Run.cancel` does.

        Await the result to learn whether it was cancelled, or had ended before.
        """
        if mode not in _MODES:
            msg = f"cancel: mode must be one of {', '.join(map(repr, _MODES))}, got {mode!r}."
            raise UsageError(msg, run=self.id)
        self._stop = {"mode": mode, "timeout": timeout}
        if self._call is not None and not self._task.done():
            self._tell_stop(self._call)
        return ClusterCancel(self)

    def _tell_stop(self, call: Call) -> None:
        call.link.post("cancel", {"of": call.request.id, **self._stop})

    async def aclose(self) -> None:
        """Cancel the run if it has not ended, and wait for its end."""
        if not self._task.done():
            self.cancel()
            self._decide("await")
            await asyncio.wait((self._task,))

    # --- events ---

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        if self._mode == "await":
            msg = (
                f"the events of run {self.id} can no longer be iterated, because the run was "
                "awaited: they are in its result. Iterate first, then await."
            )
            raise UsageError(msg, run=self.id)
        self._iterated = True
        self._decide("stream")
        return self._events()

    async def _events(self) -> AsyncIterator[AgentEvent]:
        """Yield all events, from all hosts that had the run.

        A consumer that leaves before the end cancels the run.
        """
        ended = False
        try:
            while not self._task.done():
                call = self._call
                if call is None:
                    await self._new_call_or_end()
                    continue
                async with aclosing(self._shown(call)) as shown:  # type: ignore[type-var]
                    async for event in shown:
                        yield event
                await asyncio.wait((call.replied,))
                for event in self._rest_of(call):
                    yield event
                await self._new_call_or_end(call)
            ended = True
            for event in (await self._task).events:  # events that came only with the result
                if event.seq > self._last_seq:
                    yield event
        finally:
            if not ended and not self._task.done():
                self.cancel()
                self._mode = self._entry.head["mode"] = "await"
                if self._call is not None:
                    self._call.link.post("mode", {"of": self._call.request.id, "mode": "drop"})

    async def _new_call_or_end(self, call: Call | None = None) -> None:
        """Wait until the run is requested from another host, or has ended."""
        while self._call is call and not self._task.done():
            self._call_changed.clear()
            changed = asyncio.ensure_future(self._call_changed.wait())
            try:
                await asyncio.wait((changed, self._task), return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()

    async def _shown(self, call: Call) -> AsyncIterator[AgentEvent]:
        """Yield the events from one host that were not shown before."""
        try:
            async with aclosing(call.events()) as batches:  # type: ignore[type-var]
                async for batch in batches:
                    for event in self._new(read_events(batch), call):
                        yield event
        except HostGone:
            return  # the caller that waits for the reply gets the error, too

    def _rest_of(self, call: Call) -> list[AgentEvent]:
        """Return the events that came with the reply."""
        if call.replied.cancelled() or call.replied.exception() is not None:
            return []
        reply = call.replied.result()
        return (
            list(self._new(read_rest(reply.body), call))
            if reply.code in ("ok", "elsewhere") and reply.body
            else []
        )

    def _new(self, events: list[AgentEvent], call: Call) -> Iterator[AgentEvent]:
        """Yield the events that were not shown before.

        A message that another host had started to show is repeated, after an event that voids its
        deltas.
        """
        for event in events:
            self._entry.moves = 0
            if event.delta is None and event.seq <= self._last_seq:
                continue
            if self._piece is not None and self._piece_of is not call:
                yield self._void()
            if event.delta is not None:
                self._piece, self._piece_of = (event, call) if event.error is None else (None, None)
            else:
                self._piece = None if event.message is not None else self._piece
                self._last_seq = max(self._last_seq, event.seq)
            yield event

    def _void(self) -> AgentEvent:
        """Return the event that voids the deltas of a message, which another host repeats."""
        piece, self._piece = self._piece, None
        assert piece is not None
        error = ModelRetry(
            1,
            "the host was lost while the message was streaming: drop what it has shown",
            run=self.id,
        )
        return AgentEvent(
            piece.agent_name,
            piece.run_path,
            None,
            MessageDelta(),
            None,
            None,
            error,
            piece.seq,
            piece.timestamp,
            self.id,
            piece.invocation_id,
        )


class ClusterCancel:
    """The result of `ClusterRun.cancel()`.

    Awaited, it is True if the run was cancelled, False if it had ended before.
    """

    __slots__ = ("_run",)

    def __init__(self, run: ClusterRun) -> None:
        self._run = run

    def __await__(self) -> Generator[object, None, bool]:
        return self._was_cancelled().__await__()

    async def _was_cancelled(self) -> bool:
        return (await self._run).status is RunStatus.CANCELLED


def _look(task: asyncio.Task[Any]) -> None:
    """Mark the error of a run as retrieved: a run need not be awaited."""
    if not task.cancelled():
        task.exception()
