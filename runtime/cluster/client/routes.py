"""The routes of a client's requests: the list of hosts, the links, the unreachable hosts.

It chooses the host for a key. A host that could not be reached is not considered dead: it is used
again as soon as it answers.
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
from ..errors import ClusterBusy, ClusterError
from ..host_list import HostList
from ..limits import Limits
from ..transport import HostGone
from .line import Lines
from .link import HostLink, Watcher

if TYPE_CHECKING:
    from ..transport import Transport

__all__ = ["Routes"]

_FIRST_LOOK: Final = 0.05
_LAST_LOOK: Final = 1.0
"""The maximum pause in seconds between two checks of a host that did not answer."""


class Routes:
    """The routes of one client."""

    def __init__(
        self, transport: Transport, cluster: str, limits: Limits, *, is_of_host: bool = False
    ) -> None:
        self.transport = transport
        self.cluster = cluster
        self.client = new_id()
        self.hosts = HostList()
        self._links: dict[str, HostLink] = {}
        # The hosts that cannot be reached, and the incarnation that was lost.
        self._down: dict[str, str | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._watcher = Watcher(
            limits, self._welcomed, self._behind, self.run_task, self._was_refused
        )
        self._asking = False
        self._has_entered = False
        self._refused: ClusterBusy | None = None  # the error of the last host with too many clients
        self._changed = asyncio.Event()
        self.serial = time.monotonic_ns()  # the creation order of clients
        self.is_of_host = is_of_host
        self.closed = False
        self.lines = Lines(self)

    @property
    def limits(self) -> Limits:
        return self._watcher.limits

    def run_task(self, work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
        """Start a task that ends when the client is closed, at the latest."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- the list ---

    def learn(self, hosts: HostList) -> None:
        """Use a list if it is newer."""
        if hosts.number > self.hosts.number:
            self._log_changes(self.hosts, hosts)
            self.hosts = hosts
            names = set(hosts.names())
            for name in [name for name in self._down if name not in names]:
                del self._down[name]
            for name in [
                name for name, link in self._links.items() if name not in names and link.is_idle
            ]:
                self._links.pop(name).close()
            self.changed()

    def _log_changes(self, before: HostList, after: HostList) -> None:
        """Log each host that has joined, is being drained, or has left."""
        known = (
            {one.name: one for one in before.members}
            if before.number
            else {one.name: one for one in after.members}
        )
        for one in after.members:
            former = known.pop(one.name, None)
            if former is None:
                loggers.cluster.info(
                    "Host %s of cluster %s has joined, with version %s.",
                    one.name,
                    self.cluster,
                    one.version,
                )
            elif one.is_draining and not former.is_draining:
                loggers.cluster.info(
                    "Host %s of cluster %s is being drained.", one.name, self.cluster
                )
        for name in known:
            loggers.cluster.info("Host %s of cluster %s has left.", name, self.cluster)

    def _was_refused(self, busy: ClusterBusy) -> None:
        self._refused = busy

    def _welcomed(self, link: HostLink, hosts: HostList) -> None:
        self._refused = None
        self._down.pop(link.host, None)
        self.learn(hosts)
        self.changed()

    def _behind(self, link: HostLink, number: int) -> None:
        """Request the list of a host if its number is higher."""
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
            loggers.cluster.debug(
                "The list of the hosts could not be had from host %s: %s", link.host, error
            )
        finally:
            self._asking = False

    def changed(self) -> None:
        """Wake the tasks that wait for a change of the hosts' state."""
        self._changed.set()

    async def wait_changed(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def is_down(self, host: str) -> bool:
        """Return whether this client cannot reach the host at present."""
        return host in self._down

    async def refresh(self, host: str) -> None:
        """Learn the newest list from a host, which reads it from the store."""
        await self._ask_for_list(self.link(host))

    # --- the choice ---

    def link(self, host: str) -> HostLink:
        found = self._links.get(host)
        if found is None:
            found = self._links[host] = HostLink(
                self.transport.endpoint(host), self.client, self._watcher
            )
        return found

    def choose(
        self, key: str, *, stay_with: str | None = None
    ) -> tuple[HostLink, dict[str, Any]] | None:
        """Return the host for a key and the head of its request; None if no host can be reached.

        `stay_with` is the host that has other requests of this key, which must not be overtaken. If
        it cannot be reached, None is returned.
        """
        placement = self.hosts.placement
        name = placement.first_of(key, self._down) if stay_with is None else stay_with
        if name is None or name in self._down:
            return None
        head: dict[str, Any] = {"key": key, "list": self.hosts.number}
        if (self._down or stay_with is not None) and placement.first(key) != name:
            # The first host for the key is unreachable, or another host has earlier requests.
            head["any"] = True
        return self.link(name), head

    async def wait_for_host(self, key: str) -> tuple[HostLink, dict[str, Any]]:
        """Wait until a host for a key is available. Raise `ClusterError` after too long."""
        seconds = self.limits.link_seconds
        try:
            async with asyncio.timeout(seconds):
                while (found := self.choose(key)) is None:
                    await self.wait_changed()
        except TimeoutError:
            if self._refused is not None:
                raise ClusterBusy(str(self._refused)) from None
            msg = (
                f"no host of cluster {self.cluster!r} has answered for {seconds:g} s. See `python "
                f"-m offbook.runtime.cluster status --name {self.cluster}`."
            )
            raise ClusterError(msg) from None
        return found

    def lost(self, gone: HostGone) -> None:
        """Record that a host cannot be reached. Other hosts are used until it answers."""
        if gone.host not in self._down and not self.closed:
            self._down[gone.host] = gone.incarnation
            self.changed()
            loggers.cluster.warning(
                "Host %s of cluster %s cannot be reached: %s. Other hosts are asked until it "
                "answers.",
                gone.host,
                self.cluster,
                gone,
            )
            self.run_task(self._look_at(gone.host), f"the looks at host {gone.host}")

    async def _look_at(self, host: str) -> None:
        """Poll a host, with a growing delay, until it answers."""
        delay = _FIRST_LOOK
        while host in self._down:
            await asyncio.sleep(delay)
            delay = min(2 * delay, _LAST_LOOK)
            said = await self.control(host)
            if (
                said is not None
                and said.state == "up"
                and (said.incarnation != self._down.get(host) or said.idle < 1)
            ):
                if host in self._down:
                    loggers.cluster.info("Host %s of cluster %s answers again.", host, self.cluster)
                self._down.pop(host, None)
                self.changed()

    async def control(self, host: str) -> Control | None:
        """Return a host's control answer, or None if it does not answer."""
        try:
            async with asyncio.timeout(self.limits.suspect_seconds):
                return read_control(await self.transport.endpoint(host).control())
        except (HostGone, TimeoutError, CheckpointError):
            return None

    async def enter(self, names: list[str]) -> None:
        """Find a host that answers, and learn the list of hosts from it."""
        seconds = self.limits.link_seconds
        asking = {
            self.run_task(self._ask_for_list(self.link(name)), f"the list from host {name}")
            for name in names
        }
        try:
            async with asyncio.timeout(seconds):
                # The welcome may contain an older list than the answer to this request.
                while asking and not self._has_entered:
                    _, asking = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            asking.clear()
        if not self._has_entered and self._refused is not None:
            raise ClusterBusy(str(self._refused))
        if not self._has_entered or not self.hosts.placement.names:
            msg = (
                f"none of the {len(names)} hosts of cluster {self.cluster!r} has answered within "
                f"{seconds:g} s. Check the nodes with `ray status`."
            )
            raise ClusterError(msg)

    async def close(self) -> None:
        """Close the client. Notify the hosts that can be reached."""
        self.closed = True
        self.changed()
        goodbyes = [
            link.post("bye", {})
            for link in self._links.values()
            if link.incarnation is not None and link.host not in self._down
        ]
        if goodbyes:
            await asyncio.sleep(0)  # the batches are sent at the end of this loop iteration
        tasks = [task for task in self._tasks if task is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._links.clear()
