"""What a user's agent or tool finds in its context: what is documented, and nothing of the
package's own.
"""

import asyncio

import pytest

from offbook.actors import Agent, AgentContext, ChatModelAgent, ToolContext, tool
from offbook.actors.tools.tool_call_state import ToolCallState
from offbook.actors.tools.tool_context import call_state_of
from offbook.runtime import AgentEvent, Runner, ScriptedModel, ToolCalls
from offbook.runtime.agent.agent_runtime import AgentRuntime
from offbook.runtime.agent.context import runtime_of

OF_AN_AGENT = {
    "agent_name",
    "cast",
    "fence",
    "interrupt",
    "invocation_id",
    "options",
    "resume",
    "run",
    "run_blocking",
    "run_id",
    "run_path",
    "session",
    "session_id",
    "sleep",
    "start",
    "state",
    "step",
}
OF_A_TOOL = {
    "agent_name",
    "arguments",
    "call_id",
    "cancelled",
    "emit",
    "fence",
    "idempotency_key",
    "interrupt",
    "interrupt_state",
    "is_resume",
    "is_resume_target",
    "options",
    "run",
    "run_blocking",
    "run_id",
    "run_path",
    "send_action",
    "session",
    "sleep",
    "start",
    "step",
    "tool_name",
}
CONTEXTS = pytest.mark.parametrize(
    ("context", "names"),
    [(AgentContext, OF_AN_AGENT), (ToolContext, OF_A_TOOL)],
    ids=["agent", "tool"],
)


def public(value):
    return {name for name in dir(value) if not name.startswith("_")}


@CONTEXTS
def test_a_context_shows_what_is_documented_and_nothing_else(context, names):
    assert public(context) == names


@CONTEXTS
def test_what_a_context_can_do_says_what_it_does(context, names):
    assert [
        name
        for name in names
        if callable(getattr(context, name)) and not getattr(context, name).__doc__
    ] == []


def play(agent):
    return Runner(agent).query("go").result()


def test_an_agents_context_has_them_in_a_run_and_takes_no_others():
    found = {}

    class Looks(Agent):
        async def run(self, input, context):
            found["names"], found["door"] = public(context), runtime_of(context)
            found["values"] = [getattr(context, name) for name in sorted(OF_AN_AGENT)]
            with pytest.raises(AttributeError):
                context.note = "of the user's"
            yield AgentEvent.say(context.agent_name)

    assert play(Looks(name="a")).final_output == "a"
    assert found["names"] == OF_AN_AGENT
    assert isinstance(found["door"], AgentRuntime)


def test_a_tools_context_has_them_in_a_run_and_takes_no_others():
    found = {}

    @tool
    async def look(context: ToolContext) -> str:
        found["names"], found["door"] = public(context), call_state_of(context)
        found["values"] = [getattr(context, name) for name in sorted(OF_A_TOOL)]
        with pytest.raises(AttributeError):
            context.note = "of the user's"
        return f"{context.tool_name} for {context.agent_name}: {context.arguments}"

    result = play(
        ChatModelAgent(
            name="a", model=ScriptedModel([ToolCalls(("look", {})), "done"]), tools=[look]
        )
    )
    assert [event.message.text for event in result.events] == ["", "look for a: {}", "done"]
    assert found["names"] == OF_A_TOOL
    assert isinstance(found["door"], ToolCallState)


def test_both_lead_to_the_objects_of_their_run():
    seen = []

    class Looks(Agent):
        async def run(self, input, context):
            seen.append(context)
            await context.cast(
                ChatModelAgent(
                    name="b", model=ScriptedModel([ToolCalls(("look", {})), "done"]), tools=[look]
                )
            )
            yield AgentEvent.say("done")

    @tool
    async def look(context: ToolContext) -> str:
        seen.append(context)
        return await context.run_blocking(lambda: "fine")

    async def main():
        return await Runner(Looks(name="a")).query("go", context="mine", session_values={"key": 1})

    asyncio.run(main())
    agent, of_tool = seen
    assert agent.run is of_tool.run
    assert agent.run.context == "mine"
    assert agent.session is of_tool.session is agent.run.session
    assert agent.run_id == of_tool.run_id
    assert (agent.run_path, of_tool.run_path) == (("a",), ("a", "b"))
    assert of_tool.idempotency_key.startswith(f"{agent.run_id}:")
