"""A run that is looked at from elsewhere is ended by `cancel()` of what `attach` returns; leaving
it ends only the looking.
"""

import asyncio
import sys
from pathlib import Path

import pytest

from offbook.runtime import MemoryStore, Runner
from offbook.runtime.durability.store_keys import RESERVED
from tests.doubles.agents import PlannedAgent
from tests.doubles.held_stores import beside, soon

ROOT = Path(__file__).parents[3]
KINDS = pytest.mark.parametrize("kind", ["memory", "sqlite", "redis", "postgres"])

WORKER = """
import asyncio, sys
from offbook.actors import ChatModelAgent
from offbook.runtime import Runner, SQLiteStore

class Silent:
    async def generate(self, request):
        print("asked", flush=True)
        await asyncio.Event().wait()

async def main():
    runner = Runner(ChatModelAgent(name="A", model=Silent()), store=SQLiteStore(sys.argv[1]), durability="step")
    result = await runner.query("go", run_id="one", detached=True)
    print(result.status.value, flush=True)

asyncio.run(main())
"""


class Waiting:
    """An agent that says something, and then waits for ever, or until it is let go."""

    def __init__(self):
        self.reached, self.go = asyncio.Event(), asyncio.Event()
        self.agent = PlannedAgent("A", "begun", self.wait, "end")

    async def wait(self, _context):
        self.reached.set()
        await self.go.wait()


@KINDS
def test_cancel_reaches_the_owner_in_another_system(run, store_of, kind):
    async def main():
        store, waiting = store_of(kind), Waiting()
        begun = Runner(waiting.agent, store=store, durability="step", system=beside()).query(
            "go", run_id="one"
        )
        await waiting.reached.wait()
        looking = Runner(waiting.agent, store=store, durability="step", system=beside()).attach(
            "one"
        )
        assert await soon(looking.cancel())
        result, seen = await begun, await looking
        assert (result.status, seen.status) == ("cancelled", "cancelled")
        assert [event.seq for event in seen.events] == [event.seq for event in result.events]
        assert not [key for key in await store.keys() if key.startswith(f"{RESERVED}stop:")]

    run(main())


def test_cancel_at_once_within_one_system_and_before_the_look_has_begun(run):
    async def main():
        store, waiting = MemoryStore(), Waiting()
        runner = Runner(waiting.agent, store=store, durability="step")
        begun = runner.query("go", run_id="one")
        await waiting.reached.wait()
        # Sooner than anybody looks.
        assert await asyncio.wait_for(runner.attach("one").cancel(), 0.9)
        assert (await begun).status == "cancelled"

    run(main())


def test_a_mode_and_its_timeout_are_handed_on(run):
    async def main():
        store, waiting = MemoryStore(), Waiting()
        begun = Runner(waiting.agent, store=store, durability="step", system=beside()).query(
            "go", run_id="one"
        )
        await waiting.reached.wait()
        runner = Runner(waiting.agent, store=store, durability="step", system=beside())
        handle = runner.attach("one").cancel("after_tools", timeout=60)
        await asyncio.sleep(1.5)
        assert begun.status == "running"  # it was asked, and has not come to a safe point
        waiting.go.set()
        result = await begun
        assert result.status in ("cancelled", "completed")
        assert await soon(handle) is (result.status == "cancelled")

    run(main())


def test_leaving_or_closing_ends_the_looking_only(run):
    async def main():
        store, waiting = MemoryStore(), Waiting()
        runner = Runner(waiting.agent, store=store, durability="step")
        begun = runner.query("go", run_id="one")
        await waiting.reached.wait()
        async for event in runner.attach("one"):
            assert event.text == "begun"
            break
        looking = runner.attach("one")
        looking.start()
        await looking.aclose()
        assert begun.status == "running"
        waiting.go.set()
        assert (await begun).status == "completed"

    run(main())


def test_cancel_of_a_run_that_has_ended_says_so(run):
    async def main():
        runner = Runner(PlannedAgent("A", "x"), store=MemoryStore(), durability="step")
        await runner.query("go", run_id="one")
        assert await runner.attach("one").cancel() is False
        assert (await runner.attach("one")).status == "completed"

    run(main())


def test_cancel_reaches_another_process(run, tmp_path, store_of):
    async def main():
        from offbook.runtime import SQLiteStore

        path = str(tmp_path / "runs.db")
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WORKER, path, stdout=asyncio.subprocess.PIPE, cwd=ROOT
        )
        assert worker.stdout is not None
        try:
            assert await worker.stdout.readline() == b"asked\n"
            async with SQLiteStore(path) as store:
                runner = Runner(PlannedAgent("A", "x"), store=store, durability="step")
                looking = runner.attach("one")
                assert await asyncio.wait_for(looking.cancel(), 20)
                assert (await runner.info("one")).status == "cancelled"
            assert await worker.stdout.readline() == b"cancelled\n"
            assert await worker.wait() == 0
        finally:
            if worker.returncode is None:
                worker.kill()
                await worker.wait()

    run(main())
