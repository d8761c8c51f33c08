"""Agents inside a FastAPI service: conversations by server-sent events, refunds that somebody has to approve, and any number of workers on one store.

A turn has an id, is begun once, and goes on when its client goes away. A client that was cut off comes back to any worker with `Last-Event-ID`, and gets what
it has missed. On a deploy each run stops at a safe point and each stream is closed; after a crash there is nothing to stop: another worker continues the runs.

pip install fastapi uvicorn
WORKERS=2 python examples/service.py
curl -N -X POST 'localhost:8000/sessions/ada/turns?text=refund+order+7&id=t1'    # streams, and ends with status "interrupted"
curl -X POST localhost:8000/turns/t1/answers -H 'content-type: application/json' -d '{"approve": true}'
curl -N localhost:8000/turns/t1/events -H 'Last-Event-ID: 2'                     # what came since
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from types import FrameType
from typing import Annotated
from uuid import uuid4

import uvicorn
from fastapi import Body, FastAPI, Header, HTTPException
from fastapi.responses import StreamingResponse
from models import real_model

from understudy.actors import ChatModelAgent, tool
from understudy.runtime import (
    ActorSystem,
    CheckpointError,
    CheckpointNotFound,
    Message,
    ModelRequest,
    Run,
    RunInfo,
    Runner,
    SessionBusy,
    SQLiteStore,
    StoreError,
    SystemDraining,
    ToolCall,
    keep_last,
    sse,
)


class Parrot:
    """A model for users without a key."""

    async def generate(self, request: ModelRequest) -> Message:
        last = request.messages[-1]
        if last.role == "user" and "refund" in last.text:
            return Message.assistant("", tool_calls=(ToolCall(uuid4().hex, "refund", '{"order": 7}'),))
        return Message.assistant(f"You said: {last.text}" if last.role == "user" else f"Done: {last.text}")


def opening_hours(day: str) -> str:
    """Look up when the shop is open on a day of the week."""
    return "closed" if day.lower() == "sunday" else "from 9 to 18"


@tool(needs_approval=True)
def refund(order: int) -> str:
    """Give a customer the money back."""
    return f"order {order} is refunded"


agent = ChatModelAgent(name="Shop", instruction="Answer the customer.", tools=[opening_hours, refund], model=real_model() or Parrot())


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.leaving, app.state.tasks = asyncio.Event(), set()
    async with SQLiteStore(os.environ.get("SERVICE_STORE", "service.db")) as store, ActorSystem() as system:
        app.state.system, app.state.store = system, store
        app.state.runner = Runner(agent, system=system, store=store, durability="step")
        # Continues the runs that other processes left, by a deploy or a crash: now, and again and again.
        async with app.state.runner.recover_every(float(os.environ.get("RECOVER_SECONDS", "5"))):
            with ToldToLeave(app.state.leaving):
                yield
            app.state.leaving.set()
        await system.drain(timeout=10)  # each run stops at its next safe point
        for task in app.state.tasks:
            task.cancel()
        await asyncio.gather(*app.state.tasks, return_exceptions=True)


class ToldToLeave:
    """Sets an event when the process is told to end. The server itself waits for open streams first, which would wait for it."""

    def __init__(self, leaving: asyncio.Event) -> None:
        self.leaving, self.loop = leaving, asyncio.get_running_loop()

    def __enter__(self) -> None:
        self.before = None
        try:
            self.before = signal.getsignal(signal.SIGTERM)
            signal.signal(signal.SIGTERM, self.leave)
        except ValueError:  # not in the main thread, where no signal comes
            self.before = None

    def leave(self, number: int, frame: FrameType | None) -> None:
        self.loop.call_soon_threadsafe(self.leaving.set)
        if callable(self.before):
            self.before(number, frame)

    def __exit__(self, *_: object) -> None:
        if self.before is not None:
            signal.signal(signal.SIGTERM, self.before)


app = FastAPI(lifespan=lifespan)


# --- a turn, as a stream ---


def streamed(run: Run, after: int = 0) -> StreamingResponse:
    return StreamingResponse(until_leaving(run, after), media_type="text/event-stream", headers={"cache-control": "no-store", "x-accel-buffering": "no"})


async def until_leaving(run: Run, after: int) -> AsyncIterator[bytes]:
    """The run's events; when this process leaves, the stream just ends, and its client comes back to another one."""
    leaving = asyncio.ensure_future(app.state.leaving.wait())
    coming: asyncio.Future[bytes | None] | None = None
    async with aclosing(sse(run, after=after)) as events:
        try:
            while True:
                coming = asyncio.ensure_future(anext(events, None))
                await asyncio.wait((coming, leaving), return_when=asyncio.FIRST_COMPLETED)
                if not coming.done() or (chunk := coming.result()) is None:
                    return
                yield chunk
        finally:
            leaving.cancel()
            if coming is not None and not coming.done():
                coming.cancel()
                await asyncio.wait((coming,))


