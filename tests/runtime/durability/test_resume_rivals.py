"""Two processes want to go on with the same run in the same moment: one of them does, and the other
is told so.
"""

import asyncio
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from offbook.runtime import Runner
from tests.programs.rivals import make_agent

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parents[2] / "programs" / "rivals.py"
SHARED = pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres"])
ROUNDS = 20
RUNS = 30


class Rivals:
    """Processes with one store, and what their tools have done."""

    def __init__(self, recipe, path):
        self.recipe = json.dumps(recipe)
        self.path = path
        self.processes = []

    def start(self, *arguments):
        command = [
            sys.executable,
            "-W",
            "error",
            str(PROGRAM),
            self.recipe,
            str(self.path),
            *map(str, arguments),
        ]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.processes.append(process)
        return process

    def start_two(self):
        two = [self.start("first"), self.start("second")]
        for process in two:
            assert process.stdout.readline() == "ready\n"
        return two

    def done(self):
        return (
            [line.split()[1] for line in self.path.read_text().splitlines()]
            if self.path.exists()
            else []
        )

    def end(self):
        for process in self.processes:
            process.kill()
            process.communicate()


@pytest.fixture
def rivals(store_recipe, tmp_path, kind):
    rivals = Rivals(store_recipe(kind, "shared"), tmp_path / "done")
    yield rivals
    rivals.end()


def at_once(processes, line):
    """Tell all of them, and return what each has to say."""
    for process in processes:
        process.stdin.write(f"{line}\n")
    for process in processes:
        process.stdin.flush()
    return [json.loads(process.stdout.readline()) for process in processes]


@SHARED
def test_g08_of_two_processes_that_answer_in_the_same_moment_one_goes_on(
    run, store_of, rivals, kind
):
    durabilities = ["interrupt", "step"] * (ROUNDS // 2)

    async def interrupt():
        store = store_of(kind, "shared")
        for number, durability in enumerate(durabilities):
            runner = Runner(make_agent(len, asks=True), store=store, durability=durability)
            assert (await runner.query("go", checkpoint_id=f"c{number}")).status == "interrupted"

    run(interrupt())
    two = rivals.start_two()
    for number, durability in enumerate(durabilities):
        said = at_once(two if number % 4 > 1 else two[::-1], f"resume c{number} {durability}")
        refused, won = sorted(said)
        assert won == "completed", said
        assert refused.startswith("ResumeError: "), said
        assert "already answered" in refused
        assert len(rivals.done()) == number + 1, "the tool was called once"
    assert len(set(rivals.done())) == ROUNDS


@SHARED
def test_g08_of_two_processes_that_recover_in_the_same_moment_each_run_is_continued_by_one(
    run, store_of, rivals, kind
):
    lost = rivals.start("begin", RUNS)
    assert lost.stdout.readline() == "ready\n"
    two = rivals.start_two()
    assert at_once(two, "recover") == [[], []], "whoever has begun them is still alive"
    lost.kill()
    lost.wait()

    async def all_are_free():
        """Where nothing proves that a process has ended, its time does; a server may need a moment
        to see that a connection is gone.
        """
        async with asyncio.timeout(10):
            while len(await store_of(kind, "shared").orphans("offbook:open:")) < RUNS:
                await asyncio.sleep(0.05)

    if kind != "sqlite":
        run(all_are_free())
    first, second = at_once(two, "recover")
    assert Counter(status for _id, status in [*first, *second]) == {"completed": RUNS}
    assert len({run_id for run_id, _status in [*first, *second]}) == RUNS
    assert len(rivals.done()) == len(set(rivals.done())) == RUNS, "each tool was called again once"
    assert at_once(two, "recover") == [[], []]

    async def look():
        return await store_of(kind, "shared").keys()

    assert run(look()) == []
