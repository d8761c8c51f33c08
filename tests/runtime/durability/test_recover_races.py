"""Runs are recovered, and something comes between: whoever recovers gives up, one of them cannot be
read, they live on another loop.
"""

import asyncio

import pytest

from offbook.runtime import ActorSystem, MemoryStore, Runner, UsageError
from offbook.runtime.agent.tree import build_tree
from offbook.runtime.durability.recovery import Search, find_unfinished
from offbook.runtime.durability.store_access import StoreAccess
from tests.doubles.held_stores import Gate, HeldStore, beside, soon, turns
from tests.doubles.left_runs import Counts, left_in_the_middle


@pytest.mark.parametrize("trouble", ["gives up", "cannot"])
def test_who_gives_up_recovering_leaves_the_runs_to_others(run, trouble):
    async def main():
        store = HeldStore()
        gates = [Gate() for _ in range(3)]
        names = [(await left_in_the_middle(store, Counts(gate), gate.reached)).id for gate in gates]

        def where(unfinished):
            if trouble == "cannot" and unfinished.id == names[2]:
                raise ZeroDivisionError("in the user's code")
            return True

        async with ActorSystem() as system:
            runner = Runner(Counts(), system=system, store=store, durability="step")
            reading = store.hold("read", names[1])
            finding = find_unfinished(
                StoreAccess(store), build_tree(runner.agent), system, Search(where=where)
            )
            recovering = asyncio.create_task(finding)
            await soon(reading.reached.wait())
            await turns()
            if trouble == "gives up":
                recovering.cancel()
            reading.open()
            with pytest.raises(
                ZeroDivisionError if trouble == "cannot" else asyncio.CancelledError
            ):
                await recovering
            await turns()
            assert store.leases() == []
            again = await runner.recover()
            assert sorted(one.id for one in again) == sorted(names)
            assert [(await soon(one)).status for one in again] == ["completed"] * 3

    run(main())


@pytest.mark.parametrize("error", [UsageError, OSError, ZeroDivisionError])
def test_a_run_that_the_store_cannot_read_is_left_and_keeps_no_other_one_from_being_recovered(
    run, error
):
    async def main():
        store = HeldStore()
        gates = [Gate() for _ in range(3)]
        names = [(await left_in_the_middle(store, Counts(gate), gate.reached)).id for gate in gates]
        async with ActorSystem() as system:
            runner = Runner(Counts(), system=system, store=store, durability="step")
            works = store.fail("read", names[2], error=error)
            first = await runner.recover()
            assert {one.id for one in first} == set(names[:2])
            assert [(await soon(one)).status for one in first] == ["completed"] * 2
            assert await runner.recover() == []
            works()
            (last,) = await runner.recover()
            assert (last.id, (await soon(last)).status) == (names[2], "completed")
        assert (store.leases(), store.open_keys()) == ([], [])

    run(main())


def test_runs_are_recovered_from_another_loop_than_theirs():
    def careful():
        loop = asyncio.new_event_loop()
        loop.set_debug(True)  # it says so if another thread sets its timers
        return loop

    store, gate = MemoryStore(), Gate()
    asyncio.run(left_in_the_middle(store, Counts(gate), gate.reached))
    with ActorSystem.in_thread(loop_factory=careful, slow_handler=20) as system:
        (again,) = asyncio.run(
            Runner(Counts(), system=system, store=store, durability="step").recover()
        )
        assert again.result(20).status == "completed"


def test_what_a_run_has_come_to_stays_when_another_process_looks_for_it_at_its_end(run):
    async def main():
        store, gate = HeldStore(), Gate()
        await left_in_the_middle(store, Counts(gate), gate.reached)
        (key,) = store.open_keys()
        other = store.door()
        claiming = other.hold("claim", key)
        async with ActorSystem() as first:
            second = beside()
            late = asyncio.create_task(
                Runner(Counts(), system=second, store=other, durability="step").recover()
            )
            await soon(claiming.reached.wait())  # it has seen that the run is unfinished
            runner = Runner(Counts(), system=first, store=store, durability="step")
            (mine,) = await runner.recover()
            ended = await soon(mine)
            assert ended.status == "completed"
            claiming.open()
            assert await soon(late) == []
            again = await soon(runner.attach(mine.id))
            assert (again.status, again.final_message) == ("completed", ended.final_message)
            assert (store.leases(), store.open_keys()) == ([], [])

    run(main())
