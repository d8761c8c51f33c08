"""Runs that end their process each time: they are set aside, and keep no other one from its end."""

import asyncio
import json
import signal
import subprocess
import sys

import pytest

from offbook.actors import Agent
from offbook.runtime import ActorSystem, AgentEvent, MemoryStore, Runner, RunStatus
from offbook.runtime.durability.last_lives import ALONE_SECONDS
from offbook.runtime.testing import ManualClock
from tests.doubles.held_stores import Gate, beside, soon, turns
from tests.doubles.left_runs import Counts, left_in_the_middle, lose_all
from tests.doubles.watched_stores import unfinished
from tests.runtime.durability.lives import ROOT

KINDS = ("sqlite", pytest.param("redis", marks=pytest.mark.slow), "postgres")


def live(recipe, *what):
    """One process. Returns what it has printed; None if it was killed."""
    command = [sys.executable, "-m", "tests.programs.poisoned", json.dumps(recipe), *what]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, cwd=ROOT
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-3000:]
    return json.loads(done.stdout) if done.stdout else None


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_ends_its_process_each_time_keeps_five_good_ones_from_nothing(
    store_recipe, kind
):
    recipe, good = store_recipe(kind), [f"g{number}" for number in range(1, 6)]
    assert live(recipe, "begin", *good, "bad") is None
    ended, stuck = {}, []
    for _ in range(20):
        if (said := live(recipe, "recover")) is not None:
            more, stuck = said
            ended.update(more)
            if stuck:
                break
    assert ended == dict.fromkeys(good, "completed")
    assert stuck == ["bad"]


# --- in one process ---


async def lost_twice(store, count):
    """Runs that have lost two processes."""
    agents = [Counts(Gate()) for _ in range(count)]
    async with ActorSystem() as system:
        runs = [
            Runner(agent, system=system, store=store, durability="step").query("go")
            for agent in agents
        ]
        await soon(asyncio.gather(*(agent.gate.reached.wait() for agent in agents)))
        await lose_all(system, store)
    gate = Gate()
    async with ActorSystem() as system:
        again = await Runner(Counts(gate), system=system, store=store, durability="step").recover()
        assert len(again) == count
        await soon(gate.reached.wait())
        await turns(50)
        await lose_all(system, store)
    return sorted(run.id for run in runs)


@pytest.mark.parametrize("how", ["ends", "lives on"])
def test_runs_on_their_last_life_begin_one_after_the_other(run, how):
    async def main():
        store, clock, agent = MemoryStore(), ManualClock(), Counts(Gate())
        names = await lost_twice(store, 3)
        async with ActorSystem(clock=clock) as system:
            runner = Runner(agent, system=system, store=store, durability="step")
            found = await runner.recover()
            assert sorted(one.id for one in found) == names
            all_at_once = [asyncio.create_task(soon(one)) for one in found]
            assert await runner.recover() == [], "they are in the line already"
            await turns(50)
            assert len(agent.at_work) == 1
            if how == "ends":
                agent.gate.open()
            else:
                for number in (2, 3):
                    clock.advance(ALONE_SECONDS)
                    await turns(50)
                    assert len(agent.at_work) == number
                agent.gate.open()
            assert {(await one).status for one in all_at_once} == {"completed"}
            assert sorted(agent.at_work) == names
        assert await unfinished(store) == []

    run(main())


def test_who_waits_for_its_last_life_leaves_the_run_to_others(run):
    async def main():
        store, agent = MemoryStore(), Counts(Gate())
        names = await lost_twice(store, 3)
        async with ActorSystem() as system:
            found = await Runner(agent, system=system, store=store, durability="step").recover()
            await turns(50)
            await lose_all(system, store)  # the first one has lost its last life
        async with ActorSystem() as system:
            runner = Runner(Counts(), system=system, store=store, durability="step")
            rest = await runner.recover()
            assert {(await soon(one)).status for one in rest} == {"completed"}
            stuck = [one.id for one in await runner.stuck()]
            assert (len(rest), sorted([*stuck, *(one.id for one in rest)])) == (2, names)
            (again,) = [await runner.retry(name) for name in stuck]
            assert (await soon(again)).status == "completed"
        assert len(found) == 3

    run(main())


