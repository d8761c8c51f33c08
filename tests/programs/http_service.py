"""A FastAPI service with an actor system in its lifespan.

Prints its port; a line on its standard input opens the gate on which `/wait` waits.

Arguments: the event loop (asyncio or uvloop), and for how many seconds the server waits for
requests when it is told to stop (0: for ever).
"""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from offbook.runtime import Actor, ActorSystem, SystemDraining


def say(*words):
    # At once, and in one piece, whichever thread says it.
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


class Counter(Actor):
    """One for all requests."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def on_receive(self, step):
        self.count += step
        return self.count


class Session(Actor):
    """One for each request."""

    def __init__(self, gate):
        super().__init__()
        self.gate = gate

    async def on_receive(self, text):
        say("waiting", text)
        await self.gate.wait()
        return text[::-1]

    async def echo(self, text):
        await asyncio.sleep(0)
        return text


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with ActorSystem("service") as system:
        app.state.system = system
        app.state.gate = asyncio.Event()
        app.state.counter = system.spawn(Counter)
        asyncio.get_running_loop().add_reader(
            sys.stdin, lambda: (sys.stdin.readline(), app.state.gate.set())
        )
        yield
        asyncio.get_running_loop().remove_reader(sys.stdin)
        report = await system.drain(1)
        say("drained", report.drained)
    say("left", system.stats().actors)


app = FastAPI(lifespan=lifespan)


@app.exception_handler(SystemDraining)
async def unavailable(request: Request, error: SystemDraining) -> JSONResponse:
    return JSONResponse({"error": str(error)}, status_code=503)


@app.get("/count")
async def count() -> int:
    return await app.state.counter.request(1)


@app.get("/count-in-thread")
def count_in_thread() -> int:
    return app.state.counter.ask(1)  # FastAPI runs this one in a thread


async def in_session(method: str, text: str) -> str:
    ref = app.state.system.spawn(Session, app.state.gate)
    try:
        return await (ref.request(text) if method == "wait" else ref.proxy().echo(text))
    finally:
        ref.stop(block=False)


@app.get("/echo/{text}")
async def echo(text: str) -> str:
    return await in_session("echo", text)


@app.get("/wait/{text}")
async def wait(text: str) -> str:
    return await in_session("wait", text)


@app.get("/stats")
async def stats() -> dict[str, int]:
    return dict(app.state.system.stats().by_class)


@app.post("/drain")
async def drain() -> None:
    app.state.draining = asyncio.ensure_future(app.state.system.drain(60))


if __name__ == "__main__":
    loop, patience = sys.argv[1:]
    # The server raises it again when it is done.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    listener = socket.create_server(("127.0.0.1", 0))
    say("port", listener.getsockname()[1])
    uvicorn.Server(
        uvicorn.Config(
            app, loop=loop, log_level="info", timeout_graceful_shutdown=int(patience) or None
        )
    ).run(sockets=[listener])
