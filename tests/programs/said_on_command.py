"""Has a run, in the store that the first argument describes, whose agent says what stands on the
lines that come in.
"""

import asyncio
import json
import sys

from offbook import runtime
from offbook.actors import Agent
from offbook.runtime import AgentEvent, Runner


class Speaker(Agent):
    async def run(self, input, context):
        while line := await asyncio.to_thread(sys.stdin.readline):
            yield AgentEvent.say(line.strip())


async def main():
    name, args, options = json.loads(sys.argv[1])
    async with getattr(runtime, name)(*args, **options) as store:
        run = Runner(Speaker(name="A"), store=store, durability="step").query("go", run_id="one")
        run.start()
        while not await store.keys("offbook:journal:"):
            await asyncio.sleep(0.005)
        print("begun", flush=True)
        assert (await run).status == "completed"


asyncio.run(main())
