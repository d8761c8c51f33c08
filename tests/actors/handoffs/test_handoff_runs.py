"""Handoffs in a run, event by event: what comes after what, what is in the way, and what the agent
that takes over is given.
"""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, handoff, tool
from offbook.runtime import (
    AgentHooks,
    Exit,
    HandoffError,
    Message,
    RunHooks,
    Runner,
    RunStatus,
    ScriptedModel,
    ToolCalls,
    ToolError,
)
from tests.doubles.handing import chat, go, over


@tool
async def look(what: str) -> str:
    """Look something up."""
    return f"{what} found"


# --- the plain case ---


def test_a_handoff_is_a_tail_call(lines):
    billing = chat("Billing", "It is paid.", instruction="Know bills.")
    triage = chat(
        "Triage", go("Billing", text="One moment."), instruction="Sort.", handoffs=[billing]
    )
    result = Runner(triage).query("my bill?").result()
    assert lines(result) == [
        'Triage [Triage] assistant "One moment." tc(transfer_to_billing {})',
        f'Triage [Triage] tool(transfer_to_billing) "{over("Billing")}" {{TransferToAgent '
        "Billing}",
        'Billing [Triage,Billing] assistant "It is paid."',
    ]
    assert (result.status, result.final_output, result.last_agent) == (
        RunStatus.COMPLETED,
        "It is paid.",
        "Billing",
    )
    assert len(triage.model.requests) == 1


def test_the_target_is_given_the_conversation_as_it_was_said(asked):
    billing = chat("Billing", "It is paid.", instruction="Know bills.")
    Runner(chat("Triage", go("Billing", text="One moment."), handoffs=[billing])).query(
        "my bill?"
    ).result()
    assert asked(billing.model.requests[0].messages) == [
        'system "Know bills."',
        'user "my bill?"',
        'assistant "One moment." tc(transfer_to_billing {})',
        f'tool(transfer_to_billing) "{over("Billing")}"',
    ]


def test_the_steps_of_a_handoff_are_in_their_order(lines):
    order, met = [], asyncio.Barrier(2)

    @tool
    async def slow() -> str:
        """Take some time."""
        for _ in range(5):
            await asyncio.sleep(0)
        order.append("tool")
        return "done"

    class OfRun(RunHooks):
        async def on_handoff(self, context, from_agent, to_agent):
            await met.wait()  # which nobody passes alone
            order.append(("run hook", from_agent.name, to_agent.name))

        def on_transfer(self, context, from_agent, to_agent):
            order.append(("transfer", from_agent.name, to_agent.name))

    class OfAgent(AgentHooks):
        async def on_handoff(self, context, agent, source):
            await met.wait()
            order.append(("agent hook", agent.name, source.name))

        def on_start(self, context, agent):
            order.append(("start", agent.name))

    def on_handoff(context):
        order.append("on_handoff")

    def input_filter(data):
        order.append("filter")
        return data

    b = ChatModelAgent(
        name="B",
        model=ScriptedModel([lambda request: order.append("asked") or "done"]),
        hooks=OfAgent(),
    )
    a = chat(
        "A",
        ToolCalls(transfer_to_b={}, slow={}),
        tools=[slow],
        handoffs=[handoff(b, on_handoff=on_handoff, input_filter=input_filter)],
        hooks=OfAgent(),
    )

    async def watch():
        async for event in Runner(a, hooks=OfRun()).query("q"):
            if event.action is not None:
                order.append("event")

    asyncio.run(watch())
    order.remove(("start", "A"))
    # The event is recorded before the hooks are called; a consumer may see it any time after that.
    shown_at = order.index("event")
    assert shown_at > order.index("on_handoff")
    order.remove("event")
    hooks = {("run hook", "A", "B"), ("agent hook", "B", "A")}
    assert order[:2] == ["tool", "on_handoff"]
    assert set(order[2:4]) == hooks
    assert order[4:] == ["filter", ("transfer", "A", "B"), ("start", "B"), "asked"]


