"""Programs whose loops are short: `asyncio.run` for each request with a Runner at module level and
no system, as in a Flask view. Each prints lines of JSON.
"""

import asyncio
import json
import os
import sys
import threading
from pathlib import Path

from offbook import runtime
from offbook.runtime import ActorSystem, Runner
from tests.doubles.agents import PlannedAgent

SECONDS = 30


def say(**found):
    print(json.dumps(found), flush=True)


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def requests(store, count):
    """Run after run, each on a loop of its own; the same in systems that are entered and left."""
    runner = Runner(PlannedAgent("A", "hello"), store=store, durability="step")

    async def view():
        return (await runner.query("go")).status

    async def in_a_system():
        async with ActorSystem() as system:
            return (
                await Runner(runner.agent, store=store, durability="step", system=system).query(
                    "go"
                )
            ).status

    found = []
    for number in range(int(count)):
        assert asyncio.run(in_a_system() if number % 10 == 9 else view()) == "completed"
        if number in (20, int(count) - 1):
            found.append((descriptors(), threading.active_count()))
    say(first=found[0], last=found[1])
    sys.stdin.readline()


def default_system(store, _count):
    """Runs from threads without a loop, on the default system's."""
    runner = Runner(PlannedAgent("A", "hello"), store=store, durability="step")
    for _ in range(20):
        assert runner.query("go").result().status == "completed"
    say(done=True)


def cut_short(store, count):
    """Loops that end in good order while runs are under way, as those of a web server that
    reloads.
    """
    calls = []

    async def wait(_context):
        calls.append(1)
        await asyncio.Event().wait()

    runner = Runner(PlannedAgent("A", "hello", wait), store=store, durability="step")

    async def main(first):
        runs = (
            [runner.query("go", detached=True) for _ in range(3)]
            if first
            else await runner.recover()
        )
        while len(calls) < 3:
            await asyncio.sleep(0.001)
        calls.clear()
        return [run.id for run in runs]

    for number in range(int(count)):
        say(ids=sorted(asyncio.run(main(number == 0))))


if __name__ == "__main__":
    kind, args, kwargs = json.loads(sys.argv[2])
    globals()[sys.argv[1]](getattr(runtime, kind)(*args, **kwargs), sys.argv[3])
    sys.stdout.flush()
    if sys.argv[1] == "requests":
        os._exit(0)  # nothing is cleared up
