"""A server that gives every request the same chat completion, as fast as Python can, so that the client's side is measured.

    python benchmarks/reply_server.py        prints its port, and serves until its standard input ends

It knows as much of HTTP as the `openai` client needs: requests with a Content-Length, on connections that are kept open.
"""

from __future__ import annotations

import asyncio
import json
import sys

__all__ = ["Replies"]

_COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "gpt-4o",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "It is three.", "refusal": None}, "logprobs": None, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 12, "completion_tokens": 4, "total_tokens": 16},
}
_BODY = json.dumps(_COMPLETION).encode()
_REPLY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(_BODY), _BODY)


class Replies(asyncio.Protocol):
    """One connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            headers = self.received[:end].lower()
            at = headers.find(b"content-length:")
            length = 0 if at < 0 else int(headers[at + 15 :].partition(b"\r\n")[0])
            whole = end + 4 + length
            if len(self.received) < whole:
                return
            self.received = self.received[whole:]
            self.transport.write(_REPLY)  # type: ignore[attr-defined]  # it is a transport that can


async def _main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Replies, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main())
