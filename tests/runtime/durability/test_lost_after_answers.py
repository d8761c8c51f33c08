"""Runs with `durability="interrupt"` whose process is lost after an answer, and runs whose end
cannot be written: what the next caller is told.
"""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import RunLost, Runner, ScriptedModel, StoreError, ToolCalls
from tests.doubles.held_stores import HeldStore, beside, soon
from tests.doubles.left_runs import lose_all

KINDS = pytest.mark.parametrize("kind", ["memory", "sqlite", "redis", "postgres"])


class Paying:
    """An agent that pays once, with approval.

    The payment waits at a gate, or the model after it.
    """

    def __init__(self, held=""):
        self.held, self.reached, self.go, self.paid = held, asyncio.Event(), asyncio.Event(), 0

    async def _wait(self, where):
        if self.held == where:
            self.reached.set()
            await self.go.wait()

    def agent(self):
        @tool(needs_approval=True)
        async def pay(euros: int) -> str:
            """Pay it."""
            self.paid += 1
            await self._wait("tool")
            return "paid"

        async def last(request):
            await self._wait("model")
            return "done" if request.messages[-1].role == "tool" else ToolCalls(pay={"euros": 10})

        return ChatModelAgent(
            name="A", model=ScriptedModel([ToolCalls(pay={"euros": 10}), last, last]), tools=[pay]
        )


def runner_of(desk, store, system, **options):
    return Runner(desk.agent(), store=store, durability="interrupt", system=system, **options)


async def lost_after_the_answer(store, desk):
    """A run that was answered in a process that was lost then; and what that was."""
    here = beside(lease_seconds=2)
    runner = runner_of(desk, store, here)
    first = await soon(runner.query("go", run_id="r"))
    assert first.status == "interrupted"
    lost = runner.approve(first.interrupts[0])
    lost.start()
    await soon(desk.reached.wait())
    await lose_all(here, store)
    return lost


@KINDS
def test_a_run_that_was_lost_before_its_answer_counted_waits_again(run, store_of, kind):
    async def main():
        store, desk, other = store_of(kind), Paying("tool"), Paying()
        lost = await lost_after_the_answer(store, desk)
        runner = runner_of(other, store, beside())
        for _ in range(2):
            again = await soon(runner.query("go", run_id="r"))
            assert (again.status, again.error) == ("interrupted", None)
            assert [one.info.arguments for one in again.interrupts] == ['{"euros":10}']
        info = await runner.info("r")
        assert (info.status, [one.id for one in info.waiting]) == (
            "interrupted",
            [one.id for one in again.interrupts],
        )
        done = await soon(
            Runner(answering(other), store=store, durability="interrupt", system=beside()).approve(
                again.interrupts[0]
            )
        )
        assert (done.status, done.final_output, other.paid) == ("completed", "done", 1)
        assert (await soon(runner.query("go", run_id="r"))).final_output == "done"
        desk.go.set()
        assert isinstance((await soon(lost)).error, RunLost)

    run(main())


def answering(desk):
    """The same agent, whose model is asked for its last reply only."""
    agent = desk.agent()
    return ChatModelAgent(name="A", model=ScriptedModel(["done"]), tools=agent.tools)


@KINDS
def test_a_run_that_was_lost_after_its_answer_counted_has_failed_and_says_how_to_continue(
    run, store_of, kind
):
    async def main():
        store, desk, other = store_of(kind), Paying("model"), Paying()
        lost = await lost_after_the_answer(store, desk)
        runner = runner_of(other, store, beside())
        for _ in range(2):
            again = await soon(runner.query("go", run_id="r"))
            assert again.status == "failed"
            assert isinstance(again.error, RunLost)
            assert "resume('r@1')" in str(again.error)
        assert (await runner.info("r")).status == "failed"
        assert other.paid == 0, "it is not begun again: what was approved may have been done"
        branch = await soon(
            Runner(answering(other), store=store, durability="interrupt", system=beside()).resume(
                "r@1", data=True
            )
        )
        assert (branch.status, other.paid) == ("completed", 1)
        desk.go.set()
        assert isinstance((await soon(lost)).error, RunLost)

    run(main())


@pytest.mark.parametrize("answered", [False, True], ids=["at once", "after an answer"])
def test_a_caller_is_not_told_that_a_run_has_completed_whose_end_could_not_be_written(
    run, answered
):
    async def main():
        store, desk = HeldStore(), Paying()
        agent = (
            desk.agent() if answered else ChatModelAgent(name="A", model=ScriptedModel(["done"]))
        )
        runner = Runner(agent, store=store, durability="interrupt", system=beside())
        running = runner.query("go", run_id="r")
        if answered:
            running = runner.approve((await soon(running)).interrupts[0])
        store.fail("leave", "open", once=True)
        result = await soon(running)
        assert result.status == "failed"
        assert isinstance(result.error, StoreError)
        assert result.events[-1].error is result.error

    run(main())
