"""Leases that are given back in trouble: by who is cancelled meanwhile, or by several at once."""

import asyncio

import pytest

from tests.doubles.held_stores import HeldStore, echoing, soon, turns
from understudy.runtime import ActorSystem, Runner

WHEN = pytest.mark.parametrize("after", [False, True], ids=["before the store has done it", "before the store has answered"])


async def cancelled_at(gate, work):
    """Cancel a task when the store has been asked; then the store goes on."""
    task = asyncio.create_task(work)
    await soon(gate.reached.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await soon(task)
    gate.open()


@WHEN
def test_a_message_has_its_turn_after_a_clearing_that_was_cancelled_while_it_gave_its_turn_back(run, after):
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
