"""Handoffs in chains and circles, above and below workflows, agent tools and supervisors."""

import pytest

from offbook.actors import (
    DeterministicTransfer,
    Loop,
    Parallel,
    Sequential,
    Supervisor,
    ToolContext,
    handoff,
    keep_last,
    redact,
    tool,
)
from offbook.runtime import BreakLoop, Exit, MaxTransfersExceeded, Runner, RunStatus, ToolCalls
from tests.doubles.handing import chat, given, go, over
from tests.doubles.waiting import to


def linked(*agents):
    """Let each of them hand over to the next, and the last one to the first."""
    for one, other in zip(agents, (*agents[1:], agents[0]), strict=True):
        one.handoffs = [other]
    return agents[0]


def paths(result):
    return [
        ",".join(event.run_path)
        for event in result.events
        if event.message is not None and event.message.role == "assistant"
    ]


def test_a_chain_is_given_all_that_was_said(asked):
    a, b, c = chat("A", go("B", text="a")), chat("B", go("C", text="b")), chat("C", "done")
    result = Runner(linked(a, b, c)).query("q").result()
    assert paths(result) == ["A", "A,B", "A,B,C"]
    assert asked(given(c)) == [
        'user "q"',
        'assistant "a" tc(transfer_to_b {})',
        f'tool(transfer_to_b) "{over("B")}"',
        'assistant "b" tc(transfer_to_c {})',
        f'tool(transfer_to_c) "{over("C")}"',
    ]


def test_in_a_circle_an_agent_sees_what_it_has_said_once():
    a, b = chat("A", go("B"), "back"), chat("B", go("A"))
    result = Runner(linked(a, b)).query("q").result()
    assert paths(result) == ["A", "A,B", "A,B,A"]
    assert [message.role for message in given(a)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]


def test_a_circle_may_be_as_deep_as_max_transfers():
    a, b = chat("A", *[go("B")] * 50, "done"), chat("B", *[go("A")] * 50)
    result = Runner(linked(a, b), max_transfers=100).query("q").result()
    assert (result.final_output, len(result.events), len(given(a))) == ("done", 201, 201)
    a, b = chat("A", *[go("B")] * 50, "done"), chat("B", *[go("A")] * 50)
    result = Runner(linked(a, b), max_transfers=99).query("q").result()
    assert isinstance(result.error, MaxTransfersExceeded)


def test_an_agent_may_hand_over_to_itself():
    a = chat("A", go("A"), "done")
    a.handoffs = [a]
    result = Runner(a).query("q").result()
    assert paths(result) == ["A", "A,A"]


def test_steps_of_a_sequence_may_hand_over(lines):
    x = chat("X", "by x")
    a, b = chat("A", go("X"), handoffs=[x]), chat("B", "by b")
    result = Runner(Sequential(name="S", sub_agents=[a, b])).query("q").result()
    assert paths(result) == ["S,A", "S,A,X", "S,A,B"], "an agent that took over is no step"
    assert [message.text for message in given(b)] == [
        "q",
        "For context: [A] called tool: `transfer_to_x` with arguments: {}.",
        f"For context: [A] `transfer_to_x` tool returned result: {over('X')}.",
        "For context: [X] said: by x.",
    ]


def test_a_workflow_may_take_over():
    steps = Sequential(
        name="S", description="two steps", sub_agents=[chat("X", "one"), chat("Y", "two")]
    )
    result = Runner(chat("A", go("S"), handoffs=[steps])).query("q").result()
    assert paths(result) == ["A", "A,S,X", "A,S,X,Y"]
    assert result.final_output == "two"


