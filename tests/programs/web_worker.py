"""One web worker of several that share a PostgreSQL: sessions over HTTP, runs that it finds without
a process, a drain when it is told to end.

`python web_worker.py DSN LEDGER`: prints its port, and serves until SIGTERM.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from aiohttp import web

from offbook.actors import Agent
from offbook.runtime import ActorSystem, AgentEvent, PostgresStore, Runner, SystemDraining

STEPS = 4


class Shop(Agent):
    """Four steps, each written down outside, then the answer."""

    def __init__(self, ledger):
        super().__init__(name="Shop")
        self.ledger = ledger

    async def run(self, input, context):
        for number in range(STEPS):
            await context.step(
                f"s{number}", lambda number=number: self.work(context.run_id, number)
            )
        yield AgentEvent.say(f"done: {input.messages[-1].text}")

    async def work(self, run_id, number):
        with self.ledger.open("a") as file:
            file.write(f"{run_id} {number} {os.getpid()}\n")
        await asyncio.sleep(0.02)
        return number


async def main(dsn, ledger):
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with PostgresStore(dsn) as store, ActorSystem(lease_seconds=2) as system:
        runner = Runner(Shop(Path(ledger)), system=system, store=store, durability="step")

        async def say(request):
            """The client names each message, and asks again if it has no answer: a run id begins
            once.
            """
            run = runner.session(request.match_info["session"]).query(
                request.query["text"], run_id=request.query["id"]
            )
            try:
                result = await asyncio.shield(run)
            except SystemDraining:
                return web.Response(status=503)
            if result.error is not None:
                return web.Response(status=503, text=str(result.error))
            return web.Response(text=result.text)

        async def history(request):
            return web.json_response(
                [
                    message.text
                    for message in await runner.session(request.match_info["session"]).history()
                    if message.role == "user"
                ]
            )

        app = web.Application()
        app.add_routes(
            [web.post("/sessions/{session}", say), web.get("/sessions/{session}", history)]
        )
        serving = web.AppRunner(app)
        await serving.setup()
        site = web.TCPSite(serving, "127.0.0.1", 0)
        await site.start()
        async with runner.recover_every(0.5):
            print(serving.addresses[0][1], flush=True)
            await ended.wait()
            await system.drain(5)
        await serving.cleanup()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
