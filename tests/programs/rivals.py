"""Processes that want to go on with the same runs.

Each makes a store as its first argument says; what its tool does it writes into the file of the
second.

rivals.py '["SQLiteStore", ["a.db"], {}]' FILE begin NUMBER     begins so many runs, says "ready"
when their tools are at work, and works on for ever
rivals.py '["SQLiteStore", ["a.db"], {}]' FILE NAME             does what it is told on stdin, line
by line: "resume ID DURABILITY", or "recover"; and prints
                                                                what came of it
"""

import asyncio
import json
import os
import sys

from offbook import runtime
from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import ActorSystem, CheckpointError, Runner, ScriptedModel, ToolCalls


def reply(request):
    return "done" if request.messages[-1].role == "tool" else ToolCalls("pay")


def make_agent(note, *, asks, hangs=False):
    @tool
    async def pay(context: ToolContext) -> str:
        if asks:
            context.interrupt("sure?")
        note(context.idempotency_key)
        if hangs:
            await asyncio.get_running_loop().create_future()
        return "paid"

    return ChatModelAgent(name="A", model=ScriptedModel([reply] * 1000), tools=[pay])


async def begin(store, note, number):
    """Start runs, and never come to their end."""
    begun = []
    agent = make_agent(begun.append, asks=False, hangs=True)
    async with ActorSystem(lease_seconds=2) as system:
        runs = [
            Runner(agent, system=system, store=store, durability="step", keep="unfinished").query(
                "go"
            )
            for _ in range(number)
        ]
        while len(begun) < number:
            await asyncio.sleep(0.001)
        print("ready", flush=True)
        await asyncio.gather(*runs)


async def contend(store, note):
    await store.get("anything")
    print("ready", flush=True)
    while line := sys.stdin.readline():
        what, *arguments = line.split()
        if what == "resume":
            checkpoint_id, durability = arguments
            runner = Runner(make_agent(note, asks=True), store=store, durability=durability)
            try:
                said = (await runner.resume(checkpoint_id, data=True)).status
            except CheckpointError as error:
                said = f"{type(error).__name__}: {error}"
        else:
            runs = await Runner(
                make_agent(note, asks=False), store=store, durability="step", keep="unfinished"
            ).recover()
            said = [(run.id, (await run).status) for run in runs]
        print(json.dumps(said), flush=True)


async def main(recipe, path, name, number=0):
    kind, args, kwargs = json.loads(recipe)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(key):
        os.write(file, f"{name} {key}\n".encode())

    async with getattr(runtime, kind)(*args, **kwargs) as store:
        await (begin(store, note, int(number)) if name == "begin" else contend(store, note))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
