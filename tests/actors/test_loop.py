"""Children that play again and again."""

import pytest

from offbook.actors import ChatModelAgent, Loop, Parallel, Sequential, ToolContext, tool
from offbook.runtime import (
    BreakLoop,
    Exit,
    Runner,
    RunStatus,
    ScriptedModel,
    ToolCalls,
    TransferToAgent,
    UsageError,
)


def play(agent, **options):
    return Runner(agent, **options).query("q", timeout=10).result()


def broke(by, iteration):
    return f"{{BreakLoop by {by}, done, iteration {iteration}}}"


def test_a_loop_plays_its_children_as_often_as_it_may_and_ends_quietly(lines, actor):
    result = play(Loop(name="L", sub_agents=[actor("A", "a"), actor("B", "b")], max_iterations=2))
    assert lines(result) == [
        'A [L,A] assistant "a"',
        'B [L,A,B] assistant "b"',
        'A [L,A,B,A] assistant "a"',
        'B [L,A,B,A,B] assistant "b"',
    ]
    assert result.status is RunStatus.COMPLETED


def test_what_comes_after_a_loop_at_its_bound_plays(lines, actor):
    loop = Loop(name="L", sub_agents=[actor("A", "a")], max_iterations=1)
    assert lines(play(Sequential(name="S", sub_agents=[loop, actor("B", "b")]))) == [
        'A [S,L,A] assistant "a"',
        'B [S,L,B] assistant "b"',
    ]


@pytest.mark.parametrize("most", [0, 3])
def test_an_empty_loop_ends_at_once(lines, most):
    assert lines(play(Loop(name="L", sub_agents=[], max_iterations=most))) == []


def test_a_negative_bound_is_refused(actor):
    with pytest.raises(
        UsageError,
        match="Loop 'L': max_iterations must be a number of rounds, 1 or more, or None for no bound, got -1",
    ):
        Loop(name="L", sub_agents=[actor("A")], max_iterations=-1)


def test_without_a_bound_a_loop_goes_on_until_it_is_broken(actor):
    rounds = [[f"a{number}"] for number in range(30)]
    assert len(play(Loop(name="L", sub_agents=[actor("A", *rounds)])).events) == 10
    result = play(
        Loop(name="L", sub_agents=[actor("A", *rounds, [BreakLoop()])], max_iterations=None)
    )
    assert len(result.events) == 31
    assert result.events[-1].action.iteration == 30


def test_a_break_shows_who_and_in_which_round_and_skips_the_others_of_the_round(lines, actor):
    a = actor("A", ["a1"], ["a2", BreakLoop()])
    result = play(
        Sequential(
            name="S", sub_agents=[Loop(name="L", sub_agents=[a, actor("B", "b")]), actor("C", "c")]
        )
    )
    assert lines(result) == [
        'A [S,L,A] assistant "a1"',
        'B [S,L,A,B] assistant "b"',
        'A [S,L,A,B,A] assistant "a2"',
        f"A [S,L,A,B,A] {broke('A', 1)}",
        'C [S,L,C] assistant "c"',
    ]
    assert result.status is RunStatus.COMPLETED


def test_a_child_that_breaks_is_taken_to_its_end(lines, actor):
    result = play(
        Loop(name="L", sub_agents=[actor("A", "a1", BreakLoop(), "a2", "a3"), actor("B", "never")])
    )
    assert lines(result) == [
        'A [L,A] assistant "a1"',
        f"A [L,A] {broke('A', 0)}",
        'A [L,A] assistant "a2"',
        'A [L,A] assistant "a3"',
    ]


def test_what_an_agent_claims_of_its_break_is_not_believed(lines, actor):
    assert lines(
        play(Loop(name="L", sub_agents=[actor("A", BreakLoop("X", done=False, iteration=9))]))
    ) == [f"A [L,A] {broke('A', 0)}"]
    assert lines(play(actor("A", BreakLoop("X", done=True, iteration=9)))) == [
        "A [A] {BreakLoop by A, not done, iteration None}"
    ]


@pytest.mark.parametrize(
    ("end", "status"), [(ValueError("broken"), RunStatus.FAILED), (Exit(), RunStatus.COMPLETED)]
)
def test_an_error_or_exit_after_a_break_ends_more_than_the_loop(actor, end, status):
    after = actor("C", "never")
    result = play(
        Sequential(
            name="S", sub_agents=[Loop(name="L", sub_agents=[actor("A", BreakLoop(), end)]), after]
        )
    )
    assert result.status is status
    assert after.inputs == []