def test_the_event_is_shown_before_the_hooks_and_the_filter_have_their_turn(run):
    async def story():
        seen, called = asyncio.Event(), []

        class Hooks(RunHooks):
            async def on_handoff(self, context, from_agent, to_agent):
                await seen.wait()
                called.append("hook")

        async def input_filter(data):
            called.append([item.type for item in data.new_items])
            return data

        playing = Runner(
            chat("A", go("B"), handoffs=[handoff(chat("B", "done"), input_filter=input_filter)]),
            hooks=Hooks(),
        ).query("q")
        async for event in playing:
            if event.action is not None:
                seen.set()
        assert called == ["hook", ["handoff_call_item", "handoff_output_item"]]

    run(story())


def test_only_the_source_agents_own_hook_is_called():
    called = []

    class Hooks(AgentHooks):
        def __init__(self, name):
            self.name = name

        def on_handoff(self, context, agent, source):
            called.append((self.name, agent.name, source.name))

    Runner(
        chat("A", go("B"), handoffs=[chat("B", "done", hooks=Hooks("B"))], hooks=Hooks("A"))
    ).query("q").result()
    assert called == [("A", "B", "A")]


@pytest.mark.parametrize("which", ["run", "agent"])
def test_a_hook_that_raises_changes_nothing(which, caplog):
    class OfRun(RunHooks):
        def on_handoff(self, context, from_agent, to_agent):
            raise ValueError("no")

    class OfAgent(AgentHooks):
        async def on_handoff(self, context, agent, source):
            raise ValueError("no")

    a = chat(
        "A", go("B"), handoffs=[chat("B", "done")], hooks=OfAgent() if which == "agent" else None
    )
    assert (
        Runner(a, hooks=OfRun() if which == "run" else None).query("q").result().final_output
        == "done"
    )
    assert "on_handoff raised" in caplog.text


def test_the_context_of_a_callback_is_the_runs():
    seen = []

    def on_handoff(context):
        seen.append(
            (
                context.context,
                context.get("user"),
                context.get("none", 3),
                context.usage.output_tokens,
            )
        )
        context.set("priority", "high")
        context.delete("card")
        context.delete("not there")

    reply = Message.assistant("", go("B").message(iter([1])).tool_calls)
    a = chat("A", reply, handoffs=[handoff(chat("B", "done"), on_handoff=on_handoff)])
    mine = object()
    result = (
        Runner(a).query("q", session_values={"user": "Ann", "card": "4111"}, context=mine).result()
    )
    assert seen == [(mine, "Ann", 3, 0)]
    assert result.session_values == {"user": "Ann", "priority": "high"}


# --- several in one reply ---


@pytest.mark.parametrize(("several", "chosen"), [("first", "B"), ("last", "D")])
def test_of_several_one_is_followed(several, chosen, lines):
    called = []

    def to(name):
        return handoff(chat(name, f"{name} here"), on_handoff=lambda context: called.append(name))

    result = (
        Runner(
            chat(
                "A",
                go("B", "C", "D"),
                handoffs=[to("B"), to("C"), to("D")],
                multiple_handoffs=several,
            )
        )
        .query("q")
        .result()
    )
    assert called == [chosen]
    ignored = [name for name in "BCD" if name != chosen]
    assert lines(result)[1:] == [
        *(
            f'A [A] tool(transfer_to_{name.lower()}) "Multiple handoffs detected, ignoring '
            'this one."'
            for name in ignored
        ),
        f'A [A] tool(transfer_to_{chosen.lower()}) "{over(chosen)}" {{TransferToAgent {chosen}}}',
        f'{chosen} [A,{chosen}] assistant "{chosen} here"',
    ]


