"""What is wrong with a resume is raised where its run is first looked at; and a run that waits goes
on from anywhere: another loop, a thread, no loop.
"""

import asyncio
import threading

import pytest

from offbook.actors import Agent, ToolContext, tool
from offbook.runtime import (
    ActorSystem,
    AgentEvent,
    CheckpointNotFound,
    MemoryStore,
    OffbookError,
    ResumeError,
    Runner,
    RunStatus,
    ToolCalls,
    UsageError,
)
from tests.doubles.waiting import Asker, Stage, chat

# --- what is raised, and where ---


def no_store():
    return Runner(Asker("A")).resume("1", data="x")


def unknown_id():
    return Runner(Asker("A"), store=MemoryStore()).resume("nothing-of-that-name", data="x")


def answered():
    stage = Stage(Asker("A"))
    stage.start()
    stage.go_on()
    return stage.runner.resume(stage.id)


PROBLEMS = [
    (no_store, OffbookError, "store"),
    (unknown_id, CheckpointNotFound, "nothing-of-that-name"),
    (answered, ResumeError, "already answered"),
]


async def iterate(run):
    return [event async for event in run]


async def consume(run):
    return await run


@pytest.mark.parametrize("how", [consume, iterate], ids=["await", "async for"])
@pytest.mark.parametrize(
    ("make", "error", "text"), PROBLEMS, ids=["no store", "unknown", "answered"]
)
def test_setup_errors_are_raised_where_a_run_is_awaited_or_iterated(run, make, error, text, how):
    async def main():
        with pytest.raises(error, match=text):
            await how(await asyncio.to_thread(make))

    run(main())


@pytest.mark.parametrize("how", [lambda run: run.result(20), list], ids=["result()", "for"])
@pytest.mark.parametrize(
    ("make", "error", "text"), PROBLEMS, ids=["no store", "unknown", "answered"]
)
def test_setup_errors_are_raised_in_synchronous_code_as_well(make, error, text, how):
    with pytest.raises(error, match=text):
        how(make())


@pytest.mark.parametrize(
    "order", [(consume, consume), (iterate, consume, consume)], ids=["awaited", "iterated"]
)
def test_a_setup_error_is_raised_again_and_the_run_has_failed(run, order):
    async def main():
        wrong = Runner(Asker("A"), store=MemoryStore()).resume("nothing")
        for how in order:
            with pytest.raises(CheckpointNotFound):
                await how(wrong)
        assert wrong.status is RunStatus.FAILED

    run(main())


@pytest.mark.parametrize("wrong", [None, 7, "", b"1", ["1"]], ids=repr)
def test_a_name_that_is_no_text_is_refused(wrong):
    stage = Stage(Asker("A"))
    stage.start()
    with pytest.raises(OffbookError):
        stage.runner.resume(wrong, data="x").result(20)


@pytest.mark.parametrize("wrong", [["x"], "x", {1: "x"}, {"x"}], ids=repr)
def test_targets_that_are_no_mapping_of_names_are_refused(wrong):
    stage = Stage(Asker("A"))
    stage.start()
    with pytest.raises(UsageError):
        stage.runner.resume(stage.id, wrong).result(20)
    assert stage.go_on(data="x").status == "completed"


# --- its status ---


def test_the_status_says_where_a_run_is(run, new_gate):
    class Works(Agent):
        def __init__(self, gate):
            super().__init__(name="A")
            self.gate = gate

        async def run(self, input, context):
            if context.resume is None:
                yield context.interrupt("?")
            else:
                await self.gate.wait()
                yield AgentEvent.say("end")

    async def main():
        gate = new_gate()
        runner = Runner(Works(gate), store=MemoryStore())
        first = runner.query("q")
        assert first.status in {RunStatus.PENDING, RunStatus.RUNNING}
        assert (await first).status is first.status is RunStatus.INTERRUPTED
        second = runner.resume(first.checkpoint_id)
        await gate.reached()
        assert second.status is RunStatus.RUNNING
        gate.open()
        assert (await second).status is second.status is RunStatus.COMPLETED
        assert first.status is RunStatus.INTERRUPTED, "it is over: the other one has gone on for it"

    run(main())


