"""Handoffs in runs that are kept: interrupted before and behind one, cancelled in between, and gone
on with after a crash at each recorded step.
"""

import asyncio

import pytest
from pydantic import BaseModel

from offbook.actors import (
    Handoff,
    Parallel,
    Sequential,
    Supervisor,
    handoff,
    keep_last,
    redact,
    tool,
)
from offbook.runtime import (
    CheckpointError,
    HandoffError,
    MemoryStore,
    RunCancelled,
    RunHooks,
    Runner,
    RunStatus,
    ToolCalls,
)
from tests.doubles.handing import chat, given, go, over, ruled
from tests.doubles.snapshots import Snapshots, events_of
from tests.doubles.waiting import Asker, Stage, is_whole, path, to

KEPT = pytest.mark.parametrize("durability", ["interrupt", "step"])


@tool(needs_approval=True)
async def pay(euros: int) -> str:
    """Pay."""
    return f"{euros} paid"


class Reason(BaseModel):
    text: str


# --- interrupted ---


@KEPT
def test_an_approval_of_the_same_reply_comes_first_and_the_handoff_after_it(durability, lines):
    called = []
    b = chat("B", "done")
    to_b = handoff(
        b, on_handoff=lambda context, value: called.append(value.text), input_type=Reason
    )
    a = chat(
        "A",
        ToolCalls(transfer_to_b={"text": "x"}, pay={"euros": 3}, transfer_to_c={}),
        tools=[pay],
        handoffs=[to_b, chat("C")],
    )
    stage = Stage(a, durability=durability)
    first = stage.start()
    assert lines(first)[-1] == "A [A] {Interrupted 1}"
    assert called == []
    second = stage.go_on(data=True)
    assert lines(second) == [
        'A [A] tool(pay) "3 paid"',
        f'A [A] tool(transfer_to_b) "{over("B")}" {{TransferToAgent B}}',
        'B [A,B] assistant "done"',
    ]
    assert called == ["x"]
    assert len(a.model.requests) == 1
    assert is_whole(given(b))


@KEPT
def test_a_denied_call_is_an_answer_and_the_handoff_follows(durability):
    stage = Stage(
        chat(
            "A",
            ToolCalls(pay={"euros": 3}, transfer_to_b={}),
            tools=[pay],
            handoffs=[chat("B", "done")],
        ),
        durability=durability,
    )
    stage.start()
    assert stage.go_on(data=False).last_agent == "B"


@KEPT
def test_one_that_took_over_may_be_interrupted_and_goes_on_with_what_it_was_given(
    durability, asked
):
    b = chat("B", ToolCalls(pay={"euros": 3}), go("C"), tools=[pay])
    c = chat("C", "done")
    b.handoffs = [c]
    filtered = []

    def input_filter(data):
        filtered.append(1)
        return keep_last(0)(data)

    a = chat("A", go("B"), handoffs=[handoff(b, input_filter=input_filter)])
    stage = Stage(a, durability=durability)
    first = stage.start()
    (context,) = first.interrupts
    assert path(context) == "agent:A/agent:B/tool:pay"
    before = asked(given(b))
    second = stage.go_on(data=True)
    assert (second.final_output, filtered) == ("done", [1])
    assert asked(given(b))[: len(before)] == before
    assert asked(given(c))[: len(before)] == before
    assert len(given(c)) == len(before) + 4


@KEPT
def test_without_a_filter_it_goes_on_with_the_whole_conversation(durability):
    later = []
    b = chat("B", ToolCalls(pay={"euros": 3}), go("A"), tools=[pay], handoffs=later)
    a = chat("A", go("B"), "done", handoffs=[b])
    later.append(a)
    stage = Stage(a, durability=durability)
    stage.start()
    assert stage.go_on(data=True).final_output == "done"
    assert [message.role for message in given(a)] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]


@KEPT
@pytest.mark.parametrize("around", ["sequence", "parallel", "supervisor", "agent tool"])
def test_one_that_took_over_somewhere_below_is_found_again(durability, around):
    x = Asker("X")
    a = chat("A", go("X"), handoffs=[x])
    root, last = {
        "sequence": lambda: (Sequential(name="S", sub_agents=[a, chat("B", "b")]), "b"),
        "parallel": lambda: (Parallel(name="P", sub_agents=[a, chat("B", "b")]), "X heard 7"),
        "supervisor": lambda: (
            Supervisor(supervisor=chat("S", to("A"), "all done"), sub_agents=[a]),
            "all done",
        ),
        "agent tool": lambda: (
            chat("R", ToolCalls(A={"request": "do"}), "all done", tools=[a.as_tool()]),
            "all done",
        ),
    }[around]()
    stage = Stage(root, durability=durability)
    first = stage.start()
    assert [context.info for context in first.interrupts] == ["X?"]
    second = stage.go_on(data=7)
    assert (second.status, second.final_output) == (RunStatus.COMPLETED, last)
    assert any(
        event.message is not None and event.message.text == "X heard 7" for event in second.events
    )


