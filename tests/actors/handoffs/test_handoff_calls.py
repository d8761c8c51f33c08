"""Handoffs that come back: the agent answers, and its answer is the result of the call."""

import asyncio

import pytest
from pydantic import BaseModel

from offbook.actors import Handoff, handoff, keep_last, tool
from offbook.runtime import (
    HandoffError,
    RunHooks,
    Runner,
    RunStatus,
    ScriptedModel,
    ToolCalls,
    UsageError,
)
from tests.doubles.handing import chat, given, go, ruled, shown
from tests.doubles.snapshots import Snapshots, events_of
from tests.doubles.waiting import Asker, Stage, told


class Reason(BaseModel):
    text: str


def nothing(context, value):
    """Takes an input."""


def call(agent, **options):
    return handoff(agent, mode="call", **options)


def test_control_comes_back_with_the_answer(lines):
    expert = chat("Expert", "It is 42.")
    result = (
        Runner(
            chat("A", go("Expert", text="Let me ask."), "42, they say.", handoffs=[call(expert)])
        )
        .query("q")
        .result()
    )
    assert lines(result) == [
        'A [A] assistant "Let me ask." tc(transfer_to_expert {})',
        'Expert [A,Expert] assistant "It is 42."',
        'A [A] tool(transfer_to_expert) "It is 42."',
        'A [A] assistant "42, they say."',
    ]
    assert result.last_agent == "A"


def test_the_expert_is_given_the_conversation_without_the_call(asked):
    expert = chat("Expert", "one", "two")
    Runner(
        chat("A", go("Expert", text="Let me ask."), go("Expert"), "done", handoffs=[call(expert)])
    ).query("q").result()
    assert asked(given(expert, 0)) == ['user "q"', 'assistant "Let me ask."']
    assert asked(given(expert, 1)) == [
        'user "q"',
        'assistant "Let me ask." tc(transfer_to_expert {})',
        'tool(transfer_to_expert) "one"',
    ]


def test_what_the_expert_is_given_does_not_depend_on_which_tool_was_quicker(run):
    async def story(order):
        first = asyncio.Event()

        @tool
        async def look() -> str:
            """Look."""
            if order == "expert first":
                await first.wait()
            else:
                first.set()
            return "found"

        async def to_expert(context):
            if order == "tool first":
                await first.wait()
                for _ in range(20):
                    await asyncio.sleep(0)
            else:
                first.set()

        expert = chat("Expert", "42")
        await Runner(
            chat(
                "A",
                ToolCalls(look={}, transfer_to_expert={}),
                "done",
                tools=[look],
                handoffs=[call(expert, on_handoff=to_expert)],
            )
        ).query("q")
        return given(expert)

    assert run(story("tool first")) == run(story("expert first"))


def test_several_may_be_called_at_once():
    a = chat("A", go("B", "C"), "done", handoffs=[call(chat("B", "b")), call(chat("C", "c"))])
    assert Runner(a).query("q").result().status is RunStatus.COMPLETED
    assert told(a.model) == [("transfer_to_b", "b"), ("transfer_to_c", "c")]


def test_beside_a_handoff_it_is_a_tool_like_others(lines):
    b = chat("B", "done")
    result = Runner(chat("A", go("B", "C"), handoffs=[b, call(chat("C", "c"))])).query("q").result()
    assert (
        result.last_agent,
        [message.text for message in given(b) if message.role == "tool"],
    ) == ("B", ['{"assistant": "B"}', "c"])


def test_its_input_is_checked_and_given_to_the_callback():
    seen = []
    to_b = call(
        chat("B", "b"),
        on_handoff=lambda context, value: seen.append(value),
        input_type=Reason,
        pass_input=True,
    )
    a = chat("A", go("B", text=""), ToolCalls(transfer_to_b={"text": "x"}), "done", handoffs=[to_b])
    a.model = ScriptedModel(
        [ToolCalls(transfer_to_b={"text": 3}), ToolCalls(transfer_to_b={"text": "x"}), "done"]
    )
    result = Runner(a).query("q").result()
    assert result.final_output == "done"
    assert seen == [Reason(text="x")]
    assert "not valid" in told(a.model)[0][1]
    assert given(to_b.agent)[0].text == '{"text":"x"}'


def test_its_filter_counts():
    b = chat("B", "b")
    Runner(
        chat("A", go("B", text="t"), "done", handoffs=[call(b, input_filter=keep_last(0))])
    ).query("q").result()
    assert [message.text for message in given(b)] == ["t"]


