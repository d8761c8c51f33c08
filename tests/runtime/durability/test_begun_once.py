"""Runs that their callers name, that need no consumer, and that are looked at from elsewhere:
`run_id=`, `detached=`, `attach`, `keep=`.
"""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    ActorSystem,
    CheckpointNotFound,
    MemoryStore,
    RunLost,
    Runner,
    ScriptedModel,
    ToolCalls,
    UsageError,
)
from offbook.runtime.durability.store_access import StoreAccess
from offbook.runtime.durability.store_keys import open_key, open_prefix
from offbook.runtime.stores import RunEntry
from offbook.runtime.testing import ManualClock
from tests.doubles.held_stores import beside, soon, turns
from tests.doubles.left_runs import lose_all

KINDS = pytest.mark.parametrize("kind", ["memory", "sqlite", "redis", "postgres"])


class Desk:
    """An agent whose one tool waits until it is let go, and counts its calls."""

    def __init__(self, name="Desk"):
        self.asked, self.go, self.calls = asyncio.Event(), asyncio.Event(), []
        self.name = name

    def agent(self):
        @tool
        async def order(context: ToolContext) -> str:
            """Order it."""
            self.calls.append(context.idempotency_key)
            self.asked.set()
            await self.go.wait()
            return "ordered"

        return ChatModelAgent(
            name=self.name,
            model=ScriptedModel([ToolCalls(order={}), "It is on its way."]),
            tools=[order],
        )


@KINDS
@pytest.mark.parametrize("durability", ["step", "interrupt"])
def test_a_run_that_is_named_is_begun_once_and_a_second_caller_follows_it(
    run, store_of, kind, durability
):
    async def main():
        store, desk = store_of(kind), Desk()
        one, two = beside(), beside()
        here = Runner(desk.agent(), store=store, durability=durability, system=one)
        there = Runner(desk.agent(), store=store, durability=durability, system=two)
        first = here.query("go", run_id="order-7")
        await desk.asked.wait()
        again, elsewhere = here.query("go", run_id="order-7"), there.query("go", run_id="order-7")
        seen = asyncio.gather(again, elsewhere)
        desk.go.set()
        results = [await first, *await seen, await here.query("go", run_id="order-7")]
        assert {result.status for result in results} == {"completed"}
        assert {result.final_output for result in results} == {"It is on its way."}
        assert {tuple(event.seq for event in result.events) for result in results} == {(1, 2, 3)}
        assert len(desk.calls) == 1

    run(main())


def test_the_same_name_for_other_messages_or_of_another_agent_is_refused(run):
    async def main():
        store, desk = MemoryStore(), Desk()
        desk.go.set()
        runner = Runner(desk.agent(), store=store, durability="step")
        await runner.query("go", run_id="r")
        with pytest.raises(UsageError, match="was started with other messages"):
            await runner.query("stop", run_id="r")
        with pytest.raises(UsageError, match="belongs to a run of 'Desk'"):
            await Runner(Desk("Other").agent(), store=store, durability="step").query(
                "go", run_id="r"
            )
        for bad in ("", "offbook:x", "r@2", "r" * 1_501):
            with pytest.raises(UsageError):
                runner.query("go", run_id=bad)
        with pytest.raises(UsageError, match="a run_id needs a Runner with a store"):
            Runner(desk.agent()).query("go", run_id="r")

    run(main())


@KINDS
def test_a_run_of_a_session_that_is_named_is_one_turn(run, store_of, kind):
    async def main():
        desk = Desk()
        async with ActorSystem() as system:
            session = Runner(
                desk.agent(), store=store_of(kind), durability="step", system=system
            ).session("s")
            first = session.query("go", run_id="turn-1")
            await desk.asked.wait()
            again = session.query("go", run_id="turn-1")
            desk.go.set()
            assert (await first).final_output == (await again).final_output
            assert [message.role for message in await session.history()] == [
                "user",
                "assistant",
                "tool",
                "assistant",
            ]

    run(main())


