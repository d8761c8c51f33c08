"""What an agent is given of what was said before it, if it wants something else than what its lane
holds.
"""

import pytest

from offbook.actors import Loop, Parallel, Sequential, Supervisor
from offbook.runtime import (
    HistoryEntry,
    Message,
    Runner,
    RunStatus,
    ToolCall,
    TransferToAgent,
    UsageError,
)


def given(agent, before, **runner_options):
    """What the agent is given after those before it, in a Sequential."""
    Runner(Sequential(name="S", sub_agents=[*before, agent]), **runner_options).query(
        "q"
    ).result().raise_for_error()
    return list(agent.inputs[-1])


# --- policies ---


def test_run_path_shows_only_what_led_to_the_agent(actor):
    # Seed `001`: A has handed over to B, and a Parallel has played before both.
    last = actor("Z", "z", history="run_path")
    parallel = Parallel(name="P", sub_agents=[actor("A", "a"), actor("B", "b")])
    assert given(last, [actor("X", "x"), parallel, actor("Y", "y")])[1:] == [
        Message.user("For context: [X] said: x."),
        Message.user("For context: [Y] said: y."),
    ]


def test_run_path_shows_the_agents_own_earlier_messages(actor):
    a = actor("A", ["a1"], ["a2"], history="run_path")
    Runner(Loop(name="L", sub_agents=[a, actor("B", "b")], max_iterations=2)).query("q").result()
    assert [message.text for message in a.inputs[1]] == ["q", "a1", "For context: [B] said: b."]


def test_run_path_shows_nothing_of_a_child_that_an_earlier_one_handed_over_to(actor):
    a = actor("A", "a", TransferToAgent("A1"), sub_agents=[actor("A1", "a1")])
    assert given(actor("B", history="run_path"), [a])[1:] == [
        Message.user("For context: [A] said: a.")
    ]


def test_isolated_is_the_input_and_its_own(actor):
    a = actor("A", ["a1"], ["a2"], history="isolated")
    Runner(Loop(name="L", sub_agents=[a, actor("B", "b")], max_iterations=2)).query("q").result()
    assert a.inputs[1] == (Message.user("q"), Message.assistant("a1"))


def test_input_only_is_the_input_only(actor):
    a = actor("A", ["a1"], ["a2"], history="input_only")
    Runner(Loop(name="L", sub_agents=[a, actor("B", "b")], max_iterations=2)).query("q").result()
    assert a.inputs[1] == (Message.user("q"),)


def test_lane_is_what_there_is_without_saying_so(actor):
    named, unnamed = actor("A", history="lane"), actor("B")
    assert (
        given(named, [actor("X", "x")])
        == given(unnamed, [actor("X", "x")])
        == [Message.user("q"), Message.user("For context: [X] said: x.")]
    )


def test_the_runners_policy_is_that_of_all_agents_that_have_none(actor):
    before = [actor("X", "x", sub_agents=[]), actor("Y", "y")]
    chooses, does_not = actor("A", "a", history="lane"), actor("B", "b")
    team = Sequential(name="S", sub_agents=[*before, chooses, does_not])
    Runner(team, history="input_only").query("q").result().raise_for_error()
    assert [len(agent.inputs[0]) for agent in (*before, chooses, does_not)] == [1, 1, 3, 1]


def test_the_runners_run_path_is_the_rule_of_prefixes_for_the_whole_tree(actor):
    # Seed `001`: an event counts if its run path is the agent's own, or a prefix of it.
    handing = actor("A", "a", TransferToAgent("A1"), sub_agents=[actor("A1", "a1")])
    last = actor("B")
    Runner(Sequential(name="S", sub_agents=[handing, last]), history="run_path").query(
        "q"
    ).result().raise_for_error()
    assert list(last.inputs[0]) == [Message.user("q"), Message.user("For context: [A] said: a.")]


def test_the_runners_policy_may_be_a_function_of_the_entries(actor):
    last = actor("B")
    runner = Runner(
        Sequential(name="S", sub_agents=[actor("A", "a"), last]),
        history=lambda entries: [entries[-1].message],
    )
    runner.query("q").result().raise_for_error()
    assert last.inputs == [(Message.assistant("a"),)]


def test_a_policy_of_a_runner_that_is_unknown_is_refused(actor):
    with pytest.raises(UsageError, match="Runner: history must be 'lane'"):
        Runner(actor("A"), history="all")


def test_a_policy_that_is_unknown_is_refused(actor):
    with pytest.raises(UsageError, match="agent 'A': history must be 'lane'"):
        actor("A", history="all")


