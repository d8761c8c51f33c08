"""A storm: three processes with one store, which are killed and stopped at random, by dice that a
seed repeats, and started again.

Owns: the schedule, and the processes. What they have written down is looked at in `storm_log.py`.
By itself it is a program:

    python -m tests.storm [--troubles | --losses] sqlite|redis|postgres SECONDS [SEED]

With troubles, the store's server gets into those of `storm_troubles.py` meanwhile, and the
processes prune, write large values and fork. With losses, the server also fails over to one that
lacks the newest writes.
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
from tests.storm_troubles import troubles_of

PROGRAM = Path(__file__).parent / "programs" / "storm_worker.py"
WORKERS = 3
LONGEST_END = 120
"""Seconds after the storm until all that was asked for has ended; half of a long storm's own time:
the sessions have become long.
"""


def schedule(seed, seconds):
    """What happens to which worker, and when: (seconds since the beginning, worker, "kill" or
    "stop", for how many seconds).
    """
    dice = random.Random(seed)
    at = 1.0
    while at < seconds:
        kind = "kill" if dice.random() < 0.4 else "stop"
        yield (
            at,
            dice.randrange(WORKERS),
            kind,
            dice.uniform(0, 1)
            if kind == "kill"
            else dice.choice((dice.uniform(0.1, 1), dice.uniform(1.5, 5))),
        )
        at += dice.expovariate(1 / 0.9)


class Workers:
    """The processes, by their numbers."""

    def __init__(self, recipe, folder, seed, *, troubled=False):
        self._more = ("troubled",) if troubled else ()
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
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=self._errors, stderr=self._errors
        )

    def begin(self, number):
        self._lives += 1
        self._processes[number] = self.start(f"w{number}.{self._lives}", *self._more)

    def signal(self, number, what):
        with contextlib.suppress(ProcessLookupError):
            self._processes[number].send_signal(what)

    def end(self, number):
        process = self._processes.pop(number)
        process.kill()
        process.wait()

    def died(self, but):
        """Those that have ended, and not by the storm."""
        return {
            number: process.returncode
            for number, process in self._processes.items()
            if number not in but and process.poll() is not None
        }

    def end_all(self):
        for number in list(self._processes):
            self.end(number)

    def close(self):
        self._errors.close()

    def errors(self):
        return (self._folder / "errors").read_text()


async def trouble(troubles, seed, seconds, done):
    """Let the store get into one trouble after the other."""
    began = time.monotonic()
    for at, name, lasts in troubles.schedule(seed, seconds):
        await asyncio.sleep(max(0.0, began + at - time.monotonic()))
        await asyncio.to_thread(troubles.begin, name)
        await asyncio.sleep(lasts)
        await asyncio.to_thread(troubles.end, name)
        done[name] += 1


async def blow(workers, seed, seconds, troubles=None):
    """The storm itself.

    Returns how many were killed, and stopped, and how often there was which trouble.
    """
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
        if troubles is not None:
            tasks.create_task(trouble(troubles, seed, seconds, done))
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


def storm(recipe, folder, seed, seconds, troubles=None):
    """One storm, and the calm after it. Returns the promises that were broken, and figures."""
    workers = Workers(recipe, folder, seed, troubled=troubles is not None)
    try:
        done = asyncio.run(blow(workers, seed, seconds, troubles))
    finally:
        workers.end_all()
    asked = Logs(folder)
    loses = troubles is not None and troubles.loses
    (folder / "tags").write_text("\n".join(sorted(asked.asked()) if loses else asked.to_see_to()))
    (folder / "sessions").write_text("\n".join(asked.sessions()))
    last = workers.start("last.0", "end")
    try:
        # After losses it sees to all runs again, not only to those that are not known to have ended.
        code = last.wait(max(LONGEST_END, seconds if loses else seconds / 2))
    except subprocess.TimeoutExpired:
        code = "no end"
    finally:
        last.kill()
        last.wait()
        workers.close()
    logs = Logs(folder)
    problems = logs.problems(seed, loses=loses)
    if code != 0:
        problems.insert(
            0, f"the last one has ended with {code}, and not of itself:\n{workers.errors()[-3000:]}"
        )
    if troubles is not None and code == 0:
        problems += troubles.left()
    return problems, {
        "kills": done.pop("kill", 0),
        "stops": done.pop("stop", 0),
        **logs.figures(),
        **done,
    }


def main(kind, seconds, seed=None, *, troubled=False, loses=False):
    seed = random.randrange(10**6) if seed is None else int(seed)
    folder = Path(tempfile.mkdtemp(prefix="storm-"))
    with contextlib.ExitStack() as ends:
        if troubled:
            troubles = troubles_of(kind, folder, loses=loses)
            ends.callback(troubles.close)
            recipe = troubles.recipe
        else:
            troubles = None
            server = {"redis": RedisServer, "postgres": PostgresServer}.get(kind)
            running = server().start() if server else None
            if running is not None:
                ends.callback(running.remove)
            recipes = {
                "sqlite": lambda: ("SQLiteStore", (str(folder / "storm.db"),), {}),
                "redis": lambda: ("RedisStore", (running.url,), {"prefix": "storm:"}),
                "postgres": lambda: ("PostgresStore", (running.dsn,), {"prefix": "storm_"}),
            }
            recipe = recipes[kind]()
        print(f"{kind}: seed {seed}, {seconds} s, logs in {folder}", flush=True)
        problems, figures = storm(recipe, folder, seed, float(seconds), troubles)
        print(figures, flush=True)
        for problem in problems[:50]:
            print(problem)
        print(f"{len(problems)} problems", flush=True)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    main(*words, troubled=len(words) < len(sys.argv) - 1, loses="--losses" in sys.argv)