@KINDS
def test_attached_consumers_see_what_is_shown_from_where_they_ask(run, store_of, kind):
    async def main():
        store, desk = store_of(kind), Desk()
        one, two = beside(), beside()
        running = Runner(desk.agent(), store=store, durability="step", system=one).query(
            "go", detached=True
        )
        await desk.asked.wait()
        elsewhere = Runner(desk.agent(), store=store, durability="step", system=two)
        looking = elsewhere.attach(running.id, after=1)
        seen = asyncio.create_task(collect(looking))
        gone = elsewhere.attach(running.id)
        async for _event in gone:
            break  # ends the looking, and not the run
        desk.go.set()
        assert [event.seq for event in await seen] == [2, 3]
        assert (await looking).final_output == (await running).final_output == "It is on its way."
        assert [event.seq for event in (await elsewhere.attach(running.id)).events] == [1, 2, 3]

    run(main())


async def collect(running):
    return [event async for event in running]


def test_what_was_never_begun_or_is_not_kept_cannot_be_attached_to(run):
    async def main():
        desk = Desk()
        desk.go.set()
        runner = Runner(desk.agent(), store=MemoryStore(), durability="step", keep="unfinished")
        ended = await runner.query("go")
        for run_id in ("never", ended.events[0].run_id):
            with pytest.raises(CheckpointNotFound):
                await runner.attach(run_id)
        with pytest.raises(UsageError):
            Runner(desk.agent()).attach("never")

    run(main())


def test_a_detached_run_goes_on_when_its_consumer_leaves_or_is_dropped(run):
    async def main():
        desk = Desk()
        runner = Runner(desk.agent(), store=MemoryStore(), durability="step")
        running = runner.query("go", detached=True)
        run_id = running.id
        consumer = asyncio.create_task(collect(running))
        await desk.asked.wait()
        consumer.cancel()
        await asyncio.gather(consumer, return_exceptions=True)
        del running
        desk.go.set()
        assert (await runner.attach(run_id)).final_output == "It is on its way."

    run(main())


def test_an_interrupt_of_a_named_run_is_kept_and_its_end_after_the_answer_too(run):
    async def main():
        @tool(needs_approval=True)
        async def pay() -> str:
            """Pay it."""
            return "paid"

        def agent():
            return ChatModelAgent(
                name="A", model=ScriptedModel([ToolCalls(pay={}), "done"]), tools=[pay]
            )

        for durability in ("step", "interrupt"):
            store = MemoryStore()
            runner = Runner(agent(), store=store, durability=durability)
            first = await runner.query("go", run_id="r")
            again = await runner.query("go", run_id="r")
            assert (first.status, again.status) == ("interrupted", "interrupted")
            assert [one.id for one in again.interrupts] == [one.id for one in first.interrupts]
            assert [event.seq for event in again.events] == [event.seq for event in first.events]
            await runner.approve(first.interrupts[0])
            assert (await runner.query("go", run_id="r")).final_output == "done"

    run(main())


def test_how_a_run_has_ended_is_kept_for_as_long_as_it_is_told(run):
    async def main():
        now = [1000.0]
        store, desk = MemoryStore(time=lambda: now[0]), Desk()
        desk.go.set()
        runner = Runner(desk.agent(), store=store, durability="step", keep=900)
        await runner.query("go", run_id="r")
        await Runner(desk.agent(), store=store, durability="step", keep="all").query(
            "go", run_id="for ever"
        )
        now[0] += 899
        assert (await runner.attach("r")).final_output == "It is on its way."
        now[0] += 2
        with pytest.raises(CheckpointNotFound):
            await runner.attach("r")
        now[0] += 1e7
        assert (await runner.attach("for ever")).final_output == "It is on its way."
        for bad in (-1, "some", float("nan")):
            with pytest.raises(UsageError):
                Runner(desk.agent(), store=store, keep=bad)

    run(main())


