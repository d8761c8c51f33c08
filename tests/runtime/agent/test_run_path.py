"""The chain of agents that led to an event."""

import pytest

from offbook.actors import (
    ChatModelAgent,
    DeterministicTransfer,
    Loop,
    Parallel,
    Sequential,
    Supervisor,
)
from offbook.runtime import AgentEvent, Runner, ScriptedModel, ToolCalls, TransferToAgent


def paths(result):
    """The run path of each event that says something."""
    return [event.run_path for event in result.events if event.message is not None]


def test_the_root_is_a_path_of_its_own(actor):
    result = Runner(actor("A", "hello")).query("q").result()
    assert paths(result) == [("A",)]


def test_each_transfer_adds_its_target_to_the_path(actor):
    b = actor("B", "b", TransferToAgent("A"))
    a = actor("A", ["a", TransferToAgent("B")], ["a again"], sub_agents=[b])
    result = Runner(a).query("q").result()
    assert [(event.agent_name, event.run_path) for event in result.events] == [
        ("A", ("A",)),
        ("A", ("A",)),
        ("B", ("A", "B")),
        ("B", ("A", "B")),
        ("A", ("A", "B", "A")),
    ]


def test_in_a_sequence_the_earlier_siblings_stay_in_the_path(actor):
    result = (
        Runner(Sequential(name="S", sub_agents=[actor(name, name) for name in "ABC"]))
        .query("q")
        .result()
    )
    assert paths(result) == [("S", "A"), ("S", "A", "B"), ("S", "A", "B", "C")]


def test_in_a_sequence_a_sibling_that_said_nothing_stays_in_the_path_too(actor):
    result = (
        Runner(Sequential(name="S", sub_agents=[actor("A"), actor("B", "b")])).query("q").result()
    )
    assert paths(result) == [("S", "A", "B")]


def test_in_a_loop_the_rounds_stay_in_the_path(actor):
    result = (
        Runner(Loop(name="L", sub_agents=[actor("A", "a"), actor("B", "b")], max_iterations=2))
        .query("q")
        .result()
    )
    assert paths(result) == [
        ("L", "A"),
        ("L", "A", "B"),
        ("L", "A", "B", "A"),
        ("L", "A", "B", "A", "B"),
    ]


def test_of_parallel_children_each_has_only_the_workflow_before_it(actor):
    result = (
        Runner(Parallel(name="P", sub_agents=[actor("A", "a"), actor("B", "b")]))
        .query("q")
        .result()
    )
    assert sorted(paths(result)) == [("P", "A"), ("P", "B")]


def test_of_a_sibling_that_is_a_workflow_only_its_own_name_stays(actor):
    tree = Sequential(
        name="Seq",
        sub_agents=[
            Loop(name="Loop", sub_agents=[actor("A1", "1"), actor("A2", "2")], max_iterations=1),
            actor("A3", "3"),
            Parallel(name="Par", sub_agents=[actor("A4", "4"), actor("A5", "5")]),
            actor("A6", "6"),
        ],
    )
    result = Runner(tree).query("q").result()
    assert {event.agent_name: event.run_path for event in result.events} == {
        "A1": ("Seq", "Loop", "A1"),
        "A2": ("Seq", "Loop", "A1", "A2"),
        "A3": ("Seq", "Loop", "A3"),
        "A4": ("Seq", "Loop", "A3", "Par", "A4"),
        "A5": ("Seq", "Loop", "A3", "Par", "A5"),
        "A6": ("Seq", "Loop", "A3", "Par", "A6"),
    }


def test_an_inner_loop_leaves_one_name_for_each_time_that_it_played(actor):
    inner = Loop(name="Inner", sub_agents=[actor("A", "a")], max_iterations=2)
    result = (
        Runner(Loop(name="Outer", sub_agents=[inner, actor("B", "b")], max_iterations=2))
        .query("q")
        .result()
    )
    assert paths(result) == [
        ("Outer", "Inner", "A"),
        ("Outer", "Inner", "A", "A"),
        ("Outer", "Inner", "B"),
        ("Outer", "Inner", "B", "Inner", "A"),
        ("Outer", "Inner", "B", "Inner", "A", "A"),
        ("Outer", "Inner", "B", "Inner", "B"),
    ]


