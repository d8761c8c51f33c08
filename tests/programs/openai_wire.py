"""A server that speaks OpenAI's wire format over real HTTP: scripted in tests, or by itself as a
program that examples can be pointed at.

    python tests/programs/openai_wire.py --port 8080        then
    OPENAI_BASE_URL=http://127.0.0.1:8080/v1 OPENAI_API_KEY=any

As a program, it calls the first offered tool once, then says what it was told; without tools, it
says back what the user said.
"""

import argparse
import asyncio
import json
import ssl
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass
class Seen:
    """What was asked, and whether the one who asked has gone before the answer was complete."""

    path: str
    headers: dict[str, str]
    body: Any
    gone: asyncio.Event = field(default_factory=asyncio.Event)


class Wire:
    """What a script writes its answer with: bytes as they are, in packets of their own if asked
    to.
    """

    def __init__(self, writer: asyncio.StreamWriter, seen: Seen) -> None:
        self._writer = writer
        self.seen = seen

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def head(
        self, status: int = 200, content_type: str = "application/json", **headers: str
    ) -> None:
        fields = {
            "content-type": content_type,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        await self.raw(
            f"HTTP/1.1 {status} X\r\n".encode()
            + b"".join(f"{name}: {value}\r\n".encode() for name, value in fields.items())
            + b"\r\n"
        )

    async def answer(
        self, value: Any, status: int = 200, content_type: str = "application/json", **headers: str
    ) -> None:
        data = value if isinstance(value, bytes) else json.dumps(value).encode()
        await self.head(status, content_type, content_length=str(len(data)), **headers)
        await self.raw(data)

    async def events(
        self, *values: Any, done: bool = True, cut: int | None = None, named: bool = False
    ) -> None:
        """A stream of events, whole.

        `cut` sends it in pieces of so many bytes, each in a packet of its own.
        """
        await self.open_stream()
        data = b"".join(event(value, named=named) for value in values) + (
            b"data: [DONE]\n\n" if done else b""
        )
        for start in range(0, len(data), cut or len(data)):
            await self.chunk(data[start : start + (cut or len(data))])
            if cut:
                await asyncio.sleep(0)
        await self.chunk(b"")

    async def open_stream(self) -> None:
        await self.head(200, "text/event-stream; charset=utf-8", transfer_encoding="chunked")

    async def chunk(self, data: bytes) -> None:
        await self.raw(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    async def cut_off(self) -> None:
        """Break the connection."""
        self._writer.transport.abort()


Script = Callable[[Wire], Awaitable[None]]


def event(value: Any, *, named: bool = False) -> bytes:
    data = value if isinstance(value, bytes) else json.dumps(value, ensure_ascii=False).encode()
    return (f"event: {value['type']}\n".encode() if named else b"") + b"data: " + data + b"\n\n"


class WireServer:
    """`async with WireServer(script, script, ...) as server`: each request is answered by the next
    script, or by the last one if that is all there is.
    """

    def __init__(self, *scripts: Script, tls: ssl.SSLContext | None = None) -> None:
        self._scripts = deque(scripts)
        self._tls = tls
        self.seen: list[Seen] = []
        self.connections = 0
        self.arrived = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *args: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()
        while self._tls is not None and any(
            "_accept_connection2" in repr(task.get_coro()) for task in asyncio.all_tasks()
        ):
            await asyncio.sleep(0)  # a handshake that fails

    async def start(self, port: int = 0) -> None:
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", port, ssl=self._tls)
        self.port: int = self._server.sockets[0].getsockname()[1]
        self.url = f"http{'s' if self._tls else ''}://127.0.0.1:{self.port}/v1"

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ahead: bytes | None = b""
        try:
            while (seen := await _request(reader, ahead)) is not None:
                self.seen.append(seen)
                self.arrived.set()
                script = self._scripts.popleft() if len(self._scripts) > 1 else self._scripts[0]
                ahead = await _answered(script(Wire(writer, seen)), reader, seen)
                if ahead is None or writer.is_closing():
                    return
        except (ConnectionError, asyncio.IncompleteReadError):
            return
        finally:
            writer.close()


async def _answered(
    script: Awaitable[None], reader: asyncio.StreamReader, seen: Seen
) -> bytes | None:
    """None if the other side hung up before the script had come to its end; else what has come of
    the next request.
    """
    answering = asyncio.ensure_future(script)
    ahead = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait([answering, ahead], return_when=asyncio.FIRST_COMPLETED)
        if not answering.done() and not ahead.result():
            seen.gone.set()
            return None
        await answering
        return ahead.result() if ahead.done() else b""
    finally:
        answering.cancel()
        ahead.cancel()
        await asyncio.gather(answering, ahead, return_exceptions=True)


async def _request(reader: asyncio.StreamReader, ahead: bytes) -> Seen | None:
    try:
        head = (ahead + await reader.readuntil(b"\r\n\r\n")).decode()
    except asyncio.IncompleteReadError:
        return None
    first, *lines = head.strip().split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
    }
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Seen(first.split(" ")[1], headers, json.loads(body) if body else None)


# What providers say, for scripts to send.


def usage(prompt: int = 7, completion: int = 5, cached: int = 3) -> dict[str, Any]:
    details = {"prompt_tokens_details": {"cached_tokens": cached}}
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        **details,
    }


