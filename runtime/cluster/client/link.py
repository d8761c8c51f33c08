"""The link of a client to one host: requests out in order, replies back, again and again until the host is gone.

Owns: when the link is opened, what is sent over it, and the finding that the host is lost: its process has ended, or it does not say within `suspect_seconds`
that it is there. It must never say that a host is dead: only that this client cannot reach that life of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from ...codec.packing import unpack
from ...data.chat import new_id
from ...errors import CheckpointError
from ..control import read_control
from ..host_list import HostList
from ..limits import Limits, read_limits
from ..link_order import Outbox, Reply, Request, read_replies
from ..transport import HostDoor, HostGone

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

__all__ = ["Call", "HostLink", "Watcher"]

_AT_ONCE: Final = 3
"""How often a link may break in a row, and nothing come over it, while its host says that it is there."""
_BROKEN_SECONDS: Final = 0.5
"""For how long a host may take to say that it is there, when the way to it has broken: a process that is being started again is not waited for."""


class Call:
    """One request that waits for its reply."""

    __slots__ = ("_reading", "link", "replied", "request")

    def __init__(self, link: HostLink, request: Request) -> None:
        self.link = link
        self.request = request
        self.replied: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._reading: asyncio.Timeout | None = None  # the wait for the next batch of events

    async def reply(self) -> Reply:
        """Raises `HostGone`."""
        return await asyncio.shield(self.replied)

    def answer(self, reply: Reply) -> None:
        """Say what came of it. The rest of its events is in the reply: a stream that ends later than this is not waited for."""
        if not self.replied.done():
            self.replied.set_result(reply)
            self._read_within(self.link.limits.suspect_seconds)

    def lose(self, gone: HostGone) -> None:
        """Say that there will be no reply, and no event."""
        if not self.replied.done():
            self.replied.set_exception(gone)
            self._read_within(0)

    def _read_within(self, seconds: float) -> None:
        if self._reading is not None:
            self._reading.reschedule(self.replied.get_loop().time() + seconds)

    async def events(self) -> AsyncIterator[bytes]:
        """Of the run that was asked for: the stream from a machine that is away need not say that it has ended. For one reader."""
        async with aclosing(self.link.door.events(self.link.client, self.request.id)) as batches:  # type: ignore[type-var]  # an async generator
            while not (self.replied.done() and self.replied.exception()):
                try:
                    async with asyncio.timeout(self.link.limits.suspect_seconds if self.replied.done() else None) as self._reading:
                        batch = await anext(batches)
                except (StopAsyncIteration, TimeoutError):
                    return
                finally:
                    self._reading = None
                yield batch


class Watcher:
    """What the links of one client tell it, and what they get from it."""

    __slots__ = ("behind", "limits", "run_task", "welcomed")

    def __init__(
        self,
        limits: Limits,
        welcomed: Callable[[HostLink, HostList], object],
        behind: Callable[[HostLink, int], object],
        run_task: Callable[[Coroutine[Any, Any, None], str], asyncio.Task[None]],
    ) -> None:
        self.limits = limits
        self.welcomed = welcomed  # a link was opened, and its host says which list it has
        self.behind = behind  # a host has a list of that number
        self.run_task = run_task


class HostLink:
    """The way of one client to one host."""

    def __init__(self, door: HostDoor, client: str, watcher: Watcher) -> None:
        self.door = door
        self.client = client
        self.incarnation: str | None = None
        self.keeps = False  # whether the host's runs are kept
        self.steps = False  # and whether each of their steps is
        self._watcher = watcher
        self._outbox = Outbox()
        self._calls: dict[int, Call] = {}
        self._link = ""  # the one that is open
        self._flushing = False
        self._task: asyncio.Task[None] | None = None
        self._progress = 0

    @property
    def host(self) -> str:
        return self.door.host

    @property
    def limits(self) -> Limits:
        return self._watcher.limits

    @property
    def is_idle(self) -> bool:
        return not self._calls

    def post(self, kind: str, head: dict[str, Any], body: bytes = b"") -> Call:
        """Ask. It is sent at the end of this turn of the loop, with what else was asked in it."""
        call = Call(self, self._outbox.post(kind, head, body))
        self._calls[call.request.id] = call
        call.replied.add_done_callback(_read)
        if self._task is None or self._task.done():
            self._task = self._watcher.run_task(self._live(), f"the link to host {self.host}")
        self._flush_soon()
        return call

    def is_unsent(self, call: Call) -> bool:
        """Whether its head may still be changed."""
        return self._outbox.is_unsent(call.request.id)

    def _flush_soon(self) -> None:
        if not self._flushing and self._link:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self, *, even_empty: bool = False) -> None:
        self._flushing = False
        while self._link and (batch := self._outbox.take_batch(self.limits.batch_most, even_empty=even_empty)) is not None:
            even_empty = False
            self.door.send(self.client, self._link, *batch)

    # --- living ---

    async def _live(self) -> None:
        """Keep a link open as long as there is something to wait for, and a while longer."""
        failures = 0
        beat = self._watcher.run_task(self._beat(), f"the beat of the link to host {self.host}")
        try:
            while True:
                before = self._progress
                try:
                    await self._be_open()
                    gone = HostGone(self.host, self.incarnation, f"the link to host {self.host!r} was lost")
                except HostGone as problem:
                    gone = HostGone(self.host, self.incarnation, str(problem))
                except TimeoutError:
                    gone = HostGone(self.host, self.incarnation, silent=True)
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
                self._give_up(HostGone(self.host, self.incarnation, f"the link to host {self.host!r} was closed"))

    async def _be_open(self) -> None:
        """Open a link, and hear what comes over it."""
        link = new_id()
        async with aclosing(self.door.replies(self.client, link, self.incarnation)) as replies:  # type: ignore[type-var]  # an async generator
            async with asyncio.timeout(self.limits.suspect_seconds):
                async for welcome in replies:
                    self._welcome(unpack(welcome))
                    break
                else:
                    return
            self._link = link
            self._outbox.reopen()
            self._flush()
            async for batch in replies:
                self._hear(batch)

    def _welcome(self, said: dict[str, Any]) -> None:
        """The host says who it is. If it is another life, or has forgotten this client, what it was asked before has no answer."""
        self._progress += 1
        former, self.incarnation = self.incarnation, said["incarnation"]
        self.steps, self.keeps = said["steps"], said["keeps"]
        self._watcher.limits = read_limits(said["limits"])
        if former is not None and not said["known"]:
            old = set(self._calls) - {one for one in self._calls if self._outbox.is_unsent(one)}
            self._give_up(HostGone(self.host, former, f"host {self.host!r} has begun another life"), old)
        self._watcher.welcomed(self, HostList.of(said["list"]))

    def _hear(self, batch: bytes) -> None:
        self._progress += 1
        number, replies = read_replies(batch)
        for request, reply in self._outbox.receive(replies):
            call = self._calls.pop(request.id, None)
            if call is not None:
                call.answer(reply)
        self._watcher.behind(self, number)

    async def _is_there(self, seconds: float) -> bool:
        """Whether that life of the host says within so many seconds that it is there, and its loop turns."""
        try:
            async with asyncio.timeout(min(seconds, self.limits.suspect_seconds)):
                said = read_control(await self.door.control())
        except (HostGone, TimeoutError, CheckpointError):
            return False
        return said.incarnation == self.incarnation and said.idle < self.limits.hang_seconds

    async def _beat(self) -> None:
        """Say that this client is there, and look whether the host is."""
        pause = min(self.limits.link_seconds / 3, self.limits.suspect_seconds / 2)
        quiet = 0
        while True:
            before = self._progress
            await asyncio.sleep(pause)
            if not self._link:
                continue
            self._flush(even_empty=True)
            quiet = quiet + 1 if self._progress == before and self._calls else 0
            if quiet and not await self._is_there(self.limits.suspect_seconds) and self._link and self._progress == before:
                self._give_up(HostGone(self.host, self.incarnation, f"host {self.host!r} does not say that it is there", silent=True))
                self.close()

    def _give_up(self, gone: HostGone, ids: set[int] | None = None) -> None:
        """The callers that wait for a reply are told that there will be none."""
        for request_id in list(self._calls) if ids is None else ids:
            call = self._calls.pop(request_id)
            self._outbox.pending.pop(request_id, None)
            call.lose(gone)

    def close(self) -> None:
        """End the link. What waits for a reply is told."""
        if self._task is not None:
            self._task.cancel()
            self._task = None


def _read(replied: asyncio.Future[Reply]) -> None:
    """A reply that no caller waits for any more is no error."""
    if not replied.cancelled():
        replied.exception()