@pytest.mark.parametrize("filtered", [False, True])
def test_the_steps_of_a_workflow_that_took_over_are_given_what_it_was_given(filtered, asked):
    x, y, z = chat("X", "one"), chat("Y", "two"), chat("Z", "three")
    steps = Sequential(name="S", sub_agents=[x, Parallel(name="P", sub_agents=[y]), z])
    Runner(
        chat(
            "A",
            go("S"),
            handoffs=[handoff(steps, input_filter=redact("secret") if filtered else None)],
        )
    ).query("a secret").result()
    first = f'user "a {"[REDACTED]" if filtered else "secret"}"'
    begun = [first, 'assistant "" tc(transfer_to_s {})', f'tool(transfer_to_s) "{over("S")}"']
    assert asked(given(x)) == begun
    assert asked(given(y)) == [*begun, 'user "For context: [X] said: one."']
    assert asked(given(z)) == [
        *begun,
        'user "For context: [X] said: one."',
        'user "For context: [Y] said: two."',
    ]


def test_a_rewriter_of_a_step_sees_no_more_than_that():
    seen = []

    def rewriter(entries):
        seen.extend((entry.agent_name, entry.message.text) for entry in entries)
        return [entry.message for entry in entries]

    steps = Sequential(name="S", sub_agents=[chat("X", "one", history=rewriter)])
    Runner(
        chat(
            "A",
            go("S", text="hm"),
            handoffs=[
                handoff(
                    steps, input_filter=lambda data: data.clone(input_history="q", new_items=())
                )
            ],
        )
    ).query("a secret").result()
    assert seen == [(None, "q")]


def test_one_in_a_loop_hands_over_each_time_and_may_break_it():
    @tool
    def stop(context: ToolContext) -> str:
        """Break the loop."""
        context.send_action(BreakLoop())
        return "stopped"

    x = chat("X", "again", ToolCalls(stop={}), "enough", tools=[stop])
    a = chat("A", go("X"), go("X"), handoffs=[x])
    result = Runner(Loop(name="L", sub_agents=[a])).query("q").result()
    assert result.status is RunStatus.COMPLETED
    assert paths(result) == ["L,A", "L,A,X", "L,A,A", "L,A,A,X", "L,A,A,X"]
    (broke,) = [event.action for event in result.events if isinstance(event.action, BreakLoop)]
    assert (broke.by, broke.done, broke.iteration) == ("X", True, 1)


def test_children_of_a_parallel_may_hand_over_to_the_same_one():
    x = chat("X", "one", "two")
    a, b = chat("A", go("X", text="a"), handoffs=[x]), chat("B", go("X", text="b"), handoffs=[x])
    result = Runner(Parallel(name="P", sub_agents=[a, b])).query("q").result()
    assert sorted(paths(result)) == ["P,A", "P,A,X", "P,B", "P,B,X"]
    assert sorted(given(x, call)[1].text for call in (0, 1)) == ["a", "b"], "each in its own lane"
    assert [len(given(x, call)) for call in (0, 1)] == [3, 3]


def test_an_exit_of_one_that_took_over_ends_the_workflow():
    x = chat("X", ToolCalls(exit={"final_result": "bye"}), exit_tool=True)
    result = (
        Runner(Sequential(name="S", sub_agents=[chat("A", go("X"), handoffs=[x]), chat("B")]))
        .query("q")
        .result()
    )
    assert (result.final_output, type(result.events[-1].action)) == ("bye", Exit)


def test_an_agent_tool_may_hand_over_inside(lines):
    inner = chat("Inner", go("X"), handoffs=[chat("X", "by x")])
    result = (
        Runner(
            chat(
                "A",
                ToolCalls(Inner={"request": "do"}),
                "done",
                tools=[inner.as_tool(emit_events=True)],
            )
        )
        .query("q")
        .result()
    )
    assert lines(result) == [
        'A [A] assistant "" tc(Inner {"request":"do"})',
        'Inner [A,Inner] assistant "" tc(transfer_to_x {})',
        f'Inner [A,Inner] tool(transfer_to_x) "{over("X")}" {{TransferToAgent X}}',
        'X [A,Inner,X] assistant "by x"',
        'A [A] tool(Inner) "by x"',
        'A [A] assistant "done"',
    ]


