"""What an agent is given never holds a call without its result, nor a result without its call; and
lanes, whatever their timing.
"""

import asyncio

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.actors import Loop, Parallel, Sequential, Supervisor
from offbook.runtime import Message, Runner, ToolCall, TransferToAgent
from offbook.runtime.agent.history import Entry, complete_calls, tell


def call(*ids, text=""):
    return Message.assistant(
        text, [ToolCall(one, f"tool_{place}", "{}") for place, one in enumerate(ids)]
    )


def second_input(actor, *first):
    """What an agent is given the second time, if it did that the first time."""
    agent = actor("A", list(first), ["again"])
    Runner(Loop(name="L", sub_agents=[agent], max_iterations=2)).query(
        "q"
    ).result().raise_for_error()
    return list(agent.inputs[1])


def test_calls_and_results_that_belong_together_are_given_as_they_are(actor):
    said = [
        call("1", "2"),
        Message.tool("a", "1", "tool_0"),
        Message.tool("b", "2", "tool_1"),
        Message.assistant("done"),
    ]
    assert second_input(actor, *said) == [Message.user("q"), *said]


def test_results_are_given_in_the_order_of_the_calls(actor):
    said = [call("1", "2"), Message.tool("b", "2", "tool_1"), Message.tool("a", "1", "tool_0")]
    assert second_input(actor, *said) == [Message.user("q"), said[0], said[2], said[1]]


def test_two_calls_of_one_id_get_one_result_each(actor):
    said = [call("1", "1"), Message.tool("a", "1", "tool_0"), Message.tool("b", "1", "tool_1")]
    assert second_input(actor, *said) == [Message.user("q"), *said]


def test_an_id_that_comes_again_later_is_another_call(actor):
    said = [
        call("1"),
        Message.tool("a", "1", "tool_0"),
        call("1"),
        Message.tool("b", "1", "tool_0"),
    ]
    assert second_input(actor, *said) == [Message.user("q"), *said]


def test_a_result_whose_call_is_not_there_is_left_out(actor):
    assert second_input(actor, Message.tool("a", "1", "tool_0"), "text") == [
        Message.user("q"),
        Message.assistant("text"),
    ]


def test_a_call_that_was_not_answered_is_said_not_to_be_completed_beside_one_that_was(actor):
    _, calls, first, second = second_input(actor, call("1", "2"), Message.tool("b", "2", "tool_1"))
    assert (first.role, first.tool_call_id, first.tool_name) == ("tool", "1", "tool_0")
    assert "not completed" in first.text
    assert second == Message.tool("b", "2", "tool_1")
    assert len(calls.tool_calls) == 2


class Looked(list):
    """A list that counts how often one of its items is looked at, passed over or copied."""

    looks = 0

    def __iter__(self):
        for item in super().__iter__():
            self.looks += 1
            yield item

    def __getitem__(self, where):
        found = super().__getitem__(where)
        self.looks += len(found) if isinstance(where, slice) else 1
        return found


def test_a_long_conversation_with_one_call_that_was_not_answered_is_looked_through_a_few_times_not_once_for_each_call():
    said = Looked([call("lost")])
    for turn in range(500):
        said += [
            call(f"c{turn}"),
            Message.tool("a", f"c{turn}", "tool_0"),
            Message.assistant("done"),
        ]
    assert len(complete_calls(said)) == len(said) + 1
    assert said.looks < 5 * len(said)


def test_what_was_told_before_is_not_looked_at_again():
    entries = Looked(
        [Entry("A", ("A",), "id", Message.assistant(str(number))) for number in range(500)]
    )
    messages = []
    for start in range(500):
        tell(entries, start, start + 1, "A", messages, skip_transfers=False)
    assert len(messages) == 500
    assert entries.looks < 5 * len(entries)


