"""Children that play one after the other."""

import pytest

from offbook.actors import ChatModelAgent, Loop, Parallel, Sequential, ToolContext, tool
from offbook.runtime import (
    AgentEvent,
    BreakLoop,
    CustomAction,
    Exit,
    Runner,
    RunStatus,
    ScriptedModel,
    ToolCalls,
)


def play(agent, **options):
    return Runner(agent, **options).query("q").result()


def test_children_play_in_order(lines, actor):
    result = play(
        Sequential(name="S", sub_agents=[actor("A", "a1", "a2"), actor("B", "b"), actor("C", "c")])
    )
    assert lines(result) == [
        'A [S,A] assistant "a1"',
        'A [S,A] assistant "a2"',
        'B [S,A,B] assistant "b"',
        'C [S,A,B,C] assistant "c"',
    ]
    assert result.status is RunStatus.COMPLETED
    assert (result.final_output, result.last_agent) == ("c", "C")


def test_an_empty_sequence_ends_at_once(lines):
    result = play(Sequential(name="S", sub_agents=[]))
    assert lines(result) == []
    assert result.status is RunStatus.COMPLETED
    assert result.final_message is None


def test_children_that_say_nothing_are_no_trouble(lines, actor):
    assert lines(
        play(Sequential(name="S", sub_agents=[actor("A"), actor("B"), actor("C", "c")]))
    ) == ['C [S,A,B,C] assistant "c"']


def test_a_sequence_emits_nothing_of_its_own(actor):
    deep = Sequential(name="S3", sub_agents=[actor("A", "a")])
    result = play(
        Sequential(
            name="S1", sub_agents=[Sequential(name="S2", sub_agents=[deep]), actor("B", "b")]
        )
    )
    assert [event.agent_name for event in result.events] == ["A", "B"]


def test_a_child_begins_when_the_one_before_has_ended(actor):
    order = []

    def note(text):
        async def write(_context):
            order.append(text)

        return write

    play(
        Sequential(
            name="S",
            sub_agents=[actor("A", "a", note("end of A")), actor("B", note("begin of B"), "b")],
        )
    )
    assert order == ["end of A", "begin of B"]


@pytest.mark.parametrize("error", [ValueError("broken"), AgentEvent(error=ValueError("broken"))])
def test_an_error_of_a_child_ends_it_there(lines, actor, error):
    never = actor("C", "never")
    result = play(
        Sequential(name="S", sub_agents=[actor("A", "a"), actor("B", "b", error, "never"), never])
    )
    assert lines(result) == [
        'A [S,A] assistant "a"',
        'B [S,A,B] assistant "b"',
        "B [S,A,B] error ValueError: broken",
    ]
    assert result.status is RunStatus.FAILED
    assert result.error is result.events[-1].error
    assert never.inputs == []


def test_an_exit_of_a_child_ends_it_there_and_acts_at_once(lines, actor):
    leaving, never = actor("B", "b", Exit(), "never"), actor("C", "never")
    result = play(Sequential(name="S", sub_agents=[actor("A", "a"), leaving, never]))
    assert lines(result) == ['A [S,A] assistant "a"', 'B [S,A,B] assistant "b"', "B [S,A,B] {Exit}"]
    assert result.status is RunStatus.COMPLETED
    assert "never" not in leaving.reached
    assert never.inputs == []


def test_an_interrupt_of_a_child_ends_it_there(actor):
    async def ask(context):
        return context.interrupt("which?")

    never = actor("C", "never")
    result = play(
        Sequential(name="S", sub_agents=[actor("A", "a"), actor("B", ask, "never"), never])
    )
    assert result.status is RunStatus.INTERRUPTED
    assert [(event.agent_name, event.run_path) for event in result.events] == [
        ("A", ("S", "A")),
        ("B", ("S", "A", "B")),
    ]
    assert [context.info for context in result.interrupts] == ["which?"]
    assert never.inputs == []


