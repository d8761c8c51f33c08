"""One filtered handoff after another: each is given what the run was asked apart from what was said
since, as the one before has left it.
"""

import pytest

from offbook.actors import ToolContext, handoff, tool
from offbook.runtime import Runner, ToolCalls
from tests.doubles.handing import chat, given, go, over
from tests.doubles.waiting import Stage


def unchanged(data):
    return data


def only_the_question(data):
    return data.clone(pre_handoff_items=(), new_items=())


@tool
async def ask(context: ToolContext) -> str:
    return f"heard {context.interrupt('?')}"


def roles(agent):
    return [(message.role, message.text) for message in given(agent)]


def test_what_the_run_was_asked_stays_apart_behind_a_filter():
    seen = []
    c = chat("C", "c")
    b = chat(
        "B",
        go("C"),
        handoffs=[
            handoff(c, input_filter=lambda data: seen.append(data) or only_the_question(data))
        ],
    )
    a = chat("A", go("B"), handoffs=[handoff(b, input_filter=unchanged)])
    Runner(a).query("help").result(20)
    assert roles(b) == [("user", "help"), ("assistant", ""), ("tool", over("B"))]
    assert roles(c) == [("user", "help")]
    (data,) = seen
    assert data.input_history == "help"
    assert [item["type"] for item in data.pre_handoff_items] == [
        "function_call",
        "function_call_output",
    ]


def test_a_filter_that_changes_what_was_asked_has_changed_it_for_those_behind():
    c = chat("C", "c")
    b = chat("B", go("C"), handoffs=[handoff(c, input_filter=only_the_question)])
    a = chat(
        "A",
        go("B"),
        handoffs=[handoff(b, input_filter=lambda data: data.clone(input_history="in short"))],
    )
    Runner(a).query("a long story").result(20)
    assert roles(c) == [("user", "in short")]


def test_a_handoff_without_a_filter_between_two_keeps_it_apart():
    d = chat("D", "d")
    c = chat("C", go("D"), handoffs=[handoff(d, input_filter=only_the_question)])
    b = chat("B", go("C"), handoffs=[c])
    a = chat("A", go("B"), handoffs=[handoff(b, input_filter=unchanged)])
    Runner(a).query("help").result(20)
    assert roles(d) == [("user", "help")]


def test_what_one_hides_stays_hidden_from_those_behind():
    c = chat("C", "c")
    b = chat("B", go("C"), handoffs=[c])
    a = chat("A", go("B", text="a secret"), handoffs=[handoff(b, input_filter=only_the_question)])
    Runner(a).query("help").result(20)
    assert roles(c) == [("user", "help"), ("assistant", ""), ("tool", over("C"))]


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_it_stays_apart_when_the_run_goes_on_in_between(durability):
    c = chat("C", "c")
    b = chat(
        "B",
        ToolCalls(ask={}),
        go("C"),
        tools=[ask],
        handoffs=[handoff(c, input_filter=only_the_question)],
    )
    a = chat("A", go("B"), handoffs=[handoff(b, input_filter=unchanged)])
    play = Stage(a, durability=durability)
    play.start("help")
    assert play.go_on(data="x").final_output == "c"
    assert roles(c) == [("user", "help")]
