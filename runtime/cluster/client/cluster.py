"""The entry point of a cluster: start it, or connect to a running one.

Ray is imported only by `Cluster.start` and `Cluster.connect`.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import warnings
from collections.abc import AsyncIterator, Mapping, Sequence
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
from .line import Entry, ask
from .refs import RemoteRef, enter_client, host_client, packed_message
from .routes import Routes
from .run import ClusterRun
from .runner import ClusterRunner
from .session import ClusterSession, placed
from .stats import ClusterStats, stats_of
from .watch import HostChange, watch_hosts

if TYPE_CHECKING:
    from ..transport import Transport
    from .link import Call

__all__ = ["Cluster"]

_NAME = "OFFBOOK_CLUSTER"
_KINDS = ("....actors.tools.approval",)
"""Modules that register the types that offbook itself sends to clients.

A client need not import the code of its hosts. Values of other types are passed on unchanged.
"""


class Cluster:
    """Hosts of one program on many machines, and the access to them.

        async with Cluster.start("shop:host", name="shop", hosts=8) as cluster:
            result = await cluster.session("user-42").query("And tomorrow?")

        async with Cluster.connect("shop") as cluster: ...  # from a web worker; any number of them

    Leaving a cluster that `start` has started drains it. Hosts outlive a program that dies.
    """

    def __init__(
        self,
        name: str,
        spec: ClusterSpec | None,
        hosts: int,
        transport: Transport,
        *,
        detach: bool = False,
    ) -> None:
        self.name = name
        self._spec = spec  # None: the cluster is already running
        self._count = hosts
        self._detach = detach
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
        detach: bool = False,
        **limits: Unpack[LimitsLike],
    ) -> Cluster:
        """Start a cluster when it is entered, or connect to it if it is running.

        Entering waits until all hosts answer.

        `factory` is the name of an async context manager that is called in each host with its
        system, and yields a Runner: `"shop:host"`. `resources` are reserved by Ray for each host
        (`{"num_cpus": 1}`), and `ray_options` are other options of Ray. `allow` lists prefixes of
        the names of modules whose actors and policies clients may use; the default is the factory's
        top-level package. With `pin`, a host continues only runs that its own version has started.
        With `detach`, leaving the cluster leaves it running; this requires an existing Ray cluster.
        """
        from ..on_ray.transport import ray_transport  # noqa: PLC0415 -- needs the extra `ray`

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
        return cls(
            name,
            spec,
            check_count(hosts, "Cluster.start(hosts"),
            ray_transport(may_start=not detach),
            detach=detach,
        )

    @classmethod
    def connect(cls, name: str | None = None) -> Cluster:
        """Connect to a running cluster, when this is entered.

        Without a name, the environment variable `OFFBOOK_CLUSTER` specifies it.
        """
        from ..on_ray.transport import ray_transport  # noqa: PLC0415 -- needs the extra `ray`

        name = name or os.environ.get(_NAME)
        if not name:
            msg = f"Cluster.connect() needs the name of the cluster. Pass name=, or set {_NAME}."
            raise UsageError(msg)
        return cls(check_cluster_name(name), None, 0, ray_transport(may_start=False))

    @classmethod
    def current(cls) -> Cluster:
        """Return the cluster of the host that runs this code, for its tools, agents and actors.

        It is entered already, and its host leaves it.
        """
        routes = host_client()
        if routes is None:
            msg = (
                "Cluster.current() must be called in a host of a cluster, on its event loop. "
                "Elsewhere, connect: async with Cluster.connect(name) as cluster."
            )
            raise UsageError(msg)
        found = cls(routes.cluster, None, 0, routes.transport)
        found._routes = routes
        return found

    # --- entering and leaving ---

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._started:
            await self.stop()
        await self.close()

    async def open(self) -> None:
        """Start or connect, as `async with` does."""
        if self._routes is not None:
            msg = (
                f"cluster {self.name!r} has been entered already. Use it within that `async "
                "with`, or connect another one."
            )
            raise UsageError(msg)
        for module in _KINDS:
            importlib.import_module(module, __package__)
        await self._transport.open()
        names = await self._changes.names()
        limits = Limits()
        if self._spec is not None:
            place = self._transport.place()
            options = dict(self._spec.ray_options)
            if place.environment:  # hosts that another program starts later run the same program
                options.setdefault("runtime_env", place.environment)
            spec = self._spec = replace(
                self._spec, node=place.node, starter=new_id(), ray_options=options
            )
            limits = spec.limits
            if names:
                self._changes.check_same(await self._changes.spec(names), spec)
            missing = (
                [
                    name
                    for number in range(self._count)
                    if (name := f"{self.name}/{number}") not in names
                ]
                if not names
                else []
            )
            if missing:
                await self._changes.start(spec, missing)
                names = missing
                # If several programs start it at once, the one that started the first host owns it.
                # Leaving the others drains nothing.
                self._started = (
                    not self._detach and await self._changes.starter(missing[0]) == spec.starter
                )
        if not names:
            msg = (
                f"cluster {self.name!r} not found. Start it: "
                f"Cluster.start('module:factory', name={self.name!r})."
            )
            raise ClusterError(msg)
        self._routes = Routes(self._transport, self.name, limits)
        try:
            await self._routes.enter(names)
        except BaseException:
            await self.close()
            raise
        enter_client(self._routes)

    async def close(self) -> None:
        """Disconnect, and leave the cluster running."""
        if self._routes is not None and self._routes.is_of_host:
            return  # the host leaves it
        routes, self._routes = self._routes, None
        if routes is not None:
            await routes.close()
        await self._transport.close()

    def _open(self) -> Routes:
        if self._routes is None:
            msg = (
                f"cluster {self.name!r} has not been entered. Write `async with "
                f"Cluster.connect({self.name!r}) as cluster:`."
            )
            raise UsageError(msg)
        return self._routes

    # --- runs and sessions ---

    @property
    def runner(self) -> ClusterRunner:
        """The cluster's runner, with `query`, `run` and `resume` as on a Runner."""
        return ClusterRunner(self._open())

    def session(
        self,
        session_id: str,
        *,
        busy: Busy = "queue",
        policy: SessionPolicyLike | str = None,
        start: Start = "root",
    ) -> ClusterSession:
        """Return a session, a lasting conversation.

        `policy` is `keep_last(n)`, or names a function: `"shop:my_policy"`.
        """
        return ClusterSession(self._open(), session_id, busy, policy, start)

    def follow(self, run_id: str, *, after: int = 0) -> ClusterRun:
        """Follow a run that any client has started: its outcome, or its next events."""
        return self.runner.follow(run_id, after=after)

    async def retry(self, run_id: str) -> ClusterRun:
        """Continue a run that is `stuck`, with as many attempts as a new one, and follow it."""
        await placed(self._open(), "retry", run_id, [run_id])
        return self.runner.follow(run_id)

    # --- actors ---

    async def spawn(
        self,
        actor_class: str,
        *args: object,
        near: str | None = None,
        host: str | None = None,
        key: str | None = None,
        **kwargs: object,
    ) -> RemoteRef:
        """Spawn an actor on the host that `near` belongs to, on `host`, or on any host.

        `near` is the id of a session or run, or any other string: it places the actor, but does not
        identify it; `actor(key=...)` does. `key` is the former name of `near`. The actor lives in
        memory: it ends with its host.
        """
        check_name(actor_class, "spawn")
        if key is not None:
            msg = (
                f"spawn(key={key!r}) has no key=. To place the actor, write spawn(near={key!r}). "
                "For an actor that a key identifies, call actor(key=...)."
            )
            warnings.warn(msg, DeprecationWarning, stacklevel=2)
            near = key if near is None else near
        routes = self._open()
        body = packed_message("spawn", [actor_class, list(args), kwargs])
        if host is None:
            actor_id, incarnation, name = await ask(
                routes,
                new_id() if near is None else near,
                Entry("spawn", body, f"spawn({actor_class!r})", check_lost=_spawn_lost),
                in_order=False,
            )
            return RemoteRef(self.name, name, incarnation, actor_id)
        if routes.hosts.find(host) is None:
            msg = (
                f"spawn(host={host!r}): host must be one of cluster {self.name!r}: "
                f"{', '.join(routes.hosts.names())}."
            )
            raise UsageError(msg)
        call = routes.link(host).post("spawn", {}, body)
        try:
            reply = await call.reply()
        except HostGone as gone:
            routes.lost(gone)
            _spawn_lost(call, gone)
            msg = (
                f"host {host!r} could not be reached: {gone} Omit host= to let the cluster "
                "choose one."
            )
            raise ClusterError(msg) from gone
        if reply.code == "elsewhere":
            msg = (
                f"host {host!r} is being drained, and accepts no new actor. Pass another host, "
                "or omit host=."
            )
            raise ClusterError(msg)
        value = unpack(reply.body)
        if reply.code == "error":
            raise value
        return RemoteRef(self.name, host, value[1], value[0])

    def actor(
        self, actor_class: str, *args: object, key: str, idle: float = 300.0, **kwargs: object
    ) -> KeyedActor:
        """Return the actor of that class that `key` identifies, in this cluster.

        At a message, it is spawned with these arguments on the host that its key belongs to. It is
        stopped after it has been idle for `idle` seconds. While it runs, other arguments for the
        same key are a `UsageError`.
        """
        check_name(actor_class, "actor")
        return KeyedActor(self._open(), actor_class, key, idle, args, kwargs)

    # --- the hosts ---

    async def scale(self, hosts: int, *, timeout: float = 30.0) -> None:
        """Change the number of hosts: start new ones, or drain the last ones."""
        await self._changes.scale(self._open(), check_count(hosts, "scale(hosts"), timeout)
        await self._learn()

    def watch(self) -> AsyncIterator[HostChange]:
        """Yield the state of each host, and then each change: hosts that come, go, or are lost.

        A slow reader gets the latest state of each host. The iteration ends when this client leaves
        the cluster.
        """
        return watch_hosts(self._open())

    @property
    def node(self) -> str:
        """The id of this program's node, in the form of the hosts' nodes in `stats()`."""
        self._open()
        return self._transport.place().node

    async def drain(
        self,
        host: str | None = None,
        timeout: float = 30.0,
        *,
        node: str | None = None,
        replace: bool = False,
    ) -> dict[str, dict[str, Any]]:
        """Drain a host, the hosts of a node, or all hosts, and end them.

        Stored runs continue on other hosts. With `replace`, as many new hosts are started, on other
        nodes than `node`, as soon as Ray has room for them. The preStop hook of a departing machine
        calls `drain(node=cluster.node, replace=True)`. Returns the report of each host.
        """
        if replace and host is None and node is None:
            raise UsageError(
                "drain(replace=True) needs host= or node=. To replace all hosts, call roll()."
            )
        if host is not None and node is not None:
            raise UsageError("drain needs either host= or node=. Pass one of them.")
        names = await self._changes.names()
        if node is not None:
            controls = await asyncio.gather(*map(self._open().control, names))
            there = zip(names, controls, strict=True)
            names = [name for name, said in there if said is not None and said.node == node]
            if replace:
                await self._changes.replace(names, node)
            return await self._changes.drain(self._open(), names, timeout)
        if host is not None and host not in names:
            msg = f"drain({host!r}): host must be one of cluster {self.name!r}: {', '.join(names)}."
            raise UsageError(msg)
        if replace and host is not None:
            await self._changes.replace([host], "")
        return await self._changes.drain(self._open(), names if host is None else [host], timeout)

    async def roll(
        self,
        version: str,
        factory: str | None = None,
        ray_options: Mapping[str, Any] | None = None,
        *,
        max_surge: int = 1,
        timeout: float = 30.0,
    ) -> None:
        """Change to another version, host by host: a new one is up before an old one is drained."""
        routes = self._open()
        spec = (await self._changes.spec(await self._changes.names())).at(
            version, None if factory is None else check_name(factory, "roll")
        )
        if ray_options is not None:
            spec.ray_options.clear()
            spec.ray_options.update(ray_options)
        await self._changes.roll(routes, spec, check_count(max_surge, "roll(max_surge"), timeout)
        await self._learn()

    async def stop(self, timeout: float = 30.0) -> None:
        """Drain all hosts, and end them.

        Unfinished runs remain in the store, and continue in the next cluster.
        """
        await self._changes.drain(self._open(), await self._changes.names(), timeout)
        self._started = False

    async def stats(self) -> ClusterStats:
        """Return the statistics of the hosts.

        While Ray's head is unavailable, they cover the hosts in the list that the hosts store.
        """
        routes = self._open()
        try:
            names = await self._changes.names()
        except ClusterError:
            names = routes.hosts.names()
        answers = await asyncio.gather(*map(routes.control, names))
        return stats_of(self.name, dict(zip(names, answers, strict=True)))

    async def _learn(self) -> None:
        """Learn the new hosts at once, not with the next answer."""
        routes = self._open()
        names = await self._changes.names()
        if names:
            await routes.refresh(names[-1])


def _spawn_lost(_call: Call, gone: HostGone) -> None:
    msg = (
        f"host {gone.host!r} is gone, and may have spawned the actor before. Spawn it again if a "
        "second one does no harm, or use actor(key=...)."
    )
    raise HostLost(msg) from gone
