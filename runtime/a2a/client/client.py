"""The client of a remote agent: `A2AClient`.

It has one connection, for the event loop on which it is used. The SDK is imported with the first
request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Final, Literal, Self, TypeAlias
from urllib.parse import urlsplit

from ...errors import UsageError
from ..data.card import AgentCard
from ..data.message import A2AMessage, MessageLike, as_message
from ..data.parts import Metadata
from ..data.task import StreamEvent, Task
from ..sdk import need_sdk
from .given_transport import ClientTransport, GivenConnection
from .limits import ClientLimits

if TYPE_CHECKING:
    import httpx

    from .connection import Connection

__all__ = ["A2AClient", "Credentials", "Transport", "check_address"]

Transport: TypeAlias = Literal["JSONRPC", "HTTP+JSON", "GRPC"]
_Headers: TypeAlias = str | Mapping[str, str]
Credentials: TypeAlias = "_Headers | Callable[[], _Headers | Awaitable[_Headers]] | httpx.Auth"
"""A token or headers; a function that returns one of these; or an `httpx.Auth`."""

_NO_LIMITS: Final = ClientLimits()


class A2AClient:
    """Calls one remote agent.

        async with A2AClient("https://books.example") as client:
            print((await client.card()).name)
            async for event in client.stream("find a book"):
                print(event)

    `url` is the base address of its card: `<url>/.well-known/agent-card.json`. Requests go only to
    that server, whatever the card contains: if the card names another address, they go to `url`
    with `handler_path`. To use the card's own addresses, pass the card itself (an `AgentCard`, or
    its JSON as a dict, of version 0.2.5, 0.3 or 1.0) instead of an address. `transport` may be a
    custom `ClientTransport`. `extensions` are the URIs of the requested extensions. A stream has no
    time limit: end it by leaving it.
    """

    def __init__(
        self,
        url: str | AgentCard | Mapping[str, object] | None = None,
        handler_path: str = "/a2a",
        *,
        auth: Credentials | None = None,
        http_client: httpx.AsyncClient | None = None,
        transport: Transport | ClientTransport | None = None,
        limits: ClientLimits | None = None,
        extensions: Sequence[str] = (),
    ) -> None:
        check_address("A2AClient", url, transport)
        if not isinstance(transport, ClientTransport):
            need_sdk("A2AClient")
        if not isinstance(handler_path, str) or (handler_path and not handler_path.startswith("/")):
            msg = f"A2AClient: handler_path must be a path such as '/a2a', got {handler_path!r}."
            raise UsageError(msg)
        self._url = url
        self._handler_path = handler_path
        self._auth = auth
        self._http_client = http_client
        self._transport = transport
        self._extensions = tuple(extensions)
        self._limits = limits if limits is not None else _NO_LIMITS
        self._connection: Connection | GivenConnection | None = None
        self._is_closed = False

    def __repr__(self) -> str:
        url = self._url
        shown = (
            f"{url.name!r}"
            if isinstance(url, AgentCard)
            else f"{url.get('name')!r}"
            if isinstance(url, Mapping)
            else f"{url}"
        )
        return f"A2AClient({shown})"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def _connected(self) -> Connection | GivenConnection:
        if self._is_closed:
            msg = f"{self!r} is closed. Make another one."
            raise UsageError(msg)
        if self._connection is None and isinstance(self._transport, ClientTransport):
            self._connection = GivenConnection(self._transport, self._limits)
        elif self._connection is None:
            assert self._url is not None
            assert not isinstance(self._transport, ClientTransport)
            from .connection import Connection, Settings  # noqa: PLC0415 -- the SDK takes a while to import, and only who asks an agent needs it

            settings = Settings(
                self._url,
                self._handler_path,
                self._auth,
                self._http_client,
                self._transport,
                self._limits,
                self._extensions,
            )
            self._connection = Connection(settings)
        return self._connection

    async def card(self) -> AgentCard:
        """Return the agent's card. It is fetched once."""
        return await self._connected().card()

    async def send(
        self,
        message: MessageLike,
        *,
        task_id: str | None = None,
        context_id: str | None = None,
        metadata: Metadata | None = None,
        wait: bool = True,
        history_length: int | None = None,
    ) -> Task | A2AMessage:
        """Send a message.

        Returns a message, or the task that it has started: when the task has ended or waits, or
        immediately, with `wait=False`.
        """
        said = _addressed(message, task_id, context_id)
        return await self._connected().send(said, metadata or {}, wait=wait, history=history_length)

    async def stream(
        self,
        message: MessageLike,
        *,
        task_id: str | None = None,
        context_id: str | None = None,
        metadata: Metadata | None = None,
    ) -> AsyncGenerator[StreamEvent, None]:
        """Send a message, and yield its events until the stream ends: one message, or the task
        first and then its changes.

        An agent that does not stream answers with one item.
        """
        said = _addressed(message, task_id, context_id)
        async with aclosing(_pumped(self._connected().stream(said, metadata or {}))) as events:
            async for event in events:
                yield event

    async def get(self, task_id: str, *, history_length: int | None = None) -> Task:
        """Return the current state of the task."""
        return await self._connected().get(_id(task_id), history_length)

    async def cancel(self, task_id: str) -> Task:
        """Cancel the task."""
        return await self._connected().cancel(_id(task_id))

    async def subscribe(self, task_id: str) -> AsyncGenerator[StreamEvent, None]:
        """Yield the current state of the task, and its changes, until it ends or waits."""
        async with aclosing(_pumped(self._connected().subscribe(_id(task_id)))) as events:
            async for event in events:
                yield event

    async def find(self, message_id: str) -> Task | None:
        """Return the task that a message has started, if it is among the latest ones.

        For a client that does not know whether its message has arrived.
        """
        return await self._connected().find(message_id)

    async def forget_card(self) -> None:
        """Fetch the card again before the next request: the server may have been replaced."""
        if self._connection is not None:
            await self._connection.forget_card()

    def is_closed(self) -> bool:
        return self._is_closed

    async def close(self) -> None:
        """Close the connections. A client that was passed as `http_client` stays open."""
        self._is_closed = True
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()


