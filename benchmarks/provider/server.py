"""The provider's process: `python -m benchmarks.provider.server --median 0.3 --sigma 0.6` prints
its port, and serves until its standard input ends.

It knows as much of HTTP as the clients need: requests with a Content-Length, on connections that
are kept open. Each reply is held for a time that is drawn from a log-normal distribution; `GET
/held` says for how long each turn was held in truth, from the last byte of its request to the last
of its reply, and forgets it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import random
import sys
from collections import defaultdict
from time import perf_counter, process_time

from benchmarks.lab.machine import most_open_files
from benchmarks.provider.replies import Reply, chunks_of, reply_to, whole_of

__all__ = ["Provider"]

_MOST = 20.0  # times the median: no reply is held longer


class Provider:
    """What all connections share: the delays, and how long the turns were held."""

    def __init__(self, median: float, sigma: float, seed: int) -> None:
        self.median = median
        self.sigma = sigma
        self.random = random.Random(seed)
        self.held: defaultdict[tuple[int, int], float] = defaultdict(float)
        self.requests = self.open = self.most_open = 0
        self.whole: dict[Reply, bytes] = {}
        self.chunks: dict[Reply, list[bytes]] = {}

    def delay(self) -> float:
        if not self.median:
            return 0.0
        return min(
            self.random.lognormvariate(math.log(self.median), self.sigma), self.median * _MOST
        )

    def whole_reply(self, reply: Reply) -> bytes:
        if reply.turn is not None:
            return _with_head(whole_of(reply), b"application/json")
        if reply not in self.whole:
            self.whole[reply] = _with_head(whole_of(reply), b"application/json")
        return self.whole[reply]

    def stream_of(self, reply: Reply) -> list[bytes]:
        if reply.turn is None and reply in self.chunks:
            return self.chunks[reply]
        head = (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: "
            b"chunked\r\n\r\n"
        )
        pieces = [
            head,
            *(b"%x\r\n%b\r\n" % (len(event), event) for event in chunks_of(reply)),
            b"0\r\n\r\n",
        ]
        if reply.turn is None:
            self.chunks[reply] = pieces
        return pieces

    def report(self) -> bytes:
        turns = {f"{conversation}:{turn}": held for (conversation, turn), held in self.held.items()}
        body = {
            "held": turns,
            "requests": self.requests,
            "cpu_seconds": process_time(),
            "most_connections": self.most_open,
        }
        self.held.clear()
        self.requests, self.most_open = 0, self.open
        return _with_head(json.dumps(body).encode(), b"application/json")


class Connection(asyncio.Protocol):
    """One connection: one request at a time."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        self.received = b""
        self.loop = asyncio.get_running_loop()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: asyncio.Transport = transport  # type: ignore[assignment]  # it is one that can write
        self.provider.open += 1
        self.provider.most_open = max(self.provider.most_open, self.provider.open)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self.provider.open -= 1

    def data_received(self, data: bytes) -> None:
        self.received = self.received + data if self.received else data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            headers = self.received[:end].lower()
            at = headers.find(b"content-length:")
            length = 0 if at < 0 else int(headers[at + 15 :].partition(b"\r\n")[0])
            whole = end + 4 + length
            if len(self.received) < whole:
                return
            body = self.received[end + 4 : whole]
            self.received = self.received[whole:]
            if headers.startswith(b"get /held"):
                self.transport.write(self.provider.report())
            else:
                self.asked(body)

    def asked(self, body: bytes) -> None:
        self.provider.requests += 1
        since, reply = perf_counter(), reply_to(body)
        delay = self.provider.delay()
        if delay:
            self.loop.call_later(delay, self.answer, reply, since)
        else:
            self.answer(reply, since)

    def answer(self, reply: Reply, since: float) -> None:
        if reply.streamed:
            self.piece(self.provider.stream_of(reply), 0, reply, since)
        else:
            self.transport.write(self.provider.whole_reply(reply))
            self.done(reply, since)

    def piece(self, pieces: list[bytes], number: int, reply: Reply, since: float) -> None:
        """Each piece is a write of its own, with a turn of the loop between."""
        if self.transport.is_closing():
            return
        self.transport.write(pieces[number])
        if number + 1 < len(pieces):
            self.loop.call_soon(self.piece, pieces, number + 1, reply, since)
        else:
            self.done(reply, since)

    def done(self, reply: Reply, since: float) -> None:
        if reply.turn is not None:
            self.provider.held[reply.turn] += perf_counter() - since


def _with_head(body: bytes, kind: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n%b" % (
        kind,
        len(body),
        body,
    )


async def _serve(options: argparse.Namespace) -> None:
    most_open_files()
    loop = asyncio.get_running_loop()
    provider = Provider(options.median, options.sigma, options.seed)
    server = await loop.create_server(lambda: Connection(provider), "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    async with server:
        await loop.run_in_executor(None, sys.stdin.read)


def _main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--median",
        type=float,
        default=0.0,
        help="seconds for which half of the replies are held at most",
    )
    parser.add_argument(
        "--sigma",
        type=float,
        default=0.6,
        help="how much the times differ: the standard deviation of their logarithm",
    )
    parser.add_argument("--seed", type=int, default=1)
    asyncio.run(_serve(parser.parse_args()))


if __name__ == "__main__":
    _main()
