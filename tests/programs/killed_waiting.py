"""A process is killed while a run waits for an answer, before that, and after it was answered; and
others try to answer it.

python -m tests.programs.killed_waiting '["SQLiteStore", ["a.db"], {}]' FOLDER DURABILITY LEG FIRST
STEP

As in `killed.py`, each life is a process of its own. LEG says which of the first two is killed, at
its n-th point: the one that begins ("begin") or the one that answers ("answer"). The third one
answers then; if it is refused, it recovers what there is to recover, and answers again if that is
interrupted.
"""

import asyncio
import json
import sys
from pathlib import Path

from offbook import runtime
from offbook.actors import ToolContext, tool
from offbook.runtime import CheckpointError, Runner
from tests.programs.killed import NEVER, declare_dead, lethal, prepare, recorded, spend, told
from tests.programs.long_play import make_play


def make_ask(note):
    @tool(name="ask")
    async def ask(context: ToolContext) -> str:
        answer = context.interrupt("sure?")
        note(f"begin tool {context.call_id} {context.idempotency_key}")
        await asyncio.sleep(0)
        note(f"end tool {context.call_id} {context.idempotency_key}")
        return f"told {answer}"

    return ask


def at(recipe, number):
    """A store that nobody has used before."""
    kind, (place, *_), options = recipe
    return (
        (kind, (place,), {"prefix": f"{options['prefix']}{number}_"})
        if "prefix" in options
        else (kind, (f"{place}.{number}",), options)
    )


def living(recipe, durability, *attempts):
    """What is done in one life: each attempt makes runs of a Runner."""

    async def live(log):
        kind, args, kwargs = recipe
        await declare_dead(recipe, log)
        async with lethal(getattr(runtime, kind), log)(*args, **kwargs) as store:
            log.write("recorded " + json.dumps(await recorded(store)))
            runner = Runner(
                make_play(log.note, ask=make_ask(log.note)), store=store, durability=durability
            )
            for attempt in attempts:
                log.write(f"tries {attempt.__name__}")
                try:
                    for run in await attempt(runner):
                        async for event in run:
                            log.write("shown " + json.dumps(told(event)))
                            log.point(f"shown {type(event.action).__name__}")
                        result = await run
                        log.write(
                            "ended "
                            + json.dumps([result.status, str(result.error), result.usage.requests])
                        )
                except CheckpointError as error:
                    log.write(f"refused {type(error).__name__} {error}")

    return live


async def begin(runner):
    return [runner.query("go", checkpoint_id="c")]


async def answer(runner):
    return [runner.resume("c", data="yes")]


async def recover(runner):
    return await runner.recover()


async def answer_what_was_recovered(runner):
    return await answer(runner)


def main():
    recipe, folder, durability, leg, first, step = (
        json.loads(sys.argv[1]),
        Path(sys.argv[2]),
        *sys.argv[3:5],
        int(sys.argv[5]),
        int(sys.argv[6]),
    )
    prepare(recipe)
    recovery = (recover, answer_what_was_recovered) if durability == "step" else ()
    number, over = first, False
    while not over:
        own = at(recipe, number)
        lives = [
            spend(
                folder / f"{number} begin",
                living(own, durability, begin),
                number if leg == "begin" else NEVER,
            )
        ]
        if leg == "answer":
            lives.append(
                spend(folder / f"{number} answer", living(own, durability, answer), number)
            )
        over = not any(line.startswith("killed") for line in lives[-1])
        lives.append(
            spend(folder / f"{number} again", living(own, durability, answer, *recovery), NEVER)
        )
        lives.append(spend(folder / f"{number} late", living(own, durability, answer), NEVER))
        print(json.dumps(lives), flush=True)
        number += step


if __name__ == "__main__":
    main()
