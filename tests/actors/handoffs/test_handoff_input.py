"""What the agent that takes over is given, if a filter has its say; and how often one may be handed
over to.
"""

import asyncio

from offbook.actors import Handoff, Item, handoff, keep_last, redact, tool
from offbook.runtime import MaxTransfersExceeded, Runner, RunStatus, ToolCalls
from tests.doubles.handing import chat, given, go, over


@tool
async def look(what: str) -> str:
    """Look something up."""
    return f"{what} found"


# --- what a filter changes ---


def test_a_filter_changes_what_the_target_is_given_and_nothing_else(asked):
    b = chat("B", go("C"))
    c = chat("C", "done")
    b.handoffs = [c]
    a = chat(
        "A",
        ToolCalls(look={"what": "x"}),
        go("B"),
        tools=[look],
        handoffs=[handoff(b, input_filter=keep_last(1))],
    )
    result = Runner(a).query("q").result()
    assert asked(given(b)) == [
        'assistant "" tc(transfer_to_b {})',
        f'tool(transfer_to_b) "{over("B")}"',
    ]
    assert asked(given(c)) == [
        *asked(given(b)),
        'assistant "" tc(transfer_to_c {})',
        f'tool(transfer_to_c) "{over("C")}"',
    ], "it goes on from there"
    assert len(result.events) == 7


def test_items_say_whose_they_are_and_the_result_of_a_handoff_who_took_over():
    seen = []

    def look_on(data):
        seen.append(data)
        return data

    c = chat("C", "done")
    b = chat("B", go("C"), handoffs=[handoff(c, input_filter=look_on)])
    a = chat(
        "A",
        ToolCalls(look={"what": "x"}),
        go("B"),
        tools=[look],
        handoffs=[handoff(b, input_filter=lambda data: look_on(redact("q")(data)))],
    )
    Runner(a).query("q").result().raise_for_error()
    of_a, of_b = seen
    assert [item.agent for item in (*of_a.pre_handoff_items, *of_a.new_items)] == [a] * 4
    assert [item.content for item in of_a.pre_handoff_items[1:]] == ["x found"]
    call, result = of_a.new_items
    assert (result.type, result.agent, result.source_agent, result.target_agent) == (
        "handoff_output_item",
        a,
        a,
        b,
    )
    assert (call.source_agent, call.target_agent) == (None, None)
    assert result.copy().target_agent is b
    assert (of_b.new_items[-1].source_agent, of_b.new_items[-1].target_agent) == (b, c)


def test_the_target_of_a_handoff_that_is_chosen_when_it_is_called_is_named_too():
    b = chat("B", "done")
    seen = []

    async def choose(context, arguments):
        return b

    def look_on(data):
        seen.append(data.new_items[-1].target_agent)
        return data

    Runner(
        chat("A", go("B"), handoffs=[Handoff("transfer_to_b", "", {}, choose, "B", look_on)])
    ).query("q").result().raise_for_error()
    assert seen == [b]


class Falsy:
    def __bool__(self):
        return False

    def __call__(self, data):
        return data.clone(input_history="mine", new_items=())


def test_the_handoffs_own_filter_beats_the_runners_even_if_it_is_falsy(asked):
    b, c = chat("B", "done", "done"), chat("C", "done")
    a = chat("A", go("B"), go("C"), handoffs=[handoff(b, input_filter=Falsy()), c])
    runner = Runner(
        a, handoff_input_filter=lambda data: data.clone(input_history="the runner's", new_items=())
    )
    runner.query("q").result()
    runner.query("q").result()
    assert (asked(given(b)), asked(given(c))) == (['user "mine"'], ['user "the runner\'s"'])


def test_a_filter_may_be_async_and_knows_the_run():
    async def input_filter(data):
        await asyncio.sleep(0)
        return data.clone(
            input_history=f"{data.run_context.get('user')} of {data.run_context.context}",
            new_items=(),
        )

    b = chat("B", "done")
    Runner(chat("A", go("B"), handoffs=[handoff(b, input_filter=input_filter)])).query(
        "q", session_values={"user": "Ann"}, context="Ltd"
    ).result()
    assert [message.text for message in given(b)] == ["Ann of Ltd"]


def test_what_a_filter_returns_is_checked():
    def drop(data):
        """Forgets to return."""

    def odd(data):
        return data.clone(new_items=(3,))

    def broken(data):
        raise KeyError("x")

    for wrong, why in [
        (drop, "must return a HandoffInputData, got None"),
        (odd, "returned 3 among its items"),
        (broken, "raised KeyError"),
    ]:
        result = (
            Runner(chat("A", go("B"), handoffs=[handoff(chat("B"), input_filter=wrong)]))
            .query("q")
            .result()
        )
        assert result.status is RunStatus.FAILED
        assert str(result.error).startswith(
            f"the input filter {wrong.__name__} of the handoff transfer_to_b {why}"
        )


def test_a_filter_sees_what_was_said_before_and_in_this_reply():
    seen = []
    b, c = chat("B", ToolCalls(look={"what": "x"}), go("C"), tools=[look]), chat("C", "done")
    b.handoffs = [handoff(c, input_filter=lambda data: seen.append(data) or data)]
    Runner(chat("A", go("B"), handoffs=[b])).query("q").result()
    (data,) = seen
    assert data.input_history == "q"
    kinds = ["handoff_call_item", "handoff_output_item", "tool_call_item", "tool_call_output_item"]
    assert [item.type for item in data.pre_handoff_items] == kinds
    assert [item.type for item in data.new_items] == kinds[:2]
    assert all(isinstance(item, Item) for item in (*data.pre_handoff_items, *data.new_items))


# --- bounds ---


def test_more_than_max_transfers_is_an_error():
    later = []
    a = chat("A", go("B"), go("B"), handoffs=later)
    later.append(chat("B", go("A"), go("A"), handoffs=[a]))
    result = Runner(a, max_transfers=2).query("q").result()
    assert isinstance(result.error, MaxTransfersExceeded)
    assert [event.action is not None for event in result.events] == [
        False,
        True,
        False,
        True,
        False,
        True,
        False,
    ]