@pytest.mark.parametrize("what", ["callback", "filter raises", "filter forgets"])
@pytest.mark.parametrize("mode", ["call", "transfer"])
def test_what_goes_wrong_in_callback_or_filter_ends_the_run_in_either_mode(mode, what):
    def fail(_):
        raise ValueError("no")

    options = {
        "callback": {"on_handoff": fail},
        "filter raises": {"input_filter": fail},
        "filter forgets": {"input_filter": lambda data: None},
    }[what]
    result = (
        Runner(chat("A", go("B"), "never", handoffs=[handoff(chat("B"), mode=mode, **options)]))
        .query("q")
        .result()
    )
    assert result.status is RunStatus.FAILED
    assert isinstance(
        result.error, UsageError if (mode, what) == ("transfer", "filter forgets") else HandoffError
    )


def test_what_goes_wrong_in_the_expert_is_told_to_the_model():
    a = chat("A", go("B"), "well", handoffs=[call(chat("B", ValueError("no")))])
    assert Runner(a).query("q").result().final_output == "well"
    assert "agent B failed: ValueError: no" in told(a.model)[0][1]


def test_one_that_is_not_enabled_is_unknown():
    a = chat("A", go("B"), "well", handoffs=[call(chat("B"), is_enabled=False)])
    result = Runner(a).query("q").result()
    assert (shown(a), result.events[1].message.text) == (
        [],
        "there is no tool named 'transfer_to_b'. The tools that exist: none at all.",
    )


def test_it_needs_a_target_that_is_always_the_same():
    made = Handoff("ask", "", {}, lambda context, arguments: None, "B", mode="call")
    with pytest.raises(UsageError, match="the handoff ask with mode='call' needs a fixed target"):
        Runner(chat("A", handoffs=[made]))


def test_agents_may_call_each_other_in_circles():
    a, b = chat("A", go("B"), "a inside", "a done"), chat("B", go("A"), "b done")
    a.handoffs, b.handoffs = [call(b)], [call(a)]
    result = Runner(a).query("q").result()
    assert (result.final_output, told(a.model), told(b.model)) == (
        "a done",
        [("transfer_to_b", "b done")],
        [("transfer_to_a", "a inside")],
    )


def test_no_hook_is_told_of_a_handoff_that_comes_back():
    told_of = []

    class Hooks(RunHooks):
        def on_handoff(self, context, from_agent, to_agent):
            told_of.append("handoff")

        def on_tool_start(self, context, agent, tool, call):
            told_of.append(tool.name)

    Runner(chat("A", go("B"), "done", handoffs=[call(chat("B", "b"))]), hooks=Hooks()).query(
        "q"
    ).result()
    assert told_of == ["transfer_to_b"]


# --- interrupts ---


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_an_interrupt_inside_goes_out_and_is_answered_there(durability):
    called, filtered = [], []
    to_b = call(
        Asker("B", "how many?"),
        on_handoff=lambda context: called.append("on_handoff"),
        input_filter=lambda data: filtered.append(1) or data,
    )
    a = chat("A", go("B"), "done", handoffs=[to_b])
    stage = Stage(a, durability=durability)
    first = stage.start()
    assert [context.info for context in first.interrupts] == ["how many?"]
    second = stage.go_on(data=7)
    assert (second.final_output, told(a.model), called) == (
        "done",
        [("transfer_to_b", "B heard 7")],
        ["on_handoff"],
    )


def test_one_inside_may_hand_over_and_be_interrupted_there():
    b = chat("B", go("C"), handoffs=[Asker("C", "how many?")])
    a = chat("A", go("B"), "done", handoffs=[call(b)])
    stage = Stage(a)
    assert stage.start().status is RunStatus.INTERRUPTED
    assert (stage.go_on(data=7).final_output, told(a.model)) == (
        "done",
        [("transfer_to_b", "C heard 7")],
    )


def test_g08_the_callback_of_a_call_is_not_called_again_once_the_one_called_was_cast(run):
    """From what was in the store after each write another runner goes on with the run."""

    async def story():
        def make():
            called = []
            to_b = call(ruled("B", lambda request: "b"), on_handoff=called.append)
            root = ruled(
                "A",
                lambda request: "done" if request.messages[-1].role == "tool" else go("B"),
                handoffs=[to_b],
            )
            return root, called

        store = Snapshots()
        root, called = make()
        assert (
            await Runner(root, store=store, durability="step").query("q")
        ).final_output == "done"
        assert len(called) == 1
        again = []
        for _what, content in store.taken:
            before = [event.agent_name for event in events_of(content)]
            root, called = make()
            for one in await Runner(root, store=Snapshots(content), durability="step").recover():
                result = await one
                assert [*events_of(content), *result.events][-1].message.text == "done"
                again.append((before, len(called)))
        assert ([], 1) in again
        assert (["A"], 1) in again
        assert (["A"], 0) in again, "that it was called is recorded by itself"
        assert {count for before, count in again if "B" in before} == {0}

    run(story())
