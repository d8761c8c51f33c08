"""A process that works on several runs, of which one ends its process each time.

python -m tests.programs.poisoned RECIPE begin NAME...      begins runs of these names; one that
begins with "bad" ends the process
python -m tests.programs.poisoned RECIPE recover            recovers what there is, and prints how
each has ended, and which ones are set aside
"""

import asyncio
import json
import os
import signal
import sys

from offbook import runtime
from offbook.actors import ChatModelAgent, tool
from offbook.runtime import ActorSystem, Message, Runner, ToolCall


class Works:
    """Wants its tool three times."""

    async def generate(self, request):
        name = next(message.text for message in request.messages if message.role == "user")
        done = sum(message.role == "tool" for message in request.messages)
        if done == 3:
            return Message.assistant(f"{name} done")
        return Message.assistant(
            "", (ToolCall(f"{name}-{done}", "work", json.dumps({"name": name})),)
        )


@tool
async def work(name: str) -> str:
    if name.startswith("bad"):
        await asyncio.sleep(0.1)  # the others are at work by now
        os.kill(os.getpid(), signal.SIGKILL)
    await asyncio.sleep(0.2)
    return "worked"


async def main(recipe, what, *names):
    kind, args, kwargs = json.loads(recipe)
    async with (
        getattr(runtime, kind)(*args, **kwargs) as store,
        ActorSystem(lease_seconds=2) as system,
    ):
        runner = Runner(
            ChatModelAgent(name="A", model=Works(), tools=[work]),
            system=system,
            store=store,
            durability="step",
        )
        runs = (
            [runner.query(name, run_id=name) for name in names]
            if what == "begin"
            else await runner.recover()
        )
        await asyncio.gather(*runs)
        print(
            json.dumps(
                [{run.id: run.status for run in runs}, [run.id for run in await runner.stuck()]]
            )
        )


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