def test_the_nearest_loop_ends_and_its_parents_go_on(lines, actor):
    inner = Loop(name="In", sub_agents=[actor("A", "a", BreakLoop())], max_iterations=5)
    result = play(Loop(name="Out", sub_agents=[inner, actor("B", "b")], max_iterations=2))
    assert [line.split(" ", 2)[2] for line in lines(result)] == [
        'assistant "a"',
        broke("A", 0),
        'assistant "b"',
    ] * 2


def test_the_round_is_the_nearest_loop_s(lines, actor):
    inner = Loop(
        name="In",
        sub_agents=[actor("A", ["1"], ["2", BreakLoop()], ["3"], ["4"], [BreakLoop()])],
        max_iterations=5,
    )
    result = play(Loop(name="Out", sub_agents=[inner], max_iterations=2))
    assert [event.action.iteration for event in result.events if event.action] == [1, 2]


def test_a_break_after_the_inner_loop_ends_the_outer_one(lines, actor):
    inner = Loop(name="In", sub_agents=[actor("A", "a")], max_iterations=2)
    result = play(
        Loop(name="Out", sub_agents=[inner, actor("B", BreakLoop()), actor("C", "never")])
    )
    assert [event.agent_name for event in result.events] == ["A", "A", "B"]
    assert lines(result)[-1] == f"B [Out,In,B] {broke('B', 0)}"


def test_a_break_goes_through_a_sequence(lines, actor):
    inner = Sequential(name="S", sub_agents=[actor("A", "a", BreakLoop()), actor("B", "never")])
    result = play(Loop(name="L", sub_agents=[inner, actor("C", "never")]))
    assert lines(result) == ['A [L,S,A] assistant "a"', f"A [L,S,A] {broke('A', 0)}"]


def test_a_break_goes_through_sequences_in_sequences(lines, actor):
    deep = Sequential(
        name="S1",
        sub_agents=[
            Sequential(name="S2", sub_agents=[actor("A", ["a"], [BreakLoop()])]),
            actor("B", "b"),
        ],
    )
    result = play(Loop(name="L", sub_agents=[deep, actor("C", "c")]))
    assert [event.agent_name for event in result.events] == ["A", "B", "C", "A"]
    assert result.events[-1].action == BreakLoop("A", done=True, iteration=1)


def test_a_break_goes_through_a_parallel_whose_other_children_end(lines, actor):
    inner = Parallel(
        name="P", sub_agents=[actor("A", BreakLoop()), actor("B", "b1", "b2"), actor("C", "c")]
    )
    result = play(Loop(name="L", sub_agents=[inner, actor("D", "never")]))
    assert sorted(event.agent_name for event in result.events) == ["A", "B", "B", "C"]
    assert f"A [L,P,A] {broke('A', 0)}" in lines(result)


def test_a_break_goes_through_a_parallel_from_whichever_child(actor):
    for place in range(3):
        children = [
            actor(f"A{number}", BreakLoop() if number == place else "x") for number in range(3)
        ]
        result = play(
            Loop(name="L", sub_agents=[Parallel(name="P", sub_agents=children)], max_iterations=4)
        )
        assert len(result.events) == 3


def test_a_loop_in_a_parallel_is_broken_alone(actor):
    inner = [
        Loop(name=f"L{name}", sub_agents=[actor(name, *plan)], max_iterations=3)
        for name, plan in (("A", [BreakLoop()]), ("B", ["b"]))
    ]
    result = play(
        Loop(name="Out", sub_agents=[Parallel(name="P", sub_agents=inner)], max_iterations=2)
    )
    assert sorted(event.agent_name for event in result.events) == ["A", "A", *["B"] * 6]


def test_a_break_by_one_that_was_handed_over_to(lines, actor):
    a = actor("A", "a", TransferToAgent("A1"), sub_agents=[actor("A1", BreakLoop(), "a1")])
    result = play(Loop(name="L", sub_agents=[a, actor("B", "never")]))
    assert lines(result)[2:] == [f"A1 [L,A,A1] {broke('A1', 0)}", 'A1 [L,A,A1] assistant "a1"']


