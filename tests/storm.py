"""A storm: three processes with one store, which are killed and stopped at random, by dice that a seed repeats, and started again.

Owns: the schedule, and the processes. What they have written down is looked at in `storm_log.py`. By itself it is a program:

    python -m tests.storm sqlite|redis|postgres SECONDS [SEED]
"""

import asyncio
import contextlib
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.programs.servers import PostgresServer, RedisServer
from tests.storm_log import Logs

PROGRAM = Path(__file__).parent / "programs" / "storm_worker.py"
WORKERS = 3
LONGEST_END = 120
"""Seconds after the storm until all that was asked for has ended; half of a long storm's own time: the sessions have become long."""


def schedule(seed, seconds):
    """What happens to which worker, and when: (seconds since the beginning, worker, "kill" or "stop", for how many seconds)."""
    dice = random.Random(seed)
    at = 1.0
    while at < seconds:
        kind = "kill" if dice.random() < 0.4 else "stop"
        yield at, dice.randrange(WORKERS), kind, dice.uniform(0, 1) if kind == "kill" else dice.choice((dice.uniform(0.1, 1), dice.uniform(1.5, 5)))
        at += dice.expovariate(1 / 0.9)


class Workers:
    """The processes, by their numbers."""

    def __init__(self, recipe, folder, seed):
        self._recipe = json.dumps(recipe)
        self._folder = folder
        self._seed = seed
        self._lives = 0
        self._processes = {}
        self._errors = (folder / "errors").open("ab")

    def start(self, name, *more):
        command = [
            sys.executable,
            "-W",
            "error",
            "-W",
            "ignore::DeprecationWarning",
            str(PROGRAM),
            self._recipe,
            str(self._folder),
            name,
            str(self._seed),
            *more,
        ]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self._errors, stderr=self._errors)

    def begin(self, number):
        self._lives += 1
        self._processes[number] = self.start(f"w{number}.{self._lives}")

    def signal(self, number, what):
        with contextlib.suppress(ProcessLookupError):
            self._processes[number].send_signal(what)

    def end(self, number):
        process = self._processes.pop(number)
        process.kill()
        process.wait()

    def died(self, but):
        """Those that have ended, and not by the storm."""
        return {number: process.returncode for number, process in self._processes.items() if number not in but and process.poll() is not None}

    def end_all(self):
        for number in list(self._processes):
            self.end(number)

    def close(self):
        self._errors.close()

    def errors(self):
        return (self._folder / "errors").read_text()


async def blow(workers, seed, seconds):
    """The storm itself. Returns how many were killed, and stopped."""
    done = Counter()
    busy = set()  # those to which something happens at this moment
    stopped = set()  # those of them that are stopped
    doomed = set()  # those of these that are killed while they are
    began = time.monotonic()

    async def happen(number, kind, lasts):
        if kind == "stop":
            workers.signal(number, signal.SIGSTOP)
            stopped.add(number)
            await asyncio.sleep(lasts)
            stopped.discard(number)
            workers.signal(number, signal.SIGCONT)
        if kind == "kill" or number in doomed:
            workers.end(number)
            await asyncio.sleep(lasts if kind == "kill" else 0.0)
            workers.begin(number)
            doomed.discard(number)
        busy.discard(number)

    for number in range(WORKERS):
        workers.begin(number)
    async with asyncio.TaskGroup() as tasks:
        for at, number, kind, lasts in schedule(seed, seconds):
            await asyncio.sleep(max(0.0, began + at - time.monotonic()))
            died = workers.died(busy)
            assert not died, f"a worker has ended by itself: {died}\n{workers.errors()[-3000:]}"
            if number not in busy:
                busy.add(number)
                tasks.create_task(happen(number, kind, lasts))
                done[kind] += 1
            elif kind == "kill" and number in stopped - doomed:
                workers.signal(number, signal.SIGKILL)
                doomed.add(number)
                done[kind] += 1
        await asyncio.sleep(max(0.0, began + seconds - time.monotonic()))
    return done


def storm(recipe, folder, seed, seconds):
    """One storm, and the calm after it. Returns the promises that were broken, and figures."""
    workers = Workers(recipe, folder, seed)
    try:
        done = asyncio.run(blow(workers, seed, seconds))
    finally:
        workers.end_all()
    asked = Logs(folder)
    (folder / "tags").write_text("\n".join(asked.to_see_to()))
    (folder / "sessions").write_text("\n".join(asked.sessions()))
    last = workers.start("last.0", "end")
    try:
        code = last.wait(max(LONGEST_END, seconds / 2))
    except subprocess.TimeoutExpired:
        code = "no end"
    finally:
        last.kill()
        last.wait()
        workers.close()
    logs = Logs(folder)
    problems = (
        logs.problems(seed) if code == 0 else [f"the last one has ended with {code}, and not of itself:\n{workers.errors()[-3000:]}", *logs.problems(seed)]
    )
    return problems, {"kills": done["kill"], "stops": done["stop"], **logs.figures()}


def main(kind, seconds, seed=None):
    seed = random.randrange(10**6) if seed is None else int(seed)
    server = {"redis": RedisServer, "postgres": PostgresServer}.get(kind)
    running = server().start() if server else None
    folder = Path(tempfile.mkdtemp(prefix="storm-"))
    try:
        recipes = {
            "sqlite": lambda: ("SQLiteStore", (str(folder / "storm.db"),), {}),
            "redis": lambda: ("RedisStore", (running.url,), {"prefix": "storm:"}),
            "postgres": lambda: ("PostgresStore", (running.dsn,), {"prefix": "storm_"}),
        }
        print(f"{kind}: seed {seed}, {seconds} s, logs in {folder}", flush=True)
        problems, figures = storm(recipes[kind](), folder, seed, float(seconds))
        print(figures, flush=True)
        for problem in problems[:50]:
            print(problem)
        print(f"{len(problems)} problems", flush=True)
    finally:
        if running is not None:
            running.remove()


if __name__ == "__main__":
    main(*sys.argv[1:])
