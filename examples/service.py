"""Agents inside a FastAPI service: conversations by server-sent events, refunds that need approval,
and any number of workers on one store.

A POST starts a turn and returns its id once the turn is stored, so that every worker knows it. A
GET follows the turn in any worker, through approvals, to its end: with deltas if the turn runs in
that worker, otherwise with complete messages. A client that lost its connection sends `Last-Event-
ID` to any worker and receives the missing events. On a deployment, each run stops at a safe point
and each stream ends; after a crash, another worker continues the runs.

pip install fastapi uvicorn
WORKERS=2 python examples/service.py

# start a turn: 202 and {"id":"t1"}
curl -X POST 'localhost:8000/sessions/ada/turns?text=refund+order+7&id=t1'
# follow it: this shows "interrupted" first, and stays open until the end
curl -N localhost:8000/turns/t1/events
# list the pending approvals
curl localhost:8000/turns
# approve the call
curl -X POST localhost:8000/turns/t1/answers -H 'content-type: application/json' \\
    -d '{"interrupt": "...", "approve": true}'
# receive the events after the second one
curl -N localhost:8000/turns/t1/events -H 'Last-Event-ID: 2'
"""

import os
from asyncio import timeout
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated
from uuid import uuid4

import uvicorn
from fastapi import Body, FastAPI, Header, HTTPException
from fastapi.responses import StreamingResponse
from models import real_model

from offbook import (
    ChatModelAgent,
    Message,
    ModelRequest,
    PostgresStore,
    RedisStore,
    Shutdown,
    SQLiteStore,
    ToolCall,
    keep_last,
    service,
    sse,
    tool,
)
from offbook.runtime import (
    CheckpointError,
    CheckpointNotFound,
    RunInfo,
    SessionBusy,
    StoreError,
    SystemDraining,
)


class Parrot:
    """A model for users without a key."""

    async def generate(self, request: ModelRequest) -> Message:
        last = request.messages[-1]
        if last.role == "user" and "refund" in last.text:
            return Message.assistant(
                "", tool_calls=(ToolCall(uuid4().hex, "refund", '{"order": 7}'),)
            )
        return Message.assistant(
            f"You said: {last.text}" if last.role == "user" else f"Done: {last.text}"
        )


def opening_hours(day: str) -> str:
    """Look up when the shop is open on a day of the week."""
    return "closed" if day.lower() == "sunday" else "from 9 to 18"


@tool(needs_approval=True)
def refund(order: int) -> str:
    """Give a customer the money back."""
    return f"order {order} is refunded"


agent = ChatModelAgent(
    name="Shop",
    instruction="Answer the customer.",
    tools=[opening_hours, refund],
    model=real_model() or Parrot(),
)


def open_store() -> SQLiteStore | RedisStore | PostgresStore:
    address = os.environ.get("SERVICE_STORE", "service.db")
    if address.startswith("redis"):
        return RedisStore(address)
    return PostgresStore(address) if address.startswith("postgres") else SQLiteStore(address)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    # It continues the runs that other processes left by a deployment or a crash, now and
    # regularly. At the end, each run stops at its next safe point.
    every = float(os.environ.get("RECOVER_SECONDS", "5"))
    async with (
        service(agent, store=open_store(), recover_every=every, streaming=True) as app.state.runner,
        Shutdown() as app.state.shutdown,
    ):
        yield


app = FastAPI(lifespan=lifespan)


# --- a turn: one request starts it, another one follows it ---


@app.post("/sessions/{name}/turns", status_code=202)
async def begin(name: str, text: str, id: str | None = None) -> dict[str, str]:  # noqa: A002 -- the client's word
    """A client that does not know whether its request has arrived sends it again, with the same id:
    the turn starts once.
    """
    if app.state.shutdown.is_set():
        raise HTTPException(503, "this process is leaving")
    run = app.state.runner.session(name, policy=keep_last(40)).query(
        text, run_id=id or uuid4().hex, detached=True
    )
    try:
        await run.accepted()  # from now on, every worker knows it
    except (SessionBusy, SystemDraining) as error:
        raise HTTPException(503, str(error)) from error
    return {"id": run.id}