def test_a_sub_agent_may_be_handed_over_to_as_it_was_said(asked):
    sub = chat("Sub", "done")
    Runner(chat("A", go("Sub"), sub_agents=[sub], handoffs=[sub])).query("q").result()
    assert asked(given(sub)) == [
        'user "q"',
        'assistant "" tc(transfer_to_sub {})',
        f'tool(transfer_to_sub) "{over("Sub")}"',
    ]


def test_one_that_took_over_may_transfer_to_its_sub_agents_and_they_hand_back():
    x = chat("X", to("Sub"), sub_agents=[chat("Sub", go("A"))])
    a = chat("A", go("X"), "done", handoffs=[x])
    x.sub_agents[0].handoffs = [a]
    result = Runner(a).query("q").result()
    assert paths(result) == ["A", "A,X", "A,X,Sub", "A,X,Sub,A"]


@pytest.mark.parametrize("filtered", [False, True])
def test_a_filter_holds_for_those_too_to_whom_the_next_one_transfers(filtered, asked):
    z = chat("Z", "done")
    y = chat("Y", to("Y2"), sub_agents=[chat("Y2", go("Z"), handoffs=[z])])
    x = chat("X", to("Y"), sub_agents=[y])
    result = (
        Runner(
            chat(
                "A",
                go("X"),
                handoffs=[handoff(x, input_filter=redact("secret") if filtered else None)],
            )
        )
        .query("a secret")
        .result()
    )
    assert paths(result)[-1] == "A,X,Y,Y2,Z"
    begun = [
        f'user "a {"[REDACTED]" if filtered else "secret"}"',
        'assistant "" tc(transfer_to_x {})',
        f'tool(transfer_to_x) "{over("X")}"',
    ]
    told = [
        f"For context: [{one}] called tool: `transfer_to_agent` with arguments: "
        f'{{"agent_name":"{other}"}}.'
        for one, other in ("XY", ("Y", "Y2"))
    ]
    assert asked(given(x)) == begun
    assert asked(given(y))[:4] == [*begun, f'user "{told[0]}"']
    assert asked(given(y.sub_agents[0]))[:6] == [*asked(given(y)), f'user "{told[1]}"']
    assert asked(given(z))[:-2] == asked(given(y.sub_agents[0])), "and with the one after them"


# --- supervisors ---


def test_a_member_that_hands_over_comes_back_when_the_other_has_ended():
    a = chat("A", go("X"), handoffs=[chat("X", "by x")])
    s = chat("S", to("A"), "all done")
    result = Runner(Supervisor(supervisor=s, sub_agents=[a])).query("q").result()
    assert paths(result) == ["S", "S,A", "S,A,X", "S,A", "S,A,S"]
    assert result.final_output == "all done"


def test_members_may_hand_over_to_each_other_and_come_back_once():
    b = chat("B", "by b")
    a = chat("A", go("B"), handoffs=[b])
    s = chat("S", to("A"), "all done", "once too often")
    result = Runner(Supervisor(supervisor=s, sub_agents=[a, b])).query("q").result()
    assert result.final_output == "all done"
    assert paths(result) == ["S", "S,A", "S,A,B", "S,A", "S,A,S"]


def test_a_supervisor_that_hands_over_to_a_member_gets_it_back():
    a = chat("A", "by a")
    s = chat("S", go("A"), "all done", handoffs=[a])
    result = Runner(Supervisor(supervisor=s, sub_agents=[a])).query("q").result()
    assert (result.final_output, paths(result)) == ("all done", ["S", "S,A", "S,A", "S,A,S"])
    assert [message.role for message in given(a)] == ["user", "assistant", "tool"], (
        "what an agent behind another is given, it is given too"
    )


def test_a_supervisor_may_hand_over_to_somebody_outside_and_is_checked():
    s = chat("S", go("X"), handoffs=[chat("X", "by x")])
    result = Runner(Supervisor(supervisor=s, sub_agents=[chat("A")])).query("q").result()
    assert (result.final_output, result.last_agent) == ("by x", "X")


