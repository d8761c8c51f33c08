"""A process that is killed in the middle of a run, at every point of it, again and again; and
others that go on with the run.

python -m tests.programs.killed '["SQLiteStore", ["a.db"], {}]' FOLDER FIRST STEP

Of each life, which is a process of its own, all that happens is written to a file as lines: calls
of models and tools when they begin and when they end, events when they are shown, what of the run
was in the store when the life began, and how the run ended. A life is killed at its n-th point:
right before or right after a step in which something is written to the store, a call begins or
ends, or an event is shown. For each n from FIRST on, in steps of STEP, until a run comes to its end
unharmed: one life is killed there, the next one is killed sometime later, and the last one is not.
Their lines are printed as JSON.
"""

import asyncio
import gc
import importlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path

from offbook import runtime
from offbook.runtime import Runner
from offbook.runtime.codec.packing import unpack
from tests.doubles.watched_stores import Watched, unfinished
from tests.programs.long_play import make_play

NEVER = 1 << 30
PROVEN = ("SQLiteStore",)  # a lock on a file is free when its process has ended


class Log:
    """The file of one life, and the point at which it ends."""

    def __init__(self, path, kill_at):
        self.file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self.left = kill_at
        self.owners = Path(path).with_name("owners")  # those of all lives, as the store knows them

    def point(self, name):
        self.left -= 1
        if self.left == 0:
            self.write(f"killed {name}")
            os.kill(os.getpid(), signal.SIGKILL)

    def write(self, line):
        # From here on it is the system's: what happens to this process does not matter.
        os.write(self.file, f"{line}\n".encode())

    def note(self, line):
        self.write(line)
        self.point(line)


def lethal(cls, log):
    """A store that tells the log before and after each step that writes, or that takes a run or
    gives it up.
    """

    class Lethal(Watched, cls):
        async def before(self, call):
            if call.method == "keep_alive":
                with log.owners.open("a") as owners:
                    owners.write(f"{call.key}\n")
            if is_step(call):
                log.point(f"before {call}")

        async def after(self, call):
            if is_step(call):
                log.point(f"after {call}")

    return Lethal


def is_step(call):
    return bool(call.changes) or call.method in ("claim", "commit", "keep_alive", "revoke")


def told(event):
    """An event as a line, without what is another one each time."""
    message = event.message
    said = (
        None
        if message is None
        else [
            message.role,
            message.text,
            [[call.name, call.arguments] for call in message.tool_calls],
            message.tool_call_id,
        ]
    )
    return [event.seq, event.agent_name, event.run_path, said, type(event.action).__name__]


async def recorded(store):
    """The events that are in the journals in the store, and the results that an agent holds back;
    and all keys.
    """
    events, held = [], []
    for key in await store.keys("offbook:journal:"):
        for record in await store.read(key):
            for change in unpack(record):
                if change[0] == "event":
                    events.append(told(change[2]))
                elif change[0] == "frame":
                    notes = unpack(change[2]).get("notes") or {}
                    held += [notes["held"][0]] if "held" in notes else []
    keys = [*await store.keys(), *await unfinished(store)]
    return {"events": events, "held": held, "keys": keys}


async def declare_dead(recipe, log):
    """End the owners of earlier lives, where nothing proves that these have ended: whoever starts a
    life knows it.
    """
    kind, args, kwargs = recipe
    if kind in PROVEN or not log.owners.exists():
        return
    async with getattr(runtime, kind)(*args, **kwargs) as store:
        for owner in log.owners.read_text().splitlines():
            await store.revoke(owner)
    log.owners.unlink()


def living(recipe, make_runs):
    """What is done in one life."""

    async def live(log):
        kind, args, kwargs = recipe
        await declare_dead(recipe, log)
        async with lethal(getattr(runtime, kind), log)(*args, **kwargs) as store:
            log.write("recorded " + json.dumps(await recorded(store)))
            runner = Runner(make_play(log.note), store=store, durability="step", keep="unfinished")
            for run in await make_runs(runner):
                async for event in run:
                    log.write("shown " + json.dumps(told(event)))
                    log.point("shown")
                result = await run
                log.write(
                    "ended " + json.dumps([result.status, str(result.error), result.usage.requests])
                )
            left = [*await store.keys(), *await unfinished(store)]
            log.write("left " + json.dumps(left))

    return live


async def begin(runner):
    return [runner.query("go")]


async def recover(runner):
    return await runner.recover()


def spend(path, live, kill_at):
    """One life, in a process of its own. Returns its lines."""
    child = os.fork()
    if child == 0:
        signal.alarm(30)
        try:
            asyncio.run(live(Log(path, kill_at)))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    _pid, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if code not in (0, -signal.SIGKILL):
        sys.exit(f"a life ended with {code}")
    return Path(path).read_text().splitlines()


def prepare(recipe):
    """What is made once in a process is made before the lives are."""
    importlib.import_module(
        {"RedisStore": "redis", "PostgresStore": "psycopg", "SQLiteStore": "sqlite3"}[recipe[0]]
    )
    asyncio.run(warm_up())
    gc.freeze()


async def warm_up():
    await Runner(
        make_play(len), store=runtime.MemoryStore(), durability="step", keep="unfinished"
    ).query("go")


def main():
    recipe, folder, first, step = (
        json.loads(sys.argv[1]),
        Path(sys.argv[2]),
        int(sys.argv[3]),
        int(sys.argv[4]),
    )
    prepare(recipe)
    print(json.dumps([spend(folder / "whole", living(recipe, begin), NEVER)]), flush=True)
    number, over = first, False
    while not over:
        lives = [spend(folder / f"{number}", living(recipe, begin), number)]
        over = not any(line.startswith("killed") for line in lives[0])
        if not over:
            lives.append(
                spend(folder / f"{number} again", living(recipe, recover), 1 + number * 7 % 61)
            )
            lives.append(spend(folder / f"{number} at last", living(recipe, recover), NEVER))
        print(json.dumps(lives), flush=True)
        number += step


if __name__ == "__main__":
    main()
