"""What it costs to look on at runs, by CPU time of the whole process, threads included: without
OpenTelemetry, with its API alone, and for each span.

    python tests/programs/watching_cost.py [RUNS]

Each kind is measured in a process of its own, several times by turns; the least is shown.
"""

import asyncio
import subprocess
import sys
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from multiprocessing import get_context

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import ActorSystem, Message, Runner, ToolCall, tracing_from_env

KINDS = ("nothing", "the API imported", "spans that are dropped", "spans that are sent")
ROUNDS = 5


@tool
async def look_up(number: int) -> str:
    """Look it up."""
    return "found"


class Model:
    """One tool call, then an answer."""

    async def generate(self, request):
        if len(request.messages) > 1:
            return Message.assistant("done")
        return Message.assistant("", [ToolCall("call_1", "look_up", '{"number": 1}')])


class Takes(BaseHTTPRequestHandler):
    """A collector that takes all."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *args):
        """Nothing."""


def serve(pipe):
    server = HTTPServer(("127.0.0.1", 0), Takes)
    pipe.send(server.server_address[1])
    server.serve_forever()


async def measure(runs):
    """Seconds of CPU for each run, the least of some rounds."""
    agent = ChatModelAgent(name="A", model=Model(), tools=[look_up])
    best = float("inf")
    async with ActorSystem() as system:
        runner = Runner(agent, system=system)
        for _ in range(ROUNDS):
            began = time.process_time()
            for _ in range(runs):
                await runner.query("hello")
            best = min(best, (time.process_time() - began) / runs)
    return best


def one(kind, runs):
    ended = []
    if kind == "the API imported":
        pass
    elif kind == "spans that are dropped":
        from opentelemetry import trace
        from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

        class Counting(SpanProcessor):
            def on_end(self, span):
                ended.append(None)

        trace.set_tracer_provider(provider := TracerProvider())
        provider.add_span_processor(Counting())
    if kind != "spans that are sent":
        print(asyncio.run(measure(runs)), len(ended) / (runs * ROUNDS))
        return
    context = get_context("spawn")
    here, there = context.Pipe()
    collector = context.Process(target=serve, args=(there,), daemon=True)
    collector.start()
    with tracing_from_env(
        variables={"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{here.recv()}"}
    ) as tracing:
        seconds = asyncio.run(measure(runs))
        began = time.process_time()
        tracing.close(60)
        print(seconds + (time.process_time() - began) / (runs * ROUNDS), 5)
    collector.terminate()


def main():
    if len(sys.argv) > 2:
        one(sys.argv[2], int(sys.argv[1]))
        return
    runs = sys.argv[1] if len(sys.argv) > 1 else "500"
    found = {}
    for _ in range(3):
        for kind in KINDS:
            done = subprocess.run(
                [sys.executable, __file__, runs, kind], capture_output=True, text=True, check=True
            )
            seconds, spans = map(float, done.stdout.split())
            found[kind] = min(found.get(kind, (seconds, spans)), (seconds, spans))
    base = found["nothing"][0]
    for kind, (seconds, spans) in found.items():
        each = (
            f", {(seconds - base) / spans * 1e6:.1f} µs for each of {spans:g} spans"
            if spans
            else f" ({100 * (seconds / base - 1):+.1f} %)"
        )
        print(f"{kind:24} {seconds * 1e6:7.1f} µs of CPU a run{each}")


if __name__ == "__main__":
    main()