@KEPT
def test_the_steps_of_a_workflow_that_took_over_go_on_with_what_it_was_given(durability, asked):
    z = chat("Z", "done")
    steps = Sequential(name="S", sub_agents=[Asker("X"), z])
    stage = Stage(
        chat("A", go("S"), handoffs=[handoff(steps, input_filter=redact("secret"))]),
        durability=durability,
    )
    stage.start("a secret")
    stage.go_on(data=7)
    assert asked(given(z))[0] == 'user "a [REDACTED]"'
    assert asked(given(z))[3:] == ['user "For context: [X] said: X heard 7."']


@KEPT
def test_one_who_was_transferred_to_behind_a_filter_goes_on_behind_it(durability, asked):
    y = chat("Y", ToolCalls(pay={"euros": 3}), "done", tools=[pay])
    x = chat("X", to("Y"), sub_agents=[y])
    stage = Stage(
        chat("A", go("X"), handoffs=[handoff(x, input_filter=redact("secret"))]),
        durability=durability,
    )
    stage.start("a secret")
    before = asked(given(y))
    assert before[0] == 'user "a [REDACTED]"'
    assert stage.go_on(data=True).final_output == "done"
    assert asked(given(y))[: len(before)] == before


@KEPT
def test_a_supervisor_that_hands_over_is_found_again(durability):
    team = Supervisor(supervisor=chat("S", go("X"), handoffs=[Asker("X")]), sub_agents=[chat("A")])
    stage = Stage(team, durability=durability)
    stage.start()
    assert stage.go_on(data=7).final_output == "X heard 7"


# --- an agent that is gone ---


def story_of(around, root, x):
    if around == "root":
        return root(x)
    return Sequential(name="S", sub_agents=[root(x), chat("B", "b")])


@pytest.mark.parametrize("around", ["root", "sequence"])
def test_one_that_took_over_and_is_gone_is_an_error_before_anything_has_run(around):
    def root(x):
        return chat("A", go("X"), handoffs=[x])

    store = MemoryStore()
    stage = Stage(story_of(around, root, Asker("X")), store=store)
    stage.start()
    other = chat("B", "b")
    changed = chat("A", "never", handoffs=[chat("Y")])
    runner = Runner(
        changed if around == "root" else Sequential(name="S", sub_agents=[changed, other]),
        store=store,
    )
    with pytest.raises(CheckpointError, match="there is no longer an agent X"):
        runner.resume(stage.id, data=7).result()
    assert changed.model.requests == other.model.requests == []
    assert stage.go_on(data=7).status is RunStatus.COMPLETED, "nothing was answered"


def test_one_that_was_chosen_by_hand_is_not_found_again_and_says_so():
    x = Asker("X")
    stage = Stage(
        chat(
            "A",
            go("x"),
            handoffs=[Handoff("transfer_to_x", "", {}, lambda context, arguments: x, "X")],
        )
    )
    stage.start()
    with pytest.raises(CheckpointError, match="there is no longer an agent X"):
        stage.go_on(data=7)


def test_with_the_agent_given_it_is():
    x = Asker("X")
    stage = Stage(
        chat(
            "A",
            go("x"),
            handoffs=[Handoff("transfer_to_x", "", {}, lambda context, arguments: x, "X", agent=x)],
        )
    )
    stage.start()
    assert stage.go_on(data=7).final_output == "X heard 7"


# --- cancelled in between ---


def cancelled_at_the_handoff(run, make, durability, mode):
    """The result of a run that was cancelled in a hook of the handoff, which stands between its
    event and the target's start; and its Runner.
    """

    async def story():
        class Hooks(RunHooks):
            async def on_handoff(self, context, from_agent, to_agent):
                playing.cancel(mode)
                if mode == "immediate":
                    await asyncio.Event().wait()

        store = MemoryStore()
        playing = Runner(make(), store=store, durability=durability, hooks=Hooks()).query("q")
        result = await playing
        assert isinstance(result.error, RunCancelled)
        resumed = await Runner(make(), store=store, durability=durability).resume(
            playing.checkpoint_id
        )
        return result, resumed

    return run(story())


@KEPT
@pytest.mark.parametrize("mode", ["immediate", "after_model", "after_tools"])
@pytest.mark.parametrize("filters", [None, keep_last(0)])
def test_cancelled_between_its_event_and_the_targets_start_it_goes_on_there(
    run, durability, mode, filters, lines, asked
):
    called, made = [], []

    def make():
        b = ruled("B", lambda request: "done")
        made.append(b)
        return ruled(
            "A",
            lambda request: go("B", text="x"),
            handoffs=[handoff(b, on_handoff=called.append, input_filter=filters)],
        )

    first, second = cancelled_at_the_handoff(run, make, durability, mode)
    assert lines(first)[1] == f'A [A] tool(transfer_to_b) "{over("B")}" {{TransferToAgent B}}'
    assert lines(second) == ['B [A,B] assistant "done"']
    assert len(called) == 1
    assert made[0].model.requests == []
    whole = ['user "q"', 'assistant "x" tc(transfer_to_b {})', f'tool(transfer_to_b) "{over("B")}"']
    assert asked(given(made[1])) == whole[0 if filters is None else 1 :]


