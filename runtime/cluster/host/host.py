"""One incarnation of a host: from its entry into the cluster to its end.

Owns: the order of its life: the factory, the owner in the store, the list, what is left of others, up; and back. When its owner is lost in the store, this
life is over, and another one begins (`life.py`). It must never answer a request that another life of it was sent.
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
from ...durability.store_keys import cluster_host_key
from ...errors import UsageError
from ...log import loggers
from ...runner import Runner
from ...stores import JournalStore, MemoryStore, SQLiteStore
from ...stores.writes import Put
from ..client.refs import enter_client
from ..client.routes import Routes
from ..host_list import ListKeeper, Member
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
_REQUEST_SECONDS: Final = 10.0
"""For how long the reader of a run's events waits for the request of that run, which travels by another way."""


class ClusterHost:
    """One life of a host."""

    clients: Clients
    runs: HostRuns
    actors: HostActors
    takeover: Takeover
    hosts: ListKeeper

    def __init__(self, spec: ClusterSpec, name: str, system: ActorSystem, transport: Transport, board: ControlBoard) -> None:
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

    # --- beginning ---

    async def begin(self) -> None:
        """Be up. Whatever goes wrong is raised, and `end()` is to be called all the same."""
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
        self.clients = Clients(self.spec.limits, lambda: self.hosts.current.number, self.runs.client_left)
        self._requests = Requests(self)
        self._routes = Routes(self._transport, self.spec.cluster, self.spec.limits)
        await self.hosts.change(lambda hosts: hosts.put(Member(self.name, self.spec.version)))
        self._routes.learn(self.hosts.current)
        enter_client(self._routes)  # for the refs that its actors are sent
        self.keeps_steps = runner.durability == "step"
        self._is_up = True
        board.state, board.problem = "up", None
        self.spawn_task(self._tick(), f"the ticks of host {self.name}")
        self.spawn_task(self._sweep(), f"the looks of host {self.name}")
        loggers.cluster.info("Host %s is up, as %s.", self.name, self.incarnation)

    async def _make_runner(self) -> Runner:
        """What the factory makes, if a cluster can use it."""
        factory = self.spec.factory
        made = load(factory, "Cluster.start")
        if not callable(made):
            msg = f"Cluster.start({factory!r}): that is a {type(made).__name__}. Name an async function that is decorated with @asynccontextmanager."
            raise UsageError(msg)
        entering = made(self.system)
        if not hasattr(entering, "__aenter__"):
            msg = f"Cluster.start({factory!r}): it returns a {type(entering).__name__}. Decorate it with @asynccontextmanager, and yield a Runner."
            raise UsageError(msg)
        runner = await self._opened.enter_async_context(entering)
        if not isinstance(runner, Runner):
            msg = f"Cluster.start({factory!r}): it yields a {type(runner).__name__}. Yield a Runner(agent, system=system, store=...)."
            raise UsageError(msg)
        if runner.system is not self.system:
            msg = f"Cluster.start({factory!r}): its Runner has another system. Give it the one that the factory is called with: Runner(..., system=system)."
            raise UsageError(msg)
        self._check_store(runner.store)
        return runner

    def _check_store(self, store: object) -> None:
        factory, where = self.spec.factory, "Give its Runner PostgresStore(dsn) or RedisStore(url)"
        if store is None:
            msg = f"Cluster.start({factory!r}): its Runner has no store. What the hosts know of each other lies in one. {where}."
            raise UsageError(msg)
        if isinstance(store, MemoryStore):
            msg = f"Cluster.start({factory!r}): a MemoryStore is in one process, and no other host can read it. {where}."
            raise UsageError(msg)
        if isinstance(store, SQLiteStore) and self.spec.nodes > 1:
            msg = f"Cluster.start({factory!r}): an SQLiteStore is a file of one machine, and the cluster has {self.spec.nodes} nodes. {where}."
            raise UsageError(msg)
        StoreAccess(store).require_fences(f"Cluster.start({factory!r})")

    async def _be_owner(self, store: JournalStore, access: StoreAccess) -> None:
        """End the owner of this host's last life, and take its place. From then on, this life lasts as long as its owner."""
        key = cluster_host_key(self.spec.cluster, self.name)
        former = await store.holder(key)
        if former is not None:
            await store.revoke(former)
        self._lease = Lease(key, f"the host {self.name}", self._is_lost)
        if not await leases_of(self.system).take(access, self._lease, [Put(key, self.incarnation.encode())]):
            msg = f"another process is the host {self.name!r} of cluster {self.spec.cluster!r} in this store: two clusters must not share a name and a store."
            raise UsageError(msg)

    def _is_lost(self) -> None:
        """Its owner was revoked, or the store has not heard of it for too long."""
        if self._board.state != "draining":
            loggers.cluster.warning("Host %s has lost its place in the store: this life of it is over.", self.name)
        self._board.state = "lost"
        self.ended.set()

    # --- what goes on by itself ---

    async def _tick(self) -> None:
        while True:
            self._board.tick()
            self._board.counts = self.counts()
            await asyncio.sleep(_TICK_SECONDS)

    async def _sweep(self) -> None:
        """Look at what is left of others, and at who is gone, again and again."""
        while True:
            try:
                self.clients.look()
                await self.takeover.look()
                if self._board.state == "up" and self.hosts.current.find(self.name) is None:
                    await self.hosts.change(lambda hosts: hosts.put(Member(self.name, self.spec.version)))
            except Exception as error:  # noqa: BLE001 -- the next time the store may answer
                loggers.cluster.warning("Host %s could not look around, and will again in %g s: %s", self.name, self.spec.limits.sweep_seconds, error)
            await asyncio.sleep(self.spec.limits.sweep_seconds)

    def spawn_task(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Have a task that ends with this life at the latest."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def counts(self) -> dict[str, Any]:
        runs = len(self.runs) - self.runs.waiting + len(self.takeover)
        own = {"runs": runs, "waiting": self.runs.waiting, "begun": self.runs.begun, "sent": self.runs.sent, "actors": len(self.actors)}
        own["resident"] = _resident()
        return {**own, "queued": self.system.stats().queued, **self.takeover.state(), **self.clients.state(), "list": self.hosts.current.number}

    # --- what clients do ---

    @property
    def is_open(self) -> bool:
        """Whether it takes new work."""
        return self._is_up and self._board.state == "up"

    def take(self, client: str, link: str, number: int, data: bytes) -> None:
        """A batch of requests."""
        port = self.clients.find(client)
        if port is not None:
            for request in port.take(link, number, data):
                self._requests.handle(port, request)

    async def replies(self, client: str, link: str, incarnation: str | None) -> AsyncIterator[bytes]:
        """The link of a client: the welcome, and then what it is answered."""
        port, known = self.clients.enter(client)
        stream = port.replies(link)
        hosts = self.hosts.current
        said = {"format": _FORMAT, "incarnation": self.incarnation, "known": known and incarnation == self.incarnation}
        yield pack({**said, "steps": self.keeps_steps, "keeps": self.runs.keeps, "list": hosts.data(), "limits": self.spec.limits.data()})
        async for batch in stream:
            yield batch

    async def events(self, client: str, request: int) -> AsyncIterator[bytes]:
        """The events of a run that a client has asked for. Its request may still be on its way."""
        async with asyncio.timeout(_REQUEST_SECONDS):
            while (play := self.runs.find(client, request)) is None:
                port = self.clients.find(client)
                if port is None or port.inbox.last_id >= request:
                    return  # it has ended: the reply says how
                port.arrived.clear()
                await port.arrived.wait()
        async for batch in play.batches():
            yield batch

    # --- ending ---

    async def drain(self, timeout: float) -> dict[str, Any]:
        """Leave the list, bring the runs to rest, and give back what this host has: others go on with it."""
        board = self._board
        if not self._is_up:
            return {"drained": True, "runs": 0, "seconds": 0.0}
        board.state = "draining"
        began = asyncio.get_running_loop().time()
        runs = len(self.runs) + len(self.takeover)
        await self.hosts.change(lambda hosts: hosts.put(Member(self.name, self.spec.version, is_draining=True)))
        self.runs.give_up()
        report = await self.system.drain(timeout)
        await self.hosts.change(lambda hosts: hosts.without(self.name))
        left = max(0.1, timeout - (asyncio.get_running_loop().time() - began))
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.runs.quiet.wait(), left)
        return {"drained": report.drained, "runs": runs, "seconds": asyncio.get_running_loop().time() - began}

    async def end(self) -> None:
        """Close what was opened. The runs that are under way are left for others."""
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
        """Leave the factory's block: when the system was left, because until then runs write to the store."""
        await self._opened.aclose()


def _resident() -> int:
    """Bytes of memory that this process has; 0 where that cannot be read so."""
    try:
        return int(_MEMORY.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0
