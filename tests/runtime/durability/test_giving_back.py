"""Leases that are given back in trouble: by who is cancelled meanwhile, or by several at once."""

import asyncio

import pytest

from offbook.runtime import ActorSystem, Runner, StoreError
from tests.doubles.held_stores import Echo, HeldStore, echoing, soon, turns
from tests.doubles.left_runs import lose_all

WHEN = pytest.mark.parametrize(
    "after", [False, True], ids=["before the store has done it", "before the store has answered"]
)


async def cancelled_at(gate, work):
    """Cancel a task when the store has been asked; then the store goes on."""
    task = asyncio.create_task(work)
    await soon(gate.reached.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(task)
    gate.open()


@WHEN
def test_a_message_has_its_turn_after_a_clearing_that_was_cancelled_while_it_gave_its_turn_back(
    run, after
):
    async def main():
        store = HeldStore()
        async with ActorSystem() as system:
            session = Runner(echoing(), system=system, store=store).session("s")
            await soon(session.query("before"))
            await cancelled_at(store.hold("leave", "session:s", after=after), session.clear())
            assert (await soon(session.query("now"))).final_output == "1 now"
            await turns()
            assert store.leases() == []

    run(main())


@WHEN
def test_a_run_begins_after_a_forgetting_that_was_cancelled_while_it_gave_the_run_back(run, after):
    async def main():
        store = HeldStore()
        async with ActorSystem() as system:
            runner = Runner(echoing(), system=system, store=store, durability="step")
            await cancelled_at(store.hold("leave", "open:", after=after), runner.forget("named"))
            assert (await soon(runner.query("now", run_id="named"))).final_output == "1 now"
            await turns()
            assert store.leases() == []

    run(main())


def test_runs_are_recovered_while_what_a_cancelled_run_had_begun_with_is_taken_back(run):
    async def main():
        store = HeldStore()
        async with ActorSystem() as system:
            runner = Runner(echoing(), system=system, store=store, durability="step")
            gate = store.hold("claim", "open:", after=True)
            begun = runner.query("go")
            await soon(gate.reached.wait())
            begun.cancel()
            assert (await soon(begun)).status == "cancelled"
            gate.open()
            assert await soon(asyncio.gather(*(runner.recover() for _ in range(3)))) == [[], [], []]
            await turns()
            assert (store.open_keys(), store.leases()) == ([], [])

    run(main())


def test_a_run_that_a_cancelled_recover_had_taken_is_found_by_one_of_the_next(run):
    async def main():
        store, model = HeldStore(), Echo()
        async with ActorSystem() as system:
            left = Runner(echoing(model), system=system, store=store, durability="step").query(
                "wait"
            )
            await soon(model.asked.wait())
        model.gate.set()
        async with ActorSystem() as system:
            runner = Runner(echoing(model), system=system, store=store, durability="step")
            await cancelled_at(store.hold("claim", "open:", after=True), runner.recover())
            found = await soon(asyncio.gather(*(runner.recover() for _ in range(3))))
            (again,) = (one for some in found for one in some)
            assert (again.id, (await soon(again)).status) == (left.id, "completed")

    run(main())


@pytest.mark.parametrize("session", [None, "s"])
def test_what_a_cancelled_run_had_begun_with_is_taken_back_though_its_system_is_left_at_once(
    run, session
):
    async def main():
        store = HeldStore()
        async with ActorSystem() as system:
            runner = Runner(echoing(), system=system, store=store, durability="step")
            gate = store.hold("claim", "open:", after=True)
            begun = (runner if session is None else runner.session(session)).query("go")
            await soon(gate.reached.wait())
            begun.cancel()
            asyncio.get_running_loop().call_soon(gate.open)
        assert ((await soon(begun)).status, store.open_keys(), store.leases()) == (
            "cancelled",
            [],
            [],
        )

    run(main())


@pytest.mark.parametrize("word", ["session:s", "open:"])
def test_what_the_store_grants_while_the_system_is_left_is_free_for_others_at_once(run, word):
    async def main():
        store = HeldStore()
        async with ActorSystem() as system:
            gate = store.hold("claim", word, after=True)
            begun = (
                Runner(echoing(), system=system, store=store, durability="step")
                .session("s")
                .query("go")
            )
            await soon(gate.reached.wait())
            asyncio.get_running_loop().call_soon(gate.open)
        assert ((await soon(begun)).status, store.open_keys(), store.leases()) == (
            "cancelled",
            [],
            [],
        )

    run(main())


def test_runs_are_recovered_by_a_system_that_was_revoked_while_it_owed_something(run):
    async def main():
        store, model = HeldStore(), Echo()
        async with ActorSystem() as system:
            runner = Runner(echoing(model), system=system, store=store, durability="step")
            running = runner.query("wait")
            await soon(model.asked.wait())
            ends_failing = store.fail("claim", "open:")
            with pytest.raises(StoreError):
                await soon(runner.query("go"))
            ends_failing()
            await lose_all(system, store)
            model.gate.set()
            (again,) = await soon(runner.recover())
            assert (again.id, (await soon(again)).status) == (running.id, "completed")

    run(main())