def check_address(who: str, url: object, transport: object) -> None:
    """Raise `UsageError` if this is neither a server's address nor a card, or for an unknown
    transport.
    """
    if isinstance(url, str):
        try:
            parts = urlsplit(url)
            good = (
                parts.scheme in ("http", "https")
                and bool(parts.hostname)
                and (parts.port is None or parts.port > 0)
            )
        except ValueError:
            good = False
        if not good:
            msg = (
                f"{who}: url must be the address of a server, such as "
                f"'https://agents.example', or an AgentCard, got {url!r}."
            )
            raise UsageError(msg)
        if parts.username is not None or parts.password is not None:
            msg = (
                f"{who}: the address must not contain a user name or password. Pass auth= instead."
            )
            raise UsageError(msg)
    elif url is None and isinstance(transport, ClientTransport):
        return
    elif not isinstance(url, AgentCard | Mapping):
        msg = (
            f"{who}: url must be the address of a server, such as "
            f"'https://agents.example', or an AgentCard, got {url!r}."
        )
        raise UsageError(msg)
    if not isinstance(transport, ClientTransport) and transport not in (
        None,
        "JSONRPC",
        "HTTP+JSON",
        "GRPC",
    ):
        msg = (
            f"{who}: transport must be 'JSONRPC', 'HTTP+JSON', 'GRPC' or a "
            f"ClientTransport, got {transport!r}. Omit it to use the one in the agent's "
            "card."
        )
        raise UsageError(msg)


def _addressed(message: MessageLike, task_id: str | None, context_id: str | None) -> A2AMessage:
    said = as_message(message, "user")
    if not said.parts:
        msg = "the message must not be empty. Pass a string, or at least one part."
        raise UsageError(msg)
    if task_id is None and context_id is None:
        return said
    return replace(said, task_id=task_id or said.task_id, context_id=context_id or said.context_id)


def _id(task_id: object) -> str:
    if not isinstance(task_id, str) or not task_id:
        msg = f"task_id must be the id of a task (a string), got {task_id!r}."
        raise UsageError(msg)
    return task_id


async def _pumped(events: AsyncIterator[StreamEvent]) -> AsyncGenerator[StreamEvent, None]:
    """Yield the events, which a separate task reads."""
    from .pump import Pump  # noqa: PLC0415 -- beside the connection

    pump = Pump(events)
    try:
        while (event := await pump.next()) is not None:
            yield event
    finally:
        await pump.aclose()