def test_a_supervisor_may_take_over():
    s = chat("S", to("M"), "all done")
    team = Supervisor(supervisor=s, sub_agents=[chat("M", "by m")])
    result = Runner(chat("A", go("S"), handoffs=[team])).query("q").result()
    assert paths(result) == ["A", "A,S", "A,S,M", "A,S,M", "A,S,M,S"]
    assert [message.role for message in given(s, 0)] == ["user", "assistant", "tool"]


def test_what_stands_behind_a_transfer_goes_on_when_the_one_that_took_over_has_ended():
    root = chat(
        "R",
        to("F"),
        "all done",
        sub_agents=[
            DeterministicTransfer(chat("F", go("W"), handoffs=[chat("W", "by w")]), to=["R"])
        ],
    )
    result = Runner(root).query("q").result()
    assert (result.final_output, paths(result)) == (
        "all done",
        ["R", "R,F", "R,F,W", "R,F", "R,F,R"],
    )


# --- filters all the way ---


def test_each_handoff_of_a_chain_may_filter(asked):
    a, b, c = chat("A", go("B", text="a")), chat("B", go("C", text="b")), chat("C", "done")
    a.handoffs, b.handoffs = (
        [handoff(b, input_filter=keep_last(0))],
        [handoff(c, input_filter=keep_last(0))],
    )
    Runner(a).query("q").result()
    assert asked(given(b)) == [
        'assistant "a" tc(transfer_to_b {})',
        f'tool(transfer_to_b) "{over("B")}"',
    ]
    assert asked(given(c)) == [
        'assistant "b" tc(transfer_to_c {})',
        f'tool(transfer_to_c) "{over("C")}"',
    ]


@pytest.mark.parametrize("where", ["agent", "handoff"])
def test_the_conversation_may_be_folded_and_is_folded_once(where):
    on = {"nest_handoff_history": True}
    a, b, c = (
        chat("A", go("B", text="hello\n\nthere"), **on if where == "agent" else {}),
        chat("B", go("C"), **on if where == "agent" else {}),
        chat("C", "done"),
    )
    a.handoffs = [b] if where == "agent" else [handoff(b, **on)]
    b.handoffs = [c] if where == "agent" else [handoff(c, **on)]
    Runner(a).query("q").result()
    (only,) = given(b)
    first = [
        "user: q",
        "assistant: hello",
        "",
        "there",
        "assistant called transfer_to_b: {}",
        f"tool transfer_to_b: {over('B')}",
    ]
    start, end = (
        ["For context, this is the conversation so far:", "<CONVERSATION HISTORY>"],
        ["</CONVERSATION HISTORY>"],
    )
    assert (only.role, only.text.split("\n")) == ("user", [*start, *first, *end])
    (only,) = given(c)
    second = ["assistant called transfer_to_c: {}", f"tool transfer_to_c: {over('C')}"]
    assert only.text.split("\n") == [*start, *first, *second, *end]


def test_the_handoffs_own_word_on_folding_beats_the_agents():
    b = chat("B", "done")
    Runner(
        chat(
            "A",
            go("B"),
            handoffs=[handoff(b, nest_handoff_history=False)],
            nest_handoff_history=True,
        )
    ).query("q").result()
    assert len(given(b)) == 3


# --- streaming ---


@pytest.mark.parametrize("input_filter", [None, keep_last(1)])
def test_in_a_streaming_run_the_one_that_takes_over_streams_too(input_filter):
    a = chat(
        "A",
        go("B", text="wait please"),
        handoffs=[handoff(chat("B", "one two"), input_filter=input_filter)],
    )
    said = [
        (event.agent_name, event.delta.content)
        for event in Runner(a, streaming=True).query("q")
        if event.delta is not None and event.delta.content
    ]
    assert said == [("A", "wait"), ("A", " please"), ("B", "one"), ("B", " two")]
