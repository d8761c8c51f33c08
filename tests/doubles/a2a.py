"""A served agent over real HTTP: a uvicorn on the test's own loop, the SDK's client, and requests
by hand.
"""

import asyncio
import contextlib
import itertools
import json
import socket

import httpx
import uvicorn
from a2a.client import ClientConfig, ClientFactory
from a2a.types import a2a_pb2 as pb

from offbook.actors import Agent
from offbook.runtime import AgentEvent, CustomAction
from tests.doubles import quick_uvicorn

VERSION = {"A2A-Version": "1.0"}
_numbers = itertools.count(1)


class Scripted(Agent):
    """An agent that plays an async generator function of its input and context."""

    def __init__(self, play, name="served", description="Does what a test says.", **options):
        super().__init__(name=name, description=description, **options)
        self.play = play

    async def run(self, input, context):
        async for event in self.play(input, context):
            yield (
                event
                if isinstance(event, AgentEvent)
                else AgentEvent.say(event)
                if isinstance(event, str)
                else AgentEvent.of(action=CustomAction(event))
            )


def scripted(play, **options):
    return Scripted(play, **options)


@contextlib.asynccontextmanager
async def serving(app, **config):
    """Serve the app, and give its address."""
    # As `offbook serve` has it.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    server = quick_uvicorn.Server(
        uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=2, lifespan="on", **config)
    )
    task = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        if task.done():
            task.result()
            raise RuntimeError("the server has not started")
        await asyncio.sleep(0.001)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        listening.close()
        await _end_watcher()


async def _end_watcher():
    """What sse-starlette leaves on a loop, once in its life, to see that the server stops."""
    left = [
        task
        for task in asyncio.all_tasks()
        if getattr(task.get_coro(), "__name__", "") == "_shutdown_watcher"
    ]
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def message(text="hello", **fields):
    parts = fields.pop("parts", [{"text": text}])
    return {
        "messageId": fields.pop("messageId", None) or f"m{next(_numbers)}",
        "role": "ROLE_USER",
        "parts": parts,
        **fields,
    }


class ByHand:
    """A client that speaks JSON-RPC by hand."""

    def __init__(self, url, headers=None):
        self.url = url
        self.http = httpx.AsyncClient(
            base_url=url, headers={**VERSION, **(headers or {})}, timeout=20, trust_env=False
        )

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.http.aclose()

    async def call(self, method, params, **options):
        return (
            await self.http.post(
                "/a2a",
                json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
                **options,
            )
        ).json()

    async def send(self, text="hello", *, configuration=None, metadata=None, **fields):
        params = {"message": message(text, **fields)}
        if configuration:
            params["configuration"] = configuration
        if metadata:
            params["metadata"] = metadata
        answer = await self.call("SendMessage", params)
        return answer["result"].get("task", answer["result"]) if "result" in answer else answer

    async def get(self, task_id, **fields):
        answer = await self.call("GetTask", {"id": task_id, **fields})
        return answer.get("result", answer)

    @contextlib.asynccontextmanager
    async def streaming(self, method, params, **options):
        async with self.http.stream(
            "POST",
            "/a2a",
            json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
            **options,
        ) as response:
            yield events_of(response)

    async def stream(self, text="hello", **fields):
        """All events of one stream."""
        async with self.streaming(
            "SendStreamingMessage", {"message": message(text, **fields)}
        ) as events:
            return [event async for event in events]

    async def until(self, task_id, *states):
        """The task, when it is in one of these states."""
        while True:
            task = await self.get(task_id)
            if state_of(task) in states:
                return task
            await asyncio.sleep(0.005)


async def events_of(response):
    async for line in response.aiter_lines():
        if line.startswith("data:"):
            said = json.loads(line[5:])
            yield said.get("result", said)


def state_of(shown):
    """The state that a task or an update has, in short."""
    shown = shown.get("task", shown.get("statusUpdate", shown))
    return shown.get("status", {}).get("state", "").removeprefix("TASK_STATE_")


def kind_of(event):
    """In one word: what an event of a stream is."""
    if "artifactUpdate" in event:
        return "artifact"
    return state_of(event) or next(iter(event))


def text_of(task):
    """The text of a task's artifacts, and of its status."""
    parts = [part for artifact in task.get("artifacts", ()) for part in artifact["parts"]]
    return "".join(part.get("text", "") for part in parts)


def status_text(task):
    return "".join(
        part.get("text", "") for part in task["status"].get("message", {}).get("parts", ())
    )


def sdk_client(url, http, *, bindings=("JSONRPC",), version="1.0", streaming=True, headers=None):
    """The SDK's own client."""
    card = pb.AgentCard(
        name="served",
        description="d",
        version="1",
        capabilities=pb.AgentCapabilities(streaming=streaming, push_notifications=True),
    )
    for binding in bindings:
        card.supported_interfaces.add(
            url=f"{url}/a2a", protocol_binding=binding, protocol_version=version
        )
    return ClientFactory(
        ClientConfig(
            httpx_client=http, supported_protocol_bindings=list(bindings), streaming=streaming
        )
    ).create(card)


def sdk_message(text="hello", **fields):
    return pb.SendMessageRequest(
        message=pb.Message(
            message_id=f"m{next(_numbers)}", role=pb.ROLE_USER, parts=[pb.Part(text=text)], **fields
        )
    )
