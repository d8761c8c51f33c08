"""The connection to the hosts through Ray: detached actors in the namespace `offbook`.

They are called with bytes. An exception of Ray that means that a host does not answer becomes
`HostGone`. Blocking functions of Ray never run on the event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeVar

from ...errors import UsageError
from ...log import loggers
from ..errors import ClusterError
from ..spec import ClusterSpec
from ..transport import HostGone, Place
from .calls import CALL_SECONDS, RayCalls
from .connection import is_replaced, ray_connection
from .environment import NAMESPACE, check_safety, import_ray, prepare

__all__ = ["RayTransport", "ray_transport"]

T = TypeVar("T")

_AHEAD: Final = 4
"""Batches of events that may wait for a slow reader before the host waits for it."""
_MORE_CALLS: Final = 100
_INIT_SECONDS: Final = 60.0
_LIST_SECONDS: Final = 5.0


def ray_transport(*, may_start: bool) -> RayTransport:
    """Return the transport. Raise `UsageError` if Ray cannot be used."""
    return RayTransport(import_ray(), may_start=may_start)


class RayTransport:
    """All hosts that Ray knows."""

    def __init__(self, ray: Any, *, may_start: bool = False) -> None:
        self._ray = ray
        self._may_start = may_start
        self._started = False
        self._calls = RayCalls()
        self._is_client = False  # a host's process never reconnects: Ray ends it with its node
        self._endpoints: dict[str, RayEndpoint] = {}

    async def open(self) -> None:
        """Connect this process to Ray, if it is not."""
        prepare()
        self._is_client = True

        def connect() -> bool:
            return ray_connection.open(self._ray, may_start=self._may_start)

        what = "connecting to Ray (`ray start --head` starts a Ray cluster)"
        self._started = await self._calls.call(what, connect, _INIT_SECONDS)
        check_safety(self._ray.get_runtime_context().gcs_address)

    async def ask(self, what: str, function: Callable[[], T], seconds: float = CALL_SECONDS) -> T:
        """Call a function that asks Ray's head. Raise `ClusterError`.

        If another Ray cluster has taken the head's place, connect to it, and ask it.
        """
        ray, number = self._ray, ray_connection.number
        if not ray.is_initialized() and self._is_client:
            await self._calls.call(what, lambda: ray_connection.renew(ray, number))
        try:
            return await self._calls.call(what, lambda: ray_connection.ask(ray, function), seconds)
        except ray.exceptions.RayError as error:
            if not (self._is_client and is_replaced(error)):
                msg = f"{what}: Ray refused the call: {_line(error)}"
                raise ClusterError(msg) from error
        await self._calls.call(what, lambda: ray_connection.renew(ray, number))
        try:
            return await self._calls.call(what, lambda: ray_connection.ask(ray, function), seconds)
        except ray.exceptions.RayError as error:
            msg = f"{what}: Ray refused the call: {_line(error)}"
            raise ClusterError(msg) from error

    def place(self) -> Place:
        """Return the location of this process, without asking the head."""
        context = self._ray.get_runtime_context()
        return Place(context.get_node_id(), context.get_session_name(), dict(context.runtime_env))

    async def close(self) -> None:
        """Disconnect from Ray, if this transport has started it."""
        self._endpoints.clear()
        if self._started:
            self._started = False
            await self._calls.call("leaving Ray", self._ray.shutdown, _INIT_SECONDS)

    async def names(self, cluster: str) -> list[str]:
        found = await self.ask(
            "listing the hosts",
            lambda: self._ray.util.list_named_actors(all_namespaces=True),
            _LIST_SECONDS,
        )
        prefix = f"{cluster}/"
        names = (one["name"] for one in found if one["namespace"] == NAMESPACE)
        return sorted(
            name
            for name in names
            if name.startswith(prefix) and name.removeprefix(prefix).isdigit()
        )

    def endpoint(self, host: str) -> RayEndpoint:
        found = self._endpoints.get(host)
        if found is None:
            found = self._endpoints[host] = RayEndpoint(self._ray, host, self)
        return found

    async def start(self, host: str, spec: bytes, *, avoid: str = "") -> None:
        from .actor import actor_class  # noqa: PLC0415 -- a circular import

        said = ClusterSpec.read(spec)
        limits = said.limits
        fixed = {
            "name": host,
            "namespace": NAMESPACE,
            "lifetime": "detached",
            "get_if_exists": True,
            "max_restarts": -1,
            "max_task_retries": 0,
            # Beyond this, Ray silently blocks calls, including those that drain.
            "max_concurrency": limits.max_runs
            + limits.max_waiting
            + limits.max_clients
            + _MORE_CALLS,
        }
        options = {"scheduling_strategy": "SPREAD", **said.resources, **said.ray_options}
        if avoid:
            selector = options.get("label_selector", {})
            options["label_selector"] = {**selector, "ray.io/node-id": f"!{avoid}"}
        wrong = sorted(fixed.keys() & options.keys())
        if wrong:
            msg = (
                f"Cluster.start(ray_options=...): {', '.join(wrong)} cannot be set, because the "
                "hosts depend on them. Omit them."
            )
            raise UsageError(msg)
        try:
            handle = await self.ask(
                f"starting host {host}",
                lambda: actor_class(self._ray).options(**options, **fixed).remote(host, spec),
            )
        except (TypeError, ValueError) as error:
            msg = (
                "Cluster.start(resources=..., ray_options=...): Ray does not accept these "
                f"options: {error}"
            )
            raise UsageError(msg) from error
        self._endpoints[host] = RayEndpoint(self._ray, host, self, handle)

    async def end(self, host: str, *, again: bool) -> None:
        endpoint = self.endpoint(host)
        try:
            handle = await endpoint.find()
        except HostGone:
            return
        await self.ask(f"ending host {host}", lambda: self._ray.kill(handle, no_restart=not again))
        if not again:
            self._endpoints.pop(host, None)


class RayEndpoint:
    """The connection to one host."""

    def __init__(self, ray: Any, host: str, transport: RayTransport, handle: Any = None) -> None:
        self.host = host
        self._transport = transport
        self._ray = ray
        self._handle = handle
        self._connection = ray_connection.number  # the connection that the handle belongs to

    async def find(self) -> Any:
        """Return the handle, which is valid for all incarnations of the host."""
        handle = self._known()
        if handle is None:
            what, ray = f"finding host {self.host}", self._ray
            try:
                handle = await self._transport.ask(
                    what, lambda: ray.get_actor(self.host, NAMESPACE)
                )
            except ValueError as error:
                raise HostGone(
                    self.host,
                    None,
                    f"Ray has no actor for the host {self.host!r}: it has ended, or belongs to "
                    "another Ray cluster",
                ) from error
            except ClusterError as error:
                raise HostGone(self.host, None, str(error)) from error
            self._handle, self._connection = handle, ray_connection.number
        return handle

    def _known(self) -> Any:
        return self._handle if self._connection == ray_connection.number else None

    def send(self, client: str, link: str, number: int, data: bytes) -> Awaitable[bytes] | None:
        handle = self._known()
        if handle is not None:
            try:
                found: Awaitable[bytes] = handle.take.remote(client, link, number, data)
            except Exception as error:  # noqa: BLE001 -- the batch is lost, and the link notices
                loggers.cluster.debug("A batch for host %s could not be sent: %s", self.host, error)
            else:
                return found
        return None

    def replies(self, client: str, link: str, incarnation: str | None) -> AsyncIterator[bytes]:
        return self._stream("replies", -1, client, link, incarnation)

    def events(self, client: str, request: int) -> AsyncIterator[bytes]:
        return self._stream("events", _AHEAD, client, request)

    async def _stream(self, method: str, ahead: int, *arguments: object) -> AsyncIterator[bytes]:
        handle = await self.find()
        options = {"num_returns": "streaming", "_generator_backpressure_num_objects": ahead}
        try:
            refs = getattr(handle, method).options(**options).remote(*arguments)
            async for ref in refs:
                data: bytes = await ref
                yield data
        except Exception as error:  # Ray's are of many kinds, and some are bare
            raise self._lost(error) from error

    async def control(self) -> bytes:
        return await self._answer(lambda handle: handle.control.remote())

    async def call(self, what: str, data: bytes) -> bytes:
        return await self._answer(lambda handle: handle.call.remote(what, data))

    async def _answer(self, ask: Callable[[Any], Any]) -> bytes:
        """Ask the host. If the actor of its name has been ended for good, ask its successor."""
        for is_last in (False, True):
            handle = await self.find()
            try:
                found: bytes = await ask(handle)
            except Exception as error:  # Ray's are of many kinds, and some are bare
                lost = self._lost(error)
                if is_last or self._known() is not None:
                    raise lost from error
            else:
                return found
        raise AssertionError

    def _lost(self, error: BaseException) -> HostGone:
        if isinstance(error, self._ray.exceptions.ActorDiedError):
            self._handle = None  # a host started later under that name is another actor
        return HostGone(self.host, None, _line(error))


def _line(error: BaseException) -> str:
    return str(error).strip().partition("\n")[0]