def test_a_break_before_handing_over(actor):
    a = actor("A", BreakLoop(), TransferToAgent("A1"), sub_agents=[actor("A1", "a1")])
    result = play(Loop(name="L", sub_agents=[a, actor("B", "never")], max_iterations=3))
    assert [event.agent_name for event in result.events] == ["A", "A", "A1"]


def test_a_break_by_a_child_that_is_cast(actor):
    child = actor("C", BreakLoop())
    parent = actor("A", lambda context: context.cast(child), sub_agents=[child])
    assert (
        len(play(Loop(name="L", sub_agents=[parent, actor("B", "never")], max_iterations=3)).events)
        == 1
    )


def test_a_break_by_a_child_that_is_cast_holds_whatever_its_parent_does_then(actor):
    child = actor("C", BreakLoop())
    parent = actor("A", lambda context: context.cast(child), "and then", sub_agents=[child])
    result = play(Loop(name="L", sub_agents=[parent, actor("B", "never")], max_iterations=3))
    assert [event.agent_name for event in result.events] == ["C", "A"]


def test_a_tool_breaks_the_loop_and_its_agent_is_taken_to_its_end(lines, actor):
    @tool
    def stop(context: ToolContext) -> str:
        context.send_action(BreakLoop())
        return "stopped"

    a = ChatModelAgent(name="A", model=ScriptedModel([ToolCalls(stop={}), "bye"]), tools=[stop])
    result = play(Loop(name="L", sub_agents=[a, actor("B", "never")]))
    assert lines(result)[1:] == [
        f'A [L,A] tool(stop) "stopped" {broke("A", 0)}',
        'A [L,A] assistant "bye"',
    ]


@pytest.mark.parametrize("emit", [True, False])
def test_a_break_in_an_agent_tool_stays_inside(lines, actor, emit):
    inner = actor("inner", "i", BreakLoop())
    call = ToolCalls(inner={"request": "r"})
    a = ChatModelAgent(
        name="A",
        model=ScriptedModel([call, "one", call, "two"]),
        tools=[inner.as_tool(emit_events=emit)],
    )
    result = play(Loop(name="L", sub_agents=[a], max_iterations=2))
    assert result.final_output == "two"
    assert [line for line in lines(result) if "BreakLoop" in line] == [
        f"inner [{path},inner] {{BreakLoop by inner, not done, iteration None}}"
        for path in ("L,A", "L,A,A")
        if emit
    ]


def test_a_break_in_a_loop_in_an_agent_tool_ends_that_loop(actor):
    inner = Loop(name="inner", sub_agents=[actor("I", "i", BreakLoop())])
    a = ChatModelAgent(
        name="A",
        model=ScriptedModel([ToolCalls(inner={"request": "r"}), "end"]),
        tools=[inner.as_tool()],
    )
    result = play(Loop(name="L", sub_agents=[a], max_iterations=1))
    assert [event.message.text for event in result.events] == ["", "i", "end"]


def test_an_exit_ends_the_loop_and_what_encloses_it(lines, actor):
    result = play(
        Sequential(
            name="S",
            sub_agents=[
                Loop(name="L", sub_agents=[actor("A", ["a"], [Exit(), "never"])]),
                actor("B", "never"),
            ],
        )
    )
    assert lines(result) == ['A [S,L,A] assistant "a"', "A [S,L,A,A] {Exit}"]
    assert result.status is RunStatus.COMPLETED


def test_an_error_ends_the_loop_and_what_encloses_it(lines, actor):
    result = play(
        Sequential(
            name="S",
            sub_agents=[
                Loop(name="L", sub_agents=[actor("A", ["a"], [ValueError("no")])]),
                actor("B", "never"),
            ],
        )
    )
    assert lines(result) == ['A [S,L,A] assistant "a"', "A [S,L,A,A] error ValueError: no"]
    assert result.status is RunStatus.FAILED


def test_an_interrupt_ends_the_loop(actor):
    async def ask(context):
        return context.interrupt("?")

    result = play(Loop(name="L", sub_agents=[actor("A", "a", ask), actor("B", "never")]))
    assert result.status is RunStatus.INTERRUPTED
    assert [event.agent_name for event in result.events] == ["A", "A"]


def test_a_loop_of_children_that_do_nothing_can_be_ended_from_outside(run, actor):
    async def main():
        one = Runner(Loop(name="L", sub_agents=[actor("A")], max_iterations=None)).query(
            "q", timeout=0.05
        )
        result = await one
        assert result.status is RunStatus.CANCELLED

    run(main())
