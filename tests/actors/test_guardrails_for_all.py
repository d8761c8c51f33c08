"""Whose guardrails count for whom where agents hand over, and how guardrails are made."""

import pytest

from offbook.actors import (
    Agent,
    GuardrailFunctionOutput,
    Handoff,
    InputGuardrail,
    OutputGuardrail,
    Sequential,
    Supervisor,
    handoff,
    input_guardrail,
    output_guardrail,
)
from offbook.runtime import GuardrailTripped, Runner, ScriptedModel, UsageError
from tests.doubles.handing import chat, go
from tests.doubles.waiting import to


def finding(word, seen=None):
    """A guardrail that trips where the word stands."""

    def look(context, agent, value):
        if seen is not None:
            seen.append((agent.name, value))
        return GuardrailFunctionOutput({"found": word}, word in str(value))

    return look


# --- the first, the last, and every agent ---


def line_of(**options):
    """A, which hands over to B, which hands over to C; and what their guardrails have seen."""
    seen = []
    c = chat(
        "C",
        "from c",
        input_guardrails=[finding("vile", seen)],
        output_guardrails=[finding("vile", seen)],
    )
    b = chat(
        "B",
        go("C"),
        handoffs=[c],
        input_guardrails=[finding("vile", seen)],
        output_guardrails=[finding("vile", seen)],
    )
    wide = {
        "input_guardrails": [
            InputGuardrail(finding("vile", seen), every_agent=options.get("input", False))
        ],
        "output_guardrails": [
            OutputGuardrail(finding("vile", seen), every_agent=options.get("output", False))
        ],
    }
    return chat("A", go("B"), handoffs=[b], **wide), seen


def test_by_default_the_input_is_the_first_agents_and_the_output_the_last_ones():
    a, seen = line_of()
    Runner(a).query("q").result()
    assert seen == [("A", "q"), ("C", "from c")]


def test_with_every_agent_each_one_that_takes_over_is_looked_at():
    a, seen = line_of(input=True, output=True)
    Runner(a).query("q").result()
    assert [name for name, _ in seen] == ["A", "B", "C", "C", "C"]
    assert [value for _, value in seen[3:]] == ["from c", "from c"], "its own, and the one of A"
    assert [len(value) for _, value in seen[1:3]] == [3, 5], "what each was given"


@pytest.mark.parametrize("by_hand", [False, True])
def test_every_agent_means_those_too_that_were_chosen_by_hand(by_hand):
    b = chat("B", "a vile word")
    to_b = (
        Handoff("transfer_to_b", "", {}, lambda context, arguments: b, "B")
        if by_hand
        else handoff(b)
    )
    a = chat(
        "A",
        go("B"),
        handoffs=[to_b],
        output_guardrails=[OutputGuardrail(finding("vile"), every_agent=True)],
    )
    result = Runner(a).query("q").result()
    assert isinstance(result.error, GuardrailTripped)
    assert result.error.agent == "B"


def test_every_agent_means_the_steps_of_a_workflow_that_took_over():
    steps = Sequential(name="S", sub_agents=[chat("X", "a vile word"), chat("Y", "never")])
    a = chat(
        "A",
        go("S"),
        handoffs=[steps],
        output_guardrails=[OutputGuardrail(finding("vile"), every_agent=True)],
    )
    assert isinstance(Runner(a).query("q").result().error, GuardrailTripped)


def test_those_of_a_supervisor_count():
    worker = chat("W", "a vile word")
    s = chat(
        "S",
        to("W"),
        "done",
        input_guardrails=[finding("evil")],
        output_guardrails=[OutputGuardrail(finding("vile"), every_agent=True)],
    )
    runner = Runner(Supervisor(supervisor=s, sub_agents=[worker]))
    assert runner.query("evil").result().error.output_info == {"found": "evil"}
    s.model = ScriptedModel([to("W"), "done"])
    assert runner.query("q").result().error.agent == "W"


def test_two_with_one_function_are_called_twice_and_one_of_every_agent_once():
    seen = []
    guard = OutputGuardrail(finding("vile", seen), every_agent=True)
    b = chat("B", "done", output_guardrails=[guard])
    Runner(chat("A", go("B"), handoffs=[b], output_guardrails=[guard])).query("q").result()
    assert seen == [("B", "done")]


# --- making them ---


def test_a_guardrail_may_be_a_function_a_decorated_one_or_an_object():
    @input_guardrail
    def one(context, agent, value):
        return GuardrailFunctionOutput()

    @input_guardrail(name="other", run_in_parallel=False, every_agent=True)
    async def two(context, agent, value):
        return GuardrailFunctionOutput()

    @output_guardrail
    def three(context, agent, value):
        return GuardrailFunctionOutput()

    @output_guardrail(name="fourth", every_agent=True)
    def four(context, agent, value):
        return GuardrailFunctionOutput()

    assert [type(each) for each in (one, two, three, four)] == [
        InputGuardrail,
        InputGuardrail,
        OutputGuardrail,
        OutputGuardrail,
    ]
    assert [each.get_name() for each in (one, two, three, four)] == [
        "one",
        "other",
        "three",
        "fourth",
    ]
    assert (two.run_in_parallel, two.every_agent, four.every_agent) == (False, True, True)
    a = chat(
        "A",
        "hello",
        input_guardrails=[one, two, finding("x")],
        output_guardrails=[three, four, finding("x")],
    )
    assert Runner(a).query("q").result().final_output == "hello"


@pytest.mark.parametrize("wrong", ["x", None, Agent, OutputGuardrail(finding("x"))])
def test_what_is_no_guardrail_is_refused(wrong):
    if isinstance(wrong, OutputGuardrail):
        assert not callable(wrong)
    with pytest.raises(UsageError, match="guardrails must contain functions of"):
        chat("A", input_guardrails=[wrong])
