"""Servers of Agent2Agent to ask: made with the official SDK, on a real uvicorn; and one that sends
whatever bytes a test wants.
"""

import asyncio
import contextlib
import json
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Self

import uvicorn
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import a2a_pb2 as pb
from google.protobuf.struct_pb2 import Value
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse

from tests.doubles import quick_uvicorn
from tests.programs.servers import free_port

__all__ = [
    "Job",
    "RawServer",
    "SdkServer",
    "card_of",
    "data",
    "json_card",
    "send_json",
    "text",
]


def text(said: str) -> pb.Part:
    return pb.Part(text=said)


def data(value: Any) -> pb.Part:
    from google.protobuf.json_format import ParseDict

    return pb.Part(data=ParseDict(value, Value()), media_type="application/json")


def card_of(
    port: int,
    *,
    streaming: bool = True,
    transports: tuple[str, ...] = ("JSONRPC", "HTTP+JSON"),
    version: str = "1.0",
    **more: Any,
) -> pb.AgentCard:
    where = {
        "JSONRPC": f"http://127.0.0.1:{port}/a2a",
        "HTTP+JSON": f"http://127.0.0.1:{port}/rest",
        "GRPC": f"127.0.0.1:{more.pop('grpc_port', 0)}",
    }
    return pb.AgentCard(
        name=more.pop("name", "Theirs"),
        description="an agent of others",
        version="7",
        supported_interfaces=[
            pb.AgentInterface(url=where[one], protocol_binding=one, protocol_version=version)
            for one in transports
        ],
        capabilities=pb.AgentCapabilities(streaming=streaming),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[pb.AgentSkill(id="all", name="All", description="everything", tags=["t"])],
        **more,
    )


@dataclass
class Job:
    """One call of the agent of others."""

    context: RequestContext
    queue: EventQueue
    task: pb.Task | None = None

    @property
    def said(self) -> str:
        return self.context.get_user_input()

    @property
    def message(self) -> pb.Message:
        return self.context.message

    @property
    def is_new(self) -> bool:
        return self.context.current_task is None

    async def begin(self) -> TaskUpdater:
        """Make it a task, if it is none."""
        task = self.context.current_task
        if task is None:
            task = new_task_from_user_message(self.context.message)
            task.id, task.context_id = self.context.task_id, self.context.context_id
            await self.queue.enqueue_event(task)
        self.task = task
        return TaskUpdater(self.queue, task.id, task.context_id)

    async def reply(self, said: str) -> None:
        message = pb.Message(
            message_id="reply",
            role=pb.ROLE_AGENT,
            parts=[text(said)],
            context_id=self.context.context_id,
        )
        await self.queue.enqueue_event(message)


