"""The program of the benchmark's hosts: an agent that does nothing, shows events, or makes steps,
as it is told.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal

from offbook.actors import Agent
from offbook.runtime import (
    Actor,
    ActorSystem,
    AgentContext,
    AgentEvent,
    AgentInput,
    MessageDelta,
    Runner,
    SQLiteStore,
)

_STEP_SECONDS = 0.1


class Worker(Agent):
    """`events N`: so many pieces of a message.

    `steps N`: so many steps of a tenth of a second. Anything else: one message.
    """

    def __init__(self) -> None:
        super().__init__(name="Worker")

    async def run(self, input: AgentInput, context: AgentContext) -> AsyncIterator[AgentEvent]:  # noqa: A002 -- the contract's
        what, _, number = input.messages[-1].text.partition(" ")
        if what == "events":
            for _ in range(int(number)):
                yield AgentEvent(delta=MessageDelta("word "))
        if what == "steps":
            for step in range(context.state.get("done", 0), int(number)):
                await asyncio.sleep(_STEP_SECONDS)
                context.state["done"] = step + 1
                yield AgentEvent.say(f"{step}")
        yield AgentEvent.say("done")


class Echo(Actor):
    def on_receive(self, message: object) -> object:
        return message


@asynccontextmanager
async def _runner(
    system: ActorSystem, durability: Literal["none", "step"]
) -> AsyncIterator[Runner]:
    async with SQLiteStore(os.environ["BENCH_STORE"]) as store:
        yield Runner(
            Worker(), system=system, store=store, durability=durability, coalesce_deltas=False
        )


def unkept(system: ActorSystem) -> object:
    return _runner(system, "none")


def kept(system: ActorSystem) -> object:
    return _runner(system, "step")
