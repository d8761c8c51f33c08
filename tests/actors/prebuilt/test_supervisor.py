"""One agent that decides who is next, and others that always hand back."""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, DeterministicTransfer, Loop, Sequential, Supervisor
from offbook.runtime import (
    AgentEvent,
    BreakLoop,
    Exit,
    Message,
    Runner,
    RunStatus,
    ScriptedModel,
    ToolCalls,
    TransferToAgent,
    UsageError,
)


def to(name):
    return ToolCalls(transfer_to_agent={"agent_name": name})


def chat(name, *script, **options):
    return ChatModelAgent(
        name=name, description=f"about {name}", model=ScriptedModel(script), **options
    )


def play(agent, **options):
    return Runner(agent, **options).query("q").result(10)


def pair(agent, path, target):
    return [
        f'{agent} [{path}] assistant "" tc(transfer_to_agent {{"agent_name":"{target}"}})',
        f'{agent} [{path}] tool(transfer_to_agent) "successfully transferred to agent '
        f'[{target}]" {{TransferToAgent {target}}}',
    ]


def test_two_agents_and_back_give_eleven_events(lines):
    team = Supervisor(
        supervisor=chat("S", to("A"), to("B"), "finish"),
        sub_agents=[chat("A", "a"), chat("B", "b")],
    )
    result = play(team)
    assert lines(result) == [
        *pair("S", "S", "A"),
        'A [S,A] assistant "a"',
        *pair("A", "S,A", "S"),
        *pair("S", "S,A,S", "B"),
        'B [S,A,S,B] assistant "b"',
        *pair("B", "S,A,S,B", "S"),
        'S [S,A,S,B,S] assistant "finish"',
    ]
    assert len(result.events) == 11
    assert (result.status, result.final_output, result.last_agent) == (
        RunStatus.COMPLETED,
        "finish",
        "S",
    )


def test_a_supervisor_bears_its_agent_s_name_and_description():
    team = Supervisor(supervisor=chat("S", "x"), sub_agents=[chat("A")])
    assert (team.name, team.description) == ("S", "about S")


def test_sub_agents_do_not_see_one_another_and_have_no_transfer_tool():
    a, b = chat("A", "a", instruction="You are A."), chat("B")
    s = chat("S", to("A"), "end", instruction="You lead.")
    play(Supervisor(supervisor=s, sub_agents=[a, b]))
    request = a.model.requests[0]
    assert request.tools == ()
    assert request.messages[0] == Message.system("You are A.")
    text = s.model.requests[0].messages[0].text
    assert text.startswith(
        "You lead.\n\nAvailable other agents: \n- Agent name: A\n  Agent description: about "
        "A\n- Agent name: B\n"
    )


def test_a_sub_agent_cannot_hand_over_to_a_sibling_by_itself(actor):
    a = actor("A", TransferToAgent("B"))
    result = play(
        Supervisor(
            supervisor=actor("S", TransferToAgent("A")), sub_agents=[a, b := actor("B", "never")]
        )
    )
    assert "agent 'B' not found when transferring from 'A'" in str(result.error)
    assert b.inputs == []


def test_the_supervisor_sees_its_own_calls_verbatim_and_the_others_retold(asked):
    s = chat("S", to("A"), "end")
    play(Supervisor(supervisor=s, sub_agents=[chat("A", "a")]))
    assert asked(s.model.requests[1].messages)[1:] == [
        'user "q"',
        'assistant "" tc(transfer_to_agent {"agent_name":"A"})',
        'tool(transfer_to_agent) "successfully transferred to agent [A]"',
        'user "For context: [A] said: a."',
        'user "For context: [A] called tool: `transfer_to_agent` with arguments: '
        '{"agent_name":"S"}."',
        'user "For context: [A] `transfer_to_agent` tool returned result: successfully '
        'transferred to agent [S]."',
    ]


def test_a_sub_agent_that_comes_round_again_sees_what_it_said():
    a = chat("A", "a1", "a2")
    play(Supervisor(supervisor=chat("S", to("A"), to("A"), "end"), sub_agents=[a]))
    assert Message.assistant("a1") in a.model.requests[1].messages


@pytest.mark.parametrize("on_error", ["abort", "report"])
def test_an_exit_in_a_sub_agent_ends_the_run_without_the_transfer_back(lines, actor, on_error):
    s = actor("S", [TransferToAgent("A")], ["never"])
    result = play(Supervisor(supervisor=s, sub_agents=[actor("A", "a", Exit())], on_error=on_error))
    assert lines(result) == ["S [S] {TransferToAgent A}", 'A [S,A] assistant "a"', "A [S,A] {Exit}"]
    assert result.status is RunStatus.COMPLETED


