"""A program of the Agents SDK that is killed at every point, and others that go on with its run.

python -m tests.programs.sdk_killed '["SQLiteStore", ["a.db"], {}]' FOLDER MODE FIRST STEP

MODE says what is killed: `run` and `stream`, up to the approval, or `resume`, the rest of it, in
another process. Lives, points and lines are those of tests/programs/killed.py.
"""

import asyncio
import gc
import json
import sys
from pathlib import Path

from agents import set_tracing_disabled

from offbook import runtime
from offbook.runtime import CheckpointNotFound, MemoryStore
from tests.programs.killed import NEVER, declare_dead, lethal, spend
from tests.programs.sdk_program import CALLS, RUN, agents_of, first_half, second_half, stored


async def known(store, log):
    """Write down which steps the store has, for the calls that this life finds."""
    steps = [*CALLS.values(), "desk#0", "travel#0", "travel#1", "travel#2"]
    blobs = [await store.get(key) for key in await store.keys()]
    for key in await store.keys("offbook:journal:"):
        blobs += await store.read(key)
    # A name, and behind it the mapping of two that is a step's value.
    log.write(
        "has "
        + json.dumps(
            [
                step
                for step in steps
                if any(step.encode() + b"\x82" in blob for blob in blobs if blob)
            ]
        )
    )


def living(recipe, mode):
    async def live(log):
        kind, args, kwargs = recipe
        await declare_dead(recipe, log)
        async with lethal(getattr(runtime, kind), log)(*args, **kwargs) as store:
            agent = agents_of(lambda *line: log.note("call " + json.dumps(line)))
            await known(store, log)
            runner = stored(agent, store, store)
            if mode in ("run", "stream"):
                result = await first_half(agent, store, store, streamed=mode == "stream")
                log.write("asked " + json.dumps([item.name for item in result.interruptions]))
            else:
                try:
                    await runner.info(RUN)
                except CheckpointNotFound:
                    await first_half(agent, store, store, streamed=False)
                result = await second_half(runner)
                log.write("ended " + json.dumps([result.status, result.text]))

    return live


def main():
    recipe, folder, mode, first, step = (
        json.loads(sys.argv[1]),
        Path(sys.argv[2]),
        sys.argv[3],
        int(sys.argv[4]),
        int(sys.argv[5]),
    )
    set_tracing_disabled(True)
    asyncio.run(
        first_half(
            agents_of(lambda *_: None), MemoryStore(), MemoryStore(), streamed=mode == "stream"
        )
    )  # what is made once in a process
    gc.freeze()
    number, over = first, False
    while not over:
        case = json.loads(json.dumps(recipe).replace("NUMBER", str(number)))
        lives = (
            []
            if mode != "resume"
            else [spend(folder / f"{mode} {number} before", living(case, "run"), NEVER)]
        )
        killed = spend(folder / f"{mode} {number}", living(case, mode), number)
        over = not any(line.startswith("killed") for line in killed)
        lives += (
            [killed, spend(folder / f"{mode} {number} at last", living(case, "resume"), NEVER)]
            if not over or mode != "resume"
            else [killed]
        )
        print(json.dumps(lives), flush=True)
        number += step


if __name__ == "__main__":
    main()
