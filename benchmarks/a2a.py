"""Agent2Agent: requests a second, streams a second and the time to the first event of a served
agent, beside the SDK's own handler.

    python -m benchmarks a2a                some minutes; results/a2a.json
    python -m benchmarks a2a --quick        some seconds, to see that it works; its figures mean
                                            nothing

Both are served by uvicorn in a process each, with a store in memory, and an agent that says one
sentence: ours with its own routes for sending, the other with the SDK's. The load comes from a
third one, by raw HTTP/1.1 over loopback. The two take turns, so that the machine's other work slows
both alike. README.md beside it says what the figures mean.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

# Run by its path, as `python benchmarks/a2a.py`: what is imported below is found beside this
# folder, not in it.
if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])

try:
    import psutil

    from benchmarks.lab.catalogue import RESULTS
    from benchmarks.lab.machine import describe
    from benchmarks.lab.report import write_json
except ModuleNotFoundError as error:
    sys.exit(
        f"{error}. Install what the benchmarks need: pip install -e '.[a2a]' matplotlib rich psutil"
    )

__all__ = ["Figures", "main", "measure"]

CLIENTS = (1, 16, 64)
ANSWER = "The weather in Paris is fine."
TARGETS = {"unary, 16 clients": 3.0, "streams, 16 clients": 2.5}
FIRST_EVENT_MS = 5.0


@dataclass(frozen=True, slots=True)
class Figures:
    """What one server did in one round: requests a second, and the time to the first byte of an
    event.
    """

    rate: float
    first_ms: float
    cpu_us: float
    """Of the server's processor time, for one request."""


# --- the servers, each in a process of its own ---


def serve_ours():
    from offbook.actors import Agent
    from offbook.runtime import AgentEvent
    from offbook.runtime.a2a import a2a_app

    class Says(Agent):
        async def run(self, input, context):  # noqa: A002, ARG002 -- the contract's
            yield AgentEvent.say(ANSWER)

    return a2a_app(Says(name="says", description="Says one sentence."))


def serve_theirs():
    from a2a.helpers import new_task_from_user_message
    from a2a.server.agent_execution import AgentExecutor
    from a2a.server.request_handlers import DefaultRequestHandler
    from a2a.server.routes import create_jsonrpc_routes
    from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
    from a2a.types import a2a_pb2 as pb
    from starlette.applications import Starlette

    class Says(AgentExecutor):
        async def execute(self, context, event_queue):
            await event_queue.enqueue_event(
                context.current_task or new_task_from_user_message(context.message)
            )
            updater = TaskUpdater(event_queue, context.task_id, context.context_id)
            await updater.start_work()
            await updater.add_artifact([pb.Part(text=ANSWER)], name="says")
            await updater.complete()

        async def cancel(self, context, event_queue):
            raise NotImplementedError

    card = pb.AgentCard(
        name="says", description="d", version="1", capabilities=pb.AgentCapabilities(streaming=True)
    )
    handler = DefaultRequestHandler(
        agent_executor=Says(), task_store=InMemoryTaskStore(), agent_card=card
    )
    return Starlette(routes=create_jsonrpc_routes(handler, "/a2a"))


def serve(which: str) -> None:
    import logging
    import socket

    import uvicorn

    logging.disable(logging.ERROR)
    app = serve_ours() if which == "ours" else serve_theirs()
    # The protocol named: else asyncio leaves TCP to wait for acknowledgements.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen(512)
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False)).run(
        sockets=[listening]
    )


class Server:
    """One of the servers, in its process."""

    def __init__(self, name: str) -> None:
        command = [sys.executable, "-m", "benchmarks.a2a", "--serve", name]
        env = {**os.environ, "OTEL_INSTRUMENTATION_A2A_SDK_ENABLED": "false"}  # tracing is off
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1], env=env
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self._cpu = psutil.Process(self.process.pid)

    def used(self) -> float:
        """Seconds of the processor that it has used."""
        times = self._cpu.cpu_times()
        return float(times.user + times.system)

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(10)


# --- the load ---


