"""The clients of a host: their requests, in order, and the replies.

It detects lost links and lost clients. Each request is passed on once, without being interpreted.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from ...codec.packing import pack
from ...errors import CheckpointError
from ...log import loggers
from ..limits import Limits
from ..link_order import Inbox, Reply, Request

__all__ = ["ELSEWHERE", "ClientPort", "Clients"]

ELSEWHERE: Final = "elsewhere"
"""The code of a reply: the request is unfinished, and must be sent to another host."""

_PROMPT_SECONDS: Final = 0.005
"""Seconds that the call with a batch waits for the first reply."""

_GAP_SECONDS: Final = 1.0
"""Seconds that a batch may be missing before the link counts as lost."""


class ClientPort:
    """One client."""

    __slots__ = (
        "_clients",
        "_gap_timer",
        "_prompt",
        "_sent_on",
        "_woken",
        "arrived",
        "heard",
        "inbox",
        "name",
    )

    def __init__(self, clients: Clients, name: str) -> None:
        self.name = name
        self.inbox = Inbox()
        self.heard = clients.loop.time()
        self._clients = clients
        # Set whenever a batch has arrived, and when the client has left.
        self.arrived = asyncio.Event()
        self._woken = asyncio.Event()
        self._gap_timer: asyncio.TimerHandle | None = None
        self._prompt: asyncio.Future[None] | None = None  # while a batch waits for its replies
        # Requests that the client must send to another host, with their keys, until it has
        # acknowledged that.
        self._sent_on: dict[int, tuple[str, ...]] = {}

    def send_on(self, request_id: int, keys: tuple[str, ...], body: bytes = b"") -> None:
        """Make the client send the request to another host."""
        self._sent_on[request_id] = keys
        self.answer(request_id, ELSEWHERE, body)

    def is_sent_on(self, *keys: str) -> bool:
        """Return whether a request under one of these keys was sent on and not acknowledged.

        Requests that the client has sent after it must not be handled before it.
        """
        answers = self.inbox.answers
        self._sent_on = {one: its for one, its in self._sent_on.items() if one in answers}
        return any(key in its for its in self._sent_on.values() for key in keys)

    def answer(self, request_id: int, code: str, body: bytes = b"") -> None:
        self.inbox.answer(Reply(request_id, code, body))
        if self._prompt is None:
            self._woken.set()
        else:
            self._end_prompt()

    def answer_value(self, request_id: int, value: object) -> None:
        """Answer with a value. If it cannot be sent, the caller gets an error."""
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
        """Take a batch. Return the requests to handle now."""
        self.heard = self._clients.loop.time()
        try:
            found = self.inbox.take(link, number, data)
        except CheckpointError as error:
            loggers.cluster.warning("A link of client %s cannot continue: %s", self.name, error)
            self.break_link()
            return []
        self.arrived.set()
        self._clients.heard.set()
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
        loggers.cluster.warning(
            "A batch of client %s is missing for %g s: its link counts as lost.",
            self.name,
            _GAP_SECONDS,
        )
        self.break_link()

    def break_link(self) -> None:
        """End the replies: the client opens another link, and sends again."""
        if self._gap_timer is not None:
            self._gap_timer.cancel()
            self._gap_timer = None
        self.inbox.open("")
        self.arrived.set()
        self._woken.set()

    async def prompt(self, link: str) -> bytes:
        """Return the replies that are ready at once, as the result of a batch's call.

        This takes half the time of a stream. Later replies use the stream.
        """
        self._end_prompt()
        if not self.inbox.has_replies:
            ready = self._prompt = self._clients.loop.create_future()
            timer = self._clients.loop.call_later(_PROMPT_SECONDS, self._end_prompt)
            try:
                await ready
            except asyncio.CancelledError:
                self._woken.set()
                raise
            finally:
                timer.cancel()
        if self.inbox.link != link or not self.inbox.has_replies:
            return b""
        found = self._take_replies()
        if self.inbox.has_replies:
            self._woken.set()
        return found

    def _end_prompt(self) -> None:
        ready, self._prompt = self._prompt, None
        if ready is not None and not ready.done():
            ready.set_result(None)

    def _take_replies(self) -> bytes:
        clients = self._clients
        return self.inbox.take_replies(clients.limits.batch_most, clients.list_number())

    async def replies(self, link: str) -> AsyncIterator[bytes]:
        """Yield the replies, as long as the link is open."""
        self.break_link()
        self.inbox.open(link)
        while self.inbox.link == link:
            if self.inbox.has_replies:
                yield self._take_replies()
            else:
                self._woken.clear()
                await self._woken.wait()


class Clients:
    """All clients of one incarnation of a host."""

    def __init__(
        self, limits: Limits, list_number: Callable[[], int], lost: Callable[[str], object]
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.limits = limits
        self.list_number = list_number
        self._lost = lost
        self._ports: dict[str, ClientPort] = {}
        # Set whenever a batch has arrived, because it may acknowledge answers.
        self.heard = asyncio.Event()

    def find(self, client: str) -> ClientPort | None:
        return self._ports.get(client)

    def enter(self, client: str) -> tuple[ClientPort, bool]:
        """Return the client, and whether it was known before."""
        port = self._ports.get(client)
        if port is not None:
            port.heard = self.loop.time()
            return port, True
        port = self._ports[client] = ClientPort(self, client)
        return port, False

    def look(self) -> None:
        """Remove the clients that have been silent for too long."""
        for name, port in list(self._ports.items()):
            if self.loop.time() - port.heard > self.limits.link_seconds:
                self.leave(name)

    def leave(self, client: str) -> None:
        """Remove a client."""
        port = self._ports.pop(client, None)
        if port is not None:
            port.break_link()
            self._lost(client)

    def close(self) -> None:
        for port in self._ports.values():
            port.break_link()
        self._ports.clear()

    async def wait_received(self, seconds: float) -> None:
        """Wait until the clients have received all answers, for at most `seconds`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while any(port.inbox.answers for port in self._ports.values()):
                    self.heard.clear()
                    await self.heard.wait()

    def state(self) -> dict[str, Any]:
        return {"clients": len(self._ports)}