def test_g23_without_a_loop_a_resumed_run_begins_at_once():
    stage = Stage(Asker("A"))
    stage.start()
    resumed = stage.runner.resume(stage.id, data="x")
    assert resumed.status is not RunStatus.PENDING
    assert resumed.result(20).status is resumed.status is RunStatus.COMPLETED


def test_the_interrupts_of_a_result_are_those_that_wait_now():
    stage = Stage(Asker("A", "1?", "2?"))
    first, second, third = stage.start(), stage.go_on(), stage.go_on()
    assert [
        [context.info for context in result.interrupts] for result in (first, second, third)
    ] == [["1?"], ["2?"], []]
    assert first.interrupts == first.events[-1].action.contexts


# --- from where ---


@tool
def ask(context: ToolContext) -> str:
    return f"heard {context.interrupt('?')}"


def agent_that_asks():
    return chat("a", ToolCalls(ask={}), "end", tools=[ask])


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_run_goes_on_in_another_loop(store_of, kind):
    runner = Runner(agent_that_asks(), store=store_of(kind))

    async def first():
        return await runner.query("q", checkpoint_id="1")

    async def second():
        return await runner.resume("1", data="x")

    assert asyncio.run(first()).status == "interrupted"
    result = asyncio.run(second())
    assert [event.message.text for event in result.events] == ["heard x", "end"]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_run_goes_on_from_a_loop_to_none_and_back(store_of, kind):
    runner = Runner(Asker("A", "1?", "2?", "3?"), store=store_of(kind))

    async def resume(data):
        return await runner.resume("1", data=data)

    assert runner.query("q", checkpoint_id="1").result(20).status == "interrupted"
    assert asyncio.run(resume(1)).status == "interrupted"
    assert runner.resume("1", data=2).result(20).status == "interrupted"
    assert asyncio.run(resume(3)).final_output == "A heard 1,2,3"


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_run_goes_on_in_another_thread_s_loop(run, store_of, kind):
    runner = Runner(agent_that_asks(), store=store_of(kind))
    found = []

    async def resume():
        return await runner.resume("1", data="x")

    async def main():
        await runner.query("q", checkpoint_id="1")
        thread = threading.Thread(target=lambda: found.append(asyncio.run(resume())))
        thread.start()
        await asyncio.to_thread(thread.join, 20)

    run(main())
    assert found[0].final_output == "end"


def test_a_run_goes_on_in_another_system(run):
    async def main():
        store, agent = MemoryStore(), agent_that_asks()
        async with ActorSystem() as system:
            assert (
                await Runner(agent, system=system, store=store).query("q", checkpoint_id="1")
            ).status == "interrupted"
        async with ActorSystem() as system:
            assert (
                await Runner(agent, system=system, store=store).resume("1", data="x")
            ).final_output == "end"

    run(main())


def test_a_resumed_run_may_have_a_timeout(run, gate):
    class Hangs(Agent):
        async def run(self, input, context):
            if context.resume is None:
                yield context.interrupt("?")
            else:
                await gate.wait()

    async def main():
        runner = Runner(Hangs(name="A"), store=MemoryStore())
        await runner.query("q", checkpoint_id="1")
        result = await runner.resume("1", timeout=0.05)
        assert result.status is RunStatus.CANCELLED

    run(main())


def test_leaving_the_iteration_of_a_resumed_run_cancels_it_and_it_can_go_on(run, gate):
    async def think(_request):
        await gate.wait()
        return "end"

    async def main():
        runner = Runner(
            chat("a", ToolCalls(ask={}), think, think, tools=[ask]), store=MemoryStore()
        )
        await runner.query("q", checkpoint_id="1")
        going_on = runner.resume("1", data="x")
        async for event in going_on:
            assert event.message.text == "heard x"
            await gate.reached()
            break
        await going_on.aclose()
        assert going_on.status is RunStatus.CANCELLED
        gate.open()
        result = await runner.resume("1")
        assert [event.message.text for event in result.events] == ["end"]

    run(main())


def test_a_setup_error_that_nobody_looks_at_does_no_harm(run, until):
    async def main():
        wrong = Runner(Asker("A"), store=MemoryStore()).resume("nothing")
        await until(lambda: wrong.status is RunStatus.FAILED)
        await until(lambda: len(asyncio.all_tasks()) == 1)

    run(main())