@KINDS
@pytest.mark.parametrize("session", [False, True], ids=["alone", "in a session"])
def test_a_named_run_of_which_its_lost_process_has_left_nothing_is_begun_again(
    run, store_of, kind, session
):
    async def main():
        store, desk, other = store_of(kind), Desk(), Desk()
        one, two = beside(), beside()

        def ask(its_desk, system):
            runner = Runner(its_desk.agent(), store=store, durability="interrupt", system=system)
            return (runner.session("s") if session else runner).query("go", run_id="r")

        lost = ask(desk, one)
        await soon(desk.asked.wait())
        await lose_all(one, store)
        other.go.set()
        assert (await soon(ask(other, two))).final_output == "It is on its way."
        assert (len(desk.calls), len(other.calls)) == (1, 1)
        desk.go.set()
        told = await soon(lost)
        assert told.status == "failed"
        assert isinstance(told.error, RunLost)
        assert told.events[-1].error is told.error
        assert (await soon(ask(desk, two))).final_output == "It is on its way."
        assert len(other.calls) == 1

    run(main())


@KINDS
def test_a_named_run_that_no_process_works_on_is_continued_by_who_asks_for_it(run, store_of, kind):
    async def main():
        store, desk, other = store_of(kind), Desk(), Desk()
        one, two = beside(), beside()

        def ask(its_desk, system):
            return Runner(its_desk.agent(), store=store, durability="step", system=system).query(
                "go", run_id="r"
            )

        lost = ask(desk, one)
        await soon(desk.asked.wait())
        await lose_all(one, store)
        other.go.set()
        model_is_asked_on = ChatModelAgent(
            name="Desk", model=ScriptedModel(["It is on its way."]), tools=other.agent().tools
        )
        runner = Runner(model_is_asked_on, store=store, durability="step", system=two)
        told = await soon(asyncio.gather(*(runner.query("go", run_id="r") for _ in range(3))))
        assert {result.final_output for result in told} == {"It is on its way."}
        assert len({tuple(event.seq for event in result.events) for result in told}) == 1, (
            "who continues it sees what they see who look on"
        )
        assert [event.seq for event in told[0].events] == list(range(1, len(told[0].events) + 1))
        assert len(told[0].events) > 1
        assert other.calls == desk.calls
        desk.go.set()
        assert isinstance((await soon(lost)).error, RunLost)

    run(main())


def test_who_follows_a_run_is_told_when_it_is_lost_and_nothing_of_it_was_kept(run):
    async def main():
        store, desk = MemoryStore(), Desk()
        one, clock = beside(lease_seconds=2), ManualClock()
        two = beside(clock)
        lost = Runner(desk.agent(), store=store, durability="interrupt", system=one).query(
            "go", run_id="r"
        )
        await soon(desk.asked.wait())
        followers = [
            Runner(desk.agent(), store=store, durability="interrupt", system=two).query(
                "go", run_id="r"
            )
            for _ in range(2)
        ]
        waiting = asyncio.gather(*followers, return_exceptions=True)
        await asyncio.sleep(0)
        await lose_all(one, store)
        for _ in range(200):
            await turns(3)
            clock.advance(0.05)
        assert {type(problem) for problem in await soon(waiting)} <= {RunLost}
        desk.go.set()
        assert (await soon(lost)).status == "failed"

    run(main())


def test_an_agent_that_uses_the_id_of_a_run_that_another_one_has_lost_is_found_as_its_agent(run):
    """The row keeps the first agent, and its claim names the one that has to continue it."""

    async def main():
        access = StoreAccess(MemoryStore())
        claim = open_key("Desk", "r")
        lost = RunEntry("r", "Other", "", "failed", 1, (), b"")
        await access.commit(None, [lost, lost.replace(agent="Desk", status="running", claim=claim)])
        assert await access.orphans(open_prefix("Desk")) == [claim]
        row = await access.row("Desk", "r")
        assert (row.agent, row.claim) == ("Desk", claim)
        assert await access.row("Other", "r") is None

    run(main())
