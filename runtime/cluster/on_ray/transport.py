"""The way to the hosts through Ray: detached actors in the namespace `understudy`, called with bytes.

Owns: Ray's handles, and that no exception of Ray's gets out: what means that a host does not answer is `HostGone`. It must never wait on the loop for what
Ray does blocking.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, Final

from ...errors import UsageError
from ..errors import ClusterError
from ..spec import ClusterSpec
from ..transport import HostGone
from .environment import NAMESPACE, check_safety, import_ray, prepare

__all__ = ["RayTransport", "ray_transport"]

_AHEAD: Final = 4
"""Batches of events that may wait for a slow reader, before the host waits for it."""
_MORE_CALLS: Final = 100


def ray_transport(*, may_start: bool) -> RayTransport:
    """Raises `UsageError` if Ray cannot be used."""
    return RayTransport(import_ray(), may_start=may_start)


class RayTransport:
    """All hosts that Ray knows."""

    def __init__(self, ray: Any, *, may_start: bool = False) -> None:
        self._ray = ray
        self._may_start = may_start
        self._started = False
        self._doors: dict[str, RayDoor] = {}

    async def open(self) -> int:
        """Connect this process to Ray, if it is not. Returns how many nodes there are."""
        ray = self._ray
        prepare()
        if not ray.is_initialized():
            await asyncio.to_thread(self._init)
        address = ray.get_runtime_context().gcs_address
        check_safety(address)
        return sum(bool(node["Alive"]) for node in await asyncio.to_thread(ray.nodes))

    def _init(self) -> None:
        """Connect to the cluster that the environment names, or that runs on this machine; `start` makes one, if there is none."""
        ray, options = self._ray, {"namespace": NAMESPACE, "logging_level": logging.WARNING, "log_to_driver": False}
        try:
            ray.init(address="auto", **options)
        except ConnectionError as error:
            if not self._may_start:
                msg = "there is no Ray cluster to connect to. Set RAY_ADDRESS, or run on one of its nodes; `ray start --head` makes one."
                raise ClusterError(msg) from error
            ray.init(address="local", include_dashboard=False, **options)
            self._started = True

    async def close(self) -> None:
        """Leave Ray, if this has made it."""
        self._doors.clear()
        if self._started:
            self._started = False
            await asyncio.to_thread(self._ray.shutdown)

    async def names(self, cluster: str) -> list[str]:
        found = await asyncio.to_thread(self._ray.util.list_named_actors, all_namespaces=True)
        prefix = f"{cluster}/"
        names = (one["name"] for one in found if one["namespace"] == NAMESPACE)
        return sorted(name for name in names if name.startswith(prefix) and name.removeprefix(prefix).isdigit())

    def door(self, host: str) -> RayDoor:
        found = self._doors.get(host)
        if found is None:
            found = self._doors[host] = RayDoor(self._ray, host)
        return found

    async def start(self, host: str, spec: bytes) -> None:
        from .actor import actor_class  # noqa: PLC0415 -- the two know each other

        said = ClusterSpec.read(spec)
        limits = said.limits
        fixed = {
            "name": host,
            "namespace": NAMESPACE,
            "lifetime": "detached",
            "get_if_exists": True,
            "max_restarts": -1,
            "max_task_retries": 0,
            # Beyond this, Ray blocks calls without a word, those that drain among them.
            "max_concurrency": limits.max_runs + limits.max_waiting + _MORE_CALLS,
        }
        options = {"scheduling_strategy": "SPREAD", **said.resources, **said.ray_options}
        wrong = sorted(fixed.keys() & options.keys())
        if wrong:
            msg = f"Cluster.start(ray_options=...): {', '.join(wrong)} cannot be changed: hosts depend on them."
            raise UsageError(msg)
        try:
            handle = await asyncio.to_thread(lambda: actor_class(self._ray).options(**options, **fixed).remote(host, spec))
        except (TypeError, ValueError) as error:
            msg = f"Cluster.start(resources=..., ray_options=...): Ray does not take them: {error}"
            raise UsageError(msg) from error
        self._doors[host] = RayDoor(self._ray, host, handle)

    async def end(self, host: str, *, again: bool) -> None:
        door = self.door(host)
        try:
            handle = await door.find()
        except HostGone:
            return
        await asyncio.to_thread(self._ray.kill, handle, no_restart=not again)
        if not again:
            self._doors.pop(host, None)


class RayDoor:
    """The way to one host."""

    def __init__(self, ray: Any, host: str, handle: Any = None) -> None:
        self.host = host
        self._ray = ray
        self._handle = handle
        self._gone: tuple[type[BaseException], ...] = (ray.exceptions.RayError,)

    async def find(self) -> Any:
        """The handle, which holds through all lives of the host."""
        if self._handle is None:
            try:
                self._handle = await asyncio.to_thread(self._ray.get_actor, self.host, NAMESPACE)
            except ValueError as error:
                raise HostGone(self.host, None, f"Ray knows no host {self.host!r}") from error
            except self._gone as error:
                raise HostGone(self.host, None, f"Ray cannot say where host {self.host!r} is: {error}") from error
        return self._handle

    def send(self, client: str, link: str, number: int, data: bytes) -> None:
        if self._handle is not None:
            self._handle.take.remote(client, link, number, data)

    def replies(self, client: str, link: str, incarnation: str | None) -> AsyncIterator[bytes]:
        return self._stream("replies", -1, client, link, incarnation)

    def events(self, client: str, request: int) -> AsyncIterator[bytes]:
        return self._stream("events", _AHEAD, client, request)

    async def _stream(self, method: str, ahead: int, *arguments: object) -> AsyncIterator[bytes]:
        handle = await self.find()
        refs = getattr(handle, method).options(num_returns="streaming", _generator_backpressure_num_objects=ahead).remote(*arguments)
        try:
            async for ref in refs:
                data: bytes = await ref
                yield data
        except self._gone as error:
            raise self._lost(error) from error

    async def control(self) -> bytes:
        handle = await self.find()
        try:
            found: bytes = await handle.control.remote()
        except self._gone as error:
            raise self._lost(error) from error
        return found

    async def call(self, what: str, data: bytes) -> bytes:
        handle = await self.find()
        try:
            found: bytes = await handle.call.remote(what, data)
        except self._gone as error:
            raise self._lost(error) from error
        return found

    def _lost(self, error: BaseException) -> HostGone:
        if isinstance(error, self._ray.exceptions.ActorDiedError):
            self._handle = None  # a host of that name that is started some day is another actor
        return HostGone(self.host, None, str(error).strip().partition("\n")[0])
