"""The link of a client to one host: requests out in order, replies back.

A host is reported lost if its process has ended, or if it does not answer within `suspect_seconds`.
That means only that this client cannot reach that incarnation of the host, not that it is dead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from ...codec.packing import unpack
from ...data.chat import new_id
from ...errors import CheckpointError
from ...log import loggers
from ..control import read_control
from ..errors import ClusterBusy
from ..host_list import HostList
from ..limits import Limits, read_limits
from ..link_order import Outbox, Reply, Request, read_replies
from ..transport import HostEndpoint, HostGone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["Call", "HostLink", "Watcher"]

_AT_ONCE: Final = 3
"""The number of link failures in a row after which a responsive host is given up.

Any reply restarts the count.
"""
_BROKEN_SECONDS: Final = 0.5
"""Seconds that a host may take to answer after its link broke.

It is too short for a process that is being restarted, which is not waited for.
"""


class Call:
    """One request that waits for its reply."""

    __slots__ = ("_reading", "link", "on_replied", "replied", "request")

    def __init__(self, link: HostLink, request: Request) -> None:
        self.link = link
        self.request = request
        self.replied: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        # Called at once, before the reply is acknowledged to the host.
        self.on_replied: Callable[[], object] | None = None
        self._reading: asyncio.Timeout | None = None  # the wait for the next batch of events

    async def reply(self) -> Reply:
        """Return the reply. Raise `HostGone`."""
        return await asyncio.shield(self.replied)

    def answer(self, reply: Reply) -> None:
        """Set the reply.

        The remaining events are part of the reply, so a stream that ends later is not waited for.
        """
        if not self.replied.done():
            self.replied.set_result(reply)
            self._tell()
            self._read_within(self.link.limits.suspect_seconds)

    def lose(self, gone: HostGone) -> None:
        """Record that there will be no reply and no event."""
        if not self.replied.done():
            self.replied.set_exception(gone)
            self._tell()
            self._read_within(0)

    def _tell(self) -> None:
        if self.on_replied is not None:
            self.on_replied()

    def _read_within(self, seconds: float) -> None:
        if self._reading is not None:
            self._reading.reschedule(self.replied.get_loop().time() + seconds)

    async def events(self) -> AsyncIterator[bytes]:
        """Yield the batches of events of the run, for one reader.

        The stream from an unreachable machine may never report its end.
        """
        stream = self.link.endpoint.events(self.link.client, self.request.id)
        async with aclosing(stream) as batches:  # type: ignore[type-var]
            while not (self.replied.done() and self.replied.exception()):
                try:
                    async with asyncio.timeout(
                        self.link.limits.suspect_seconds if self.replied.done() else None
                    ) as self._reading:
                        batch = await anext(batches)
                except (StopAsyncIteration, TimeoutError):
                    return
                finally:
                    self._reading = None
                yield batch


class Watcher:
    """The callbacks and the limits that the links of one client share."""

    __slots__ = ("behind", "limits", "refused", "run_task", "welcomed")

    def __init__(
        self,
        limits: Limits,
        welcomed: Callable[[HostLink, HostList], object],
        behind: Callable[[HostLink, int], object],
        run_task: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]],
        refused: Callable[[ClusterBusy], object],
    ) -> None:
        self.limits = limits
        self.welcomed = welcomed  # a link was opened, and its host has sent its list
        self.behind = behind  # a host has a list of that number
        self.run_task = run_task
        self.refused = refused  # a host has its maximum number of clients


class HostLink:
    """The connection of one client to one host."""

    def __init__(self, endpoint: HostEndpoint, client: str, watcher: Watcher) -> None:
        self.endpoint = endpoint
        self.client = client
        self.incarnation: str | None = None
        self.keeps = False  # whether the host stores its runs
        self.steps = False  # and each of their steps
        self._watcher = watcher
        self._outbox = Outbox()
        self._calls: dict[int, Call] = {}
        self._link = ""  # the id of the open link
        self._flushing = False
        self._open: asyncio.Timeout | None = None  # expires when replies are lost
        self._task: asyncio.Task[None] | None = None
        self._progress = 0

    @property
    def host(self) -> str:
        return self.endpoint.host

    @property
    def limits(self) -> Limits:
        return self._watcher.limits

    @property
    def is_idle(self) -> bool:
        return not self._calls

    def post(self, kind: str, head: dict[str, Any], body: bytes = b"") -> Call:
        """Send a request at the end of this loop iteration, with the others of the iteration."""
        call = Call(self, self._outbox.post(kind, head, body))
        self._calls[call.request.id] = call
        call.replied.add_done_callback(_read)
        if self._task is None or self._task.done():
            self._task = self._watcher.run_task(self._live(), f"the link to host {self.host}")
        self._flush_soon()
        return call

    def is_unsent(self, call: Call) -> bool:
        """Return whether the head of the call may still be changed."""
        return self._outbox.is_unsent(call.request.id)

    def _flush_soon(self) -> None:
        if not self._flushing and self._link:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self, *, even_empty: bool = False) -> None:
        self._flushing = False
        while (
            self._link
            and (batch := self._outbox.take_batch(self.limits.batch_most, even_empty=even_empty))
            is not None
        ):
            even_empty = False
            sent = self.endpoint.send(self.client, self._link, *batch)
            if sent is not None:
                name = f"a batch for host {self.host}"
                self._watcher.run_task(self._hear_prompt(sent, self._link), name)

    async def _hear_prompt(self, sent: Awaitable[bytes], link: str) -> None:
        """Process the replies that return at once.

        If they may be lost, another link brings them.
        """
        try:
            batch = await sent
            if batch:
                self._hear(batch)
        except Exception as error:  # noqa: BLE001 -- a transport error, or damaged data
            loggers.cluster.debug("Replies of host %s are lost: %s", self.host, error)
            if self._link == link and self._open is not None:
                self._open.reschedule(asyncio.get_running_loop().time())

    # --- the open link ---

    async def _live(self) -> None:
        """Hold a link open as long as a call waits, and a while longer."""
        failures = 0
        beat = self._watcher.run_task(self._beat(), f"the beat of the link to host {self.host}")
        try:
            while True:
                before = self._progress
                try:
                    await self._be_open()
                    gone = HostGone(
                        self.host,
                        self.incarnation,
                        f"the connection to host {self.host!r} was lost",
                    )
                except HostGone as problem:
                    gone = HostGone(self.host, self.incarnation, str(problem))
                except TimeoutError:
                    gone = HostGone(self.host, self.incarnation, silent=True)
                except ClusterBusy as problem:
                    gone = HostGone(self.host, None, str(problem))
                    self._give_up(gone)
                    self._watcher.refused(problem)
                    return
                except CheckpointError as problem:
                    gone = HostGone(self.host, self.incarnation, str(problem))
                self._link = ""
                failures = 0 if self._progress > before else failures + 1
                if not self._calls:
                    return
                if failures >= _AT_ONCE or gone.silent or not await self._is_there(_BROKEN_SECONDS):
                    self._give_up(gone)
                    return
        finally:
            self._link = ""
            beat.cancel()
            if self._calls:
                self._give_up(
                    HostGone(
                        self.host,
                        self.incarnation,
                        f"the connection to host {self.host!r} was closed",
                    )
                )

    async def _be_open(self) -> None:
        """Open a link, and process its replies."""
        link = new_id()
        stream = self.endpoint.replies(self.client, link, self.incarnation)
        async with aclosing(stream) as replies:  # type: ignore[type-var]
            async with asyncio.timeout(self.limits.suspect_seconds):
                async for welcome in replies:
                    self._welcome(unpack(welcome))
                    break
                else:
                    return
            self._link = link
            self._outbox.reopen()
            self._flush()
            try:
                async with asyncio.timeout(None) as self._open:
                    async for batch in replies:
                        self._hear(batch)
            except TimeoutError:
                return  # replies were lost
            finally:
                self._open = None

    def _welcome(self, said: dict[str, Any]) -> None:
        """Process the host's welcome.

        If it is another incarnation, or has forgotten this client, earlier requests will have no
        answer.
        """
        if "refused" in said:
            msg = (
                f"host {self.host!r} has {said['refused']} clients, which is its limit. Try "
                "again later, or start the cluster with a larger max_clients=."
            )
            raise ClusterBusy(msg)
        self._progress += 1
        former, self.incarnation = self.incarnation, said["incarnation"]
        self.steps, self.keeps = said["steps"], said["keeps"]
        self._watcher.limits = read_limits(said["limits"])
        if former is not None and not said["known"]:
            old = set(self._calls) - {one for one in self._calls if self._outbox.is_unsent(one)}
            self._give_up(
                HostGone(
                    self.host, former, f"host {self.host!r} was restarted and has lost its requests"
                ),
                old,
            )
        self._watcher.welcomed(self, HostList.of(said["list"]))

    def _hear(self, batch: bytes) -> None:
        self._progress += 1
        number, replies = read_replies(batch)
        leaving = False
        for request, reply in self._outbox.receive(replies):
            call = self._calls.pop(request.id, None)
            if call is not None:
                call.answer(reply)
            leaving = leaving or reply.code == "elsewhere"
        self._watcher.behind(self, number)
        if leaving:
            # The host is being drained, and waits for the acknowledgement of its answers.
            self._flush_soon()

    async def _is_there(self, seconds: float) -> bool:
        """Return whether that incarnation of the host answers in time, with a responsive loop."""
        try:
            async with asyncio.timeout(min(seconds, self.limits.suspect_seconds)):
                said = read_control(await self.endpoint.control())
        except (HostGone, TimeoutError, CheckpointError):
            return False
        return said.incarnation == self.incarnation and said.idle < self.limits.hang_seconds

    async def _beat(self) -> None:
        """Send a heartbeat periodically, and check that the host answers."""
        pause = min(self.limits.link_seconds / 3, self.limits.suspect_seconds / 2)
        quiet = 0
        while True:
            before = self._progress
            await asyncio.sleep(pause)
            if not self._link:
                continue
            self._flush(even_empty=True)
            quiet = quiet + 1 if self._progress == before and self._calls else 0
            if (
                quiet
                and not await self._is_there(self.limits.suspect_seconds)
                and self._link
                and self._progress == before
            ):
                self._give_up(
                    HostGone(
                        self.host,
                        self.incarnation,
                        f"host {self.host!r} does not answer heartbeats",
                        silent=True,
                    )
                )
                self.close()

    def _give_up(self, gone: HostGone, ids: set[int] | None = None) -> None:
        """Fail the calls that wait for a reply."""
        for request_id in list(self._calls) if ids is None else ids:
            call = self._calls.pop(request_id)
            self._outbox.pending.pop(request_id, None)
            call.lose(gone)

    def close(self) -> None:
        """Close the link. Calls that wait for a reply fail."""
        if self._task is not None:
            self._task.cancel()
            self._task = None


def _read(replied: asyncio.Future[Reply]) -> None:
    """Mark the error of a reply as retrieved: possibly no caller waits for it."""
    if not replied.cancelled():
        replied.exception()
