"""A storm over programs of the Agents SDK: workers that are killed at random, on one store, until a
time is over; then all must have ended as they should.

python -m tests.programs.sdk_storm '["SQLiteStore", ["a.db"], {}]' FOLDER SECONDS [SEED]
"""

import asyncio
import collections
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from agents import set_tracing_disabled

import offbook
from offbook import runtime
from offbook.agents_sdk import Runner, SdkAgent, StoreSession
from offbook.runtime import ActorSystem, OffbookError
from tests.programs.sdk_program import ANSWER, CALLS, agents_of

WORKERS = 3
SENDERS = 4


async def work(recipe, folder, name, until):
    """Ask for runs as long as there is time, recover what others have left, and give every
    approval.
    """
    kind, args, kwargs = recipe
    log = os.open(folder / "calls.jsonl", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(*line):
        os.write(log, (json.dumps([name, time.monotonic(), *line]) + "\n").encode())

    async with getattr(runtime, kind)(*args, **kwargs) as store, ActorSystem() as system:
        agent = agents_of(note, replies=20_000)
        definition = SdkAgent(
            agent, session_factory=lambda session_id: StoreSession(store, session_id)
        )
        runner = offbook.Runner(
            definition, system=system, store=store, durability="step", keep=86_400
        )

        async def finish(run_id):
            try:
                await runner.resume(
                    run_id,
                    {interrupt.id: True for interrupt in (await runner.info(run_id)).waiting},
                )
            except OffbookError as error:
                note("refused", type(error).__name__)

        async def send(number):
            while time.monotonic() < until:
                run_id = f"{name}-{number}-{time.monotonic_ns()}"
                os.write(
                    log, (json.dumps([name, time.monotonic(), "sent", run_id]) + "\n").encode()
                )
                try:
                    if random.random() < 0.5:
                        await Runner.run(
                            agent,
                            "A trip to Oslo, please.",
                            store=store,
                            run_id=run_id,
                            session=StoreSession(store, run_id),
                        )
                    else:
                        streamed = Runner.run_streamed(
                            agent, "A trip to Oslo, please.", store=store, run_id=run_id
                        )
                        async for _ in streamed.stream_events():
                            pass
                    await finish(run_id)
                except OffbookError as error:
                    note("refused", type(error).__name__)

        async def recover():
            while True:
                for run in await runner.recover(max_attempts=1000):
                    result = await run
                    if result.status == "interrupted":
                        await finish(run.id)
                left = await runner.pending()
                for info in left:
                    if time.monotonic() - until > 0:
                        await finish(info.id)
                if (
                    time.monotonic() > until
                    and not left
                    and not await runner.runs(status=("running", "drained"))
                ):
                    return
                await asyncio.sleep(0.5)  # other processes are killed meanwhile

        await asyncio.gather(recover(), *(send(number) for number in range(SENDERS)))


def spawn(recipe, folder, name, until):
    child = os.fork()
    if child == 0:
        try:
            asyncio.run(work(recipe, folder, name, until))
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


async def check(recipe, folder):
    """Every run that was asked for and found by the store has completed, with one key for each
    call.
    """
    kind, args, kwargs = recipe
    lines = [json.loads(line) for line in (folder / "calls.jsonl").read_text().splitlines()]
    keys, sent = collections.Counter(), {line[3] for line in lines if line[2] == "sent"}
    for line in lines:
        if line[2] in CALLS:
            keys[line[3]] += 1
    problems = []
    async with getattr(runtime, kind)(*args, **kwargs) as store:
        runner = offbook.Runner(SdkAgent(agents_of(len)), store=store)
        infos, after = [], None
        while page := await runner.runs(limit=1000, after=after):
            infos, after = infos + page, page[-1].id
        for info in infos:
            if info.status != "completed":
                problems.append(f"{info.id} is {info.status}: {info.error}")
            elif (await runner.attach(info.id)).text != ANSWER:
                problems.append(f"{info.id} has another answer")
            problems += [
                f"{info.id} never made {call}"
                for call, step in CALLS.items()
                if not keys[f"{info.id}/{step}"]
            ]
    again = sum(count - 1 for count in keys.values())
    return {
        "sent": len(sent),
        "runs": len(infos),
        "calls": sum(keys.values()),
        "made again": again,
        "problems": problems[:20],
    }


def main():
    recipe, folder, seconds = json.loads(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
    dice = random.Random(sys.argv[4] if len(sys.argv) > 4 else None)
    set_tracing_disabled(True)
    until = time.monotonic() + seconds
    workers = {spawn(recipe, folder, f"w{number}", until): number for number in range(WORKERS)}
    kills = 0
    while time.monotonic() < until:
        time.sleep(dice.uniform(0.3, 2.5))
        victim = dice.choice(list(workers))
        os.kill(victim, signal.SIGKILL)
        os.waitpid(victim, 0)
        kills += 1
        number = workers.pop(victim)
        workers[spawn(recipe, folder, f"w{number}k{kills}", until)] = number
    codes = [os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]) for worker in workers]
    print(json.dumps({"kills": kills, "ended": codes, **asyncio.run(check(recipe, folder))}))


if __name__ == "__main__":
    main()
