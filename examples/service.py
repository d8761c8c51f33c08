"""Agents inside a FastAPI service: a lasting conversation for each user. On a deploy, each run stops at a safe point, and the next process continues it.

pip install fastapi uvicorn
python examples/service.py     # then: curl -X POST 'localhost:8000/sessions/ada?text=hello', and: curl localhost:8000/sessions/ada
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, HTTPException
from models import real_model

from understudy.actors import ChatModelAgent
from understudy.runtime import ActorSystem, Message, ModelRequest, Runner, SessionBusy, SQLiteStore, SystemDraining, keep_last


class Parrot:
    """A model for users without a key."""

    async def generate(self, request: ModelRequest) -> Message:
        return Message.assistant(f"You said: {request.messages[-1].text}")


def opening_hours(day: str) -> str:
    """Look up when the shop is open on a day of the week."""
    return "closed" if day.lower() == "sunday" else "from 9 to 18"


agent = ChatModelAgent(name="Shop", instruction="Answer the customer.", tools=[opening_hours], model=real_model() or Parrot())


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with SQLiteStore(os.environ.get("SERVICE_STORE", "service.db")) as store, ActorSystem() as system:
        app.state.system = system
        app.state.runner = Runner(agent, system=system, store=store, durability="step")
        await app.state.runner.recover()  # continues the runs that another process left, by a deploy or a crash
        yield
        await system.drain(timeout=10)  # each run stops at its next safe point


app = FastAPI(lifespan=lifespan)


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


@app.get("/stats")
async def stats() -> dict[str, object]:
    now = app.state.system.stats()
    return {"actors": now.by_class, "states": now.by_state, "handled": now.handled, "queued": now.queued}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=8000, timeout_graceful_shutdown=5)
