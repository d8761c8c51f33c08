"""A local realtime server for tests, examples and benchmarks, without a key or a network.

It replies from a script of replies and faults, not from a model, and logs all messages.
"""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias

from aiohttp import WSMsgType, web

from .conversation import ServerSession
from .script import Fault, Reply, Say

__all__ = ["LocalRealtimeServer", "Peer"]

ReplyLike: TypeAlias = "Reply | Callable[[ServerSession, dict[str, Any]], Reply]"


class LocalRealtimeServer:
    """Implements OpenAI's realtime protocol on loopback, with the checks of OpenAI's server.

        async with LocalRealtimeServer([Reply(Say("Hello."))]) as server:
            model = OpenAIRealtimeModel(base_url=server.base_url, api_key="none")
            session = RealtimeRunner(agent, model=model).run()

    Each response is the next of `replies`, or `otherwise` once they are used up. `log` contains all
    messages of both sides, as `(side, connection, message)`. `errors` contains the refused messages
    of clients.
    """

    def __init__(
        self,
        replies: Sequence[ReplyLike] = (),
        *,
        otherwise: ReplyLike | None = None,
        faults: Sequence[Fault] | None = None,
    ) -> None:
        self.replies: deque[ReplyLike] = deque(replies)
        self.otherwise: ReplyLike = otherwise or Reply(Say("All right."))
        self.faults = list(faults or ())
        self.handshakes: deque[int | asyncio.Event] = deque()
        """The outcomes of the next handshakes: a status such as 401, or an event to wait for.

        0 accepts the handshake.
        """
        self.refusals: dict[str, str] = {}
        """The error codes for kinds of messages that are refused once."""
        self.transcriptions: Callable[[ServerSession, dict[str, Any], str], Any] | None = None
        """Called instead of transcribing at once."""
        self.sessions: list[ServerSession] = []
        self.log: list[tuple[str, int, dict[str, Any]]] = []
        self.errors: list[tuple[str, dict[str, Any]]] = []
        self.responses: list[tuple[str, dict[str, Any], list[dict[str, Any]]]] = []
        self.truncations: list[tuple[str, int]] = []
        self.headers: list[dict[str, str]] = []
        self.received_audio = 0
        self.keeps_log = True
        self._changed = asyncio.Event()
        self._runner: web.AppRunner | None = None
        self._port = 0

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/v1/realtime", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for session in self.sessions:
            session.peer.abort()
            await session.stop()
        if self._runner is not None:
            await self._runner.cleanup()

    @property
    def base_url(self) -> str:
        """The `base_url` for a model."""
        return f"ws://127.0.0.1:{self._port}/v1"

    @property
    def url(self) -> str:
        """The `url` for `model_config`."""
        return f"{self.base_url}/realtime?model=gpt-realtime-2.1"

    @property
    def session(self) -> ServerSession:
        """The newest connection."""
        return self.sessions[-1]

    def sent(self, kind: str | None = None, connection: int | None = None) -> list[dict[str, Any]]:
        """Return the messages of that type that clients have sent."""
        return [
            one
            for side, number, one in self.log
            if side == "client" and kind in (None, one.get("type")) and connection in (None, number)
        ]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until the condition holds. It is checked after each message."""
        while not condition():
            self._changed.clear()
            await self._changed.wait()

    async def until_sent(self, kind: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until clients have sent `count` messages of that type."""
        await self.until(lambda: len(self.sent(kind)) >= count)
        return self.sent(kind)

    def next_reply(self, session: ServerSession, options: dict[str, Any]) -> Reply:
        found = self.replies.popleft() if self.replies else self.otherwise
        return found if isinstance(found, Reply) else found(session, options)

    def refusal_of(self, message: dict[str, Any]) -> str | None:
        return self.refusals.pop(message["type"], None)

    async def transcribe(self, session: ServerSession, item: dict[str, Any], text: str) -> None:
        if self.transcriptions is not None:
            self.transcriptions(session, item, text)
        else:
            await session.transcribed(item, text)

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(dict(request.headers))
        if self.handshakes:
            planned = self.handshakes.popleft()
            if isinstance(planned, asyncio.Event):
                await planned.wait()
            elif planned:
                return web.Response(status=planned)
        socket = web.WebSocketResponse(max_msg_size=64 * 1024 * 1024, compress=False)
        await socket.prepare(request)
        peer = Peer(self, socket, request, len(self.sessions))
        session = ServerSession(self, peer, request.query.get("model", ""))
        self.sessions.append(session)
        try:
            await session.begin()
            async for message in socket:
                if message.type is WSMsgType.TEXT:
                    await self._take(session, json.loads(message.data))
        except ConnectionError:
            pass  # the client is gone, or a fault has ended the connection
        finally:
            peer.is_open = False
            await session.stop()
            self._changed.set()
        return socket

    async def _take(self, session: ServerSession, message: dict[str, Any]) -> None:
        if self.keeps_log:
            self.log.append(("client", session.peer.number, message))
        fault = next(
            (one for one in self.faults if one.applies("client", message.get("type", ""))), None
        )
        if fault is None or fault.after or fault.action == "double":
            await session.handle(message)
        if fault is not None:
            await session.peer.suffer(fault, message)
        self._changed.set()

    def note(self, number: int, message: dict[str, Any]) -> None:
        """Log a sent message."""
        if self.keeps_log:
            self.log.append(("server", number, message))
        self._changed.set()


class Peer:
    """The connection to one client."""

    def __init__(
        self,
        server: LocalRealtimeServer,
        socket: web.WebSocketResponse,
        request: web.Request,
        number: int,
    ) -> None:
        self.server = server
        self.number = number
        self.is_open = True
        self._socket = socket
        self._request = request

    async def send(self, message: dict[str, Any]) -> None:
        fault = next(
            (one for one in self.server.faults if one.applies("server", message["type"])), None
        )
        if fault is None or fault.after or fault.action == "double":
            await self._put(message)
            if fault is not None and fault.action == "double":
                await self._put(message)
        if fault is not None:
            await self.suffer(fault, message)

    async def _put(self, message: dict[str, Any]) -> None:
        if not self.is_open:
            return
        self.server.note(self.number, message)
        await self.send_text(json.dumps(message))

    async def send_text(self, text: str) -> None:
        """Send a text verbatim."""
        if self.is_open:
            await self._socket.send_str(text)

    async def send_bytes(self, data: bytes) -> None:
        """Send bytes verbatim, in a binary frame."""
        if self.is_open:
            await self._socket.send_bytes(data)

    async def suffer(self, fault: Fault, message: dict[str, Any]) -> None:
        """Perform the action of a fault."""
        action = fault.action
        if isinstance(action, int):
            await self.close(action)
        elif action == "reset":
            self.abort()
        elif action in ("swallow", "double"):
            return
        elif isinstance(action, str):
            await self.send_text(action)
        else:
            await action(self, message)

    async def close(self, code: int = 1000) -> None:
        """Close the connection normally, with a code."""
        self.is_open = False
        await self._socket.close(code=code)

    def abort(self) -> None:
        """Abort the connection, like a network failure."""
        self.is_open = False
        if self._request.transport is not None:
            self._request.transport.abort()