class _Executor(AgentExecutor):
    def __init__(self, play: Callable[[Job], Awaitable[None]], canceled: list[str]) -> None:
        self._play = play
        self._canceled = canceled

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await self._play(Job(context, event_queue))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self._canceled.append(context.task_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class _Uvicorn(quick_uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield


class SdkServer:
    """`with SdkServer(play) as server`: an agent of others at `server.url`, on a thread and a loop
    of its own. `server.canceled` are the tasks that were canceled.
    """

    def __init__(
        self,
        play: Callable[[Job], Awaitable[None]],
        *,
        port: int | None = None,
        store: Any = None,
        card: pb.AgentCard | None = None,
        v03: bool = False,
        token: str | None = None,
        **of_card: Any,
    ) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.store = store if store is not None else InMemoryTaskStore()
        self.canceled: list[str] = []
        self.requests: list[tuple[str, dict[str, str]]] = []
        grpc_port = free_port() if "GRPC" in of_card.get("transports", ()) else 0
        self.card = card or card_of(self.port, grpc_port=grpc_port, **of_card)
        self.handler = DefaultRequestHandler(_Executor(play, self.canceled), self.store, self.card)
        routes = [
            *create_agent_card_routes(self.card),
            *create_jsonrpc_routes(self.handler, "/a2a", enable_v0_3_compat=v03),
            *create_rest_routes(self.handler, path_prefix="/rest", enable_v0_3_compat=v03),
        ]
        self._app = Starlette(routes=routes)
        self._token = token
        self._grpc_port = grpc_port
        self._grpc: Any = None

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            request = Request(scope)
            self.requests.append((scope["path"], dict(request.headers)))
            if (
                self._token is not None
                and not scope["path"].startswith("/.well-known")
                and request.headers.get("authorization") != f"Bearer {self._token}"
            ):
                await PlainTextResponse("no", 401)(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def __enter__(self) -> Self:
        self.loop = asyncio.new_event_loop()
        self._started = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sdk-server", daemon=True)
        self._thread.start()
        assert self._started.wait(20)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
            runner.run(self._main())

    async def _main(self) -> None:
        config = uvicorn.Config(
            self._serve,
            host="127.0.0.1",
            port=self.port,
            log_level="critical",
            lifespan="off",
            interface="asgi3",
        )
        self._server = _Uvicorn(config)
        task = asyncio.create_task(self._server.serve())
        while not self._server.started:
            await asyncio.sleep(0.002)
        if self._grpc_port:
            import grpc
            from a2a.server.request_handlers.grpc_handler import GrpcHandler
            from a2a.types import a2a_pb2_grpc

            self._grpc = grpc.aio.server()
            a2a_pb2_grpc.add_A2AServiceServicer_to_server(GrpcHandler(self.handler), self._grpc)
            self._grpc.add_insecure_port(f"127.0.0.1:{self._grpc_port}")
            await self._grpc.start()
        self._started.set()
        await task
        if self._grpc is not None:
            await self._grpc.stop(0)

    def do(self, call: Callable[..., object], *args: object) -> None:
        """Call something on the server's loop."""
        self.loop.call_soon_threadsafe(call, *args)

    def stop(self) -> None:
        """End it, with all connections that are open. Agents that are at work there are lost."""
        if self._thread.is_alive():
            self._server.should_exit = self._server.force_exit = True
            # Newer Pythons wait for connections that are open.
            self.do(self._cut, threading.Event())
            self._thread.join(20)

    def cut(self) -> None:
        """Break off all connections, as a proxy does that is restarted."""
        done = threading.Event()
        self.do(self._cut, done)
        assert done.wait(5)

    def _cut(self, done: threading.Event) -> None:
        for connection in list(self._server.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()
        done.set()


class RawServer:
    """A server that answers each request as a test says: `answer(path, body, writer)` writes the
    bytes.
    """

    def __init__(
        self, answer: Callable[[str, bytes, asyncio.StreamWriter], Awaitable[None]]
    ) -> None:
        self._answer = answer
        self.paths: list[str] = []
        self._open: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for one in list(self._open):
            one.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            path = head.split(" ")[1]
            length = next(
                (
                    int(line.split(":")[1])
                    for line in head.split("\r\n")
                    if line.lower().startswith("content-length:")
                ),
                0,
            )
            self.paths.append(path)
            await self._answer(path, await reader.readexactly(length), writer)
        except (asyncio.CancelledError, ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open.discard(task)
            writer.close()


async def send_json(writer, value, status=200, **headers):
    """Answer with JSON, and close."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    head = (
        f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: "
        f"{len(body)}\r\nConnection: close\r\n"
    )
    writer.write(
        head.encode()
        + b"".join(f"{name}: {one}\r\n".encode() for name, one in headers.items())
        + b"\r\n"
        + body
    )
    await writer.drain()


def json_card(writer, **changes):
    """The card of a server that is written by hand."""
    port = writer.get_extra_info("sockname")[1]
    card = {
        "name": "Raw",
        "description": "d",
        "version": "1",
        "capabilities": {"streaming": True},
        "supportedInterfaces": [
            {
                "url": f"http://127.0.0.1:{port}/a2a",
                "protocolBinding": "JSONRPC",
                "protocolVersion": "1.0",
            }
        ],
    }
    return {**card, **changes}
