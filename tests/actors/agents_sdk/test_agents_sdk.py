"""The Agents SDK's interface: what it has beyond the SDK, and what it refuses."""

import asyncio

import pytest

from understudy.actors import ChatModelAgent, Sequential
from understudy.actors import agents_sdk as sdk
from understudy.actors.agents_sdk.testing import ScriptedModel, assistant_message, function_call
from understudy.runtime import MemoryStore, Message, Runner, ToolCalls
from understudy.runtime import ScriptedModel as CoreModel


def agent(name, *steps, **options):
    return sdk.Agent(name=name, model=ScriptedModel(steps), **options)


def test_each_name_of_the_sdk_can_be_imported():
    for name in sdk.__all__:
        assert getattr(sdk, name) is not None, name
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        sdk.Nothing  # noqa: B018 -- it is looked up


def test_understudys_models_can_be_an_agents():
    model = CoreModel([ToolCalls(look={"at": "sky"}), "It is blue."])

    @sdk.function_tool
    def look(at: str) -> str:
        """Look at something."""
        return f"{at}: blue"

    result = asyncio.run(sdk.Runner.run(sdk.Agent(name="A", instructions="Be A.", model=model, tools=[look]), "Which colour?"))
    assert result.final_output == "It is blue."
    assert [item.type for item in result.new_items] == ["tool_call_item", "tool_call_output_item", "message_output_item"]
    assert [message.role for message in model.requests[1].messages] == ["system", "user", "assistant", "tool"]
    assert [tool.name for tool in model.requests[0].tools] == ["look"]


def test_an_agent_plays_among_understudys_own():
    first = ChatModelAgent(name="First", model=CoreModel(["one"]))

    @sdk.function_tool
    async def t() -> str:
        return "r"

    second = agent("Second", [function_call("t", {}, call_id="c")], [assistant_message("two")], tools=[t])
    result = Runner(Sequential(name="Both", sub_agents=[first, second])).query("q").result()
    assert result.text == "two"
    assert [event.message.text for event in result.events if event.message is not None and event.agent_name == "Second"] == ["", "r", "two"]
    assert {"role": "user", "content": "q"} in second.model.first_call.input


def test_a_handoff_is_one_of_the_runtimes_own():
    b = agent("B", [assistant_message("done")])
    a = agent("A", [function_call("transfer_to_b", {}, call_id="h")], handoffs=[b])
    result = Runner(a).query("q").result()
    assert (result.text, result.last_agent) == ("done", "B")


def test_what_an_agent_costs_counts_in_the_runtimes_run():
    usage = sdk.Usage(requests=1, input_tokens=3, output_tokens=2, total_tokens=5)
    result = asyncio.run(sdk.Runner.run(sdk.Agent(name="A", model=ScriptedModel([[assistant_message("x")]], default_usage=usage)), "q"))
    assert (result.usage.input_tokens, result.usage.output_tokens) == (3, 2)
    assert result.context_wrapper.usage.total_tokens == 5


def test_an_approval_can_be_given_by_understudys_own_resume():
    done = []

    @sdk.function_tool(needs_approval=True)
    def pay(amount: int) -> str:
        done.append(amount)
        return "paid"

    async def story():
        model = ScriptedModel([[function_call("pay", {"amount": 7}, call_id="c")], [assistant_message("all paid")]])
        one = sdk.Agent(name="A", model=model, tools=[pay])
        runner = Runner(one, store=MemoryStore())
        first = await runner.run([Message.user("pay")], checkpoint_id="1")
        assert (first.status, done) == ("interrupted", [])
        (interrupt,) = first.interrupts
        return await runner.resume("1", {interrupt.id: True})

    result = asyncio.run(story())
    assert (result.text, done) == ("all paid", [7])


def test_a_run_with_an_id_is_made_once():
    async def story():
        store, one = MemoryStore(), agent("A", [assistant_message("once")])
        results = [await sdk.Runner.run(one, "q", store=store, durability="step", run_id="r1") for _ in range(2)]
        assert len(one.model.calls) == 1
        return [result.final_output for result in results]

    assert asyncio.run(story()) == ["once", "once"]


def test_the_default_store_keeps_runs_of_programs_that_know_of_none():
    async def story():
        store = MemoryStore()
        sdk.set_default_store(store)
        try:
            result = await sdk.Runner.run(agent("A", [assistant_message("kept")]), "q", run_id="r2")
        finally:
            sdk.set_default_store(None)
        return result.final_output, await Runner(agent("A"), store=store).attach("r2")

    output, seen = asyncio.run(story())
    assert (output, seen.text) == ("kept", "kept")


@pytest.mark.parametrize(
    ("what", "make"),
    [
        ("MCPServerStdio", lambda: __import__("understudy.actors.agents_sdk.mcp", fromlist=["x"]).MCPServerStdio({})),
        ("ResponsesWebSocketSession", lambda: sdk.ResponsesWebSocketSession()),
        ("websocket", lambda: sdk.set_default_openai_responses_transport("websocket")),
        ("litellm/", lambda: sdk.MultiProvider().get_model("litellm/x")),
    ],
)
def test_what_there_is_not_is_refused_by_name_with_the_page_that_says_so(what, make):
    with pytest.raises(sdk.UserError, match=rf"{what}.*docs/from-agents-sdk.md"):
        make()


def test_an_option_that_is_not_known_is_refused():
    with pytest.raises(TypeError, match=r"unknown options: retries"):
        asyncio.run(sdk.Runner.run(agent("A"), "q", retries=3))
    with pytest.raises(sdk.UserError, match=r"run_id=.*needs a store"):
        asyncio.run(sdk.Runner.run(agent("A"), "q", run_id="x"))
