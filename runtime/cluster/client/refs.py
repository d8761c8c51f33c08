"""A reference to an actor on another machine, which can itself be sent there.

A ref names a cluster, one incarnation of a host, and an id. It uses a client of the running event
loop. An actor lives in memory: when that incarnation of the host has ended, every ref raises
`HostLost`, even if a host of the same name is back.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary, WeakSet

from ...codec.packing import pack, register_type, unpack
from ...errors import ActorDeadError, AskTimeout, CheckpointError, UsageError
from ..errors import HostLost
from ..transport import HostGone

if TYPE_CHECKING:
    from ..link_order import Reply
    from .link import Call
    from .routes import Routes

__all__ = ["RemoteRef", "enter_client", "host_client", "packed_message"]

# The clients through which refs in messages reach their actors. A serialized ref cannot contain a
# client.
_clients: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, WeakSet[Routes]]] = WeakKeyDictionary()

_MARGIN: Final = 0.5
"""Seconds that the caller waits longer than the actor's host.

The host knows better why there is no reply.
"""


def enter_client(routes: Routes) -> None:
    """Let refs of that cluster, on this event loop, use that client as long as it is open."""
    _clients.setdefault(asyncio.get_running_loop(), WeakSet()).add(routes)


def host_client() -> Routes | None:
    """Return the client of the host that this event loop belongs to, or None."""
    try:
        known = _clients.get(asyncio.get_running_loop(), ())
    except RuntimeError:
        return None
    return next((one for one in known if one.is_of_host and not one.closed), None)


def packed_message(what: str, value: object) -> bytes:
    """Pack a value. Raise `UsageError` that names the part that cannot be sent."""
    try:
        return pack(value)
    except CheckpointError as error:
        msg = (
            f"{what}(...): the arguments must be values that can be sent to another process. "
            f"{error}"
        )
        raise UsageError(msg) from error


@dataclass(frozen=True, slots=True)
class RemoteRef:
    """An actor in a cluster.

    It can be sent in messages, and works in any client and host of that cluster.
    """

    cluster: str
    host: str
    incarnation: str
    id: str

    def tell(self, message: object) -> None:
        """Put a message into the mailbox, without waiting.

        Delivery is not confirmed: the actor may be gone.
        """
        self._post("tell", [self.id, message])

    async def send(self, message: object) -> None:
        """Put a message into the mailbox, and wait until it is there.

        Raises `ActorDeadError` or `HostLost`.
        """
        await self._answer("send", [self.id, message])

    async def request(self, message: object, *, timeout: float | None = None) -> Any:
        """Send a message, and wait for the reply.

        Raises the handler's exception, `ActorDeadError`, `HostLost` or `AskTimeout`.
        """
        answer = self._answer("ask", [self.id, message, timeout])
        if timeout is None:
            return await answer
        try:
            async with asyncio.timeout(timeout + _MARGIN) as limit:
                return await answer
        except TimeoutError:
            if not limit.expired():
                raise
            msg = (
                f"actor {self.id} on host {self.host!r} has not replied within {timeout:g} s. "
                "The message may still be handled. Pass a larger timeout, or check the host's "
                "log."
            )
            raise AskTimeout(msg, message=message) from None

    ask = request

    async def stop(self, *, drain: bool = False) -> bool:
        """Stop the actor. Return whether it was alive; an actor of a lost host was not."""
        try:
            return bool(await self._answer("stop", [self.id, drain]))
        except ActorDeadError:
            return False

    async def wait_stopped(self) -> None:
        """Wait until the actor has ended, for whatever reason."""
        try:
            await self._answer("wait", [self.id])
        except ActorDeadError:
            return

    async def is_alive(self) -> bool:
        """Return whether the actor accepts messages."""
        try:
            return bool(await self._answer("alive", [self.id]))
        except ActorDeadError:
            return False

    def _post(self, kind: str, said: object) -> Call:
        known = _clients.get(asyncio.get_running_loop(), ())
        # Use the oldest client: the messages of one sender to an actor must pass through one client
        # to stay in order.
        routes = min(
            (one for one in known if one.cluster == self.cluster and not one.closed),
            key=lambda one: one.serial,
            default=None,
        )
        if routes is None:
            msg = (
                f"{self!r}: this program is not connected to cluster {self.cluster!r}. Connect "
                f"first: `async with Cluster.connect({self.cluster!r})`."
            )
            raise UsageError(msg)
        return routes.link(self.host).post(
            kind, {"life": self.incarnation}, packed_message(kind, said)
        )

    async def _answer(self, kind: str, said: object) -> Any:
        call = self._post(kind, said)
        try:
            reply = await call.reply()
        except HostGone as gone:
            raise self._lost() from gone
        return self._value(reply)

    def _value(self, reply: Reply) -> Any:
        if reply.code == "lost":
            raise self._lost()
        value = unpack(reply.body, opaque=True)
        if reply.code == "error":
            raise value
        return value

    def _lost(self) -> HostLost:
        return HostLost(
            f"host {self.host!r} is gone, and so is its actor {self.id}, which existed in memory "
            "only. Spawn it again.",
            actor=self.id,
        )


register_type(RemoteRef, "offbook.RemoteRef")