def test_what_another_process_has_taken_meanwhile_is_followed(run):
    async def main():
        store, here, there = MemoryStore(), Counts(Gate()), Counts(Gate())
        await lost_twice(store, 2)
        other = beside(ManualClock())
        async with ActorSystem() as system:
            first, second = await Runner(
                here, system=system, store=store, durability="step", keep="all"
            ).recover()
            await turns(50)
            (theirs,) = await Runner(
                there, system=other, store=store, durability="step", keep="all"
            ).recover()
            await turns(50)
            assert (first.id, second.id) != (theirs.id, theirs.id)
            there.gate.open()
            assert (await soon(theirs)).status == "completed"
            here.gate.open()
            assert (await soon(first)).status == "completed"
            assert there.at_work == [second.id]
        await soon(other.stop())

    run(main())


def test_a_system_that_is_left_in_good_order_is_no_process_that_was_ended(run):
    async def main():
        store = MemoryStore()
        gate = Gate()
        await left_in_the_middle(store, Counts(gate), gate.reached)
        for _ in range(5):
            gate = Gate()
            async with ActorSystem() as system:
                assert (
                    len(
                        await Runner(
                            Counts(gate), system=system, store=store, durability="step"
                        ).recover()
                    )
                    == 1
                )
                await soon(gate.reached.wait())
        async with ActorSystem() as system:
            (again,) = await Runner(
                Counts(), system=system, store=store, durability="step"
            ).recover(max_attempts=2)
            assert (await soon(again)).status == "completed"

    run(main())


def test_a_run_that_cannot_be_continued_hides_none_behind_it(run):
    async def main():
        store, gates = MemoryStore(), [Gate() for _ in range(4)]
        names = sorted(
            [(await left_in_the_middle(store, Counts(gate), gate.reached)).id for gate in gates]
        )
        for name in names[:2]:
            row = await store.run_entry(name)
            await store.commit(None, [row.replace(value=b"damaged")])
        async with ActorSystem() as system:
            runner = Runner(Counts(), system=system, store=store, durability="step")
            assert [one.id for one in await runner.recover(limit=1)] == names[2:3]
            assert [one.id for one in await runner.recover(limit=2)] == names[3:]

    run(main())


class Walks(Agent):
    """Says each step when it is let to."""

    def __init__(self):
        super().__init__(name="A")
        self.gates = [asyncio.Event() for _ in range(20)]
        self.waits = asyncio.Event()

    async def run(self, input, context):
        for number in range(context.state.get("done", 0), len(self.gates)):
            self.waits.set()
            await self.gates[number].wait()
            context.state["done"] = number + 1
            yield AgentEvent.say(str(number))


async def losses(store, agent, count, *, progress):
    """Lose the process of the run again and again. Returns whether it was recovered each time."""
    runner = Runner(agent, system=beside(), store=store, durability="step")
    runner.query("q", run_id="r", detached=True)
    for _ in range(count):
        await soon(agent.waits.wait())
        if progress:
            agent.waits.clear()
            next(gate for gate in agent.gates if not gate.is_set()).set()
            await soon(agent.waits.wait())
        agent.waits.clear()
        await lose_all(runner.system, store)
        await runner.system.stop()
        runner = Runner(agent, system=beside(), store=store, durability="step")
        if not await soon(runner.recover(max_attempts=3)):
            return False
    await runner.system.stop()
    return True


@pytest.mark.parametrize(("progress", "recovered"), [(True, True), (False, False)])
def test_losses_of_processes_count_only_since_the_run_made_progress(run, progress, recovered):
    async def main():
        store, agent = MemoryStore(), Walks()
        assert await losses(store, agent, 6, progress=progress) is recovered
        status = (
            await Runner(agent, system=beside(), store=store, durability="step").info("r")
        ).status
        assert (status is RunStatus.STUCK) is not recovered

    run(main())