@app.post("/sessions/{name}/turns")
async def begin(name: str, text: str, id: str | None = None) -> StreamingResponse:  # noqa: A002 -- the client's word
    """A client that does not know whether its request has arrived sends it again, with the same id: the turn is begun once."""
    if app.state.leaving.is_set():
        raise HTTPException(503, "this process is leaving")
    run = app.state.runner.session(name, policy=keep_last(40)).query(text, run_id=id or uuid4().hex, detached=True)
    return streamed(run)


@app.get("/turns/{id}/events")
async def events(id: str, last_event_id: Annotated[int, Header()] = 0) -> StreamingResponse:  # noqa: A002
    await known(id)
    return streamed(app.state.runner.attach(id, after=last_event_id), last_event_id)


@app.post("/turns/{id}/answers", status_code=202)
async def answer(id: str, approve: Annotated[bool, Body()], interrupt: Annotated[str | None, Body()] = None) -> dict[str, str]:  # noqa: A002
    """Approve or deny what a turn waits for: all of it, or one interrupt. Its events go on at /turns/{id}/events."""
    info = await known(id)
    if info.status != "interrupted":
        raise HTTPException(409, f"the turn waits for nothing: it is {info.status}")
    run = app.state.runner.resume(info.checkpoint_id, {interrupt: approve} if interrupt else None, data=approve)
    going_on = asyncio.ensure_future(finished(run))
    app.state.tasks.add(going_on)
    going_on.add_done_callback(app.state.tasks.discard)
    return {"id": id}


async def finished(run: Run) -> None:
    try:
        await run
    except CheckpointError:  # another request has answered it, or another process has the run
        return


@app.get("/turns")
async def pending() -> list[dict[str, object]]:
    """What waits for an answer, in all sessions."""
    found = await app.state.runner.pending()
    return [{"id": info.id, "session": info.session_id, "waits_for": [str(one.info) for one in info.waiting]} for info in found]


async def known(id: str) -> RunInfo:  # noqa: A002 -- the client's word
    try:
        info: RunInfo = await app.state.runner.info(id)
    except CheckpointNotFound as error:
        raise HTTPException(404, str(error)) from error
    return info


# --- a turn, as one answer ---


@app.post("/sessions/{name}")
async def say(name: str, text: str) -> str:
    run = app.state.runner.session(name, policy=keep_last(40)).query(text, timeout=60)
    try:
        result = await asyncio.shield(run)  # a client that hangs up does not cancel the run
    except (SessionBusy, SystemDraining) as error:
        raise HTTPException(503, str(error)) from error
    if result.error is not None:
        raise HTTPException(503 if result.status in ("cancelled", "drained") else 502, str(result.error))
    return str(result.final_output)


@app.get("/sessions/{name}")
async def history(name: str) -> list[str]:
    return [f"{message.role}: {message.text}" for message in await app.state.runner.session(name).history()]


# --- for whoever runs it ---


@app.get("/health/live")
async def live() -> str:
    """The process answers. Restart it if it does not."""
    return "live"


@app.get("/health/ready")
async def ready() -> str:
    """It takes requests: it is not leaving, and its store answers."""
    if app.state.leaving.is_set():
        raise HTTPException(503, "leaving")
    try:
        async with asyncio.timeout(2):
            await app.state.store.get("ready")
    except (StoreError, TimeoutError) as error:
        raise HTTPException(503, f"the store does not answer: {error}") from error
    return "ready"


@app.get("/stats")
async def stats() -> dict[str, object]:
    now = app.state.system.stats()
    return {"actors": now.by_class, "states": now.by_state, "handled": now.handled, "queued": now.queued}


if __name__ == "__main__":
    workers = int(os.environ.get("WORKERS", "1"))
    uvicorn.run("service:app" if workers > 1 else app, host="127.0.0.1", port=8000, workers=workers, timeout_graceful_shutdown=15)
