"""Actors inside a FastAPI service: one counter for each session, on the service's own event loop.

pip install fastapi uvicorn
python examples/service.py            # then: curl -X POST localhost:8000/sessions/ada
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import uvicorn
from fastapi import FastAPI, HTTPException

from understudy.runtime import Actor, ActorRef, ActorSystem, MailboxFull, MailboxSettings, SystemDraining


class Session(Actor):
    """Counts its requests. An idle one costs less than a kilobyte."""

    def on_start(self) -> None:
        self.count = 0

    async def on_receive(self, message: str) -> dict[str, object]:
        self.count += 1
        return {"session": message, "requests": self.count}


class Sessions(Actor):
    """Knows which sessions there are, and spawns the missing ones as its children."""

    def on_start(self) -> None:
        self.by_name: dict[str, ActorRef[Session]] = {}

    def on_receive(self, message: str) -> ActorRef[Session]:
        if message not in self.by_name:
            self.by_name[message] = self.spawn(Session, name=message, mailbox=MailboxSettings(capacity=100))
        return self.by_name[message]


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with ActorSystem() as system:
        app.state.system = system
        app.state.sessions = system.spawn(Sessions)
        yield
        await system.drain(timeout=10)  # on deploy: what is under way is finished


app = FastAPI(lifespan=lifespan)


@app.post("/sessions/{name}")
async def count(name: str) -> dict[str, object]:
    try:
        session: ActorRef[Session] = await app.state.sessions.request(name)
        reply: dict[str, object] = await session.request(name, timeout=5)
    except (MailboxFull, SystemDraining) as error:
        raise HTTPException(503, str(error)) from error
    return reply


@app.get("/stats")
async def stats() -> dict[str, object]:
    now = app.state.system.stats()
    return {"actors": now.by_class, "states": now.by_state, "handled": now.handled, "queued": now.queued}


if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=8000)