@KEPT
def test_a_transfer_to_a_sub_agent_goes_on_too_where_there_are_handoffs(run, durability):
    def make():
        return ruled(
            "A",
            lambda request: to("Sub"),
            sub_agents=[ruled("Sub", lambda request: "done")],
            handoffs=[ruled("B", lambda request: "never")],
        )

    async def story():
        class Hooks(RunHooks):
            def on_agent_end(self, context, agent, outcome):
                playing.cancel("after_tools")

        store = MemoryStore()
        playing = Runner(make(), store=store, durability=durability, hooks=Hooks()).query("q")
        assert (await playing).status is RunStatus.CANCELLED
        return await Runner(make(), store=store, durability=durability).resume(
            playing.checkpoint_id
        )

    result = run(story())
    assert (result.last_agent, len(result.events)) == ("Sub", 1)


@KEPT
def test_cancelled_in_its_callback_it_is_made_again(run, durability):
    async def story():
        called, gate = [], asyncio.Event()

        async def on_handoff(context):
            called.append(context.run_id)
            if len(called) == 1:
                playing.cancel()
                await gate.wait()

        def make():
            return ruled(
                "A",
                lambda request: go("B"),
                handoffs=[handoff(ruled("B", lambda request: "done"), on_handoff=on_handoff)],
            )

        store = MemoryStore()
        playing = Runner(make(), store=store, durability=durability).query("q")
        result = await playing
        assert (result.status, len(result.events)) == (RunStatus.CANCELLED, 2)
        resumed = await Runner(make(), store=store, durability=durability).resume(
            playing.checkpoint_id
        )
        assert (resumed.final_output, len(called)) == ("done", 2)

    run(story())


def test_one_whose_target_cannot_be_found_again_says_so(run):
    def make():
        b = ruled("B", lambda request: "done")
        return ruled(
            "A",
            lambda request: go("b"),
            handoffs=[Handoff("transfer_to_b", "", {}, lambda context, arguments: b, "B")],
        )

    _, second = cancelled_at_the_handoff(run, make, "interrupt", "immediate")
    assert isinstance(second.error, HandoffError)
    assert "Pass agent= to the Handoff" in str(second.error)


@KEPT
def test_a_step_of_a_sequence_that_was_about_to_hand_over_does_so(run, durability):
    def make():
        inner = ruled("A", lambda request: go("B"), handoffs=[ruled("B", lambda request: "done")])
        return Sequential(name="S", sub_agents=[inner, ruled("C", lambda request: "the end")])

    _, second = cancelled_at_the_handoff(run, make, durability, "immediate")
    assert [event.agent_name for event in second.events] == ["B", "C"]


# --- after a crash ---


def test_g08_from_every_write_a_run_with_handoffs_goes_on_to_the_same_end(run):
    """Of what stands in the store after each write: the callback is not called again once its event
    is there, and what agents are given is the same.
    """

    @tool
    async def look(what: str) -> str:
        """Look."""
        return f"{what} found"

    def make():
        called = []
        later = []

        def a_says(request):
            return (
                "done"
                if any(message.tool_name == "transfer_to_a" for message in request.messages)
                else ToolCalls(look={"what": "x"}, transfer_to_b={"text": "y"})
            )

        b = ruled("B", lambda request: go("A"), handoffs=later)
        to_b = handoff(
            b,
            on_handoff=lambda context, value: called.append("B"),
            input_type=Reason,
            input_filter=keep_last(1),
        )
        a = ruled("A", a_says, tools=[look], handoffs=[to_b])
        later.append(handoff(a, on_handoff=lambda context: called.append("A")))
        return a, called

    async def story():
        store = Snapshots()
        root, called = make()
        first = await Runner(root, store=store, durability="step").query("q")
        assert (first.final_output, called) == ("done", ["B", "A"])
        went_on = set()
        for _what, content in store.taken:
            before = events_of(content)
            handed = [event.action.agent_name for event in before if event.action is not None]
            root, called = make()
            for one in await Runner(root, store=Snapshots(content), durability="step").recover():
                result = await one
                assert result.status is RunStatus.COMPLETED
                assert [event.message for event in (*before, *result.events)] == [
                    event.message for event in first.events
                ]
                assert [event.run_path for event in (*before, *result.events)] == [
                    event.run_path for event in first.events
                ]
                assert called == ["B", "A"][len(handed) :]
                went_on.add(len(before))
        # The last answer and the end of the run are one write.
        assert went_on == set(range(len(first.events)))

    run(story())
