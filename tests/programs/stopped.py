"""A process that is stopped for longer than its time, while a run of it is under way, and then goes
on.

python -m tests.programs.stopped '["SQLiteStore", ["a.db"], {}]' FILE model|tool

It pays three times, one after the other, and writes the key of each payment into the file when it
begins. In the second one, or while its model thinks before that, it says "ready", and goes on when
it is told to. At last it prints the status of the run, and the name of its error.
"""

import asyncio
import json
import os
import sys

from offbook import runtime
from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import ActorSystem, Message, Runner, ToolCall

PAYMENTS = 3


def make_agent(note, pause=None, where=None):
    """An agent that pays.

    `pause` is awaited in the second payment, or before the model has wanted it.
    """

    @tool
    async def pay(context: ToolContext) -> str:
        note(context.idempotency_key)
        if where == "tool" and context.call_id == "c1":
            await pause()
        return "paid"

    class Model:
        async def generate(self, request):
            paid = sum(message.role == "tool" for message in request.messages)
            if where == "model" and paid == 1:
                await pause()
            return (
                Message.assistant("", (ToolCall(f"c{paid}", "pay", "{}"),))
                if paid < PAYMENTS
                else Message.assistant("done")
            )

    return ChatModelAgent(name="A", model=Model(), tools=[pay])


async def main(recipe, path, where):
    kind, args, kwargs = json.loads(recipe)
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    async def pause():
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.readline)

    async with (
        getattr(runtime, kind)(*args, **kwargs) as store,
        ActorSystem(lease_seconds=2) as system,
    ):
        agent = make_agent(lambda key: os.write(file, f"stopped {key}\n".encode()), pause, where)
        result = await Runner(
            agent, system=system, store=store, durability="step", keep="unfinished"
        ).query("go")
        print(
            json.dumps([result.status, type(result.error).__name__, len(result.events)]), flush=True
        )


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
