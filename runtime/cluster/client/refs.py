"""A reference to an actor on another machine, which may itself be sent there.

Owns: what a ref names (a cluster, one life of a host, an id), and which client of this loop it goes through. An actor lives in memory: when that life of the
host is over, every ref says so, also when a host of that name is back.
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

__all__ = ["RemoteRef", "enter_client", "packed_message"]

# The clients by which refs that come in messages reach their actors: bytes cannot hold one.
_clients: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, WeakSet[Routes]]] = WeakKeyDictionary()

_MARGIN: Final = 0.5
"""Seconds that the caller waits longer than the actor's host, which knows better why there is no reply."""


def enter_client(routes: Routes) -> None:
    """Let refs of that cluster, on this loop, go through that client as long as it is open."""
    _clients.setdefault(asyncio.get_running_loop(), WeakSet()).add(routes)


def packed_message(what: str, value: object) -> bytes:
    """Raises `UsageError` that says what of it cannot travel."""
    try:
        return pack(value)
    except CheckpointError as error:
        msg = f"{what}(...): what is given here goes to another process. {error}"
        raise UsageError(msg) from error


@dataclass(frozen=True, slots=True)
class RemoteRef:
    """An actor in a cluster. It can be sent in messages, and works in any client and host of that cluster."""

    cluster: str
    host: str
    incarnation: str
    id: str

    def tell(self, message: object) -> None:
        """Put a message into the mailbox, and do not wait. Whether it came is not told: the actor may be gone."""
        self._post("tell", [self.id, message])

    async def send(self, message: object) -> None:
        """The awaiting tell: the message is in the mailbox when this returns. Raises `ActorDeadError`, `HostLost`."""
        await self._answer("send", [self.id, message])

    async def request(self, message: object, *, timeout: float | None = None) -> Any:
        """Send a message, and wait for the reply. Raises the handler's exception, `ActorDeadError`, `HostLost` or `AskTimeout`."""
        answer = self._answer("ask", [self.id, message, timeout])
        if timeout is None:
            return await answer
        try:
            async with asyncio.timeout(timeout + _MARGIN) as limit:
                return await answer
        except TimeoutError:
            if not limit.expired():
                raise
            msg = f"actor {self.id} on host {self.host!r} has not replied within {timeout:g} s."
            raise AskTimeout(msg, message=message) from None

    ask = request

    async def stop(self, *, drain: bool = False) -> bool:
        """Stop it. Returns whether it was alive; one whose host is gone was not."""
        try:
            return bool(await self._answer("stop", [self.id, drain]))
        except ActorDeadError:
            return False

    async def wait_stopped(self) -> None:
        """Wait until it has ended, for whatever reason."""
        try:
            await self._answer("wait", [self.id])
        except ActorDeadError:
            return

    async def is_alive(self) -> bool:
        """Whether it takes messages."""
        try:
            return bool(await self._answer("alive", [self.id]))
        except ActorDeadError:
            return False

    def _post(self, kind: str, said: object) -> Call:
        known = _clients.get(asyncio.get_running_loop(), ())
        # The one that was there first: what one sender tells an actor has to go through one client, to keep its order.
        routes = min((one for one in known if one.cluster == self.cluster and not one.closed), key=lambda one: one.serial, default=None)
        if routes is None:
            msg = f"{self!r}: this program is not connected to cluster {self.cluster!r}: async with Cluster.connect({self.cluster!r})."
            raise UsageError(msg)
        return routes.link(self.host).post(kind, {"life": self.incarnation}, packed_message(kind, said))

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
        value = unpack(reply.body)
        if reply.code == "error":
            raise value
        return value

    def _lost(self) -> HostLost:
        return HostLost(f"host {self.host!r} is gone, and with it actor {self.id}: actors live in memory. Spawn it again.", actor=self.id)


register_type(RemoteRef, "understudy.RemoteRef")
