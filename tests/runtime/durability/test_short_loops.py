"""A Runner without a system, whose loops end all the time: nothing is left of them, and no end of a
loop counts as a crash.
"""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from offbook.runtime import ActorSystem, MemoryStore, Runner
from offbook.runtime.durability import leases
from tests.doubles.agents import PlannedAgent
from tests.programs.servers import complaints

ROOT = Path(__file__).parents[3]
SHARED = pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres"])


@pytest.fixture
def started():
    processes = []

    def start(name, recipe, count):
        command = [
            sys.executable,
            "-m",
            "tests.programs.short_loops",
            name,
            json.dumps(recipe),
            str(count),
        ]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.fixture
def owners(request):
    """How many owners there are in a store: rows or keys, and what each holds besides: a file, an
    advisory lock.
    """

    def count(recipe):
        _kind, args, kwargs = recipe
        if recipe[0] == "SQLiteStore":
            import sqlite3

            path = Path(args[0])
            connection = sqlite3.connect(path)
            rows = connection.execute("SELECT count(*) FROM owners").fetchone()[0]
            connection.close()
            return rows, len(list(path.parent.glob(f"{path.name}-owner-*")))
        if recipe[0] == "RedisStore":
            import redis

            with redis.Redis.from_url(args[0]) as client:
                prefix = kwargs["prefix"].encode()
                return len(
                    [
                        key
                        for key in client.scan_iter(prefix + b"*")
                        if key.startswith(prefix + b"\0o:")
                    ]
                ), 0
        import psycopg

        with psycopg.connect(args[0]) as connection:
            rows = connection.execute(f"SELECT count(*) FROM {kwargs['prefix']}owners").fetchone()[
                0
            ]
            locks = connection.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
            ).fetchone()[0]
            return rows, locks

    return count


def nothing_grows(process, recipe, owners):
    said = process.stdout.readline()
    assert said, process.stderr.read()[-3000:]
    found = json.loads(said)
    assert found["last"][0] <= found["first"][0] + 2, "descriptors"
    assert found["last"][1] <= found["first"][1] + 1, "threads"
    assert owners(recipe) == (0, 0)


@SHARED
def test_nothing_is_left_of_a_loop_for_each_request(started, store_recipe, owners, kind):
    recipe = store_recipe(kind)
    nothing_grows(started("requests", recipe, 100), recipe, owners)


@pytest.mark.slow
@SHARED
def test_nothing_is_left_of_two_thousand_loops(started, store_recipe, owners, kind):
    recipe = store_recipe(kind)
    nothing_grows(started("requests", recipe, 2000), recipe, owners)


@SHARED
def test_nothing_is_left_of_the_default_system_when_its_process_ends(
    started, store_recipe, owners, kind
):
    recipe = store_recipe(kind)
    process = started("default_system", recipe, 0)
    out, err = process.communicate(timeout=50)
    assert (out, complaints(err)) == ('{"done": true}\n', "")
    assert owners(recipe) == (0, 0)


@SHARED
def test_the_end_of_a_loop_in_good_order_is_no_attempt(run, started, store_of, store_recipe, kind):
    process = started("cut_short", store_recipe(kind, "shared"), 5)
    out, err = process.communicate(timeout=50)
    lines = [json.loads(line)["ids"] for line in out.splitlines()]
    assert len(lines) == 5, err[-3000:]
    assert all(ids == lines[0] for ids in lines[1:]), "each loop has continued all of them"

    async def main():
        async with store_of(kind, "shared") as store:
            async with ActorSystem() as system:
                runner = Runner(
                    PlannedAgent("A", "hello"), store=store, durability="step", system=system
                )
                runs = await runner.recover(max_attempts=1)
                assert sorted(run.id for run in runs) == lines[0]
                assert [(await run).status for run in runs] == ["completed"] * 3

    run(main())


def test_an_owner_without_a_lease_is_given_back_after_a_while(run, monkeypatch, until):
    monkeypatch.setattr(leases, "_IDLE_SECONDS", 0.01)
    store = MemoryStore()

    async def main():
        async with ActorSystem() as system:
            runner = Runner(
                PlannedAgent("A", "hello"), store=store, durability="step", system=system
            )
            for _ in range(2):
                await runner.query("go")
                assert len(store._owners) == 1
                async with asyncio.timeout(30):
                    await until(lambda: not store._owners and not system.tasks)

    run(main())


def test_a_system_that_is_left_while_its_owner_is_given_back_leaves_no_owner(run, monkeypatch):
    monkeypatch.setattr(leases, "_IDLE_SECONDS", 0.01)

    class FirstTimeHeld(MemoryStore):
        reached = None

        async def revoke(self, owner):
            if self.reached is None:
                self.reached = asyncio.Event()
                retiring.set()
                await self.reached.wait()  # the task is cancelled here
            await super().revoke(owner)

    retiring = asyncio.Event()
    store = FirstTimeHeld()

    async def main():
        async with ActorSystem() as system:
            await Runner(
                PlannedAgent("A", "hello"), store=store, durability="step", system=system
            ).query("go")
            async with asyncio.timeout(30):
                await retiring.wait()
        assert store._owners == {}

    run(main())


def test_a_system_that_is_left_leaves_no_owner(run):
    store = MemoryStore()

    async def main():
        async with ActorSystem() as system:
            await Runner(
                PlannedAgent("A", "hello"), store=store, durability="step", system=system
            ).query("go")
            assert len(store._owners) == 1
        assert store._owners == {}

    run(main())


def test_a_loop_that_ends_leaves_no_owner_of_its_runner():
    store = MemoryStore()
    runner = Runner(PlannedAgent("A", "hello"), store=store, durability="step")

    async def main():
        await runner.query("go")
        assert len(store._owners) == 1

    asyncio.run(main())
    assert store._owners == {}


@pytest.mark.filterwarnings(
    "ignore:asynchronous generator:ResourceWarning"
)  # such as the agent's own
def test_a_loop_that_goes_on_after_its_generators_were_closed_leaves_no_owner_either():
    store = MemoryStore()
    runner = Runner(PlannedAgent("A", "hello"), store=store, durability="step")

    async def main():
        assert (await runner.query("go")).status == "completed"
        assert len(store._owners) == 1

    loop = asyncio.new_event_loop()
    for _ in range(3):
        loop.run_until_complete(main())
        loop.run_until_complete(loop.shutdown_asyncgens())
        assert store._owners == {}
    loop.close()
