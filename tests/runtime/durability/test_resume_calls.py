"""What a run that waits, and goes on, asks of its store: one step for each thing that has to be in
one, and nothing beside it.
"""

import asyncio
import logging

import pytest

from offbook.actors import tool
from offbook.runtime import MemoryStore, ResumeError, RunLost, Runner, StoreError, ToolCalls
from offbook.runtime.stores.marks import MARKS
from tests.doubles.waiting import Asker, chat
from tests.doubles.watched_stores import WatchedStore


class Noted(WatchedStore):
    """Notes its calls, but for those of an owner that enters, once in each process; `instead` is
    awaited once, behind the first look at the checkpoint.
    """

    def __init__(self):
        super().__init__()
        self.calls = []
        self.instead = None

    async def after(self, call):
        if call.method == "keep_alive" or call.key in MARKS:
            return
        self.calls.append(call)
        if call.method == "get" and self.instead is not None:
            instead, self.instead = self.instead, None
            await instead()


def payer(paid):
    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    return chat("a", ToolCalls(pay={"amount": 5}), "end", tools=[pay])


def test_a_run_that_waits_and_goes_on_makes_five_calls_of_its_store(run):
    async def main():
        store = Noted()
        runner = Runner(payer([]), store=store)
        first = runner.query("go")
        await first
        assert [call.method for call in store.calls] == ["commit"]
        store.calls.clear()
        assert (await runner.resume(first.checkpoint_id, data=True)).final_output == "end"
        assert [call.method for call in store.calls] == ["get", "claim", "commit", "commit"]
        claim, answered = store.calls[1:3]
        assert claim.has("expect", first.id)
        assert claim.has("expect", "answered")
        assert answered.has("put", "answered")

    run(main())


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_whoever_is_answered_behind_the_look_at_its_checkpoint_is_not_taken(run, durability):
    async def main():
        store, paid = Noted(), []
        runner = Runner(payer(paid), store=store, durability=durability)
        first = runner.query("go")
        await first

        async def rival():
            await runner.resume(first.checkpoint_id, data=True)

        store.instead = rival
        with pytest.raises(ResumeError, match="already answered"):
            await runner.resume(first.checkpoint_id, data=True)
        assert paid == [5]
        assert not store._claims

    run(main())


def test_a_run_with_the_name_of_a_checkpoint_that_waits_is_saved_behind_it(caplog):
    runner = Runner(Asker("A"), store=MemoryStore())
    former = runner.query("one", checkpoint_id="c")
    former.result(20)
    with caplog.at_level(logging.WARNING):
        latter = runner.query("two", run_id="c")
        assert latter.result(20).status == "interrupted"
    assert "belonged to run" in caplog.text
    assert runner.resume("c", data=2).result(20).final_output == "A heard 2"
    assert runner.resume("c@1", data=1).result(20).final_output == "A heard 1"


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize(("what", "problem"), [("revoke", RunLost), ("close", StoreError)])
def test_a_run_at_which_nothing_looks_on_ends_once_if_its_store_refuses_the_step_of_its_answer(
    run, durability, what, problem
):
    """A store in memory answers at once, so the agent that waits for its step is ended while it is
    asking.
    """

    async def main():
        store, paid = MemoryStore(), []

        @tool(needs_approval=True)
        async def pay(amount: int) -> str:
            paid.append(amount)
            if what == "close":
                store.close()
            for owner in tuple(store._owners):
                await store.revoke(owner)
            return "paid"

        runner = Runner(
            chat("a", ToolCalls(pay={"amount": 5}), "end", tools=[pay]),
            store=store,
            durability=durability,
        )
        first = runner.query("go")
        await first
        result = await runner.resume(first.checkpoint_id, data=True)
        assert (result.status, type(result.error), paid) == ("failed", problem, [5])
        assert [type(event.error) for event in result.events] == [problem]
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())
