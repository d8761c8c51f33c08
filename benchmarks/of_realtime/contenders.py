"""A connection of each contender, used as its own documentation has it.

Owns: how each plays a reply, sends audio, and is opened. It must never measure.
"""

from __future__ import annotations

import base64
import importlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import MappingProxyType
from typing import Any, Final, Protocol

__all__ = ["CONTENDERS", "Client", "offbook_session"]

KEY: Final = "none"
MODEL: Final = "gpt-realtime-2.1"


class Client(Protocol):
    """One connection."""

    async def play(self, text: str, seen: Callable[[bytes], object]) -> None:
        """Say this, and take the audio of the answer to its end."""

    async def feed(self, audio: bytes, count: int) -> None:
        """Send that chunk so many times, end the turn, and wait until the server has all of it."""


class _Bare:
    def __init__(self, socket: Any) -> None:
        self._socket = socket

    async def _send(self, message: dict[str, Any]) -> None:
        await self._socket.send(json.dumps(message))

    async def play(self, text: str, seen: Callable[[bytes], object]) -> None:
        await self._send(
            {
                "type": "conversation.item.create",
                "item": {
                    "type": "message",
                    "role": "user",
                    "content": [{"type": "input_text", "text": text}],
                },
            }
        )
        await self._send({"type": "response.create"})
        async for message in self._socket:
            event = json.loads(message)
            if event["type"] == "response.output_audio.delta":
                seen(base64.b64decode(event["delta"]))
            elif event["type"] == "response.done":
                return

    async def feed(self, audio: bytes, count: int) -> None:
        for _ in range(count):
            await self._send(
                {"type": "input_audio_buffer.append", "audio": base64.b64encode(audio).decode()}
            )
        await self._send({"type": "input_audio_buffer.commit"})
        async for message in self._socket:
            if json.loads(message)["type"] == "conversation.item.added":
                return


@asynccontextmanager
async def _bare(base_url: str) -> AsyncIterator[Client]:
    from websockets.asyncio.client import connect

    headers = {"Authorization": f"Bearer {KEY}"}
    async with connect(
        f"{base_url}/realtime?model={MODEL}",
        additional_headers=headers,
        compression=None,
        max_size=None,
    ) as socket:
        yield _Bare(socket)


class _Typed:
    def __init__(self, connection: Any) -> None:
        self._connection = connection

    async def play(self, text: str, seen: Callable[[bytes], object]) -> None:
        await self._connection.conversation.item.create(
            item={
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": text}],
            }
        )
        await self._connection.response.create()
        async for event in self._connection:
            if event.type == "response.output_audio.delta":
                seen(base64.b64decode(event.delta))
            elif event.type == "response.done":
                return

    async def feed(self, audio: bytes, count: int) -> None:
        for _ in range(count):
            await self._connection.input_audio_buffer.append(audio=base64.b64encode(audio).decode())
        await self._connection.input_audio_buffer.commit()
        async for event in self._connection:
            if event.type == "conversation.item.added":
                return


@asynccontextmanager
async def _typed(base_url: str) -> AsyncIterator[Client]:
    from openai import AsyncOpenAI

    options: Any = {"compression": None, "max_size": None}
    async with (
        AsyncOpenAI(api_key=KEY, websocket_base_url=base_url) as client,
        client.realtime.connect(model=MODEL, websocket_connection_options=options) as connection,
    ):
        yield _Typed(connection)


class _Session:
    """A session of offbook's or of the SDK's: their names are the same."""

    def __init__(self, session: Any) -> None:
        self.session = session

    async def play(self, text: str, seen: Callable[[bytes], object]) -> None:
        await self.session.send_message(text)
        async for event in self.session:
            if event.type == "audio":
                seen(event.audio.data)
            elif event.type == "agent_end":
                return

    async def play_on(self) -> None:
        """Take the response that answers a call, which is the next one."""
        async for event in self.session:
            if event.type == "agent_end":
                return

    async def feed(self, audio: bytes, count: int) -> None:
        for _ in range(count):
            await self.session.send_audio(audio)
        await self.session.send_audio(audio, commit=True)
        async for event in self.session:
            if event.type in ("history_added", "history_updated"):
                return


@asynccontextmanager
async def offbook_session(
    base_url: str, agent: Any = None, *, config: Any = None, store: Any = None, **how: Any
) -> AsyncIterator[_Session]:
    """One of offbook's, with an agent of that benchmark's."""
    from offbook.actors.realtime import OpenAIRealtimeModel, RealtimeAgent, RealtimeRunner

    # The server sends faster than real time: what it sends ahead is not to end the response.
    config = {"max_output_audio_ms": 10_000_000, **(config or {})}
    model = OpenAIRealtimeModel(base_url=base_url, api_key=KEY)
    runner = RealtimeRunner(
        agent or RealtimeAgent("desk", "Answer shortly."), model=model, config=config, store=store
    )
    async with runner.run(**how) as session:
        yield _Session(session)


@asynccontextmanager
async def _sdk(base_url: str) -> AsyncIterator[Client]:
    sdk = importlib.import_module("agents.realtime")
    importlib.import_module("agents").set_tracing_disabled(True)
    runner = sdk.RealtimeRunner(sdk.RealtimeAgent(name="desk", instructions="Answer shortly."))
    where = {"url": f"{base_url}/realtime?model={MODEL}", "api_key": KEY}
    async with await runner.run(model_config=where) as session:
        yield _Session(session)


CONTENDERS: Final[Mapping[str, Callable[[str], AbstractAsyncContextManager[Client]]]] = (
    MappingProxyType(
        {"bare": _bare, "offbook": offbook_session, "openai": _typed, "openai-agents": _sdk}
    )
)
"""The bare loop comes first: the others are measured by it."""
