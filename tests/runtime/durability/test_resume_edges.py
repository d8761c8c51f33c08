"""Interrupts at the edges: in helpers of a tool, beside failures, restarts and cancels, in many
runs of one definition at once.
"""

import asyncio

import pytest

from offbook.actors import Agent, ApprovalRequest, Parallel, Sequential, ToolContext, tool
from offbook.runtime import (
    AgentEvent,
    CustomAction,
    MemoryStore,
    Restart,
    ResumeError,
    RunCancelled,
    Runner,
    RunStatus,
    ToolCalls,
    TransferToAgent,
)
from tests.doubles.waiting import Asker, Stage, chain, chat, ids, told


@pytest.fixture(params=["interrupt", "step"])
def stage(request):
    """How to put an agent on a stage, with either durability."""
    return lambda agent, **options: Stage(agent, durability=request.param, **options)


def heard_by(made, script=None):
    """What the model is told of a call of that tool, when it was interrupted and has gone on with
    "x".
    """
    agent = chat("a", script or ToolCalls((made.name, {})), "end", tools=[made])
    play = Stage(agent)
    assert play.start().status == "interrupted"
    assert play.go_on(data="x").status == "completed"
    return told(agent.model)[0][1]


# --- inside of a tool ---


def test_a_tool_that_catches_its_errors_does_not_catch_the_interrupt():
    @tool
    async def careful(context: ToolContext) -> str:
        try:
            return f"heard {context.interrupt('?')}"
        except Exception as error:
            return f"caught {error!r}"

    assert heard_by(careful) == "heard x"


def test_a_tool_may_clean_up_on_its_way_out():
    seen = []

    @tool
    def tidy(context: ToolContext) -> str:
        try:
            return f"heard {context.interrupt('?')}"
        finally:
            seen.append("clean")

    assert heard_by(tidy) == "heard x"
    assert seen == ["clean", "clean"]


def test_a_helper_in_a_task_or_thread_of_the_tool_may_ask(run):
    @tool
    async def in_a_task(context: ToolContext) -> str:
        async def helper():
            return context.interrupt("?")

        return f"heard {await asyncio.create_task(helper())}"

    @tool
    async def in_a_thread(context: ToolContext) -> str:
        return f"heard {await asyncio.to_thread(context.interrupt, '?')}"

    async def main(made):
        agent = chat("a", ToolCalls((made.name, {})), "end", tools=[made])
        runner = Runner(agent, store=MemoryStore())
        assert (await runner.query("q", checkpoint_id="1")).status == "interrupted"
        await runner.resume("1", data="x")
        assert told(agent.model) == [(made.name, "heard x")]

    run(main(in_a_task))
    run(main(in_a_thread))


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_an_interrupt_is_no_failure_that_is_tried_again(kind):
    calls = []

    def body(context):
        calls.append(context.is_resume)
        return f"heard {context.interrupt('?')}"

    async def asynchronous(context: ToolContext) -> str:
        return body(context)

    def synchronous(context: ToolContext) -> str:
        return body(context)

    made = tool(name="ask", retries=3, timeout=10)(synchronous if kind == "def" else asynchronous)
    assert heard_by(made) == "heard x"
    assert calls == [False, True]


def test_a_call_that_fails_after_its_answer_is_tried_again_with_the_answer():
    calls = []

    @tool(retries=2)
    async def shaky(context: ToolContext) -> str:
        calls.append(context.interrupt("?"))
        if len(calls) < 3:
            raise ConnectionError("busy")
        return f"heard {calls[-1]}"

    assert heard_by(shaky) == "heard x"
    assert calls == ["x", "x", "x"]


def test_an_action_of_the_first_attempt_is_not_that_of_the_second():
    @tool
    async def ask(context: ToolContext) -> str:
        if not context.is_resume:
            context.send_action(CustomAction("too early"))
        return str(context.interrupt("?"))

    play = Stage(chat("a", ToolCalls(ask={}), "end", tools=[ask]))
    play.start()
    assert [event.action for event in play.go_on(data="x").events] == [None, None]


def test_an_inner_run_that_has_handed_over_goes_on_with_who_has_it(lines, stage):
    inner = chat(
        "inner", ToolCalls(transfer_to_agent={"agent_name": "sub"}), sub_agents=[Asker("sub")]
    )
    outer = chat("outer", ToolCalls(inner={"request": "r"}), "end", tools=[inner.as_tool()])
    play = stage(outer)
    (context,) = play.start().interrupts
    assert chain(context)[0] == "agent:outer/tool:inner/agent:inner/agent:sub 'sub?' root"
    assert lines(play.go_on(data="x")) == [
        'outer [outer] tool(inner) "sub heard x"',
        'outer [outer] assistant "end"',
    ]


# --- beside failures and restarts ---


