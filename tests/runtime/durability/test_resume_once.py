"""An interrupt is answered once: at the same instant, later, while its run is at work.

What did not come to its first step has not answered it.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from offbook.actors import Agent, Parallel, ToolContext, tool
from offbook.runtime import AgentEvent, CheckpointError, ResumeError, Runner, RunStatus, ToolCalls
from tests.doubles.waiting import Asker, Stage, chat, ids, told


def till(paid, *script, **options):
    """An agent whose tool has to be approved, and notes each payment."""

    @tool(needs_approval=True, **options)
    async def pay(amount: int) -> str:
        paid.append(amount)
        await asyncio.sleep(0)
        return "paid"

    return chat("a", ToolCalls(pay={"amount": 5}), *(script or ("end", "end")), tools=[pay])


async def outcomes(runs):
    """What came of each run: its result, or what was raised."""
    return await asyncio.gather(*runs, return_exceptions=True)


def one_went_on(found):
    """The result of the one that did; the others were told that it was answered already."""
    errors = [one for one in found if isinstance(one, BaseException)]
    assert [type(error) for error in errors] == [ResumeError] * (len(found) - 1), found
    assert all("already answered" in str(error) for error in errors), errors
    return next(one for one in found if not isinstance(one, BaseException))


# --- at the same instant ---


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("apart", [False, True], ids=["one runner", "a runner each"])
def test_of_several_resumes_at_the_same_instant_one_goes_on(run, store_of, kind, apart, durability):
    paid = []

    async def main():
        store, agent = store_of(kind), till(paid)
        runner = Runner(agent, store=store, durability=durability)
        first = await runner.query("q", checkpoint_id="1")
        runners = [
            Runner(agent, store=store, durability=durability) if apart else runner for _ in range(4)
        ]
        found = await outcomes([one.approve(first.interrupts[0]) for one in runners])
        assert one_went_on(found).status is RunStatus.COMPLETED
        later = await outcomes(
            [runner.resume("1", data=True), runner.resume("1", {first.interrupts[0].id: True})]
        )
        assert [type(error) for error in later] == [ResumeError] * 2

    run(main())
    assert paid == [5]


def test_as_threads_see_it_too(store_of):
    paid = []
    store = store_of("sqlite")
    agent = till(paid)
    (waits,) = Runner(agent, store=store).query("q", checkpoint_id="1").result(20).interrupts

    def resume(_number):
        try:
            return Runner(agent, store=store).approve(waits).result(20)
        except CheckpointError as error:
            return error

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(resume, range(4)))
    assert one_went_on(found).status is RunStatus.COMPLETED
    assert paid == [5]


def test_of_two_that_answer_different_interrupts_at_the_same_instant_one_may_have_to_try_again(
    run, store_of
):
    async def main():
        runner = Runner(
            Parallel(name="P", sub_agents=[Asker("A"), Asker("B")]), store=store_of("memory")
        )
        first = ids(await runner.query("q", checkpoint_id="1"))
        found = await outcomes([runner.resume("1", {first[name]: name}) for name in "AB"])
        (error,) = [one for one in found if isinstance(one, BaseException)]
        (result,) = [one for one in found if not isinstance(one, BaseException)]
        assert isinstance(error, ResumeError)
        (left,) = result.interrupts
        assert (await runner.resume("1", {left.id: "again"})).status == "completed"

    run(main())


# --- later ---


@pytest.mark.parametrize("how", ["data", "targets", "nothing"])
def test_later_it_has_been_answered(how):
    paid = []
    stage = Stage(till(paid))
    (waits,) = stage.start().interrupts
    stage.go_on(data=True)
    with pytest.raises(ResumeError, match="already answered"):
        stage.go_on(
            **{"data": {"data": True}, "targets": {"targets": {waits.id: True}}, "nothing": {}}[how]
        )
    assert paid == [5]


def test_an_answer_that_was_given_counts_also_if_the_run_has_failed_since():
    class Fails(Agent):
        async def run(self, input, context):
            if context.resume is None:
                yield context.interrupt("?")
            else:
                yield AgentEvent.say("I begin")
                raise ValueError("broken")

    stage = Stage(Fails(name="A"))
    stage.start()
    assert stage.go_on(data=1).status == "failed"
    with pytest.raises(ResumeError):
        stage.go_on(data=2)


# --- while its run is at work ---


class Gated(Agent):
    """Asks, then waits for its gate, first without having said anything, and then once more."""

    def __init__(self, name, gates):
        super().__init__(name=name)
        self.gates = list(gates)

    async def run(self, input, context):
        if context.resume is None:
            yield context.interrupt("?")
            return
        await self.gates[0].wait()
        yield AgentEvent.say(f"heard {context.resume.data}")
        await self.gates[1].wait()
        yield AgentEvent.say("end")


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize("spoken", [False, True], ids=["before its first step", "after it"])
def test_a_run_that_is_at_work_again_is_not_resumed_once_more(
    run, new_gate, store_of, spoken, durability
):
    async def main():
        gates = new_gate(), new_gate()
        agent, store = Gated("A", gates), store_of("memory")
        runner = Runner(agent, store=store, durability=durability)
        await runner.query("q", checkpoint_id="1")
        going_on = runner.resume("1", data="first")
        await gates[0].reached()
        if spoken:
            gates[0].open()
            await gates[1].reached()
        for other in (runner, Runner(agent, store=store, durability=durability)):
            with pytest.raises(ResumeError):
                await other.resume("1", data="second")
        gates[0].open()
        gates[1].open()
        result = await going_on
        assert [event.message.text for event in result.events] == ["heard first", "end"]

    run(main())


def test_a_run_that_has_never_waited_cannot_be_resumed_while_it_is_at_work(run, gate, store_of):
    class Works(Agent):
        async def run(self, input, context):
            await gate.wait()
            yield AgentEvent.say("end")

    async def main():
        runner = Runner(Works(name="A"), store=store_of("memory"))
        work = runner.query("q")
        await gate.reached()
        with pytest.raises(CheckpointError):
            await runner.resume(work.checkpoint_id)
        gate.open()
        assert (await work).final_output == "end"

    run(main())


# --- what is no answer ---


def test_a_resume_that_could_not_begin_is_no_answer():
    paid = []
    stage = Stage(till(paid))
    stage.start()
    wrong = Runner(Asker("other"), store=stage.store)
    for runner, given in (
        (wrong, {"data": True}),
        (stage.runner, {"data": "maybe"}),
        (stage.runner, {"targets": {"x": 1}}),
    ):
        with pytest.raises(CheckpointError):
            runner.resume(stage.id, **given).result(20)
    assert stage.go_on(data=True).status == "completed"
    assert paid == [5]


def in_a_loop_that_ends(store, durability, calls):
    """A resume whose loop ends while its tool is at work: it has died before its first recorded
    step.
    """

    async def main():
        reached = asyncio.Event()

        @tool
        async def ask(context: ToolContext) -> str:
            calls.append(context.interrupt("?"))
            reached.set()
            await asyncio.get_running_loop().create_future()

        runner = Runner(chat("a", tools=[ask]), store=store, durability=durability)
        going_on = runner.resume("1", data="lost")
        await reached.wait()
        return going_on

    return asyncio.run(main())


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_a_resume_that_died_before_its_first_step_is_no_answer(store_of, durability):
    calls = []

    @tool
    async def ask(context: ToolContext) -> str:
        calls.append(context.interrupt("?"))
        return "told"

    agent = chat("a", ToolCalls(ask={}), "end", tools=[ask])
    store = store_of("memory")
    Runner(agent, store=store, durability=durability).query("q", checkpoint_id="1").result(20)
    lost = in_a_loop_that_ends(store, durability, calls)
    assert lost.status in {
        RunStatus.DRAINED,
        RunStatus.CANCELLED,
        RunStatus.FAILED,
        RunStatus.RUNNING,
    }
    result = Runner(agent, store=store, durability=durability).resume("1", data="second").result(20)
    assert (result.status, result.final_output) == (RunStatus.COMPLETED, "end")
    assert calls == ["lost", "second"]


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_a_resumed_run_that_is_cancelled_goes_on_with_the_answer_it_had(
    run, gate, store_of, durability
):
    calls = []

    @tool(needs_approval=True)
    async def pay(context: ToolContext, amount: int) -> str:
        calls.append((amount, context.interrupt("sure?")))
        if len(calls) == 1:
            await gate.wait()
        return "paid"

    async def main():
        agent = chat("a", ToolCalls(pay={"amount": 5}), "end", tools=[pay])
        runner = Runner(agent, store=store_of("memory"), durability=durability)
        (waits,) = (await runner.query("q", checkpoint_id="1")).interrupts
        await runner.approve(waits)
        going_on = runner.resume("1", data="yes")
        await gate.reached()
        assert await going_on.cancel()
        assert (await going_on).status is RunStatus.CANCELLED
        result = await runner.resume("1")
        assert (result.status, result.final_output) == (RunStatus.COMPLETED, "end")
        assert told(agent.model) == [("pay", "paid")]

    run(main())
    assert calls == [(5, "yes"), (5, "yes")]
