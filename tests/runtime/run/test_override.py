"""`runner.override(model=, tools=)`: other models and tools for the runs that begin in a block, in
all agents, and nowhere else.
"""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, Sequential, handoff, tool
from offbook.runtime import (
    MemoryStore,
    Message,
    Runner,
    ScriptedModel,
    ToolCall,
    ToolCalls,
    UsageError,
)


class Never:
    async def generate(self, request):
        raise AssertionError("the real model was asked")


@tool
def charge(amount: int) -> str:
    """Charges a card."""
    raise AssertionError("the card was charged")


def agent(name="A", **options):
    return ChatModelAgent(name=name, description=name, model=Never(), **options)


def called(text="done", name="charge"):
    return ScriptedModel([ToolCalls((name, {"amount": 5})), text])


def by_text():
    """Calls the tool, and then says what it has said: for any number of runs."""

    class Model:
        async def generate(self, request):
            last = request.messages[-1]
            if last.role == "tool":
                return Message.assistant(last.text)
            return Message.assistant("", tool_calls=(ToolCall("c", "charge", '{"amount": 1}'),))

    return Model()


def test_model_and_tool_are_replaced_in_the_block_and_restored_after(run):
    async def main():
        runner = Runner(agent(tools=[charge]))
        charged = []

        def fake(amount: int) -> str:
            charged.append(amount)
            return "charged"

        with runner.override(model=called(), tools={"charge": fake}):
            result = await runner.query("pay")
        assert (result.text, charged) == ("done", [5])
        assert "the real model was asked" in str((await runner.query("pay")).error)

    run(main())


def test_sub_agents_handoffs_and_agents_that_are_tools_have_the_others_too(run):
    async def main():
        inner = agent("inner", tools=[charge])
        under = agent("under", tools=[charge])
        after = agent("after", tools=[charge])
        top = agent("top", sub_agents=[under], handoffs=[handoff(after)], tools=[inner.as_tool()])
        runner = Runner(top)
        models = {
            "top": ScriptedModel(
                [ToolCalls(("inner", {"request": "x"})), ToolCalls(("transfer_to_after", {}))]
            ),
            "inner": called("from inner"),
            "after": called("the end"),
        }
        amounts = []
        with runner.override(model=models, tools={"charge": lambda amount: amounts.append(amount)}):
            result = await runner.query("go")
        assert result.text == "the end"
        assert len(amounts) == 2
        with runner.override(
            model={
                "top": ScriptedModel([ToolCalls(("transfer_to_agent", {"agent_name": "under"}))]),
                "under": ScriptedModel(["hello"]),
            }
        ):
            assert (await runner.query("go")).last_agent == "under"

    run(main())


def test_two_blocks_at_once_do_not_see_each_other(run):
    async def main():
        runner, other = Runner(agent(tools=[charge])), Runner(agent("other"))
        both = asyncio.Barrier(2)

        async def one(name):
            def fake(amount: int) -> str:
                return name

            with runner.override(model=by_text(), tools={"charge": fake}):
                await both.wait()
                results = await asyncio.gather(*(runner.query("x") for _ in range(10)))
                assert (await other.query("x")).error is not None  # of another Runner
                await both.wait()
                return {result.text for result in results}

        assert await asyncio.gather(one("a"), one("b")) == [{"a"}, {"b"}]
        assert (await runner.query("x")).error is not None

    run(main())


def test_a_run_keeps_what_it_began_with_and_a_block_adds_to_the_one_around_it(run):
    async def main():
        runner = Runner(Sequential(name="S", sub_agents=[agent("one"), agent("two")]))
        with runner.override(model=ScriptedModel(["1", "2", "3"])):
            with runner.override(model={"two": ScriptedModel(["inner"])}):
                begun = runner.query("x")
            assert [event.text for event in (await begun).events] == ["1", "inner"]
            assert [event.text for event in (await runner.query("x")).events] == ["2", "3"]

    run(main())


def test_a_run_that_waited_is_resumed_with_what_the_block_has(run):
    async def main():
        asking = tool(needs_approval=True, name="charge")(lambda amount: f"charged {amount}")
        runner = Runner(agent(tools=[charge]), store=MemoryStore())
        with runner.override(model=called(), tools={"charge": asking}):
            first = await runner.query("pay", checkpoint_id="c")
            assert first.status == "interrupted"
            result = await runner.approve(first.interrupts[0])
        assert (result.text, result.status) == ("done", "completed")
        assert any(event.message and event.message.text == "charged 5" for event in result.events)

    run(main())


def test_without_a_loop(run):
    runner = Runner(agent())
    with runner.override(model=ScriptedModel(["hello"])):
        assert runner.query("x").result().text == "hello"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": {"B": ScriptedModel([])}}, "unknown agent 'B'.*Agents: A"),
        ({"model": object()}, r"model must be a ChatModel"),
        ({"tools": {"chrage": print}}, "no agent has a tool 'chrage'.*charge"),
        ({"tools": {"charge": 5}}, "cannot be called"),
        ({"tools": {"charge": tool(name="other")(lambda: "x")}}, "another name, 'other'"),
        ({"tools": [print]}, "tools must be a mapping"),
    ],
)
def test_what_is_wrong_is_said_before_the_block(given, said):
    with pytest.raises(UsageError, match=said), Runner(agent(tools=[charge])).override(**given):
        pass
