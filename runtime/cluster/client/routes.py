"""Where a client sends what it asks: the list of the hosts as it knows it, the links, and the hosts that it cannot reach.

Owns: the choice of a host for a key. It must never hold that a host is dead: one that could not be reached is tried again as soon as it answers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final

from ...codec.packing import pack, unpack
from ...data.chat import new_id
from ...errors import CheckpointError
from ...log import loggers
from ..control import Control, read_control
from ..errors import ClusterError
from ..host_list import HostList
from ..limits import Limits
from ..transport import HostGone
from .link import Call, HostLink, Watcher

if TYPE_CHECKING:
    from ..transport import Transport

__all__ = ["Routes"]

_FIRST_LOOK: Final = 0.05
_LAST_LOOK: Final = 1.0
"""Seconds between two questions to a host that did not answer."""


class Routes:
    """Of one client."""

    def __init__(self, transport: Transport, cluster: str, limits: Limits) -> None:
        self.transport = transport
        self.cluster = cluster
        self.client = new_id()
        self.hosts = HostList()
        self._links: dict[str, HostLink] = {}
        self._down: dict[str, str | None] = {}  # the hosts that cannot be reached, and the life that was lost
        self._tasks: set[asyncio.Task[None]] = set()
        self._watcher = Watcher(limits, self._welcomed, self._behind, self.run_task)
        self._asking = False
        self._has_entered = False
        self._changed = asyncio.Event()
        self.serial = time.monotonic_ns()  # the order in which clients were made
        self.closed = False

    @property
    def limits(self) -> Limits:
        return self._watcher.limits

    def run_task(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Have a task that ends when the client is closed, at the latest."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- the list ---

    def learn(self, hosts: HostList) -> None:
        """Take a list, if it is newer."""
        if hosts.number > self.hosts.number:
            self.hosts = hosts
            names = set(hosts.names())
            for name in [name for name in self._down if name not in names]:
                del self._down[name]
            for name in [name for name, link in self._links.items() if name not in names and link.is_idle]:
                self._links.pop(name).close()
            self._changed.set()

    def _welcomed(self, link: HostLink, hosts: HostList) -> None:
        self._down.pop(link.host, None)
        self.learn(hosts)
        self._changed.set()

    def _behind(self, link: HostLink, number: int) -> None:
        """A host has another list."""
        if number > self.hosts.number and not self._asking:
            self._asking = True
            self.run_task(self._ask_for_list(link), "the list of the hosts")

    async def _ask_for_list(self, link: HostLink) -> None:
        try:
            reply = await link.post("list", {}, pack(None)).reply()
            if reply.code == "ok":
                self.learn(HostList.of(unpack(reply.body)))
                self._has_entered = True
        except (HostGone, CheckpointError) as error:
            loggers.cluster.debug("The list of the hosts could not be had from host %s: %s", link.host, error)
        finally:
            self._asking = False

    async def refresh(self, host: str) -> None:
        """Learn the newest list from a host, which reads it anew."""
        await self._ask_for_list(self.link(host))

    # --- the choice ---

    def link(self, host: str) -> HostLink:
        found = self._links.get(host)
        if found is None:
            found = self._links[host] = HostLink(self.transport.door(host), self.client, self._watcher)
        return found

    def choose(self, key: str) -> tuple[HostLink, dict[str, Any]] | None:
        """The host for a key, and what is to be said to it of the choice. None if no host can be reached."""
        placement = self.hosts.placement
        name = placement.first_of(key, self._down)
        if name is None:
            return None
        head: dict[str, Any] = {"key": key, "list": self.hosts.number}
        if self._down and placement.first(key) != name:
            head["any"] = True  # it belongs to a host that cannot be reached
        return self.link(name), head

    async def wait_for_host(self, key: str) -> tuple[HostLink, dict[str, Any]]:
        """The same, when there is one. Raises `ClusterError` if there is none for too long."""
        seconds = self.limits.link_seconds
        try:
            async with asyncio.timeout(seconds):
                while (found := self.choose(key)) is None:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            msg = f"no host of cluster {self.cluster!r} has answered for {seconds:g} s. See `python -m understudy.runtime.cluster status {self.cluster}`."
            raise ClusterError(msg) from None
        return found

    def lost(self, gone: HostGone) -> None:
        """A host cannot be reached: others are asked until it answers."""
        if gone.host not in self._down and not self.closed:
            self._down[gone.host] = gone.incarnation
            self.run_task(self._look_at(gone.host), f"the looks at host {gone.host}")

    async def _look_at(self, host: str) -> None:
        """Ask it again and again whether it is there."""
        delay = _FIRST_LOOK
        while host in self._down:
            await asyncio.sleep(delay)
            delay = min(2 * delay, _LAST_LOOK)
            said = await self.control(host)
            if said is not None and said.state == "up" and (said.incarnation != self._down.get(host) or said.idle < 1):
                self._down.pop(host, None)
                self._changed.set()

    async def control(self, host: str) -> Control | None:
        """What a host says of itself; None if it does not answer."""
        try:
            async with asyncio.timeout(self.limits.suspect_seconds):
                return read_control(await self.transport.door(host).control())
        except (HostGone, TimeoutError, CheckpointError):
            return None

    def ask(self, host: str, kind: str, head: dict[str, Any], body: bytes) -> Call:
        return self.link(host).post(kind, head, body)

    async def enter(self, names: list[str]) -> None:
        """Find a host that answers, and learn from it which ones there are."""
        seconds = self.limits.link_seconds
        asking = {self.run_task(self._ask_for_list(self.link(name)), f"the list from host {name}") for name in names}
        try:
            async with asyncio.timeout(seconds):
                while asking and not self._has_entered:  # what a host says of itself may be older than what it reads when it is asked
                    _, asking = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            asking.clear()
        if not self._has_entered or not self.hosts.placement.names:
            msg = f"none of the {len(names)} hosts of cluster {self.cluster!r} has answered within {seconds:g} s."
            raise ClusterError(msg)

    async def close(self) -> None:
        """Leave. The hosts are told, as far as they can be."""
        self.closed = True
        goodbyes = [link.post("bye", {}) for link in self._links.values() if link.incarnation is not None and link.host not in self._down]
        if goodbyes:
            await asyncio.sleep(0)  # the batches go out at the end of this turn
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._links.clear()
