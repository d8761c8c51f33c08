"""A run in a cluster, as its caller sees it: wherever it lives, and through the loss of the host that has it.

Owns: one stream of events without gap or repetition, one result, and asking again, under the same id, when a host is lost or drained. It must never begin a run
twice: what is not kept, and may have been begun, ends with `HostLost`.
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
from ..host_list import HostList
from ..transport import HostGone

if TYPE_CHECKING:
    from ..link_order import Reply
    from .link import Call
    from .routes import Routes

__all__ = ["ClusterRun"]

_MODES: Final = get_args(CancelMode)
_MOST_MOVES: Final = 50
"""How often a run may be sent on in a row, and nothing be heard of it."""
_PAUSE: Final = 0.05
_LONGEST_PAUSE: Final = 1.0


class ClusterRun:
    """One run. It is asked for when it is made: `async for event in run`, or `await run`."""

    def __init__(self, routes: Routes, kind: str, key: str, run_id: str, body: bytes, checkpoint_id: str | None = None) -> None:
        self.id = run_id
        self.checkpoint_id = checkpoint_id
        self.host: str | None = None
        """The host that has it, as far as is known."""
        self._routes = routes
        self._kind = kind
        self._key = key
        self._body = body
        self._mode = "hold"
        self._call: Call | None = None
        self._call_changed = asyncio.Event()
        self._result: RunResult | None = None
        self._last_seq = 0
        self._piece: AgentEvent | None = None  # the last one of a message that has not come whole
        self._piece_of: Call | None = None  # whose it was
        self._iterated = False
        self._moves = 0
        self._stop: dict[str, Any] = {}  # how it is to end, if it is
        found = routes.choose(key)  # at once, so that what one client sends keeps its order
        if found is not None:
            link, head = found
            self._ask(link.post(kind, {**head, "mode": self._mode}, body))
        self._task = asyncio.get_running_loop().create_task(self._carry(), name=f"run {run_id} in a cluster")
        self._task.add_done_callback(_look)

    def __repr__(self) -> str:
        return f"<ClusterRun {self.id}: {self.status.value}>"

    @property
    def status(self) -> RunStatus:
        if self._result is not None:
            return self._result.status
        return RunStatus.FAILED if self._task.done() else RunStatus.RUNNING

    # --- asking, and asking again ---

    def _ask(self, call: Call) -> None:
        self._call, self.host = call, call.link.host
        self._call_changed.set()
        if self._stop:
            self._tell_stop(call)

    async def _carry(self) -> RunResult:
        """Ask until there is an answer."""
        lost: HostGone | None = None
        is_sent = self._call is not None
        with span("cluster.route", run=self.id):
            while True:
                if not is_sent:
                    await self._ask_anew(lost)
                is_sent, lost = False, None
                call = self._call
                assert call is not None
                try:
                    reply = await call.reply()
                except HostGone as gone:
                    lost = gone
                    self._routes.lost(gone)
                    self._check_repeatable(call, gone)
                    continue
                if await self._is_final(reply):
                    self._result = read_result(reply.body)
                    if reply.code == "ok":
                        return self._result

    async def _ask_anew(self, lost: HostGone | None) -> None:
        if self._moves:
            await asyncio.sleep(min(_PAUSE * 2 ** (self._moves - 1), _LONGEST_PAUSE) if self._moves > 1 else 0)
        if self._moves > _MOST_MOVES:
            msg = f"run {self.id} was sent from host to host {_MOST_MOVES} times, and none has taken it."
            raise ClusterError(msg, run=self.id)
        link, head = await self._routes.wait_for_host(self._key)
        if lost is not None and lost.incarnation is not None:
            head = {**head, "lost": [lost.host, lost.incarnation, lost.silent]}
        kind, body = self._kind, self._body
        if self.host is not None and kind == "resume":
            head = {**head, "again": True}
        self._ask(link.post(kind, {**head, "mode": self._mode}, body))

    def _check_repeatable(self, call: Call, gone: HostGone) -> None:
        """Raise, if the run may have been begun, and is not kept: then it is lost."""
        self._moves += 1
        if call.link.steps or self._kind == "follow" or gone.incarnation is None:
            return
        msg = f"host {gone.host!r}, which had run {self.id}, is lost, and its steps were not kept. With durability='step' it would have gone on elsewhere."
        raise HostLost(msg, run=self.id) from gone

    async def _is_final(self, reply: Reply) -> bool:
        """Whether this is how it has ended; if not, it is to be asked for elsewhere."""
        if reply.code == "ok":
            return True
        if reply.code == "error":
            raise unpack(reply.body)
        if reply.code == "busy":
            seconds = float(unpack(reply.body))
            msg = f"host {self.host!r} has as much to do as it may. Come again in {seconds:g} s, or give the cluster more hosts."
            raise ClusterBusy(msg, retry_after=seconds, run=self.id)
        if reply.code == "moved":
            self._routes.learn(HostList.of(unpack(reply.body)))
        self._moves += 1
        return False

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
                self.cancel()  # who awaited it was cancelled: one that is kept goes on, and can be followed
            raise

    def _decide(self, mode: str) -> None:
        """Tell the host how its consumer takes it."""
        if self._mode != "hold":
            return
        self._mode = mode
        call = self._call
        if call is None or self._task.done():
            return
        if call.link.is_unsent(call):
            call.request.head["mode"] = mode
        elif mode == "await":  # who reads the events says so by reading
            call.link.post("mode", {"of": call.request.id, "mode": mode})

    def cancel(self, mode: CancelMode = "immediate", *, timeout: float | None = None) -> ClusterCancel:
        """End the run, as `Run.cancel` does. Await what is returned to know whether it was cancelled, or had come to its end before."""
        if mode not in _MODES:
            msg = f"cancel({mode!r}): give one of {', '.join(map(repr, _MODES))}."
            raise UsageError(msg, run=self.id)
        self._stop = {"mode": mode, "timeout": timeout}
        if self._call is not None and not self._task.done():
            self._tell_stop(self._call)
        return ClusterCancel(self)

    def _tell_stop(self, call: Call) -> None:
        call.link.post("cancel", {"of": call.request.id, **self._stop})

    async def aclose(self) -> None:
        """Cancel it, if it has not ended, and wait for its end."""
        if not self._task.done():
            self.cancel()
            self._decide("await")
            await asyncio.wait((self._task,))

    # --- events ---

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        if self._mode == "await":
            msg = f"the events of run {self.id} are in the result that it is awaited for. Iterate first, then await."
            raise UsageError(msg, run=self.id)
        self._iterated = True
        self._decide("stream")
        return self._events()

    async def _events(self) -> AsyncIterator[AgentEvent]:
        """All events, from whichever hosts they come. A consumer that leaves before the end cancels the run."""
        ended = False
        try:
            while not self._task.done():
                call = self._call
                if call is None:
                    await self._new_call_or_end()
                    continue
                async with aclosing(self._shown(call)) as shown:  # type: ignore[type-var]  # an async generator
                    async for event in shown:
                        yield event
                await asyncio.wait((call.replied,))
                for event in self._rest_of(call):
                    yield event
                await self._new_call_or_end(call)
            ended = True
            for event in (await self._task).events:  # those that came with the result alone
                if event.seq > self._last_seq:
                    yield event
        finally:
            if not ended and not self._task.done():
                self.cancel()
                self._mode = "await"
                if self._call is not None:
                    self._call.link.post("mode", {"of": self._call.request.id, "mode": "drop"})

    async def _new_call_or_end(self, call: Call | None = None) -> None:
        """Wait until the run is asked for of another host, or has ended."""
        while self._call is call and not self._task.done():
            self._call_changed.clear()
            changed = asyncio.ensure_future(self._call_changed.wait())
            try:
                await asyncio.wait((changed, self._task), return_when=asyncio.FIRST_COMPLETED)
            finally:
                changed.cancel()

    async def _shown(self, call: Call) -> AsyncIterator[AgentEvent]:
        """What one host shows of it, but for what another one has shown before."""
        try:
            async with aclosing(call.events()) as batches:  # type: ignore[type-var]  # an async generator
                async for batch in batches:
                    for event in self._new(read_events(batch), call):
                        yield event
        except HostGone:
            return  # the caller that waits for the reply is told, too

    def _rest_of(self, call: Call) -> list[AgentEvent]:
        """What came with the reply."""
        if call.replied.cancelled() or call.replied.exception() is not None:
            return []
        reply = call.replied.result()
        return list(self._new(read_rest(reply.body), call)) if reply.code in ("ok", "elsewhere") and reply.body else []

    def _new(self, events: list[AgentEvent], call: Call) -> Iterator[AgentEvent]:
        """Those that were not shown before. A message that another host had begun to show comes again, and that is said."""
        for event in events:
            self._moves = 0
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
        """What was streamed of a message is void: it comes again, from another host."""
        piece, self._piece = self._piece, None
        assert piece is not None
        error = ModelRetry(1, "the host was lost while the message was streaming: drop what it has shown", run=self.id)
        return AgentEvent(piece.agent_name, piece.run_path, None, MessageDelta(), None, None, error, piece.seq, piece.timestamp, self.id, piece.invocation_id)


class ClusterCancel:
    """What `ClusterRun.cancel()` returns: awaited, it says whether the run was cancelled (True), or had come to its end before."""

    __slots__ = ("_run",)

    def __init__(self, run: ClusterRun) -> None:
        self._run = run

    def __await__(self) -> Generator[object, None, bool]:
        return self._was_cancelled().__await__()

    async def _was_cancelled(self) -> bool:
        return (await self._run).status is RunStatus.CANCELLED


def _look(task: asyncio.Task[Any]) -> None:
    """A run that is not awaited may fail all the same: that is no error of the program."""
    if not task.cancelled():
        task.exception()