@app.get("/turns/{id}/events")
async def events(id: str, last_event_id: Annotated[int, Header()] = 0) -> StreamingResponse:  # noqa: A002
    """Stream the answers (`show="answers"`), without arguments and results of tools, and error
    texts.
    """
    await known(id)
    run = app.state.runner.attach(id, after=last_event_id)
    stream = sse(run, show="answers", after=last_event_id, until=app.state.shutdown)
    return StreamingResponse(
        stream,
        media_type="text/event-stream",
        headers={"cache-control": "no-store", "x-accel-buffering": "no"},
    )


@app.post("/turns/{id}/answers", status_code=202)
async def answer(
    id: str,  # noqa: A002
    interrupt: Annotated[str, Body()],
    approve: Annotated[bool, Body()],
) -> dict[str, str]:
    """Approve or deny the call that the person was shown, by its interrupt.

    Its events continue at /turns/{id}/events.
    """
    info = await known(id)
    if interrupt not in {waiting.id for waiting in info.waiting}:
        raise HTTPException(
            409, "the turn no longer waits for that: it was answered, or the turn has ended"
        )
    runner = app.state.runner
    try:
        await (runner.approve(interrupt) if approve else runner.deny(interrupt)).accepted()
    except (
        CheckpointError
    ) as error:  # another request has answered it, or another process has the run
        raise HTTPException(409, str(error)) from error
    return {"id": id}


@app.get("/turns")
async def pending() -> list[dict[str, object]]:
    """List the pending approvals of all sessions. Only employees should have access."""
    found = await app.state.runner.pending()
    waits = {
        info.id: [{"interrupt": one.id, "asks": str(one.info)} for one in info.waiting]
        for info in found
    }
    return [
        {"id": info.id, "session": info.session_id, "waits_for": waits[info.id]} for info in found
    ]


async def known(id: str) -> RunInfo:  # noqa: A002 -- the client's word
    try:
        info: RunInfo = await app.state.runner.info(id)
    except CheckpointNotFound as error:
        raise HTTPException(404, str(error)) from error
    return info


# --- a turn, as one answer ---


@app.post("/sessions/{name}")
async def say(name: str, text: str) -> str:
    run = app.state.runner.session(name, policy=keep_last(40)).query(
        text, timeout=60, detached=True
    )  # a client that hangs up does not cancel the run
    try:
        result = await run
    except (SessionBusy, SystemDraining) as error:
        raise HTTPException(503, str(error)) from error
    if result.error is not None:
        raise HTTPException(
            503 if result.status in ("cancelled", "drained") else 502,
            f"the turn is {result.status}",
        )  # the log has the reason
    if result.interrupts:
        raise HTTPException(
            409, "the turn waits for an approval: begin it at /turns, and follow it"
        )
    return str(result.final_output)


@app.get("/sessions/{name}")
async def history(name: str) -> list[str]:
    return [
        f"{message.role}: {message.text}"
        for message in await app.state.runner.session(name).history()
    ]


# --- for operators ---


@app.get("/health/live")
async def live() -> str:
    """Report that the process is alive. Restart it if this does not answer."""
    return "live"


@app.get("/health/ready")
async def ready() -> str:
    """Report whether the process accepts requests and its store answers."""
    if app.state.shutdown.is_set():
        raise HTTPException(503, "leaving")
    try:
        async with timeout(2):
            await app.state.runner.store.get("ready")
    except (StoreError, TimeoutError) as error:
        raise HTTPException(503, "the store does not answer") from error
    return "ready"


@app.get("/stats")
async def stats() -> dict[str, object]:
    now = app.state.runner.system.stats()
    return {
        "actors": now.by_class,
        "states": now.by_state,
        "handled": now.handled,
        "queued": now.queued,
    }


if __name__ == "__main__":
    workers = int(os.environ.get("WORKERS", "1"))
    uvicorn.run(
        "service:app" if workers > 1 else app,
        host="127.0.0.1",
        port=8000,
        workers=workers,
        timeout_graceful_shutdown=15,
    )