def nested(actor, *deep, on_error="abort", deep_on_error="abort"):
    """Top leads Mid, who leads Leaf, who does `deep`."""
    mid = actor("Mid", [TransferToAgent("Leaf")], ["mid ends"])
    top = actor("Top", [TransferToAgent("Mid")], ["top ends"])
    inner = Supervisor(supervisor=mid, sub_agents=[actor("Leaf", *deep)], on_error=deep_on_error)
    return Supervisor(supervisor=top, sub_agents=[inner, actor("Other", "o")], on_error=on_error)


def test_supervisors_of_supervisors_hand_back_level_by_level(lines, actor):
    result = play(nested(actor, "leaf"))
    found = lines(result)
    assert found[:5] == [
        "Top [Top] {TransferToAgent Mid}",
        "Mid [Top,Mid] {TransferToAgent Leaf}",
        'Leaf [Top,Mid,Leaf] assistant "leaf"',
        *pair("Leaf", "Top,Mid,Leaf", "Mid"),
    ]
    assert found[5] == 'Mid [Top,Mid,Leaf,Mid] assistant "mid ends"'
    assert [event.agent_name for event in result.events[6:]] == ["Mid", "Mid", "Top"]
    assert result.events[7].action == TransferToAgent("Top")
    assert result.final_output == "top ends"
    assert result.status is RunStatus.COMPLETED


@pytest.mark.parametrize("on_error", ["abort", "report"])
def test_an_exit_goes_through_nested_supervisors(lines, actor, on_error):
    result = play(nested(actor, "leaf", Exit(), on_error=on_error, deep_on_error=on_error))
    assert lines(result)[-1] == "Leaf [Top,Mid,Leaf] {Exit}"
    assert result.status is RunStatus.COMPLETED


def test_an_error_ends_the_run_through_nested_supervisors(lines, actor):
    result = play(nested(actor, ValueError("broken")))
    assert lines(result)[-1] == "Leaf [Top,Mid,Leaf] error ValueError: broken"
    assert result.status is RunStatus.FAILED


def test_the_inner_supervisor_aborts_and_the_outer_one_is_told(actor):
    tree = nested(actor, ValueError("broken"), on_error="report")
    top = tree.supervisor
    result = play(tree)
    assert result.final_output == "top ends"
    assert result.status is RunStatus.COMPLETED
    assert any("broken" in message.text for message in top.inputs[1])


def test_an_inner_supervisor_does_not_see_its_sibling_as_a_target():
    mid = chat("Mid", "mid")
    inner = Supervisor(supervisor=mid, sub_agents=[chat("Leaf")])
    play(Supervisor(supervisor=chat("Top", to("Mid"), "end"), sub_agents=[inner, chat("Other")]))
    text = mid.model.requests[0].messages[0].text
    assert "Agent name: Leaf" in text
    assert "Agent name: Other" not in text
    assert "Agent name: Top" not in text


# --- errors ---


def test_an_error_in_a_sub_agent_ends_the_run(lines, actor):
    s = actor("S", [TransferToAgent("A")], ["never"])
    result = play(Supervisor(supervisor=s, sub_agents=[actor("A", "a", ValueError("broken"))]))
    assert lines(result) == [
        "S [S] {TransferToAgent A}",
        'A [S,A] assistant "a"',
        "A [S,A] error ValueError: broken",
    ]
    assert result.status is RunStatus.FAILED
    assert len(s.inputs) == 1


FAILURES = [
    ValueError("broken"),
    AgentEvent(error=ValueError("broken")),
    TransferToAgent("nobody, broken"),
    KeyboardInterrupt("broken"),
    asyncio.CancelledError("broken"),
]


@pytest.mark.parametrize(
    "failure", FAILURES, ids=["raised", "yielded", "transfer", "interrupt", "cancelled"]
)
def test_with_report_the_supervisor_is_told_in_its_history_and_goes_on(actor, failure):
    s = actor("S", [TransferToAgent("A")], ["end"])
    result = play(
        Supervisor(supervisor=s, sub_agents=[actor("A", "a", failure)], on_error="report")
    )
    assert (result.status, result.error, result.final_output) == (RunStatus.COMPLETED, None, "end")
    told = [message for message in s.inputs[1] if "broken" in message.text]
    assert told
    assert all(message.role == "user" and "[A]" in message.text for message in told)
    assert result.events[-1].run_path == ("S", "A", "S")
    assert result.events[-2].action == TransferToAgent("S")


