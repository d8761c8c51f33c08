"""One incarnation of a host: from its entry into the cluster to its end.

Its steps are: the factory, the owner in the store, the list, recovery, up; and in reverse at the
end. When its owner is lost in the store, this incarnation is over, and another one starts
(`life.py`). It never answers a request that was sent to another incarnation.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...codec.packing import pack
from ...data.chat import new_id
from ...durability.lease import Lease
from ...durability.leases import leases_of
from ...durability.store_access import StoreAccess
from ...durability.store_keys import cluster_host_key, cluster_underlay_key
from ...errors import UsageError
from ...log import loggers
from ...runner import Runner
from ...stores import JournalStore, MemoryStore, SQLiteStore
from ...stores.writes import Put
from ..client.refs import enter_client
from ..client.routes import Routes
from ..host_list import HostList, ListKeeper, Member
from ..names import load
from .actors import HostActors
from .clients import Clients
from .requests import Requests
from .runs import HostRuns
from .takeover import Takeover

if TYPE_CHECKING:
    from ...system.system import ActorSystem
    from ..control import ControlBoard
    from ..spec import ClusterSpec
    from ..transport import Transport

__all__ = ["ClusterHost"]

_FORMAT: Final = 1
_MEMORY: Final = Path("/proc/self/statm")
_TICK_SECONDS: Final = 0.25
_RECEIVED_SECONDS: Final = 1.0
"""Seconds that a drained host waits until its clients have its last answers.

A client without an answer gets it from the store.
"""
_REQUEST_SECONDS: Final = 10.0
"""Seconds that the reader of a run's events waits for the run's request.

