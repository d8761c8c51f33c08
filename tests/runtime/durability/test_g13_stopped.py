"""G13 with a process that is stopped by SIGSTOP for longer than its time, and goes on when another
one has its run.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys

import pytest

from offbook.runtime import ActorSystem, Runner
from tests.programs.stopped import PAYMENTS, make_agent
from tests.runtime.durability.lives import ROOT

PATIENCE = 15  # seconds of real time; two are enough, where nothing else is under way


@pytest.fixture
def stopped(store_recipe, tmp_path, kind, where):
    """A process with a run that waits in the middle."""
    command = [
        sys.executable,
        "-W",
        "error",
        "-m",
        "tests.programs.stopped",
        json.dumps(store_recipe(kind, "shared")),
        str(tmp_path / "paid"),
        where,
    ]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout.readline() == "ready\n"
    yield process
    process.kill()
    process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("where", ["tool", "model"])
@pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres"])
def test_g13_a_process_that_was_stopped_for_longer_than_its_time_starts_nothing_more(
    run, store_of, stopped, tmp_path, kind, where
):
    path = tmp_path / "paid"

    async def take_over():
        store = store_of(kind, "shared")
        with path.open("a") as file:

            def note(key):
                file.write(f"other {key}\n")
                file.flush()

            async with ActorSystem() as system, asyncio.timeout(PATIENCE):
                runner = Runner(
                    make_agent(note),
                    system=system,
                    store=store,
                    durability="step",
                    keep="unfinished",
                )
                assert await runner.recover() == [], "it is alive, as far as anybody knows"
                os.kill(stopped.pid, signal.SIGSTOP)
                while not (runs := await runner.recover()):
                    await asyncio.sleep(0.05)
                (again,) = runs
                assert (await again).status == "completed"
                assert await store.keys() == []

    run(take_over())
    taken = path.read_text().splitlines()
    os.kill(stopped.pid, signal.SIGCONT)
    stopped.stdin.write("go on\n")
    stopped.stdin.flush()
    status, error, _shown = json.loads(stopped.stdout.readline())
    assert (status, error) == ("failed", "RunLost")
    assert path.read_text().splitlines() == taken, (
        "a tool was started by an owner that had lost the run"
    )
    keys = {
        who: [line.split()[1] for line in taken if line.startswith(who)]
        for who in ("stopped", "other")
    }
    assert len({*keys["stopped"], *keys["other"]}) == PAYMENTS
    assert set(keys["stopped"]) & set(keys["other"]) == (
        {keys["stopped"][1]} if where == "tool" else set()
    ), "what was under way is made again, with its key"
    assert len(keys["other"]) == 2

    async def look():
        assert await store_of(kind, "shared").keys() == []

    run(look())