def test_what_another_said_between_a_call_and_its_result_comes_after_both(actor):
    child = actor("B", "b")
    said = [call("1"), lambda context: context.cast(child), Message.tool("a", "1", "tool_0")]
    assert second_input(actor, *said) == [
        Message.user("q"),
        said[0],
        said[2],
        Message.user("For context: [B] said: b."),
    ]


STEPS = st.lists(st.sampled_from(["text", "1", "2", "1 2", "r1", "r2"]), max_size=6)


def as_message(step):
    if step == "text":
        return "text"
    return (
        Message.tool("result", step[1:], "tool_0") if step.startswith("r") else call(*step.split())
    )


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(STEPS)
def test_whatever_an_agent_has_said_each_call_has_one_result_right_behind_it(actor, steps):
    found = second_input(actor, *(as_message(step) for step in steps)) if steps else []
    waiting = []
    for message in found:
        if message.role == "tool":
            assert waiting.pop(0) == message.tool_call_id
        else:
            assert not waiting
            waiting = [one.id for one in message.tool_calls]
    assert not waiting
    assert [
        message.text
        for message in found
        if message.role == "assistant" and not message.tool_calls and message.text != "again"
    ] == ["text" for step in steps if step == "text"]


TURNS = st.lists(st.lists(st.integers(0, 4), max_size=4), min_size=1, max_size=4)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(TURNS, st.none() | st.integers(1, 4))
def test_whatever_the_timing_lanes_are_in_order_and_joined_in_the_order_of_the_children(
    actor, lanes, most
):
    def wait(turns):
        async def take(_context):
            for _ in range(turns):
                await asyncio.sleep(0)

        return take

    names = "ABCD"[: len(lanes)]
    said = {
        name: [f"{name}{place}" for place in range(len(turns))]
        for name, turns in zip(names, lanes, strict=True)
    }
    children = [
        actor(
            name,
            *(
                step
                for turn, text in zip(turns, said[name], strict=True)
                for step in (wait(turn), text)
            ),
        )
        for name, turns in zip(names, lanes, strict=True)
    ]
    last = actor("Z")
    result = (
        Runner(
            Sequential(
                name="S",
                sub_agents=[Parallel(name="P", sub_agents=children, max_concurrency=most), last],
            )
        )
        .query("q")
        .result()
    )
    for name in names:
        assert [event.message.text for event in result.events if event.agent_name == name] == said[
            name
        ]
    assert [message.text for message in last.inputs[0][1:]] == [
        f"For context: [{name}] said: {text}." for name in names for text in said[name]
    ]
    assert all(child.inputs == [(Message.user("q"),)] for child in children)


def test_teams_that_play_at_once_do_not_see_each_other_and_are_joined_in_order(actor):
    def team(leader, member):
        return Supervisor(
            supervisor=actor(leader, [TransferToAgent(member)], [f"{leader} ends"]),
            sub_agents=[actor(member, f"{member} did it")],
        )

    one, two, last = team("S1", "A"), team("S2", "B"), actor("Z")
    Runner(
        Sequential(name="Q", sub_agents=[Parallel(name="P", sub_agents=[one, two]), last]),
        skip_transfer_messages=True,
    ).query("q").result()
    assert [message.text for message in one.supervisor.inputs[1]] == [
        "q",
        "For context: [A] said: A did it.",
    ]
    assert [message.text for message in two.supervisor.inputs[1]] == [
        "q",
        "For context: [B] said: B did it.",
    ]
    assert [message.text.split("said: ")[1] for message in last.inputs[0][1:]] == [
        "A did it.",
        "S1 ends.",
        "B did it.",
        "S2 ends.",
    ]


def test_a_definition_in_two_parallels_sees_what_it_said_in_the_first_as_its_own(actor):
    shared = actor("W", ["one"], ["two"])
    both = [Parallel(name=name, sub_agents=[shared]) for name in ("P1", "P2")]
    Runner(Sequential(name="S", sub_agents=both)).query("q").result()
    assert shared.inputs[1] == (Message.user("q"), Message.assistant("one"))
