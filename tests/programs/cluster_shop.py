"""The program of the tests' clusters: an agent whose steps are written down outside, actors, and
factories of every kind, good and bad.

What the environment says: STORE (an SQLite file or the DSN of a PostgreSQL), LEDGER (a file),
STEP_SECONDS.
"""

import asyncio
import os
from contextlib import asynccontextmanager
from pathlib import Path

from offbook.actors import Agent, ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    Actor,
    AgentEvent,
    MemoryStore,
    Message,
    MessageDelta,
    PostgresStore,
    Runner,
    SQLiteStore,
    ToolCall,
)
from offbook.runtime.cluster import Cluster


def note(*words):
    """One line of the ledger, whole."""
    if ledger := os.environ.get("LEDGER"):
        with Path(ledger).open("a") as file:
            file.write(" ".join(map(str, words)) + "\n")


class Shop(Agent):
    """Says what it is told, in as many steps as it is told: `3 hello`."""

    def __init__(self):
        super().__init__(name="Shop")

    async def run(self, input, context):
        said = input.messages[-1].text
        count = int(said.split()[0]) if said[:1].isdigit() else 1
        begun = context.state.get("done", 0)
        for number in range(begun, count):
            await context.step(f"s{number}", lambda number=number: self.work(context, number))
            context.state["done"] = number + 1
            yield AgentEvent.say(f"{number}: {said}")
        yield AgentEvent.say(f"done: {said}")

    async def work(self, context, number):
        note("step", context.run_id, number, os.getpid())
        await asyncio.sleep(float(os.environ.get("STEP_SECONDS", "0")))
        return number


class Streams(Agent):
    """Shows many pieces of one message: as many as it is told."""

    def __init__(self):
        super().__init__(name="Streams")

    async def run(self, input, context):
        for number in range(int(input.messages[-1].text)):
            yield AgentEvent(delta=MessageDelta(f"{number} "))
        yield AgentEvent.say("whole")


class Waits(Agent):
    """Waits for an answer, and then works as the shop does."""

    def __init__(self):
        super().__init__(name="Waits")

    async def run(self, input, context):
        if context.resume is None or not context.resume.is_target:
            if not context.state.get("answer"):
                yield context.interrupt("May I?")
                return
        else:
            context.state["answer"] = context.resume.data
        for number in range(context.state.get("done", 0), 12):
            await asyncio.sleep(float(os.environ.get("STEP_SECONDS", "0")))
            context.state["done"] = number + 1
            yield AgentEvent.say(f"{number}")
        yield AgentEvent.say(f"told: {context.state['answer']}")


class Buys:
    """A model that calls the tool which it is told, and says what came of it."""

    async def generate(self, request):
        if request.messages[-1].role == "tool":
            return Message.assistant(f"told: {request.messages[-1].text}")
        return Message.assistant(
            "", [ToolCall(f"c{len(request.messages)}", request.messages[-1].text, "{}")]
        )


@tool(needs_approval=True)
async def pay(context: ToolContext) -> str:
    """Pay."""
    note("step", context.run_id, "pay", os.getpid(), context.idempotency_key)
    await asyncio.sleep(float(os.environ.get("STEP_SECONDS", "0")))
    return "paid"


class Counter(Actor):
    def __init__(self, start=0):
        super().__init__()
        self.count = start
        self.heard = []

    def on_receive(self, message):
        if message == "fail":
            raise ValueError("as asked")
        if message == "heard":
            return list(self.heard)
        if isinstance(message, list):
            self.heard.append(message[0])
            return None
        self.count += message
        return self.count


class Inside(Agent):
    """Uses the cluster that it runs in: an actor that a key identifies, and another session."""

    def __init__(self):
        super().__init__(name="Inside")

    async def run(self, input, context):
        said = input.messages[-1].text
        cluster = Cluster.current()
        if said == "ask":
            visits = cluster.actor("tests.programs.cluster_shop:Counter", 0, key="visits")
            count = await visits.request(1, timeout=5)
            other = await cluster.session("other").query(f"visit {count}")
            yield AgentEvent.say(f"{cluster.name}: {other.text}")
        else:
            yield AgentEvent.say(f"heard {said}")


class Asks(Actor):
    """Asks another actor, whose ref it is sent."""

    async def on_receive(self, message):
        ref, number = message
        return await ref.request(number, timeout=5)


def store_of(place):
    return PostgresStore(place) if "dbname=" in place else SQLiteStore(place)


def last_two(messages):
    return messages[-2:]


@asynccontextmanager
async def host(system):
    async with store_of(os.environ["STORE"]) as store:
        yield Runner(Shop(), system=system, store=store, durability="step")


@asynccontextmanager
async def inside(system):
    async with store_of(os.environ["STORE"]) as store:
        yield Runner(Inside(), system=system, store=store, durability="step")


@asynccontextmanager
async def waits(system):
    async with store_of(os.environ["STORE"]) as store:
        yield Runner(Waits(), system=system, store=store, durability="step")


@asynccontextmanager
async def versioned(system):
    async with store_of(os.environ["STORE"]) as store:
        yield Runner(
            Shop(),
            system=system,
            store=store,
            durability="step",
            version=os.environ["SHOP_VERSION"],
        )


@asynccontextmanager
async def approves(system):
    async with store_of(os.environ["STORE"]) as store:
        yield Runner(
            ChatModelAgent(name="Buyer", model=Buys(), tools=[pay]),
            system=system,
            store=store,
            durability="step",
        )


@asynccontextmanager
async def unkept(system):
    async with store_of(os.environ["STORE"]) as store:
        yield Runner(Shop(), system=system, store=store, durability="none")


@asynccontextmanager
async def streams(system):
    async with store_of(os.environ["STORE"]) as store:
        yield Runner(
            Streams(),
            system=system,
            store=store,
            durability="none",
            streaming=True,
            coalesce_deltas=False,
        )


@asynccontextmanager
async def without_store(system):
    yield Runner(Shop(), system=system)


@asynccontextmanager
async def in_memory(system):
    yield Runner(Shop(), system=system, store=MemoryStore(), durability="step")


@asynccontextmanager
async def of_another_system(system):
    async with store_of(os.environ["STORE"]) as store:
        yield Runner(Shop(), store=store, durability="step")


@asynccontextmanager
async def no_runner(system):
    yield Message.user("hello")


async def no_manager(system):
    return None


NO_FUNCTION = 7