def test_with_report_one_that_does_not_fail_is_the_same_as_ever(lines, actor):
    def team(on_error):
        return Supervisor(
            supervisor=actor("S", [TransferToAgent("A")], ["end"]),
            sub_agents=[actor("A", "a")],
            on_error=on_error,
        )

    assert lines(play(team("report"))) == lines(play(team("abort")))


def test_with_report_an_error_of_the_supervisor_itself_ends_the_run(actor):
    s = actor("S", [TransferToAgent("A")], [ValueError("mine")])
    result = play(Supervisor(supervisor=s, sub_agents=[actor("A", "a")], on_error="report"))
    assert (result.status, str(result.error)) == (RunStatus.FAILED, "mine")


def test_with_report_a_sub_agent_may_fail_and_be_tried_again(actor):
    s = actor("S", [TransferToAgent("A")], [TransferToAgent("A")], ["end"])
    a = actor("A", [ValueError("first")], ["second time"])
    result = play(Supervisor(supervisor=s, sub_agents=[a], on_error="report"))
    assert result.final_output == "end"
    assert result.events[-1].run_path == ("S", "A", "S", "A", "S")


@pytest.mark.parametrize("on_error", ["abort", "report"])
def test_a_break_by_a_sub_agent_ends_the_loop_around_the_supervisor(actor, on_error):
    s = actor("S", [TransferToAgent("A")], ["end"], [TransferToAgent("A")], ["never"])
    team = Supervisor(supervisor=s, sub_agents=[actor("A", BreakLoop())], on_error=on_error)
    result = play(Loop(name="L", sub_agents=[team], max_iterations=2))
    assert result.final_output == "end"


# --- in other places ---


def test_a_supervisor_in_a_sequence(lines, actor):
    team = Supervisor(
        supervisor=actor("S", [TransferToAgent("A")], ["end"]), sub_agents=[actor("A", "a")]
    )
    found = lines(play(Sequential(name="Q", sub_agents=[team, actor("Z", "z")])))
    assert found[-2:] == ['S [Q,S,A,S] assistant "end"', 'Z [Q,S,Z] assistant "z"']


def test_a_workflow_as_a_sub_agent_hands_back_when_it_has_ended(lines, actor):
    w = Sequential(name="W", sub_agents=[actor("A", "a"), actor("B", "b")])
    found = lines(
        play(Supervisor(supervisor=actor("S", [TransferToAgent("W")], ["end"]), sub_agents=[w]))
    )
    assert found == [
        "S [S] {TransferToAgent W}",
        'A [S,W,A] assistant "a"',
        'B [S,W,A,B] assistant "b"',
        *pair("W", "S,W", "S"),
        'S [S,W,S] assistant "end"',
    ]


def test_a_supervisor_as_a_tool(actor):
    team = Supervisor(
        supervisor=actor("S", [TransferToAgent("A")], ["team says"]), sub_agents=[actor("A", "a")]
    )
    outer = chat("outer", ToolCalls(S={"request": "r"}), "end", tools=[team.as_tool()])
    assert [event.message.text for event in play(outer).events] == ["", "team says", "end"]


def test_a_supervisor_is_counted_against_max_transfers(actor):
    team = Supervisor(supervisor=actor("S", TransferToAgent("A")), sub_agents=[actor("A", "a")])
    assert "MaxTransfersExceeded" in repr(play(team, max_transfers=5).error)


def test_a_supervisor_without_sub_agents_is_its_agent(lines):
    s = chat("S", "alone")
    assert lines(play(Supervisor(supervisor=s, sub_agents=[]))) == ['S [S] assistant "alone"']
    assert s.model.requests[0].tools == ()


def test_what_cannot_be_a_supervisor_is_refused(actor):
    with pytest.raises(UsageError, match="'S' already has sub-agents"):
        Supervisor(supervisor=actor("S", sub_agents=[actor("X")]), sub_agents=[actor("A")])
    with pytest.raises(UsageError, match="on_error must be 'abort' or 'report', got 'ignore'"):
        Supervisor(supervisor=actor("S"), sub_agents=[actor("A")], on_error="ignore")
    with pytest.raises(UsageError, match="supervisor must be an Agent"):
        Supervisor(supervisor="S", sub_agents=[])


def test_what_does_not_decide_who_is_next_cannot_lead(actor):
    for leader in (
        Sequential(name="S", sub_agents=[]),
        DeterministicTransfer(actor("S"), to=["A"]),
    ):
        with pytest.raises(UsageError, match="'S'"):
            Supervisor(supervisor=leader, sub_agents=[actor("A")])