def test_who_is_started_again_after_it_has_gone_on_still_knows_the_answer(lines, stage):
    class Shaky(Agent):
        """Fails the first time that it goes on."""

        tries = 0

        async def run(self, input, context):
            if context.resume is None:
                yield context.interrupt("?", state="s")
                return
            type(self).tries += 1
            if self.tries == 1:
                raise ConnectionError("busy")
            yield AgentEvent.say(f"heard {context.resume.data} with {context.resume.state}")

    play = stage(Shaky(name="A", on_failure=Restart(max_restarts=1)))
    play.start()
    result = play.go_on(data="x")
    assert (result.status, result.final_output) == ("completed", "heard x with s")


def test_a_tool_that_was_approved_is_not_called_again_when_its_agent_is_started_again(stage):
    paid = []

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    script = [ToolCalls(pay={"amount": 5}), ConnectionError("busy"), "end"]
    play = stage(chat("a", *script, tools=[pay], on_failure=Restart(max_restarts=1)))
    play.start()
    assert play.go_on(data=True).final_output == "end"
    assert paid == [5]


# --- beside cancels ---


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_what_waits_when_a_run_is_cancelled_is_not_answered_by_going_on(run, durability):
    """Nobody has seen the interrupt: a sibling was still at work."""
    paid = []

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    async def main():
        asked, gate = asyncio.Event(), asyncio.Event()

        class Works(Agent):
            async def run(self, input, context):
                await gate.wait()
                yield AgentEvent.say("work is done")

        model_is_asked = chat(
            "A", lambda request: asked.set() or ToolCalls(pay={"amount": 5}), "a ends", tools=[pay]
        )
        runner = Runner(
            Parallel(name="P", sub_agents=[model_is_asked, Works(name="B")]),
            store=MemoryStore(),
            durability=durability,
        )
        work = runner.query("q", checkpoint_id="1")
        await asked.wait()
        for _ in range(100):
            await asyncio.sleep(0)  # it waits by now
        assert await work.cancel()
        result = await work
        assert (result.status, type(result.error)) == (RunStatus.CANCELLED, RunCancelled)
        gate.set()
        with pytest.raises(ResumeError, match="waits for an approval"):
            await runner.resume("1")
        (waits,) = [
            context.id
            for context in result.error.contexts
            if isinstance(context.info, ApprovalRequest)
        ]
        result = await runner.resume("1", {waits: False})
        assert result.status is RunStatus.COMPLETED

    run(main())
    assert paid == []


# --- many at once ---


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_g11_many_runs_of_one_definition_wait_and_go_on_each_by_itself(run, durability):
    @tool
    async def ask(context: ToolContext) -> str:
        return (
            "heard "
            f"{context.interrupt(context.session['number'], state=context.session['number'])} "
            f"{context.interrupt_state}"
        )

    many = 100

    async def main():
        agent = Sequential(
            name="S",
            sub_agents=[
                Parallel(name="P", sub_agents=[Asker("A"), Asker("B")]),
                chat("C", *[ToolCalls(ask={})] * many, *["end"] * many, tools=[ask]),
            ],
        )
        runner = Runner(agent, store=MemoryStore(), durability=durability)
        names = [f"run {number}" for number in range(many)]
        first = await asyncio.gather(
            *(
                runner.query("q", checkpoint_id=name, session_values={"number": number})
                for number, name in enumerate(names)
            )
        )
        targets = [
            {context.id: f"{context.info}{number}" for context in result.interrupts}
            for number, result in enumerate(first)
        ]
        second = await asyncio.gather(
            *(runner.resume(name, targets[number]) for number, name in enumerate(names))
        )
        for number, result in enumerate(second):
            assert sorted(
                event.message.text
                for event in result.events
                if event.message and event.message.text
            ) == [f"{n} heard {n}?{number}" for n in "AB"]
            assert [context.info for context in result.interrupts] == [number]
        third = await asyncio.gather(
            *(runner.resume(name, data=f"d{number}") for number, name in enumerate(names))
        )
        for number, result in enumerate(third):
            assert [event.message.text for event in result.events] == [
                f"heard d{number} {number}",
                "end",
            ]

    run(main())


def test_recover_leaves_those_alone_that_wait_for_an_answer(run, stage):
    async def main():
        play = stage(Asker("A"))
        await play.runner.query("q", checkpoint_id="1")
        assert await play.runner.recover() == []
        assert (await play.runner.resume("1", data="x")).final_output == "A heard x"
        assert await play.runner.recover() == []

    run(main())


def test_an_agent_that_hands_over_on_its_way_on_does_not_wait_for_ever(lines, actor, stage):
    class Router(Agent):
        async def run(self, input, context):
            if context.resume is None:
                yield context.interrupt("to whom?")
            else:
                yield AgentEvent.of(action=TransferToAgent(context.resume.data))

    play = stage(Router(name="R", sub_agents=[Asker("A"), actor("B", "b")]))
    play.start()
    assert lines(play.go_on(data="A")) == ["R [R] {TransferToAgent A}", "A [R,A] {Interrupted 1}"]
    assert set(ids(play.go_on(id=f"{play.id}@1", data="B"))) == set()
    assert play.go_on(data="x").final_output == "A heard x"