def test_the_policy_of_a_supervisor_s_agent_is_kept(actor):
    a = actor("A", "a", history="input_only")
    Runner(
        Supervisor(supervisor=actor("S", ["s", TransferToAgent("A")], ["end"]), sub_agents=[a])
    ).query("q").result()
    assert a.inputs == [(Message.user("q"),)]


# --- rewriters ---


def entries_of(entries):
    return [(entry.is_user_input, entry.agent_name, entry.message.text) for entry in entries]


def test_a_rewriter_is_given_entries_and_makes_the_input(actor):
    seen = []

    def rewriter(entries):
        seen.extend(entries)
        return [Message.user(f"{len(entries)} entries")]

    assert given(actor("B", history=rewriter), [actor("A", "a", Message.assistant("b"))]) == [
        Message.user("3 entries")
    ]
    assert all(isinstance(entry, HistoryEntry) for entry in seen)
    assert entries_of(seen) == [(True, None, "q"), (False, "A", "a"), (False, "A", "b")]


def test_a_rewriter_may_be_async(actor):
    async def rewriter(entries):
        return [entries[-1].message]

    assert given(actor("B", history=rewriter), [actor("A", "a")]) == [Message.assistant("a")]


def test_a_rewriter_is_asked_where_nothing_was_said_yet_too(actor):
    a = actor("A", history=lambda entries: [Message.user(f"only {len(entries)}")])
    Runner(a).query("q").result()
    assert a.inputs == [(Message.user("only 1"),)]


def test_a_rewriter_sees_messages_as_they_were_said(actor):
    message = Message.assistant("x", [ToolCall("1", "f", "{}")], reasoning="because")
    seen = []
    given(actor("B", history=lambda entries: seen.extend(entries) or []), [actor("A", message)])
    assert seen[1].message == message


def test_a_rewriter_in_a_lane_sees_that_lane_only(actor):
    seen = []
    a = actor("A", "a", history=lambda entries: seen.append(entries_of(entries)) or [])
    p = Parallel(name="P", max_concurrency=1, sub_agents=[actor("B", "b"), a])
    given(p_after := actor("Z"), [actor("X", "x"), p])
    assert seen == [[(True, None, "q"), (False, "X", "x")]]
    assert len(p_after.inputs[0]) == 4


@pytest.mark.parametrize("returned", [["text"], None, 5])
def test_a_rewriter_that_returns_no_messages_is_an_error_of_its_agent(actor, returned):
    result = Runner(actor("A", "never", history=lambda _entries: returned)).query("q").result()
    assert result.status is RunStatus.FAILED
    assert [event.agent_name for event in result.events] == ["A"]


def test_a_rewriter_that_raises_is_an_error_of_its_agent(actor):
    def rewriter(_entries):
        raise ValueError("no")

    result = (
        Runner(
            Sequential(
                name="S",
                sub_agents=[
                    actor("A", "a"),
                    actor("B", "never", history=rewriter),
                    actor("C", "never"),
                ],
            )
        )
        .query("q")
        .result()
    )
    assert result.status is RunStatus.FAILED
    assert isinstance(result.error, ValueError)
    assert [event.agent_name for event in result.events] == ["A", "B"]


@pytest.mark.parametrize("policy", ["lane", "run_path", "isolated", "input_only"])
def test_the_input_of_the_run_is_there_under_every_policy(actor, policy):
    a = actor("A", "a", history=policy)
    Runner(Parallel(name="P", sub_agents=[a, actor("B", "b")])).query("q").result()
    assert a.inputs == [(Message.user("q"),)]


def test_run_path_knows_the_way_of_seed_001(actor):
    # A -> B -> A: what A said first, and what B said, have led to A's second time.
    b = actor("B", "b", TransferToAgent("A"), history="run_path")
    a = actor("A", ["a", TransferToAgent("B")], ["again"], sub_agents=[b], history="run_path")
    Runner(a).query("q").result()
    assert [message.text for message in b.inputs[0]] == ["q", "For context: [A] said: a."]
    assert [message.text for message in a.inputs[1]] == ["q", "a", "For context: [B] said: b."]


def test_a_rewriter_is_given_an_agent_s_own_messages_too(actor):
    seen = []
    a = actor("A", ["a1"], ["a2"], history=lambda entries: seen.append(entries_of(entries)) or [])
    Runner(Loop(name="L", sub_agents=[a, actor("B", "b")], max_iterations=2)).query("q").result()
    assert seen == [[(True, None, "q")], [(True, None, "q"), (False, "A", "a1"), (False, "B", "b")]]
