"""The front door of a cluster: start it, or connect to one that is there.

Owns: what a program does with a cluster. It must never import Ray before it is used: `Cluster.start` and `Cluster.connect` do.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, Unpack

from ...codec.packing import unpack
from ...data.chat import new_id
from ...durability.leases import Busy
from ...errors import UsageError
from ...sessions.session_policy import SessionPolicyLike
from ...sessions.turn import Start
from ..errors import ClusterError, HostLost
from ..limits import Limits, LimitsLike, limits_of
from ..names import allowed_prefixes, check_cluster_name, check_name
from ..spec import ClusterSpec
from ..transport import HostGone
from .changes import Changes, check_count
from .keyed import KeyedActor
from .refs import RemoteRef, enter_client, packed_message
from .routes import Routes
from .run import ClusterRun
from .runner import ClusterRunner
from .session import ClusterSession
from .stats import ClusterStats, stats_of

if TYPE_CHECKING:
    from ..transport import Transport

__all__ = ["Cluster"]

_NAME = "UNDERSTUDY_CLUSTER"


class Cluster:
    """Hosts of one program on many machines, and the way to them.

        async with Cluster.start("shop:host", name="shop", hosts=8) as cluster:
            result = await cluster.session("user-42").query("And tomorrow?")

        async with Cluster.connect("shop") as cluster: ...      # from a web worker: any number of clients

    Leaving what `start` has started drains it. Hosts outlive a program that dies.
    """

    def __init__(self, name: str, spec: ClusterSpec | None, hosts: int, transport: Transport) -> None:
        self.name = name
        self._spec = spec  # None: it is there already
        self._count = hosts
        self._transport = transport
        self._changes = Changes(transport, name)
        self._started = False
        self._routes: Routes | None = None

    @classmethod
    def start(
        cls,
        factory: str,
        *,
        name: str,
        hosts: int = 1,
        version: str | None = None,
        resources: Mapping[str, float] | None = None,
        ray_options: Mapping[str, Any] | None = None,
        allow: Sequence[str] | None = None,
        pin: bool = False,
        **limits: Unpack[LimitsLike],
    ) -> Cluster:
        """Start what is missing of a cluster, when it is entered, and wait until all hosts answer. If it is there already, connect to it.

        `factory` is the name of an async context manager that is called in each host with its system, and yields a Runner: `"shop:host"`. `resources` are
        what Ray reserves for a host (`{"num_cpus": 1}`), `ray_options` other options of Ray's for it. `allow`: the beginnings of the names of modules whose
        actors and policies may be named from outside; by default those beside the factory. With `pin`, a host goes on only with runs that its own version has
        begun.
        """
        from ..on_ray.transport import ray_transport  # noqa: PLC0415 -- it needs the extra

        check_name(factory, "Cluster.start")
        checked = limits_of(limits)
        spec = ClusterSpec(
            check_cluster_name(name),
            factory,
            version,
            allowed_prefixes(allow, factory),
            pin,
            limits=checked,
            resources=dict({"num_cpus": 1} if resources is None else resources),
            ray_options=dict(ray_options or {}),
        )
        return cls(name, spec, check_count(hosts, "Cluster.start(hosts"), ray_transport(may_start=True))

    @classmethod
    def connect(cls, name: str | None = None) -> Cluster:
        """Connect to a cluster that was started, when this is entered. Without a name, to the one that the environment names in `UNDERSTUDY_CLUSTER`."""
        from ..on_ray.transport import ray_transport  # noqa: PLC0415 -- it needs the extra

        name = name or os.environ.get(_NAME)
        if not name:
            msg = f"Cluster.connect(): give the name of the cluster, or set {_NAME}."
            raise UsageError(msg)
        return cls(check_cluster_name(name), None, 0, ray_transport(may_start=False))

    # --- entering and leaving ---

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._started:
            await self.stop()
        await self.close()

    async def open(self) -> None:
        """Start or connect, as `async with` does."""
        if self._routes is not None:
            msg = f"cluster {self.name!r} has been entered already."
            raise UsageError(msg)
        nodes = await self._transport.open()
        names = await self._changes.names()
        limits = Limits()
        if self._spec is not None:
            spec = self._spec = replace(self._spec, nodes=nodes)
            limits = spec.limits
            if names:
                self._changes.check_same(await self._changes.spec(names), spec)
            missing = [name for number in range(self._count) if (name := f"{self.name}/{number}") not in names] if not names else []
            if missing:
                await self._changes.start(spec, missing)
                self._started = True
                names = missing
        if not names:
            msg = f"there is no cluster {self.name!r}. Start it: Cluster.start('module:factory', name={self.name!r})."
            raise ClusterError(msg)
        self._routes = Routes(self._transport, self.name, limits)
        try:
            await self._routes.enter(names)
        except BaseException:
            await self.close()
            raise
        enter_client(self._routes)

    async def close(self) -> None:
        """Leave the cluster as it is."""
        routes, self._routes = self._routes, None
        if routes is not None:
            await routes.close()
        await self._transport.close()

    def _open(self) -> Routes:
        if self._routes is None:
            msg = f"cluster {self.name!r} is not entered: async with Cluster.connect({self.name!r}) as cluster."
            raise UsageError(msg)
        return self._routes

    # --- runs and sessions ---

    @property
    def runner(self) -> ClusterRunner:
        """`query`, `run` and `resume`, as a Runner has them."""
        return ClusterRunner(self._open())

    def session(self, session_id: str, *, busy: Busy = "queue", policy: SessionPolicyLike | str = None, start: Start = "root") -> ClusterSession:
        """A conversation that lasts. `policy` is `keep_last(n)`, or names a function: `"shop:my_policy"`."""
        return ClusterSession(self._open(), session_id, busy, policy, start)

    def follow(self, run_id: str, *, after: int = 0) -> ClusterRun:
        """A run that any client has begun: its outcome, or its next events."""
        return self.runner.follow(run_id, after=after)

    # --- actors ---

    async def spawn(self, actor_class: str, *args: object, key: str | None = None, host: str | None = None, **kwargs: object) -> RemoteRef:
        """Spawn an actor on the host where the key belongs, on that host, or on any. It lives in memory: with its host it is gone."""
        check_name(actor_class, "spawn")
        routes = self._open()
        body = packed_message("spawn", [actor_class, list(args), kwargs])
        while True:
            if host is None:
                link, head = await routes.wait_for_host(key if key is not None else new_id())
            else:
                if routes.hosts.find(host) is None:
                    msg = f"spawn(host={host!r}): cluster {self.name!r} has the hosts {', '.join(routes.hosts.names())}."
                    raise UsageError(msg)
                link, head = routes.link(host), {}
            try:
                reply = await link.post("spawn", head, body).reply()
            except HostGone as gone:
                routes.lost(gone)
                if host is None and gone.incarnation is None:
                    continue
                msg = f"host {gone.host!r} is gone: whether it had spawned the actor is not known."
                raise HostLost(msg) from gone
            if reply.code != "elsewhere":
                break
            if host is not None:
                msg = f"host {host!r} is being drained, and takes no new actor."
                raise ClusterError(msg)
            await asyncio.sleep(0.05)  # until the list without that host is here
        value = unpack(reply.body)
        if reply.code == "error":
            raise value
        return RemoteRef(self.name, link.host, value[1], value[0])

    def actor(self, actor_class: str, *args: object, key: str, idle: float = 300.0, **kwargs: object) -> KeyedActor:
        """The actor of that class which the key calls: spawned where the key belongs when it is asked, stopped when it was idle for so many seconds."""
        check_name(actor_class, "actor")
        return KeyedActor(self._open(), actor_class, key, idle, args, kwargs)

    # --- the hosts ---

    async def scale(self, hosts: int, *, timeout: float = 30.0) -> None:
        """Have so many hosts: new ones are started, or the last ones drained."""
        await self._changes.scale(self._open(), check_count(hosts, "scale(hosts"), timeout)
        await self._learn()

    async def drain(self, host: str | None = None, timeout: float = 30.0) -> dict[str, dict[str, Any]]:
        """Have a host, or all, give up its work, and end. What is kept goes on elsewhere. Returns what each host says of it."""
        names = await self._changes.names()
        if host is not None and host not in names:
            msg = f"drain({host!r}): cluster {self.name!r} has the hosts {', '.join(names)}."
            raise UsageError(msg)
        return await self._changes.drain(self._open(), names if host is None else [host], timeout)

    async def roll(
        self, version: str, factory: str | None = None, ray_options: Mapping[str, Any] | None = None, *, max_surge: int = 1, timeout: float = 30.0
    ) -> None:
        """Change to another version, host by host: a new one is up before an old one is drained."""
        routes = self._open()
        spec = (await self._changes.spec(await self._changes.names())).at(version, None if factory is None else check_name(factory, "roll"))
        if ray_options is not None:
            spec.ray_options.clear()
            spec.ray_options.update(ray_options)
        await self._changes.roll(routes, spec, check_count(max_surge, "roll(max_surge"), timeout)
        await self._learn()

    async def stop(self, timeout: float = 30.0) -> None:
        """Drain all hosts, and end them. What is unfinished rests in the store, and goes on with the next cluster."""
        await self._changes.drain(self._open(), await self._changes.names(), timeout)
        self._started = False

    async def stats(self) -> ClusterStats:
        """What the hosts do."""
        routes = self._open()
        names = await self._changes.names()
        answers = await asyncio.gather(*map(routes.control, names))
        return stats_of(self.name, dict(zip(names, answers, strict=True)))

    async def _learn(self) -> None:
        """Know the new hosts at once, and not with the next answer."""
        routes = self._open()
        names = await self._changes.names()
        if names:
            await routes.refresh(names[-1])
