"""A conversation that goes on while a call waits for an answer: its model is told what the call
waits for, and does not make it again.
"""

import pytest

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import ActorSystem, MemoryStore, Runner, ScriptedModel, ToolCalls, keep_last


@tool
def pay(amount: int, context: ToolContext) -> str:
    return f"paid {amount}: {context.interrupt('may I?')}"


@tool
def look() -> str:
    return "looked"


@tool(needs_approval=True)
def refund(amount: int) -> str:
    return f"refunded {amount}"


@tool
def choose(context: ToolContext) -> str:
    return f"chose {context.interrupt({'of': [1, 2]})}"


def told(model):
    return {
        message.tool_name: message.text
        for message in model.requests[-1].messages
        if message.role == "tool"
    }


async def played(first, then, *tools, **options):
    """What the model is told of the calls of its first reply, when the conversation goes on without
    an answer to them.
    """
    model = ScriptedModel([first, then])
    async with ActorSystem() as system:
        session = Runner(
            ChatModelAgent(name="A", model=model, tools=tools),
            system=system,
            store=MemoryStore(),
            **options,
        ).session("s")
        assert (await session.query("do it")).status == "interrupted"
        assert (await session.query("and what is the time?")).final_output == then
    return told(model)


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_the_model_of_the_next_turn_is_told_what_its_calls_wait_for(run, durability):
    calls = ToolCalls(pay={"amount": 3}, look={}, refund={"amount": 4}, choose={})
    again = "Do not make it again: its result comes when it was given."
    assert run(played(calls, "It is noon.", pay, look, refund, choose, durability=durability)) == {
        "pay": f'The call waits for an answer to what it asked ("may I?"). {again}',
        "look": "looked",
        "refund": f"The call waits for approval. {again}",
        "choose": f"The call waits for an answer. {again}",
    }


def test_the_call_of_an_agent_waits_with_what_it_has_called(run):
    inner = ChatModelAgent(
        name="clerk", model=ScriptedModel([ToolCalls(refund={"amount": 4})]), tools=[refund]
    )
    assert run(played(ToolCalls(clerk={"request": "refund"}), "It is noon.", inner.as_tool()))[
        "clerk"
    ].startswith("The call waits for approval.")


def test_a_run_that_is_not_kept_waits_for_nothing(run):
    assert run(
        played(ToolCalls(refund={"amount": 4}), "It is noon.", refund, durability="none")
    ) == {"refund": "The call was not completed."}


@pytest.mark.parametrize("policy", [None, keep_last(20)])
def test_when_it_was_answered_the_result_stands_in_its_place(run, policy):
    async def main():
        model = ScriptedModel(
            [ToolCalls(pay={"amount": 3}), "It is noon.", "done", "You are welcome."]
        )
        async with ActorSystem() as system:
            runner = Runner(
                ChatModelAgent(name="A", model=model, tools=[pay]),
                system=system,
                store=MemoryStore(),
            )
            session = runner.session("s", policy=policy)
            turn = session.query("pay")
            await turn
            await session.query("and what is the time?")
            assert "waits for an answer" in told(model)["pay"]
            assert (await runner.resume(turn.checkpoint_id, data="yes")).final_output == "done"
            await session.query("thank you")
            assert told(model) == {"pay": "paid 3: yes"}

    run(main())


def test_one_that_asks_for_something_else_when_it_goes_on_waits_for_that(run):
    async def main():
        model = ScriptedModel(
            [ToolCalls(refund={"amount": 3}), ToolCalls(pay={"amount": 3}), "It is noon."]
        )
        async with ActorSystem() as system:
            runner = Runner(
                ChatModelAgent(name="A", model=model, tools=[pay, refund]),
                system=system,
                store=MemoryStore(),
            )
            session = runner.session("s")
            turn = session.query("refund")
            await turn
            await runner.resume(turn.checkpoint_id, data=True)
            await session.query("and what is the time?")
        texts = told(model)
        assert texts["refund"] == "refunded 3"
        assert texts["pay"].startswith("The call waits for an answer to what it asked")

    run(main())
