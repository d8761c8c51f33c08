"""Guardrails of tools: what looks at a call before it is made, and at its result."""

import asyncio

import pytest

from offbook.actors import (
    ToolGuardrailFunctionOutput,
    ToolInputGuardrailData,
    ToolOutputGuardrailData,
    tool,
)
from offbook.runtime import (
    GuardrailTripped,
    Message,
    Runner,
    RunStatus,
    ToolCall,
    ToolCalls,
    ToolError,
    UsageError,
)
from tests.doubles.handing import chat
from tests.doubles.waiting import Stage, told

ALLOW = ToolGuardrailFunctionOutput.allow()


def agent_with(*script, on_tool_error="report", made=None, **guardrails):
    """An agent with one guarded tool, which notes that it was called."""

    @tool(**{key: value for key, value in guardrails.items() if key != "beside"})
    async def pay(euros: int) -> str:
        """Pay."""
        if made is not None:
            made.append(euros)
        return f"{euros} paid"

    return chat(
        "A",
        *(script or (ToolCalls(pay={"euros": 3}), "done")),
        tools=[pay, *guardrails.get("beside", ())],
        on_tool_error=on_tool_error,
    )


def test_they_are_given_the_call_the_result_the_agent_and_the_run():
    seen = []

    def look(data):
        seen.append(data)
        return ALLOW

    async def look_later(data):
        await asyncio.sleep(0)
        return look(data)

    a = agent_with(input_guardrails=[look, look_later], output_guardrails=[look_later])
    assert Runner(a).query("q", context="mine").result().final_output == "done"
    assert told(a.model) == [("pay", "3 paid")]
    before, again, after = seen
    assert (type(before), type(again), type(after)) == (
        ToolInputGuardrailData,
        ToolInputGuardrailData,
        ToolOutputGuardrailData,
    )
    assert (before.agent, before.context.context, before.call) == (
        a,
        "mine",
        ToolCall("call_1", "pay", '{"euros":3}'),
    )
    assert (after.call, after.output) == (before.call, "3 paid")


def test_a_call_that_is_rejected_is_not_made():
    made = []
    reject = lambda data: ToolGuardrailFunctionOutput.reject_content("not that much", {"limit": 1})  # noqa: E731 -- in place
    a = agent_with(input_guardrails=[reject, lambda data: pytest.fail("one is enough")], made=made)
    result = Runner(a).query("q").result()
    assert (result.final_output, told(a.model), made) == ("done", [("pay", "not that much")], [])


def test_a_result_that_is_rejected_is_not_shown():
    made = []
    a = agent_with(
        output_guardrails=[lambda data: ToolGuardrailFunctionOutput.reject_content("")], made=made
    )
    result = Runner(a).query("q").result()
    assert (told(a.model), made) == ([("pay", "")], [3])
    assert "3 paid" not in repr(result.events)


@pytest.mark.parametrize("on_tool_error", ["report", "raise"])
@pytest.mark.parametrize("kind", ["input_guardrails", "output_guardrails"])
def test_one_that_trips_ends_the_run_when_the_other_calls_have_ended(kind, on_tool_error):
    @tool
    async def look() -> str:
        """Look."""
        for _ in range(5):
            await asyncio.sleep(0)
        return "found"

    def trips(data):
        return ToolGuardrailFunctionOutput.raise_exception({"why": data.call.name})

    a = agent_with(
        ToolCalls(pay={"euros": 3}, look={}),
        "never",
        on_tool_error=on_tool_error,
        beside=[look],
        **{kind: [trips]},
    )
    result = Runner(a).query("q").result()
    assert result.status is RunStatus.FAILED
    error = result.error
    assert isinstance(error, GuardrailTripped)
    assert (error.guardrail, error.output_info, error.agent, error.run, error.message.name) == (
        "trips",
        {"why": "pay"},
        "A",
        result.events[0].run_id,
        "pay",
    )
    assert [event.message.text for event in result.events if event.message] == ["", "found"]


@pytest.mark.parametrize("kind", ["input_guardrails", "output_guardrails"])
def test_one_that_raises_has_tripped(kind):
    def raises(data):
        raise KeyError("gone")

    result = Runner(agent_with(**{kind: [raises]})).query("q").result()
    assert isinstance(result.error, GuardrailTripped)
    assert str(result.error) == "the guardrail raises of tool pay raised KeyError: 'gone'"
    assert isinstance(result.error.__cause__, KeyError)


def test_one_that_forgets_is_a_failure_of_the_call():
    made = []
    a = agent_with(input_guardrails=[lambda data: None], made=made)
    Runner(a).query("q").result()
    assert "got None. Return ToolGuardrailFunctionOutput.allow()" in told(a.model)[0][1]
    assert made == []
    assert isinstance(
        Runner(agent_with(input_guardrails=[lambda data: None], on_tool_error="raise"))
        .query("q")
        .result()
        .error,
        ToolError,
    )


def test_what_a_tool_itself_raises_is_the_tools():
    """Also if it is a guardrail's, of a run that the tool has made."""

    @tool
    async def ask() -> str:
        """Ask somebody else."""
        raise GuardrailTripped("theirs")

    a = chat("A", ToolCalls(ask={}), "done", tools=[ask])
    assert Runner(a).query("q").result().final_output == "done"
    assert told(a.model) == [("ask", "tool ask failed: GuardrailTripped: theirs")]


def test_a_call_is_looked_at_when_it_was_approved():
    seen = []

    def look(data):
        seen.append(data.call.arguments)
        return ALLOW

    stage = Stage(agent_with(input_guardrails=[look], needs_approval=True))
    stage.start()
    assert seen == []
    assert stage.go_on(data=True).final_output == "done"
    assert seen == ['{"euros":3}']


@pytest.mark.parametrize("kind", ["input_guardrails", "output_guardrails"])
def test_what_cannot_be_called_is_refused(kind):
    with pytest.raises(UsageError, match="tool pay: a guardrail must be a function, got 'x'"):
        agent_with(**{kind: ["x"]})


def test_the_model_is_shown_the_tool_as_without_them():
    guarded, plain = agent_with("hello", input_guardrails=[lambda data: ALLOW]), agent_with("hello")
    for agent in (guarded, plain):
        Runner(agent).run([Message.user("q")]).result()
    assert guarded.model.requests[0].tools == plain.model.requests[0].tools