def _request(port: int, method: str) -> bytes:
    message = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "What is the weather?"}]}
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}}
    ).encode()
    head = (
        f"POST /a2a HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: "
        f"application/json\r\nA2A-Version: 1.0\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def _unary(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> float:
    began = time.perf_counter()
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
    body = await reader.readexactly(length)
    assert ANSWER.encode() in body, body[:300]
    return time.perf_counter() - began


async def _stream(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes
) -> float:
    """The time to the first event. Reads to the end of the stream."""
    began = time.perf_counter()
    writer.write(request)
    await reader.readuntil(b"\r\n\r\n")
    first = 0.0
    body = b""
    while True:
        size = int(await reader.readline(), 16)
        chunk = await reader.readexactly(size + 2)
        first = first or time.perf_counter() - began
        body += chunk
        if not size:
            assert ANSWER.encode() in body, body[:300]
            return first


async def _load(server: Server, clients: int, seconds: float, *, streams: bool) -> Figures:
    port = server.port
    request = _request(port, "SendStreamingMessage" if streams else "SendMessage")
    one = _stream if streams else _unary
    times: list[float] = []
    over = time.perf_counter() + seconds

    async def client() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            while time.perf_counter() < over:
                times.append(await one(reader, writer, request))
        finally:
            writer.close()
            await writer.wait_closed()

    began, used = time.perf_counter(), server.used()
    await asyncio.gather(*(client() for _ in range(clients)))
    return Figures(
        len(times) / (time.perf_counter() - began),
        statistics.median(times) * 1_000,
        (server.used() - used) / len(times) * 1e6,
    )


def measure(rounds: int, seconds: float) -> dict[str, dict[str, list[Figures]]]:
    """The figures of both, by what was measured."""
    servers = {name: Server(name) for name in ("ours", "sdk")}
    found: dict[str, dict[str, list[Figures]]] = {}
    try:
        time.sleep(0.5)
        for server in servers.values():
            for streams in (False, True):
                asyncio.run(_load(server, 4, min(seconds, 0.5), streams=streams))  # warm
        for turn in range(rounds):
            for streams in (False, True):
                for clients in CLIENTS:
                    what = f"{'streams' if streams else 'unary'}, {clients} clients"
                    for name in sorted(servers, reverse=bool(turn % 2)):
                        figures = asyncio.run(
                            _load(servers[name], clients, seconds, streams=streams)
                        )
                        found.setdefault(what, {"ours": [], "sdk": []})[name].append(figures)
    finally:
        for server in servers.values():
            server.end()
    return found


def show(found: dict[str, dict[str, list[Figures]]]) -> None:
    print(
        f"{'':22}{'ours/s':>9}{'SDK/s':>9}{'ratio':>7}"
        f"{'µs CPU, ours':>14}{'SDK':>8}{'ratio':>7}{'to reach':>10}{'ms, ours':>10}{'SDK':>9}"
    )
    for what, by in found.items():
        ours, sdk = (
            {
                field: statistics.median(getattr(one, field) for one in by[name])
                for field in ("rate", "first_ms", "cpu_us")
            }
            for name in ("ours", "sdk")
        )
        goal = f"{TARGETS[what]:.1f}" if what in TARGETS else ""
        print(
            f"{what:22}{ours['rate']:>9.0f}{sdk['rate']:>9.0f}"
            f"{ours['rate'] / sdk['rate']:>7.2f}{ours['cpu_us']:>14.0f}{sdk['cpu_us']:>8.0f}"
            f"{sdk['cpu_us'] / ours['cpu_us']:>7.2f}{goal:>10}"
            f"{ours['first_ms']:>10.2f}{sdk['first_ms']:>9.2f}"
        )
    print(
        "ms: the median time to the whole answer (unary), or to the first event (streams). "
        "µs CPU: the server's, for one request."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--quick", action="store_true", help="some seconds; the figures mean nothing"
    )
    parser.add_argument(
        "--output", type=Path, default=RESULTS / "a2a.json", help="the JSON file with every round"
    )
    parser.add_argument("--serve", choices=("ours", "sdk"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        serve(args.serve)
        return
    found = measure(1 if args.quick else 5, 0.3 if args.quick else 4.0)
    show(found)
    rounds = {
        what: {name: [asdict(one) for one in figures] for name, figures in by.items()}
        for what, by in found.items()
    }
    write_json(
        args.output,
        {"machine": describe(), "at": dt.datetime.now(dt.UTC).isoformat(), "rounds": rounds},
    )


if __name__ == "__main__":
    main()
