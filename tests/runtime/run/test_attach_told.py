"""`attach` shows what another process has written when the store tells of it, and not because it
looks again and again: no time passes in these tests.
"""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from offbook.runtime import MemoryStore, RunLost, Runner
from offbook.runtime.testing import ManualClock
from tests.doubles.agents import PlannedAgent
from tests.doubles.held_stores import beside
from tests.doubles.watched_stores import unfinished

KINDS = pytest.mark.parametrize("kind", ["memory", "sqlite", "redis", "postgres"])
PATIENCE = 30
PROGRAM = Path(__file__).parents[2] / "programs" / "said_on_command.py"


class Steps:
    """An agent that says one thing after the other, each when it is told to."""

    def __init__(self, count):
        self.gates = [asyncio.Event() for _ in range(count)]
        plan = [part for number in range(count) for part in (self._waits(number), f"said {number}")]
        self.agent = PlannedAgent("A", "begun", *plan)

    def _waits(self, number):
        async def wait(_context):
            await self.gates[number].wait()

        return wait


def pair(store_of, kind):
    """The store of the process that has the run, and that of the one that looks on."""
    store = store_of(kind, "shared")
    return store, store if kind == "memory" else store_of(kind, "shared")


def looking(agent, store):
    """A Runner for which no time passes."""
    return Runner(agent, store=store, durability="step", system=beside(ManualClock()))


async def texts(run, *wanted):
    """The next events say that."""
    events = aiter(run) if not hasattr(run, "__anext__") else run
    async with asyncio.timeout(PATIENCE):
        for text in wanted:
            assert (await anext(events)).text == text
    return events


@KINDS
def test_each_event_and_the_end_come_though_no_time_passes(run, store_of, kind):
    async def main():
        ours, theirs = pair(store_of, kind)
        steps = Steps(5)
        begun = Runner(steps.agent, store=ours, durability="step", system=beside()).query(
            "go", run_id="one"
        )
        begun.start()
        await asyncio.wait_for(_written(theirs), PATIENCE)
        attached = looking(steps.agent, theirs).attach("one")
        events = await texts(attached, "begun")
        for number, gate in enumerate(steps.gates):
            gate.set()
            await texts(events, f"said {number}")
        with pytest.raises(StopAsyncIteration):
            await asyncio.wait_for(anext(events), PATIENCE)
        result, seen = await begun, await attached
        assert seen.status == "completed"
        assert [event.seq for event in seen.events] == [event.seq for event in result.events]

    run(main())


async def _written(store):
    while not await store.keys("offbook:journal:"):
        await asyncio.sleep(0.005)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_a_listener_whose_server_is_started_anew_loses_no_event_and_shows_none_twice(
    run, store_of, request, kind
):
    server = request.getfixturevalue(f"{kind}_server")

    async def main():
        ours, theirs = pair(store_of, kind)
        steps = Steps(4)
        begun = Runner(steps.agent, store=ours, durability="step", system=beside()).query(
            "go", run_id="one"
        )
        begun.start()
        await asyncio.wait_for(_written(theirs), PATIENCE)
        attached = looking(steps.agent, theirs).attach("one")
        events = await texts(attached, "begun")
        steps.gates[0].set()
        await texts(events, "said 0")
        await asyncio.to_thread(server.stop)
        steps.gates[1].set()  # is written when the server is back
        await asyncio.to_thread(server.start)
        await texts(events, "said 1")
        steps.gates[2].set()
        await texts(events, "said 2")
        steps.gates[3].set()
        await texts(events, "said 3")
        result, seen = await begun, await attached
        assert result.status == seen.status == "completed"
        assert [event.seq for event in seen.events] == [event.seq for event in result.events]

    try:
        run(main())
    finally:
        server.start()


@pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres"])
def test_what_another_process_says_comes_though_no_time_passes(run, store_of, store_recipe, kind):
    async def main():
        import json

        recipe = json.dumps(store_recipe(kind, "shared"))
        other = await asyncio.create_subprocess_exec(
            sys.executable, str(PROGRAM), recipe, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        try:
            assert await other.stdout.readline() == b"begun\n"
            attached = looking(PlannedAgent("A"), store_of(kind, "shared")).attach("one")
            events = aiter(attached)
            for word in ("first", "second", "third"):
                other.stdin.write(f"{word}\n".encode())
                await texts(events, word)
            other.stdin.write_eof()
            with pytest.raises(StopAsyncIteration):
                await asyncio.wait_for(anext(events), PATIENCE)
            assert (await attached).status == "completed"
            assert await other.wait() == 0
        finally:
            if other.returncode is None:
                other.kill()
                await other.wait()

    run(main())


def test_a_store_that_tells_of_nothing_is_looked_at_again_and_again(run):
    class Silent(MemoryStore):
        watch = None

    async def main():
        store, clock, steps = Silent(), ManualClock(), Steps(1)
        begun = Runner(steps.agent, store=store, durability="step", system=beside()).query(
            "go", run_id="one"
        )
        begun.start()
        await asyncio.wait_for(_written(store), PATIENCE)
        attached = Runner(steps.agent, store=store, durability="step", system=beside(clock)).attach(
            "one"
        )
        events = await texts(attached, "begun")
        coming = asyncio.ensure_future(anext(events))
        steps.gates[0].set()
        while not coming.done():
            clock.advance(0.05)
            await asyncio.sleep(0)
        assert coming.result().text == "said 0"
        await attached.aclose()
        await begun.aclose()

    run(main())


def test_the_end_of_a_process_whose_run_is_not_kept_is_found_without_a_word(run):
    """Nothing is written when it ends: so that is looked for, once a second."""

    async def main():
        store, clock, steps = MemoryStore(), ManualClock(), Steps(1)
        begun = Runner(
            steps.agent, store=store, durability="interrupt", system=beside(lease_seconds=2)
        ).query("go", run_id="one", detached=True)
        begun.start()
        while not await unfinished(store):
            await asyncio.sleep(0)
        following = Runner(
            steps.agent, store=store, durability="interrupt", system=beside(clock)
        ).attach("one")
        following.start()
        holder = await store.holder((await unfinished(store))[0])
        await store.revoke(holder)
        while following.status in ("pending", "running"):
            clock.advance(0.5)
            await asyncio.sleep(0)
        with pytest.raises(RunLost):
            await following
        steps.gates[0].set()
        await asyncio.gather(begun, return_exceptions=True)

    run(main())