def test_a_child_that_hands_over_leaves_only_its_own_name_to_the_next_one(actor):
    a = actor("A", "a", TransferToAgent("A1"), sub_agents=[actor("A1", "a1")])
    result = Runner(Sequential(name="S", sub_agents=[a, actor("B", "b")])).query("q").result()
    assert paths(result) == [("S", "A"), ("S", "A", "A1"), ("S", "A", "B")]


def test_what_an_agent_tool_emits_has_the_outer_path_before_the_inner_one(actor):
    inner = Sequential(name="inner", sub_agents=[actor("x", "x"), actor("y", "y")])
    outer = ChatModelAgent(
        name="outer",
        model=ScriptedModel([ToolCalls(inner={"request": "r"}), "end"]),
        tools=[inner.as_tool(emit_events=True)],
    )
    result = Runner(outer).query("q").result()
    assert [(event.agent_name, event.run_path) for event in result.events] == [
        ("outer", ("outer",)),
        ("x", ("outer", "inner", "x")),
        ("y", ("outer", "inner", "x", "y")),
        ("outer", ("outer",)),
        ("outer", ("outer",)),
    ]


def test_a_supervisor_is_there_once_for_each_time_that_it_plays(actor):
    s = actor("S", ["go", TransferToAgent("A")], ["finish"])
    result = Runner(Supervisor(supervisor=s, sub_agents=[actor("A", "a")])).query("q").result()
    assert paths(result) == [("S",), ("S", "A"), ("S", "A"), ("S", "A"), ("S", "A", "S")]


def test_one_that_always_hands_over_stands_in_the_path_once(actor):
    result = Runner(DeterministicTransfer(actor("X", "x"), to=["T"])).query("q").result()
    assert {event.run_path for event in result.events} == {("X",)}


def test_a_cast_agent_comes_after_the_one_that_casts_it(actor):
    child = actor("child", "hello")
    parent = actor("parent", "before", lambda context: context.cast(child), "after")
    result = Runner(parent).query("q").result()
    assert [(event.agent_name, event.run_path) for event in result.events] == [
        ("parent", ("parent",)),
        ("child", ("parent", "child")),
        ("parent", ("parent",)),
    ]


def test_the_agent_itself_sees_the_path_that_its_events_have(actor):
    seen = []

    async def look(context):
        seen.append(context.run_path)

    Runner(Sequential(name="S", sub_agents=[actor("A"), actor("B", look)])).query("q").result()
    assert seen == [("S", "A", "B")]


def test_what_an_agent_claims_of_name_and_path_is_not_believed(actor):
    claim = AgentEvent(
        agent_name="somebody",
        run_path=("else",),
        seq=77,
        run_id="r",
        invocation_id="i",
        custom_output=1,
    )
    run = Runner(actor("A", "first", claim)).query("q")
    result = run.result()
    event = result.events[1]
    assert (event.agent_name, event.run_path, event.run_id) == ("A", ("A",), run.id)
    assert event.seq > result.events[0].seq
    assert event.seq != 77
    assert event.invocation_id == result.events[0].invocation_id


@pytest.mark.parametrize("rounds", [2, 3])
def test_two_times_of_one_agent_are_told_apart_by_the_invocation(actor, rounds):
    result = (
        Runner(Loop(name="L", sub_agents=[actor("A", "one", "two")], max_iterations=rounds))
        .query("q")
        .result()
    )
    ids = [event.invocation_id for event in result.events]
    assert all(ids)
    assert len(set(ids)) == rounds
    assert ids == [one for one in dict.fromkeys(ids) for _ in range(2)]


def test_events_are_numbered_in_their_order_and_name_their_run(actor):
    run = Runner(
        Parallel(name="P", sub_agents=[actor(name, "1", "2", "3") for name in "ABC"])
    ).query("q")
    events = run.result().events
    assert [event.seq for event in events] == sorted({event.seq for event in events})
    assert {event.run_id for event in events} == {run.id}
    assert [event.timestamp for event in events] == sorted(event.timestamp for event in events)
    assert events[0].timestamp > 0
