"""An answer that has an id: sent again, it is taken once, and the run is followed."""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import (
    ActorSystem,
    MemoryStore,
    Message,
    ResumeError,
    Runner,
    RunStatus,
    ToolCall,
    UsageError,
)
from offbook.runtime.run import opening
from tests.doubles.held_stores import beside


class Buys:
    async def generate(self, request):
        if request.messages[-1].role == "tool":
            return Message.assistant("done")
        return Message.assistant("", [ToolCall("c1", "pay", "{}")])


class Bench:
    """Runners of several processes that share a store, and how often the tool was called."""

    def __init__(self):
        self.store, self.paid, self.gate = MemoryStore(), 0, asyncio.Event()

        @tool(needs_approval=True)
        async def pay() -> str:
            self.paid += 1
            await self.gate.wait()
            return "paid"

        self.agent = ChatModelAgent(name="Buyer", model=Buys(), tools=[pay])

    def runner(self, system):
        return Runner(self.agent, system=system, store=self.store, durability="step")


async def until(condition):
    while not condition():
        await asyncio.sleep(0)


def test_an_answer_that_is_sent_again_is_taken_once_and_its_run_is_followed(run, monkeypatch):
    monkeypatch.setattr(opening, "_RESENT_SECONDS", 0.3)  # until another answer is refused

    async def main():
        bench = Bench()
        async with ActorSystem() as system:
            other = beside()
            (waits,) = (await bench.runner(system).query("pay", run_id="r")).interrupts
            first = bench.runner(system).approve(waits, answer_id="a")
            await until(lambda: bench.paid)
            again, second = (
                bench.runner(other).approve(waits, answer_id="a"),
                bench.runner(other).approve(waits, answer_id="b"),
            )
            with pytest.raises(ResumeError):
                await second
            bench.gate.set()
            results = [
                await first,
                await again,
                await bench.runner(other).approve(waits, answer_id="a"),
            ]
            with pytest.raises(ResumeError):
                await bench.runner(system).deny(waits, answer_id="c")
        assert [one.status for one in results] == [RunStatus.COMPLETED] * 3
        assert [one.final_message.text for one in results] == ["done"] * 3
        assert bench.paid == 1

    run(main())


def test_an_answer_is_binding_as_soon_as_it_is_stored_and_its_run_is_recovered_with_it(run):
    async def main():
        bench = Bench()
        async with ActorSystem() as system:
            (waits,) = (await bench.runner(system).query("pay", run_id="r")).interrupts
            bench.runner(system).approve(waits, answer_id="a")
            await until(lambda: bench.paid)
        async with ActorSystem() as other:
            with pytest.raises(ResumeError):
                await bench.runner(other).deny(waits, answer_id="b")
            bench.gate.set()
            again = bench.runner(other).approve(waits, answer_id="a")
            await bench.runner(other).recover()
            assert (await again).status is RunStatus.COMPLETED

    run(main())


def test_a_run_that_is_forgotten_leaves_no_answer(run):
    async def main():
        bench = Bench()
        bench.gate.set()
        async with ActorSystem() as system:
            (waits,) = (await bench.runner(system).query("pay", run_id="r")).interrupts
            assert (
                await bench.runner(system).approve(waits, answer_id="a")
            ).status is RunStatus.COMPLETED
        assert bench.paid == 1
        async with ActorSystem() as system:
            await bench.runner(system).forget("r")
            assert [key for key in await bench.store.keys("") if "answered" in key] == []

    run(main())


@pytest.mark.parametrize("answer_id", ["", "a@b", "x" * 101, 7])
def test_an_answer_id_that_is_none_is_refused(answer_id):
    with pytest.raises(UsageError, match="answer_id must be"):
        Runner(Bench().agent, store=MemoryStore(), durability="step").resume(
            "r", answer_id=answer_id
        )
