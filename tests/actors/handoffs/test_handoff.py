"""Making a handoff: its name, its description, its schema, and everything that is refused."""

import asyncio
import dataclasses
import functools
import re
from typing import Any, Literal

import pytest
from pydantic import BaseModel, RootModel

from offbook.actors import Agent, Handoff, handoff, tool
from offbook.actors.handoffs.handoff import as_handoff
from offbook.runtime import ModelBehaviorError, Runner, RunStatus, UsageError
from tests.doubles.handing import chat, given, go, over, shown

CLOSED = {"type": "object", "properties": {}, "additionalProperties": False, "required": []}


class Reason(BaseModel):
    text: str
    level: int = 1
    who: str | None = None


def nothing(context):
    """Is called, and does nothing."""


def nothing_with(context, value):
    """Is called with an input."""


# --- names and descriptions ---


@pytest.mark.parametrize(
    ("name", "tool_name"),
    [
        ("Billing", "transfer_to_billing"),
        ("billing_agent", "transfer_to_billing_agent"),
        ("support-agent", "transfer_to_support_agent"),
        ("Spanish Agent!", "transfer_to_spanish_agent_"),
        ("Über", "transfer_to__ber"),
        ("账单", "transfer_to___"),
        ("a.b/c", "transfer_to_a_b_c"),
        ("A1_B", "transfer_to_a1_b"),
    ],
)
def test_the_tool_is_named_for_the_agent(name, tool_name):
    agent = chat(name)
    assert handoff(agent).tool_name == Handoff.default_tool_name(agent) == tool_name


def test_the_tool_is_described_by_the_agents_name_and_description():
    agent = chat("Billing", description="Knows bills.")
    expected = "Handoff to the Billing agent to handle the request. Knows bills."
    assert handoff(agent).tool_description == Handoff.default_tool_description(agent) == expected
    assert (
        Handoff.default_tool_description(chat("X", description=""))
        == "Handoff to the X agent to handle the request. "
    )


@pytest.mark.parametrize(
    "options",
    [
        {"tool_name": "escalate", "tool_description": "Up."},
        {"tool_name_override": "escalate", "tool_description_override": "Up."},
    ],
)
def test_name_and_description_may_be_given_in_either_spelling(options):
    made = handoff(chat("B"), **options)
    assert (made.tool_name, made.tool_description, made.agent_name) == ("escalate", "Up.", "B")


def test_name_and_description_may_stand_behind_the_agent():
    made = handoff(chat("B"), "escalate", "Up.")
    assert (made.tool_name, made.tool_description, made.agent_name) == ("escalate", "Up.", "B")


def test_an_empty_description_is_one():
    assert handoff(chat("B"), tool_description="").tool_description == ""


def test_the_agent_may_be_named_or_stand_first():
    agent = chat("B")
    assert handoff(agent=agent).agent is handoff(agent).agent is agent


