"""The provider of `http`: the same reply to every request, whole or in chunks, with or without TLS,
at once or in three seconds.

    python -m benchmarks.of_http.server                               prints its port, and serves
    until its standard input ends
    python -m benchmarks.of_http.server --certificate F --key F       over TLS

It knows as much of HTTP as the clients need: requests with a Content-Length, on connections that
are kept open. What it answers follows from the request:

    stream              the same text in 60 chunks, each in a segment of its own, and the usage in
                        the last
    tools, no result    one call of the first tool
    /paced/v1           60 chunks over three seconds, each of which says when it was sent, in
                        nanoseconds of the machine's monotonic clock
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import ssl
import sys
from collections.abc import Iterator
from time import monotonic_ns
from typing import Any, Final

from benchmarks.lab.machine import most_open_files

__all__ = ["TEXT", "WORDS", "Replies"]

WORDS: Final = 60
_SECONDS: Final = 3.0
TEXT: Final = " ".join(["word"] * WORDS)
_USAGE: Final = {"prompt_tokens": 12, "completion_tokens": 60, "total_tokens": 72}
_TOOL: Final = re.compile(rb'"function":\s*\{[^{}]*?"name":\s*"(\w+)"')
_HEAD: Final = {
    "id": "chatcmpl-BcR6q3mZ0nV7wK1xY9uT2sD4eF8gH",
    "created": 1_700_000_000,
    "model": "gpt-4o-2024-08-06",
    "system_fingerprint": "fp_44709d6fcb",
}


def _whole(message: dict[str, Any], reason: str) -> bytes:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "refusal": None, **message},
        "logprobs": None,
        "finish_reason": reason,
    }
    body = json.dumps(
        {**_HEAD, "object": "chat.completion", "choices": [choice], "usage": _USAGE}
    ).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )


def _chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
    return _event({**_HEAD, "object": "chat.completion.chunk", "choices": [choice], "usage": None})


def _event(value: object) -> bytes:
    return _framed(b"data: %b\n\n" % json.dumps(value).encode())


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _calling(name: str) -> dict[str, Any]:
    return {
        "id": "call_abc",
        "type": "function",
        "function": {"name": name, "arguments": '{"city":"Paris"}'},
    }


_OPENING: Final = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: "
    b"chunked\r\n\r\n"
)
_END: Final = (
    _chunk({}, "stop"),
    _event({**_HEAD, "object": "chat.completion.chunk", "choices": [], "usage": _USAGE})
    + _framed(b"data: [DONE]\n\n")
    + b"0\r\n\r\n",
)
_STREAM: Final = (
    _OPENING + _chunk({"role": "assistant", "content": "", "refusal": None}),
    *[_chunk({"content": "word "})] * WORDS,
)
_REPLY: Final = _whole({"content": TEXT}, "stop")


class Replies(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.received = b""
        self.pieces: Iterator[bytes] = iter(())

    def connection_lost(self, problem: Exception | None) -> None:
        del problem
        self.pieces = iter(())

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            headers = self.received[:end].lower()
            at = headers.find(b"content-length:")
            length = 0 if at < 0 else int(headers[at + 15 :].partition(b"\r\n")[0])
            whole = end + 4 + length
            if len(self.received) < whole:
                return
            head, body, self.received = (
                self.received[:end],
                self.received[end + 4 : whole],
                self.received[whole:],
            )
            self.answer(head.split(b" ", 2)[1], body)

    def answer(self, path: bytes, body: bytes) -> None:
        wants_stream = b'"stream":true' in body or b'"stream": true' in body
        is_paced = path.startswith(b"/paced")
        tool = (
            _TOOL.search(body)
            if b'"tools"' in body and b'"role":"tool"' not in body and b'"role": "tool"' not in body
            else None
        )
        if tool is not None and wants_stream:
            name = tool.group(1).decode()
            self.transport.write(
                _OPENING
                + _chunk({"role": "assistant", "tool_calls": [{"index": 0, **_calling(name)}]})
                + _chunk({}, "tool_calls")
                + _END[1]
            )
        elif tool is not None:
            self.transport.write(
                _whole(
                    {"content": None, "tool_calls": [_calling(tool.group(1).decode())]},
                    "tool_calls",
                )
            )
        elif wants_stream:
            self.pieces = iter((*_STREAM, *_END))
            self.send(_SECONDS / WORDS if is_paced else 0.0)
        else:
            self.transport.write(_REPLY)

    def send(self, pause: float) -> None:
        """The next piece, and the one after it later: at once, but not before all other connections
        had their turn.
        """
        piece = next(self.pieces, None)
        if piece is None:
            return
        if pause and piece is _STREAM[1]:
            piece = _chunk({"content": f"{monotonic_ns()} "})
        self.transport.write(piece)
        loop = asyncio.get_running_loop()
        if pause:
            loop.call_later(pause, self.send, pause)
        else:
            loop.call_soon(self.send, pause)


async def _main(certificate: str | None, key: str | None) -> None:
    most_open_files()
    loop = asyncio.get_running_loop()
    context = None
    if certificate is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
    server = await loop.create_server(Replies, "127.0.0.1", 0, ssl=context, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--certificate")
    parser.add_argument("--key")
    given = parser.parse_args()
    asyncio.run(_main(given.certificate, given.key))