def test_several_may_be_an_error():
    result = (
        Runner(chat("A", go("B", "C"), handoffs=[chat("B"), chat("C")], multiple_handoffs="error"))
        .query("q")
        .result()
    )
    assert isinstance(result.error, HandoffError)
    assert (
        str(result.error)
        == "agent 'A': its model hands off 2 times at once: transfer_to_b, transfer_to_c. "
        "Pass multiple_handoffs='first' or 'last' to allow it."
    )
    assert (
        Runner(chat("A", go("B"), handoffs=[chat("B", "done")], multiple_handoffs="error"))
        .query("q")
        .result()
        .final_output
        == "done"
    )


def test_the_same_one_twice_is_followed_once():
    a = chat("A", go("B", "B"), handoffs=[chat("B", "done")])
    result = Runner(a).query("q").result()
    assert result.final_output == "done"
    assert [event.message.text for event in result.events if event.message.role == "tool"] == [
        "Multiple handoffs detected, ignoring this one.",
        over("B"),
    ]


@pytest.mark.parametrize(("first", "last_agent"), [("handoff", "B"), ("transfer", "S")])
def test_beside_a_transfer_the_first_of_them_counts(first, last_agent):
    calls = [("transfer_to_b", {}), ("transfer_to_agent", {"agent_name": "S"})]
    a = chat(
        "A",
        ToolCalls(*(calls if first == "handoff" else calls[::-1])),
        handoffs=[chat("B", "done")],
        sub_agents=[chat("S", "done")],
    )
    result = Runner(a).query("q").result()
    assert (result.last_agent, result.status) == (last_agent, RunStatus.COMPLETED)
    why = (
        "Multiple transfers detected, ignoring this one."
        if first == "handoff"
        else "Multiple handoffs detected, ignoring this one."
    )
    assert sum(event.message.text == why for event in result.events if event.message) == 1


# --- beside other things in the same reply ---


def test_tools_of_the_same_reply_run_first_wherever_they_stand(lines):
    result = (
        Runner(
            chat(
                "A",
                ToolCalls(transfer_to_b={}, look={"what": "x"}),
                tools=[look],
                handoffs=[chat("B", "done")],
            )
        )
        .query("q")
        .result()
    )
    assert lines(result)[1:3] == [
        'A [A] tool(look) "x found"',
        f'A [A] tool(transfer_to_b) "{over("B")}" {{TransferToAgent B}}',
    ]


def test_a_tool_that_fails_is_reported_and_the_handoff_goes_on():
    @tool
    def broken() -> str:
        """Fail."""
        raise ValueError("no")

    assert (
        Runner(
            chat(
                "A",
                ToolCalls(broken={}, transfer_to_b={}),
                tools=[broken],
                handoffs=[chat("B", "done")],
            )
        )
        .query("q")
        .result()
        .final_output
        == "done"
    )
    strict = chat(
        "A",
        ToolCalls(broken={}, transfer_to_b={}),
        tools=[broken],
        handoffs=[chat("B")],
        on_tool_error="raise",
    )
    result = Runner(strict).query("q").result()
    assert isinstance(result.error, ToolError)
    assert result.last_agent == "A"


def test_a_handoff_beats_a_result_that_would_be_the_last():
    a = chat(
        "A",
        ToolCalls(transfer_to_b={}, look={"what": "x"}),
        tools=[look],
        return_directly=["look"],
        handoffs=[chat("B", "done")],
    )
    assert Runner(a).query("q").result().last_agent == "B"


def test_an_exit_beats_a_handoff(lines):
    called = []
    to_b = handoff(chat("B"), on_handoff=called.append)
    result = (
        Runner(
            chat(
                "A",
                ToolCalls(("transfer_to_b", {}), ("exit", {"final_result": "bye"})),
                exit_tool=True,
                handoffs=[to_b],
            )
        )
        .query("q")
        .result()
    )
    assert lines(result)[1:] == [
        'A [A] tool(transfer_to_b) "The run ends here, ignoring this transfer."',
        'A [A] tool(exit) "bye" {Exit}',
    ]
    assert not called
    assert isinstance(result.events[-1].action, Exit)