def test_a_handoff_is_frozen_and_says_what_it_is():
    agent = chat("B")
    made = handoff(agent, input_filter=nothing)
    assert (
        made.agent_name,
        made.agent,
        made.strict_json_schema,
        made.is_enabled,
        made.mode,
        made.input_filter,
    ) == (
        "B",
        agent,
        True,
        True,
        "transfer",
        nothing,
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.tool_name = "other"
    assert dataclasses.replace(made, tool_name="other").tool_name == "other"


def test_a_bare_agent_is_a_handoff_to_it():
    agent = chat("B")
    bare, made = as_handoff(agent, "A"), handoff(agent)
    assert dataclasses.replace(bare, on_invoke_handoff=None) == dataclasses.replace(
        made, on_invoke_handoff=None
    )


def test_the_result_of_the_call_names_the_agent():
    assert handoff(chat("B")).get_transfer_message(chat("C")) == '{"assistant": "C"}'
    assert handoff(chat("账单")).get_transfer_message(chat("账单")) == '{"assistant": "账单"}'


def test_it_may_be_written_with_type_parameters():
    assert Handoff[dict, Agent].__origin__ is Handoff
    annotation: Handoff[Any, Agent] = handoff(chat("B"))
    assert annotation.agent_name == "B"


# --- schemas ---


def test_without_an_input_the_schema_is_a_closed_empty_object():
    one, other = handoff(chat("B")), handoff(chat("C"), on_handoff=nothing)
    assert one.input_json_schema == other.input_json_schema == CLOSED
    assert one.input_json_schema is not other.input_json_schema, "who changes one would change all"


def test_an_input_type_is_described_in_strict_form():
    schema = handoff(chat("B"), on_handoff=nothing_with, input_type=Reason).input_json_schema
    assert schema["required"] == ["text", "level", "who"]
    assert schema["additionalProperties"] is False
    assert schema["properties"]["level"] == {"type": "integer", "default": 1}
    assert schema["properties"]["who"] == {"anyOf": [{"type": "string"}, {"type": "null"}]}


@dataclasses.dataclass
class Plain:
    department: Literal["a", "b"]
    urgent: bool = False


@pytest.mark.parametrize("kind", [Reason, Plain, str, list[int]])
def test_an_input_type_is_whatever_pydantic_takes(kind):
    made = handoff(chat("B"), on_handoff=nothing_with, input_type=kind)
    root = chat("A", "hello", handoffs=[made])
    Runner(root).query("q").result()
    (spec,) = root.model.requests[0].tools
    assert (spec.parameters, spec.strict) == (made.input_json_schema, True)


# --- what is refused ---


def refused(*args, match, **options):
    with pytest.raises(UsageError, match=re.escape(match)):
        handoff(*args, **options)


@pytest.mark.parametrize("wrong", [None, "B", Agent, object()])
def test_only_an_agent_is_handed_over_to(wrong):
    refused(wrong, match=f"handoff: agent must be an agent, got {wrong!r}.")


def test_a_mode_that_there_is_not_is_refused():
    refused(
        chat("B"),
        mode="hop",
        match="handoff('B'): mode must be 'transfer' or 'call', got 'hop'.",
    )


def test_what_cannot_be_called_is_refused():
    refused(
        chat("B"),
        input_filter="x",
        match=("handoff('B'): input_filter must be a function of HandoffInputData, got 'x'."),
    )
    refused(
        chat("B"),
        is_enabled="yes",
        match=(
            "handoff('B'): is_enabled must be True, False, or a function of the context and "
            "the agent, got 'yes'."
        ),
    )
    refused(
        chat("B"),
        on_handoff="x",
        match="handoff('B'): on_handoff must be a function of the context, got 'x'.",
    )
    refused(
        chat("B"),
        on_handoff=3,
        input_type=Reason,
        match="on_handoff must be a function of the context, and the input, got 3.",
    )


def test_an_input_without_a_callback_is_refused():
    refused(
        chat("B"),
        input_type=Reason,
        match=("needs a function on_handoff(context, input), which receives the input."),
    )


def test_passing_on_an_input_that_there_is_not_is_refused():
    refused(chat("B"), pass_input=True, match="handoff('B'): pass_input=True needs an input_type")


@pytest.mark.parametrize("wrong", ["a b", "x" * 65, "ä", 3])
def test_a_name_that_models_do_not_take_is_refused(wrong):
    refused(
        chat("B"),
        tool_name=wrong,
        match=f"handoff('B'): tool_name must have at most 64 letters, digits, '_' and '-' (ASCII), got {wrong!r}.",
    )


def test_a_long_agent_name_asks_for_another_tool_name():
    refused(chat("x" * 60), match="Pass tool_name=")


def both(*, context):
    """Takes nothing by position."""


@pytest.mark.parametrize(
    ("callback", "count"),
    [(lambda: None, 0), (nothing_with, 2), (lambda a, b, c: None, 3), (both, 1)],
)
def test_a_callback_without_input_takes_the_context_alone(callback, count):
    refused(
        chat("B"),
        on_handoff=callback,
        match=(
            "handoff('B'): without an input_type, on_handoff must have the form "
            f"on_handoff(context), but it has {count} parameters."
        ),
    )


@pytest.mark.parametrize("callback", [lambda: None, nothing, lambda a, b, c: None])
def test_a_callback_with_input_takes_both(callback):
    refused(
        chat("B"),
        on_handoff=callback,
        input_type=Reason,
        match="with an input_type, on_handoff must have the form on_handoff(context, input), but it has",
    )


class Callable:
    def __call__(self, context):
        """An object that can be called."""

    def method(self, context, value):
        """A method that takes an input."""


@pytest.mark.parametrize(
    "callback", [Callable(), lambda *args: None, functools.partial(nothing_with, value=1)]
)
def test_a_callback_may_be_anything_that_can_be_called(callback):
    assert handoff(chat("B"), on_handoff=callback).tool_name == "transfer_to_b"


def test_a_method_and_a_partial_may_take_an_input():
    assert handoff(chat("B"), on_handoff=Callable().method, input_type=Reason)
    assert handoff(
        chat("B"),
        on_handoff=functools.partial(lambda extra, context, value: None, 1),
        input_type=Reason,
    )


@pytest.mark.parametrize(
    ("kind", "why"),
    [
        (Reason | None, "choice (anyOf)"),
        (int | str, "choice (anyOf)"),
        (RootModel[int | None], "choice (anyOf)"),
        (None, None),
        (dict[str, int], "additionalProperties"),
        (type("Odd", (), {}), "cannot be described"),
    ],
)
def test_an_input_type_that_strict_mode_cannot_say_is_refused(kind, why):
    if why is None:
        kind, why = type(None), "nullable"
    with pytest.raises(UsageError, match=re.escape(why)) as caught:
        handoff(chat("B"), on_handoff=nothing_with, input_type=kind)
    assert str(caught.value).startswith("handoff('B'): input_type")


# --- in an agent ---


def test_two_of_one_name_are_refused_when_the_agent_is_made():
    with pytest.raises(
        UsageError,
        match=re.escape(
            "agent 'A': the handoff to 'B' and the handoff to 'b' are both named 'transfer_to_b'"
        ),
    ):
        chat("A", handoffs=[chat("B"), chat("b")])


def test_a_tool_and_a_handoff_of_one_name_are_refused():
    with pytest.raises(
        UsageError,
        match=re.escape(
            "agent 'A': the tool 'transfer_to_b' and the handoff to 'B' are both named "
            "'transfer_to_b'. Rename one with tool_name="
        ),
    ):
        chat("A", tools=[tool(name="transfer_to_b")(lambda: None)], handoffs=[chat("B")])


@pytest.mark.parametrize("wrong", ["B", nothing, None])
def test_among_the_handoffs_stand_agents_and_handoffs(wrong):
    with pytest.raises(UsageError, match="handoffs must contain agents or handoff"):
        chat("A", handoffs=[wrong])


@pytest.mark.parametrize("wrong", [chat("B"), 3])
def test_handoffs_are_a_list(wrong):
    with pytest.raises(UsageError, match="handoffs must be a list of agents and handoffs, got"):
        chat("A", handoffs=wrong)


def test_multiple_handoffs_is_one_of_three():
    with pytest.raises(
        UsageError, match="multiple_handoffs must be 'first', 'last' or 'error', got 'all'"
    ):
        chat("A", multiple_handoffs="all")


def test_a_handoff_by_hand_has_a_name_that_models_take():
    async def invoke(context, arguments):
        """Never called."""

    with pytest.raises(
        UsageError, match=r"agent 'A': the handoff to 'B': tool_name must .*, got 'to B'"
    ):
        chat("A", handoffs=[Handoff("to B", "", {}, invoke, "B")])


def test_two_agents_of_one_name_cannot_be_told_apart():
    with pytest.raises(
        UsageError, match="two agents are named 'B', and one of them takes over from 'C'"
    ):
        Runner(chat("A", handoffs=[chat("B"), chat("C", handoffs=[chat("B")])]))


def test_a_list_may_grow_until_there_is_a_runner():
    later = []
    root = chat("A", go("B"), handoffs=later)
    later.append(chat("B", "done"))
    assert Runner(root).query("q").result().last_agent == "B"
    later.append(chat("b"))
    with pytest.raises(UsageError, match="are both named"):
        Runner(root)


# --- what it does when it is invoked ---


def invoked(made, arguments="{}", context=None):
    return asyncio.run(made.on_invoke_handoff(context, arguments))


def test_it_may_be_invoked_by_hand():
    agent, seen = chat("B"), []
    made = handoff(
        agent, on_handoff=lambda context, value: seen.append((context, value)), input_type=Reason
    )
    assert invoked(made, '{"text": "x", "level": 2, "who": null}', "ctx") is agent
    assert seen == [("ctx", Reason(text="x", level=2))]
    for wrong in ("", None, "{", '{"text": 1}', '{"text": "x", "level": "2"}'):
        with pytest.raises(ModelBehaviorError, match="handoff to B"):
            invoked(made, wrong)


def test_without_an_input_the_arguments_do_not_matter():
    agent = chat("B")
    assert (
        invoked(handoff(agent), "whatever")
        is invoked(handoff(agent, on_handoff=nothing), "")
        is agent
    )


@pytest.mark.parametrize("as_async", [False, True])
def test_one_made_by_hand_may_choose_its_target(as_async, lines):
    day, night = chat("Day", "by day"), chat("Night", "by night")

    def choose(context, arguments):
        return day if context.get("hour") < 18 else night

    async def choose_later(context, arguments):
        return choose(context, arguments)

    made = Handoff(
        "transfer_to_shift", "Whoever is there.", {}, choose_later if as_async else choose, "Shift"
    )
    root = chat("A", go("shift"), go("shift"), handoffs=[made])
    runner = Runner(root)
    first = runner.query("q", session_values={"hour": 20}).result()
    assert lines(first)[1:] == [
        f'A [A] tool(transfer_to_shift) "{over("Night")}" {{TransferToAgent Night}}',
        'Night [A,Night] assistant "by night"',
    ]
    assert runner.query("q", session_values={"hour": 9}).result().last_agent == "Day"
    (spec,) = root.model.requests[0].tools
    assert (spec.name, spec.description, spec.parameters) == (
        "transfer_to_shift",
        "Whoever is there.",
        CLOSED,
    )


def test_an_agent_that_was_chosen_may_hand_back(lines):
    back = []
    day = chat("Day", go("A"), handoffs=back)
    root = chat(
        "A",
        go("shift"),
        "I am back",
        handoffs=[Handoff("transfer_to_shift", "", {}, lambda context, arguments: day, "Shift")],
    )
    back.append(root)
    result = Runner(root).query("q").result()
    assert (result.final_output, lines(result)[-1]) == (
        "I am back",
        'A [A,Day,A] assistant "I am back"',
    )
    assert [message.role for message in given(root)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]


def test_one_that_comes_to_no_agent_is_an_error():
    root = chat(
        "A",
        go("shift"),
        handoffs=[Handoff("transfer_to_shift", "", {}, lambda context, arguments: "Day", "Shift")],
    )
    result = Runner(root).query("q").result()
    assert result.status is RunStatus.FAILED
    assert str(result.error) == (
        "the handoff 'transfer_to_shift': on_invoke_handoff must return an agent, got 'Day'."
    )


def test_the_model_is_shown_tools_then_handoffs():
    @tool
    def look() -> str:
        """Look."""

    root = chat(
        "A",
        "hello",
        tools=[look],
        sub_agents=[chat("S")],
        handoffs=[chat("C"), handoff(chat("B"), tool_name="b")],
    )
    Runner(root).query("q").result()
    assert shown(root) == ["look", "transfer_to_agent", "transfer_to_c", "b"]
