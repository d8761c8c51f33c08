"""One remote agent, on one event loop: wraps the SDK's client.

This module owns the HTTP client and the gRPC channels that it has made, and the card. It checks the
order of a stream: either one message, or one task and its changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

import httpx
from a2a.client import ClientCallContext, ClientConfig, ClientFactory
from a2a.client.card_resolver import A2ACardResolver
from a2a.client.errors import AgentCardResolutionError
from a2a.client.interceptors import AfterArgs, BeforeArgs, ClientCallInterceptor
from a2a.extensions.common import HTTP_EXTENSION_HEADER
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import ParseError

from ...errors import UsageError
from ...maybe_await import maybe_await
from ..conversion import (
    card_from_wire,
    card_to_wire,
    event_from_wire,
    message_to_wire,
    metadata_to_wire,
    task_from_wire,
)
from ..data.card import AgentCard
from ..data.message import A2AMessage
from ..data.parts import Metadata
from ..data.task import StreamEvent, Task
from ..errors import A2AProtocolError, one_line
from .bounded_http import make_http
from .former_servers import json_rpc_transport
from .interfaces import chosen
from .limits import ClientLimits
from .refusals import told

if TYPE_CHECKING:
    from a2a.client import Client

__all__ = ["Connection", "Settings"]

T = TypeVar("T")

Headers: TypeAlias = Mapping[str, str]
_PAGE: Final = 50
_PAGES: Final = 4
_CARD: Final = "/.well-known/agent-card.json"
_FORMER_CARD: Final = "/.well-known/agent.json"
_NOT_FOUND: Final = 404


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a connection. `source` is the agent's address, or its card."""

    source: str | AgentCard | Mapping[str, object]
    handler_path: str
    auth: object
    http_client: object
    transport: str | None
    limits: ClientLimits
    extensions: tuple[str, ...] = ()


class _Message:
    """A message in a stream, disguised so that the SDK does not recognize it."""

    def __init__(self, message: pb.Message) -> None:
        self.message = message

    def HasField(self, name: str) -> bool:  # noqa: N802 -- protobuf's
        del name
        return False


class _Messages(ClientCallInterceptor):
    """Lets a stream that is one message come to its end.

    The SDK would abandon it in the middle, for the event loop to close later.
    """

    async def before(self, args: BeforeArgs) -> None:
        """Do nothing."""

    async def after(self, args: AfterArgs) -> None:
        if args.method == "send_message_streaming" and args.result.HasField("message"):
            args.result = _Message(args.result.message)