@pytest.mark.parametrize(
    "wrap",
    [
        lambda inner: Sequential(name="In", sub_agents=[inner]),
        lambda inner: Loop(name="In", sub_agents=[inner]),
    ],
)
def test_the_exit_of_an_inner_workflow_exits_all_that_enclose_it(lines, actor, wrap):
    middle = Sequential(name="Mid", sub_agents=[wrap(actor("A", "a", Exit())), actor("B", "never")])
    result = play(Sequential(name="Out", sub_agents=[middle, actor("C", "never")]))
    assert lines(result) == ['A [Out,Mid,In,A] assistant "a"', "A [Out,Mid,In,A] {Exit}"]
    assert result.status is RunStatus.COMPLETED


def test_the_exit_tool_of_a_chat_model_agent_ends_the_sequence(lines, actor):
    a = ChatModelAgent(
        name="A",
        model=ScriptedModel([ToolCalls(exit={"final_result": "R"}), "never"]),
        exit_tool=True,
    )
    result = play(Sequential(name="S", sub_agents=[a, actor("B", "never")]))
    assert lines(result) == [
        'A [S,A] assistant "" tc(exit {"final_result":"R"})',
        'A [S,A] tool(exit) "R" {Exit}',
    ]
    assert result.final_output == "R"


def test_the_exit_of_a_tool_ends_the_sequence(lines, actor):
    @tool
    def leave(context: ToolContext) -> str:
        context.send_action(Exit())
        return "left"

    a = ChatModelAgent(name="A", model=ScriptedModel([ToolCalls(leave={}), "never"]), tools=[leave])
    result = play(Sequential(name="S", sub_agents=[a, actor("B", "never")]))
    assert lines(result)[1:] == ['A [S,A] tool(leave) "left" {Exit}']


def test_a_custom_action_is_only_carried(lines, actor):
    result = play(
        Sequential(name="S", sub_agents=[actor("A", CustomAction({"x": 1})), actor("B", "b")])
    )
    assert lines(result) == ["A [S,A] {CustomAction {'x': 1}}", 'B [S,A,B] assistant "b"']


def test_a_break_outside_of_any_loop_breaks_nothing(lines, actor):
    result = play(Sequential(name="S", sub_agents=[actor("A", BreakLoop(), "a"), actor("B", "b")]))
    assert lines(result) == [
        "A [S,A] {BreakLoop by A, not done, iteration None}",
        'A [S,A] assistant "a"',
        'B [S,A,B] assistant "b"',
    ]


def test_an_exit_s_generator_is_closed(actor):
    from offbook.actors import Agent

    closed = []

    class Tidy(Agent):
        async def run(self, input, context):
            try:
                yield AgentEvent.of(action=Exit())
            finally:
                closed.append(self.name)

    play(Sequential(name="S", sub_agents=[Tidy(name="A"), actor("B", "never")]))
    assert closed == ["A"]


def test_the_result_of_a_parallel_failing_in_a_sequence_stops_what_encloses_it(lines, actor):
    never = actor("C", "never")
    p = Parallel(name="P", sub_agents=[actor("A", ValueError("broken")), actor("B", "b")])
    result = play(Sequential(name="S", sub_agents=[p, never]))
    assert sorted(lines(result)) == [
        "A [S,P,A] error ValueError: broken",
        'B [S,P,B] assistant "b"',
    ]
    assert result.status is RunStatus.FAILED
    assert never.inputs == []


@pytest.mark.parametrize("length", [1, 50])
def test_a_long_sequence_is_a_long_path(actor, length):
    result = play(
        Sequential(name="S", sub_agents=[actor(f"A{number}", "x") for number in range(length)])
    )
    assert result.events[-1].run_path == ("S", *(f"A{number}" for number in range(length)))


def test_one_definition_plays_in_many_runs_at_once(run, actor):
    import asyncio

    async def main():
        runner = Runner(Sequential(name="S", sub_agents=[actor("A", "a"), actor("B", "b")]))
        results = await asyncio.gather(
            *(_finished(runner.query(f"q{number}")) for number in range(20))
        )
        assert [[event.message.text for event in result.events] for result in results] == [
            ["a", "b"]
        ] * 20

    async def _finished(one):
        return await one

    run(main())
