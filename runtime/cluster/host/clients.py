"""The clients of a host: what each asks, in its order, and what it is answered.

Owns: the links, when one is lost, and when a client is. It must never look into a request: it hands each on, once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from ...codec.packing import pack
from ...errors import CheckpointError
from ...log import loggers
from ..limits import Limits
from ..link_order import Inbox, Reply, Request

__all__ = ["ClientPort", "Clients"]

_GAP_SECONDS: Final = 1.0
"""For how long a batch may be missing, before the link counts as lost."""


class ClientPort:
    """One client."""

    __slots__ = ("_clients", "_gap_timer", "_woken", "arrived", "heard", "inbox", "name")

    def __init__(self, clients: Clients, name: str) -> None:
        self.name = name
        self.inbox = Inbox()
        self.heard = clients.loop.time()
        self._clients = clients
        self.arrived = asyncio.Event()  # set whenever a batch has come, and when the client has left
        self._woken = asyncio.Event()
        self._gap_timer: asyncio.TimerHandle | None = None

    def answer(self, request_id: int, code: str, body: bytes = b"") -> None:
        self.inbox.answer(Reply(request_id, code, body))
        self._woken.set()

    def answer_value(self, request_id: int, value: object) -> None:
        """With a value; one that cannot travel is an error for who has asked."""
        try:
            self.answer(request_id, "ok", pack(value))
        except CheckpointError as error:
            self.answer_error(request_id, error)

    def answer_error(self, request_id: int, error: BaseException) -> None:
        try:
            body = pack(error)
        except CheckpointError:
            body = pack(CheckpointError(f"{type(error).__name__}: {error}"))
        self.answer(request_id, "error", body)

    def take(self, link: str, number: int, data: bytes) -> list[Request]:
        """The requests that are to be handled now."""
        self.heard = self._clients.loop.time()
        try:
            found = self.inbox.take(link, number, data)
        except CheckpointError as error:
            loggers.cluster.warning("A link of client %s cannot go on: %s", self.name, error)
            self.break_link()
            return []
        self.arrived.set()
        if self.inbox.has_replies:
            self._woken.set()
        if self._gap_timer is not None and not self.inbox.has_gap:
            self._gap_timer.cancel()
            self._gap_timer = None
        elif self._gap_timer is None and self.inbox.has_gap:
            self._gap_timer = self._clients.loop.call_later(_GAP_SECONDS, self._gap_is_lasting)
        return found

    def _gap_is_lasting(self) -> None:
        self._gap_timer = None
        loggers.cluster.warning("A batch of client %s is missing for %g s: its link counts as lost.", self.name, _GAP_SECONDS)
        self.break_link()

    def break_link(self) -> None:
        """End the replies: the client opens another link, and sends again."""
        if self._gap_timer is not None:
            self._gap_timer.cancel()
            self._gap_timer = None
        self.inbox.open("")
        self.arrived.set()
        self._woken.set()

    async def replies(self, link: str) -> AsyncIterator[bytes]:
        """The replies, as long as the link is there."""
        self.break_link()
        self.inbox.open(link)
        clients = self._clients
        while self.inbox.link == link:
            if self.inbox.has_replies:
                yield self.inbox.take_replies(clients.limits.batch_most, clients.list_number())
            else:
                self._woken.clear()
                await self._woken.wait()


class Clients:
    """All clients of one incarnation of a host."""

    def __init__(self, limits: Limits, list_number: Callable[[], int], lost: Callable[[str], object]) -> None:
        self.loop = asyncio.get_running_loop()
        self.limits = limits
        self.list_number = list_number
        self._lost = lost
        self._ports: dict[str, ClientPort] = {}

    def find(self, client: str) -> ClientPort | None:
        return self._ports.get(client)

    def enter(self, client: str) -> tuple[ClientPort, bool]:
        """The client, and whether it was known before."""
        port = self._ports.get(client)
        if port is not None:
            port.heard = self.loop.time()
            return port, True
        port = self._ports[client] = ClientPort(self, client)
        return port, False

    def look(self) -> None:
        """Forget those that have said nothing for too long."""
        for name, port in list(self._ports.items()):
            if self.loop.time() - port.heard > self.limits.link_seconds:
                self.leave(name)

    def leave(self, client: str) -> None:
        """A client is gone."""
        port = self._ports.pop(client, None)
        if port is not None:
            port.break_link()
            self._lost(client)

    def close(self) -> None:
        for port in self._ports.values():
            port.break_link()
        self._ports.clear()

    def state(self) -> dict[str, Any]:
        return {"clients": len(self._ports)}