def call(name: str, arguments: Any, call_id: str | None = "call_a") -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "arguments": arguments},
        **({} if call_id is None else {"id": call_id}),
    }


def completion(
    content: str | None = "Hello",
    *,
    calls: list[Any] | None = None,
    finish_reason: str = "stop",
    **message: Any,
) -> dict[str, Any]:
    said = {
        "role": "assistant",
        "content": content,
        **({"tool_calls": calls} if calls else {}),
        **message,
    }
    choice = {
        "index": 0,
        "finish_reason": "tool_calls" if calls else finish_reason,
        "message": said,
    }
    return {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage(),
    }


def chunk(
    finish_reason: str | None = None, *, with_usage: bool = False, **delta: Any
) -> dict[str, Any]:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    if with_usage:
        return {**head, "choices": [], "usage": usage()}
    return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def embeddings(*points: list[float]) -> dict[str, Any]:
    data = [
        {"object": "embedding", "index": index, "embedding": point}
        for index, point in enumerate(points)
    ]
    return {
        "object": "list",
        "model": "m",
        "data": data,
        "usage": {"prompt_tokens": 7, "total_tokens": 7},
    }


def response(*output: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    used = {
        "input_tokens": 7,
        "output_tokens": 5,
        "total_tokens": 12,
        "input_tokens_details": {"cached_tokens": 3},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": "m",
        "status": status,
        "output": list(output),
        "usage": used,
        "error": None,
        **more,
    }


def output_text(text: str, *, refusal: str | None = None) -> dict[str, Any]:
    part = (
        {"type": "output_text", "text": text, "annotations": []}
        if refusal is None
        else {"type": "refusal", "refusal": refusal}
    )
    return {
        "type": "message",
        "id": "m1",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def output_call(name: str, arguments: str, call_id: str = "call_a") -> dict[str, Any]:
    return {
        "type": "function_call",
        "id": f"f_{call_id}",
        "call_id": call_id,
        "name": name,
        "arguments": arguments,
        "status": "completed",
    }


def response_events(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """The events in which a response is streamed: texts word by word, arguments in two pieces."""
    events: list[dict[str, Any]] = [
        {
            "type": "response.created",
            "response": {**whole, "status": "in_progress", "output": [], "usage": None},
        }
    ]
    for place, item in enumerate(whole["output"]):
        where = {"output_index": place, "item_id": item["id"]}
        if item["type"] == "function_call":
            text = item["arguments"]
            events.append(
                {"type": "response.output_item.added", **where, "item": {**item, "arguments": ""}}
            )
            events += [
                {"type": "response.function_call_arguments.delta", **where, "delta": piece}
                for piece in (text[: len(text) // 2], text[len(text) // 2 :])
            ]
        elif item["type"] == "reasoning":
            events += [
                {
                    "type": "response.reasoning_summary_text.delta",
                    **where,
                    "summary_index": 0,
                    "delta": part["text"],
                }
                for part in item["summary"]
            ]
        else:
            for part in item["content"]:
                kind, text = (
                    ("output_text", part["text"])
                    if "text" in part
                    else ("refusal", part["refusal"])
                )
                events += [
                    {"type": f"response.{kind}.delta", **where, "content_index": 0, "delta": word}
                    for word in _words(text)
                ]
    kind = {"completed": "response.completed", "incomplete": "response.incomplete"}.get(
        whole["status"], "response.failed"
    )
    events.append({"type": kind, "response": whole})
    return [{**one, "sequence_number": number} for number, one in enumerate(events)]


def completion_chunks(whole: dict[str, Any]) -> list[dict[str, Any]]:
    """The chunks in which a completion is streamed."""
    said = whole["choices"][0]["message"]
    chunks = [chunk(role="assistant", content="")]
    chunks += [
        chunk(**{name: said[name]}) for name in ("reasoning_content", "refusal") if said.get(name)
    ]
    chunks += [chunk(content=word) for word in _words(said["content"] or "")]
    for place, one in enumerate(said.get("tool_calls", ())):
        text = one["function"]["arguments"]
        chunks.append(
            chunk(
                tool_calls=[
                    {**one, "index": place, "function": {**one["function"], "arguments": ""}}
                ]
            )
        )
        chunks += [
            chunk(tool_calls=[{"index": place, "function": {"arguments": piece}}])
            for piece in (text[: len(text) // 2], text[len(text) // 2 :])
        ]
    return [*chunks, chunk(whole["choices"][0]["finish_reason"]), chunk(with_usage=True)]


def _words(text: str) -> list[str]:
    words = text.split(" ")
    return [word + " " for word in words[:-1]] + words[-1:] if text else []


async def reply(wire: Wire, said: dict[str, Any]) -> None:
    """Answer with a completion or a response, streamed if it was asked for so."""
    if not wire.seen.body.get("stream"):
        await wire.answer(said)
    elif said["object"] == "response":
        await wire.events(*response_events(said), done=False, named=True)
    else:
        await wire.events(*completion_chunks(said))


def saying(said: dict[str, Any]) -> Script:
    async def script(wire: Wire) -> None:
        await reply(wire, said)

    return script


def failing(status: int, error: Any = None, **headers: str) -> Script:
    async def script(wire: Wire) -> None:
        await wire.answer(
            {"error": {"message": "no", "type": None, "code": None, **(error or {})}},
            status,
            **headers,
        )

    return script


async def echo(wire: Wire) -> None:
    """What the program answers: the first tool once, with arguments that its schema would take,
    then the last thing that it was told.
    """
    body = wire.seen.body
    is_response = "responses" in wire.seen.path
    messages = body.get("input" if is_response else "messages", [])
    messages = [{"role": "user", "content": messages}] if isinstance(messages, str) else messages
    last = messages[-1] if messages else {}
    tools = body.get("tools") or []
    called = any(
        one.get("role") == "tool" or one.get("type") == "function_call_output" for one in messages
    )
    if tools and not called and body.get("tool_choice") != "none":
        function = tools[0].get("function", tools[0])
        arguments = json.dumps(_example(function.get("parameters") or {}))
        name = function["name"]
        await reply(
            wire,
            response(output_call(name, arguments, "call_1"))
            if is_response
            else completion(None, calls=[call(name, arguments, "call_1")]),
        )
        return
    told = last.get("content", last.get("output", ""))
    text = told if isinstance(told, str) else " ".join(part.get("text", "") for part in told)
    await reply(
        wire, response(output_text(text or "...")) if is_response else completion(text or "...")
    )


def _example(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("anyOf"):
        return _example(schema["anyOf"][0])
    if schema.get("type") == "object" or "properties" in schema:
        return {name: _example(inner) for name, inner in schema.get("properties", {}).items()}
    return {"integer": 1, "number": 1.5, "boolean": True, "array": [], "null": None}.get(
        schema.get("type", ""), "example"
    )


async def main(port: int) -> None:
    server = WireServer(echo)
    await server.start(port)
    print(server.port, flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    asyncio.run(main(parser.parse_args().port))