class Connection:
    """One agent, on one loop."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        given, auth = settings.http_client, settings.auth
        if given is not None and not isinstance(given, httpx.AsyncClient):
            msg = f"http_client must be an httpx.AsyncClient, got {given!r}."
            raise UsageError(msg)
        if (
            settings.limits.connect
            and auth is not None
            and not isinstance(auth, str | Mapping | httpx.Auth)
            and not callable(auth)
        ):
            msg = (
                "auth must be a token, a mapping of headers, a function that returns one "
                f"of these, or an httpx.Auth, got a {type(auth).__name__}."
            )
            raise UsageError(msg)
        self._http = make_http(
            settings.limits, given, auth if isinstance(auth, httpx.Auth) else None
        )
        self._opening = asyncio.Lock()
        self._card: AgentCard | None = None
        # The streaming one, and the other.
        self._clients: tuple[Client, Client] | None = None
        self._channels: dict[str, Any] = {}
        self.is_closed = False
        source = settings.source
        self.who = (
            f"the agent at {source}"
            if isinstance(source, str)
            else f"the agent {one_line(_name_of(source), 80)!r}"
        )

    # --- the card, and its client ---

    async def card(self) -> AgentCard:
        await self._open()
        assert self._card is not None
        return self._card

    async def _open(self) -> tuple[Client, Client]:
        if self.is_closed:
            msg = f"the client of {self.who} is closed. Make another one."
            raise UsageError(msg)
        async with self._opening:
            if self._clients is None:
                card = await self._fetch()
                settings = self._settings
                dialled = settings.source if isinstance(settings.source, str) else None
                try:
                    taken = chosen(card, dialled, settings.handler_path, settings.transport)
                    self._clients = (
                        self._client(taken, streaming=True),
                        self._client(taken, streaming=False),
                    )
                except ValueError as error:
                    raise told(error, self.who) from error
                self._card = card_from_wire(card)
            return self._clients

    def _client(self, card: pb.AgentCard, *, streaming: bool) -> Client:
        bindings = [card.supported_interfaces[0].protocol_binding]
        config = ClientConfig(
            streaming=streaming,
            httpx_client=self._http,
            supported_protocol_bindings=bindings,
            grpc_channel_factory=self._channel,
        )
        factory = ClientFactory(config)
        factory.register("JSONRPC", json_rpc_transport)
        return factory.create(card, [_Messages()])

    def _channel(self, url: str) -> Any:
        if url not in self._channels:
            from grpc import aio, ssl_channel_credentials  # type: ignore[import-untyped]  # noqa: PLC0415 -- an extra of its own, without stubs

            parts = urlsplit(url if "://" in url else f"//{url}")
            options = (
                ("grpc.max_receive_message_length", self._settings.limits.response),
                ("grpc.keepalive_time_ms", 30_000),
            )
            if parts.scheme in ("https", "grpcs"):
                self._channels[url] = aio.secure_channel(
                    parts.netloc, ssl_channel_credentials(), options=options
                )
            else:
                self._channels[url] = aio.insecure_channel(parts.netloc, options=options)
        return self._channels[url]

    async def _fetch(self) -> pb.AgentCard:
        source = self._settings.source
        if not isinstance(source, str):
            try:
                return card_to_wire(source)
            except ParseError as error:
                msg = f"{self.who}: its card is not a valid agent card: {one_line(str(error), 200)}"
                raise UsageError(msg) from error
        try:
            card = await self._fetched(source)
        except Exception as error:
            cause = error.__cause__ or error
            if isinstance(cause, ValueError | RecursionError | ParseError):
                msg = (
                    f"{source.rstrip('/')}{_CARD} is not a valid agent card: "
                    f"{one_line(str(cause), 200)}"
                )
                raise A2AProtocolError(msg) from error
            raise told(error, self.who) from error
        if not card.name or not card.supported_interfaces:
            what = "a name" if not card.name else "an interface"
            msg = f"{source.rstrip('/')}{_CARD} is not a valid agent card: it lacks {what}."
            raise A2AProtocolError(msg)
        return card

    async def _fetched(self, source: str) -> pb.AgentCard:
        """Fetch the card, from the path of this version or of former ones."""
        kwargs = {"headers": await self._headers(), "timeout": self._settings.limits.request}
        resolver, missing = A2ACardResolver(self._http, source), None
        for path in (_CARD, _FORMER_CARD, self._settings.handler_path + _FORMER_CARD):
            try:
                return await resolver.get_agent_card(path, http_kwargs=kwargs)
            except AgentCardResolutionError as error:
                if error.status_code != _NOT_FOUND:
                    raise
                missing = missing or error
        assert missing is not None
        raise missing

    async def forget_card(self) -> None:
        """Fetch the card again before the next request: the server may have been replaced."""
        if isinstance(self._settings.source, str):
            async with self._opening:
                self._clients = None

    # --- requests ---

    async def _headers(self) -> dict[str, str]:
        auth: Any = self._settings.auth
        if auth is None or isinstance(auth, httpx.Auth):
            return {}
        if callable(auth):
            auth = await maybe_await(auth())
        if isinstance(auth, str):
            return {"Authorization": f"Bearer {auth}"}
        return {str(name): str(value) for name, value in auth.items()}

    async def _context(self, timeout: float | None = None) -> ClientCallContext:
        parameters = await self._headers()
        if self._settings.extensions:
            parameters[HTTP_EXTENSION_HEADER] = ", ".join(self._settings.extensions)
        return ClientCallContext(timeout=timeout, service_parameters=parameters)

    async def ask(self, call: Callable[[Client, ClientCallContext], Awaitable[T]]) -> T:
        """Make a request that is answered immediately."""
        _, client = await self._open()
        try:
            return await call(client, await self._context(self._settings.limits.request))
        except Exception as error:
            raise told(error, self.who) from error

    async def send(
        self, message: A2AMessage, metadata: Metadata, *, wait: bool, history: int | None
    ) -> Task | A2AMessage:
        _, client = await self._open()
        request = _request(message, metadata, wait=wait, history=history)
        context = await self._context(None if wait else self._settings.limits.request)
        found: StreamEvent | None = None
        try:
            async for answer in client.send_message(request, context=context):
                # Read to the end: the loop would close an abandoned stream later.
                found = event_from_wire(answer)
        except Exception as error:
            raise told(error, self.who) from error
        if isinstance(found, Task | A2AMessage):
            return found
        msg = (
            f"{self.who} answered a message with neither a task nor a message, as Agent2Agent "
            "requires. Check the address and the server."
        )
        raise A2AProtocolError(msg)

    async def stream(
        self, message: A2AMessage, metadata: Metadata, *, history: int | None = None
    ) -> AsyncGenerator[StreamEvent, None]:
        client, _ = await self._open()
        request = _request(message, metadata, wait=True, history=history)
        async with aclosing(
            self._checked(
                client.send_message(request, context=await self._context()), message.task_id
            )
        ) as events:
            async for event in events:
                yield event

    async def subscribe(self, task_id: str) -> AsyncGenerator[StreamEvent, None]:
        client, _ = await self._open()
        request = pb.SubscribeToTaskRequest(id=task_id)
        async with aclosing(
            self._checked(client.subscribe(request, context=await self._context()), task_id)
        ) as events:
            async for event in events:
                yield event

    async def _checked(
        self, answers: AsyncIterator[pb.StreamResponse | _Message], task_id: str | None
    ) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of a stream, after checking that they are one message, or one task's."""
        count = 0
        try:
            async for answer in answers:
                event = event_from_wire(answer.message if isinstance(answer, _Message) else answer)
                if event is None:
                    continue
                count += 1
                task_id = self._check(event, task_id, count)
                yield event
        except NotImplementedError as error:
            msg = (
                f"{self.who} does not support streaming, according to its card. Send the message "
                "without streaming."
            )
            raise UsageError(msg) from error
        except Exception as error:
            raise told(error, self.who) from error

    def _check(self, event: StreamEvent, task_id: str | None, count: int) -> str | None:
        most = self._settings.limits.events
        if count > most:
            msg = (
                f"{self.who} sends more than {most:,} events in one stream, which is the limit. "
                "If that is intended, raise ClientLimits(events=...)."
            )
            raise A2AProtocolError(msg)
        if isinstance(event, A2AMessage):
            if task_id is not None and count > 1:
                msg = (
                    f"{self.who} sent a message in the stream of a task, where Agent2Agent "
                    "allows only the task's events. This is a fault of the server."
                )
                raise A2AProtocolError(msg)
            return event.task_id or task_id
        its = event.id if isinstance(event, Task) else event.task_id
        if not its or (task_id is not None and its != task_id):
            msg = (
                f"{self.who} sent an event of the task {one_line(its, 80)!r}, but the request "
                f"was about {task_id or 'one with an id'!r}. This is a fault of the server."
            )
            raise A2AProtocolError(msg)
        return its

    async def get(self, task_id: str, history: int | None) -> Task:
        request = pb.GetTaskRequest(id=task_id)
        if history is not None:
            request.history_length = history
        return self._same(
            await self.ask(lambda client, context: client.get_task(request, context=context)),
            task_id,
        )

    async def cancel(self, task_id: str) -> Task:
        request = pb.CancelTaskRequest(id=task_id)
        return self._same(
            await self.ask(lambda client, context: client.cancel_task(request, context=context)),
            task_id,
        )

    async def find(self, message_id: str) -> Task | None:
        """Return the task that a message has started, if it is among the latest ones."""
        token = ""
        for _ in range(_PAGES):
            request = pb.ListTasksRequest(page_size=_PAGE, page_token=token, history_length=_PAGE)
            page = await self.ask(
                lambda client, context, request=request: client.list_tasks(request, context=context)  # type: ignore[misc]  # bound now
            )
            for task in page.tasks:
                if any(message.message_id == message_id for message in task.history):
                    return task_from_wire(task)
            token = page.next_page_token
            if not token:
                break
        return None

    def _same(self, wire: pb.Task, task_id: str) -> Task:
        task = task_from_wire(wire)
        self._check(task, task_id, 1)
        return task

    async def close(self) -> None:
        self.is_closed = True
        self._clients = None
        channels, self._channels = list(self._channels.values()), {}
        for channel in channels:
            await channel.close()
        await self._http.aclose()


def _name_of(card: AgentCard | Mapping[str, object]) -> str:
    return card.name if isinstance(card, AgentCard) else str(card.get("name", ""))


def _request(
    message: A2AMessage, metadata: Metadata, *, wait: bool, history: int | None
) -> pb.SendMessageRequest:
    request = pb.SendMessageRequest(
        message=message_to_wire(message),
        configuration=pb.SendMessageConfiguration(return_immediately=not wait),
    )
    if history is not None:
        request.configuration.history_length = history
    if metadata:
        request.metadata.CopyFrom(metadata_to_wire(metadata))
    return request
