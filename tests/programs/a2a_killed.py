"""A process that asks a remote agent and is killed.

Arguments: the address, the store, the id of the run. Prints each event's text.
"""

import asyncio
import sys

from offbook.actors import RemoteAgent
from offbook.runtime import Runner, SQLiteStore


async def main(url, store, run_id):
    runner = Runner(RemoteAgent(url, name="Remote"), store=SQLiteStore(store), durability="step")
    async for event in runner.query("go", run_id=run_id):
        if event.message is not None:
            print(event.text, flush=True)


asyncio.run(main(*sys.argv[1:]))