The request travels separately.
"""


class ClusterHost:
    """One incarnation of a host."""

    clients: Clients
    runs: HostRuns
    actors: HostActors
    takeover: Takeover
    hosts: ListKeeper

    def __init__(
        self,
        spec: ClusterSpec,
        name: str,
        system: ActorSystem,
        transport: Transport,
        board: ControlBoard,
    ) -> None:
        self.spec = spec
        self.name = name
        self.system = system
        self.incarnation = new_id()
        self.ended = asyncio.Event()
        self._transport = transport
        self._board = board
        self._opened = AsyncExitStack()
        self._tasks: set[asyncio.Task[None]] = set()
        self._lease: Lease | None = None
        self._is_up = False

    # --- start ---

    async def begin(self) -> None:
        """Enter the cluster. Errors are raised, and `end()` must be called in any case."""
        board = self._board
        board.incarnation, board.state = self.incarnation, "starting"
        runner = await self._make_runner()
        store = runner.store
        assert isinstance(store, JournalStore)
        access = StoreAccess(store)
        self.hosts = ListKeeper(store, self.spec.cluster)
        await self._be_owner(store, access)
        self.actors = HostActors(self.system, self.spec.allow)
        self.takeover = Takeover(self.spec, self.name, runner, store, self.hosts, self._transport)
        self.runs = HostRuns(self.spec, runner, self.spawn_task, self.takeover.look_for)
        self.clients = Clients(
            self.spec.limits, lambda: self.hosts.current.number, self.runs.client_left
        )
        self._requests = Requests(self)
        self._routes = Routes(self._transport, self.spec.cluster, self.spec.limits, is_of_host=True)
        await self.hosts.change(lambda hosts: hosts.put(Member(self.name, self.spec.version)))
        self._routes.learn(self.hosts.current)
        enter_client(self._routes)  # for refs in messages, and for `Cluster.current()`
        self.keeps_steps = runner.durability == "step"
        self._is_up = True
        board.state, board.problem = "up", None
        self.spawn_task(self._tick(), f"the ticks of host {self.name}")
        self.spawn_task(self._sweep(), f"the looks of host {self.name}")
        loggers.cluster.info("Host %s is up, as %s.", self.name, self.incarnation)

    async def _make_runner(self) -> Runner:
        """Return the factory's Runner, if a cluster can use it."""
        factory = self.spec.factory
        made = load(factory, "Cluster.start")
        if not callable(made):
            msg = (
                f"Cluster.start({factory!r}): the factory must be an async function decorated "
                f"with @asynccontextmanager, got a {type(made).__name__}."
            )
            raise UsageError(msg)
        entering = made(self.system)
        if not hasattr(entering, "__aenter__"):
            msg = (
                f"Cluster.start({factory!r}): the factory must return an async context manager, "
                f"but returns a {type(entering).__name__}. Decorate it with "
                "@asynccontextmanager, and yield a Runner."
            )
            raise UsageError(msg)
        runner = await self._opened.enter_async_context(entering)
        if not isinstance(runner, Runner):
            msg = (
                f"Cluster.start({factory!r}): the factory must yield a Runner, but yields a "
                f"{type(runner).__name__}. Yield Runner(agent, system=system, store=...)."
            )
            raise UsageError(msg)
        if runner.system is not self.system:
            msg = (
                f"Cluster.start({factory!r}): the Runner must use the system that the "
                "factory receives. Write Runner(..., system=system)."
            )
            raise UsageError(msg)
        self._check_store(runner.store)
        version = self.spec.version
        if runner.version is not None and runner.version != version:
            msg = (
                f"Cluster.start({factory!r}): version must be that of its Runner, got {version!r} "
                f"and {runner.version!r}. "
                "Leave it out in the factory: its Runner gets the cluster's."
            )
            raise UsageError(msg)
        runner.be_host(version, self.spec.limits.max_attempts, is_pinned=self.spec.pin)
        return runner

    def _check_store(self, store: object) -> None:
        factory, where = (
            self.spec.factory,
            "Pass its Runner a PostgresStore(dsn) or RedisStore(url)",
        )
        if store is None:
            msg = (
                f"Cluster.start({factory!r}): its Runner must have a store. The hosts find each "
                f"other in the store. {where}."
            )
            raise UsageError(msg)
        if isinstance(store, MemoryStore):
            msg = (
                f"Cluster.start({factory!r}): the store must be readable from all hosts, but a "
                f"MemoryStore is in one process. {where}."
            )
            raise UsageError(msg)
        if isinstance(store, SQLiteStore) and self._board.node != self.spec.node:
            msg = (
                f"Cluster.start({factory!r}): the store must be readable from all nodes, but an "
                f"SQLiteStore is a file on one machine, and host {self.name!r} is on another "
                f"node than the starter. {where}."
            )
            raise UsageError(msg)
        StoreAccess(store).require_fences(f"Cluster.start({factory!r})")

    async def _be_owner(self, store: JournalStore, access: StoreAccess) -> None:
        """End the owner of this host's last incarnation, and take its place.

        From then on, this incarnation lasts as long as its owner.
        """
        await self._be_the_only_cluster(store)
        key = cluster_host_key(self.spec.cluster, self.name)
        former = await store.holder(key)
        if former is not None:
            await store.revoke(former)
        self._lease = Lease(key, f"the host {self.name}", self._is_lost)
        if not await leases_of(self.system).take(
            access, self._lease, [Put(key, self.incarnation.encode())]
        ):
            msg = (
                f"another process already is the host {self.name!r} of cluster "
                f"{self.spec.cluster!r} in this store. Two clusters must not share both: pass "
                "another name or another store."
            )
            raise UsageError(msg)

    async def _be_the_only_cluster(self, store: JournalStore) -> None:
        """Claim the cluster's name in this store for the Ray cluster of this host.

        Raises `UsageError` if a living Ray cluster has it.

        A lost Ray cluster has the name until the leases of its hosts have expired.
        """
        name, own = self.spec.cluster, self._transport.place().underlay.encode()
        key, until = (
            cluster_underlay_key(name),
            asyncio.get_running_loop().time() + self.spec.limits.lease_seconds + _TICK_SECONDS,
        )
        while (known := await store.get(key)) is not None and known != own:
            hosts = await self.hosts.read()
            holders = await asyncio.gather(
                *(store.holder(cluster_host_key(name, host)) for host in hosts.names())
            )
            if not any(holders):
                # Ray restarts none of them.
                await self.hosts.change(lambda hosts: HostList(hosts.number))
                break
            if asyncio.get_running_loop().time() > until:
                msg = (
                    f"another Ray cluster runs the cluster {name!r} in this store, and its "
                    "hosts are alive. Pass another name, or another store."
                )
                raise UsageError(msg)
            await asyncio.sleep(_TICK_SECONDS)
        if known != own:
            await store.set(key, own)

    def _is_lost(self) -> None:
        """End this incarnation: its owner was revoked, or its lease has expired."""
        if self._board.state != "draining":
            loggers.cluster.warning(
                "Host %s has lost its place in the store, and starts again.", self.name
            )
        self._board.state = "lost"
        self.ended.set()

    # --- periodic tasks ---

    async def _tick(self) -> None:
        while True:
            self._board.tick()
            self._board.counts = self.counts()
            await asyncio.sleep(_TICK_SECONDS)

    async def _sweep(self) -> None:
        """Check other hosts, unfinished runs and silent clients periodically."""
        while True:
            try:
                self.clients.look()
                await self.takeover.look()
                self._routes.learn(self.hosts.current)
                if self._board.state == "up" and self.hosts.current.find(self.name) is None:
                    await self.hosts.change(
                        lambda hosts: hosts.put(Member(self.name, self.spec.version))
                    )
            except Exception as error:  # noqa: BLE001 -- the store may answer the next time
                loggers.cluster.warning(
                    "Host %s could not inspect the other hosts, and tries again in %g s: %s",
                    self.name,
                    self.spec.limits.sweep_seconds,
                    error,
                )
            await asyncio.sleep(self.spec.limits.sweep_seconds)

    def spawn_task(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Start a task that ends with this incarnation at the latest."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def counts(self) -> dict[str, Any]:
        runs = len(self.runs) - self.runs.waiting + len(self.takeover)
        own = {
            "runs": runs,
            "waiting": self.runs.waiting,
            "begun": self.runs.begun,
            "sent": self.runs.sent,
            "actors": len(self.actors),
        }
        own["resident"] = _resident()
        return {
            **own,
            "queued": self.system.stats().queued,
            **self.takeover.state(),
            **self.clients.state(),
            "list": self.hosts.current.number,
        }

    # --- calls of clients ---

    @property
    def is_open(self) -> bool:
        """Whether it accepts new work."""
        return self._is_up and self._board.state == "up"

    async def take(self, client: str, link: str, number: int, data: bytes) -> bytes:
        """Take a batch of requests. Return the replies that are ready at once."""
        port = self.clients.find(client)
        if port is None:
            return b""
        requests = port.take(link, number, data)
        for request in requests:
            self._requests.handle(port, request)
        return await port.prompt(link) if requests else b""

    async def replies(
        self, client: str, link: str, incarnation: str | None
    ) -> AsyncIterator[bytes]:
        """Open the link of a client: yield the welcome, and then the replies."""
        if (
            self.clients.find(client) is None
            and self.clients.state()["clients"] >= self.spec.limits.max_clients
        ):
            yield pack({"format": _FORMAT, "refused": self.spec.limits.max_clients})
            return
        port, known = self.clients.enter(client)
        stream = port.replies(link)
        hosts = self.hosts.current
        said = {
            "format": _FORMAT,
            "incarnation": self.incarnation,
            "known": known and incarnation == self.incarnation,
        }
        yield pack(
            {
                **said,
                "steps": self.keeps_steps,
                "keeps": self.runs.keeps,
                "list": hosts.data(),
                "limits": self.spec.limits.data(),
            }
        )
        async for batch in stream:
            yield batch

    async def events(self, client: str, request: int) -> AsyncIterator[bytes]:
        """Yield the events of a run that a client has requested.

        Its request may still be in flight.
        """
        async with asyncio.timeout(_REQUEST_SECONDS):
            while (play := self.runs.find(client, request)) is None:
                port = self.clients.find(client)
                if port is None or port.inbox.last_id >= request:
                    return  # it has ended, as the reply reports
                port.arrived.clear()
                await port.arrived.wait()
        async for batch in play.batches():
            yield batch

    # --- end ---

    async def drain(self, timeout: float) -> dict[str, Any]:
        """Leave the list, pause the runs, and release them: other hosts continue them."""
        board = self._board
        if not self._is_up:
            return {"drained": True, "runs": 0, "seconds": 0.0}
        board.state = "draining"
        began = asyncio.get_running_loop().time()
        runs = len(self.runs) + len(self.takeover)
        await self.hosts.change(
            lambda hosts: hosts.put(Member(self.name, self.spec.version, is_draining=True))
        )
        self.runs.give_up()
        report = await self.system.drain(timeout)
        await self.hosts.change(lambda hosts: hosts.without(self.name))
        left = max(0.1, timeout - (asyncio.get_running_loop().time() - began))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.runs.quiet.wait(), left)
        await self.clients.wait_received(_RECEIVED_SECONDS)
        return {
            "drained": report.drained,
            "runs": runs,
            "seconds": asyncio.get_running_loop().time() - began,
        }

    async def end(self) -> None:
        """Release all resources. The runs in progress are left for other hosts."""
        self._is_up = False
        if hasattr(self, "clients"):
            self.runs.give_up()
            self.clients.close()
            await self._routes.close()
            self.actors.close()
            await self.takeover.close()
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close_opened(self) -> None:
        """Leave the factory's block, after the system, because runs write until then."""
        await self._opened.aclose()


def _resident() -> int:
    """Return the memory of this process in bytes, or 0 if it cannot be read."""
    try:
        return int(_MEMORY.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0
