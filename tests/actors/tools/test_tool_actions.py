"""What a tool does beside its result: an action on its own event, and events that it emits."""

import asyncio
import threading

import pytest

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    AgentEvent,
    BreakLoop,
    CustomAction,
    Exit,
    Interrupted,
    MessageDelta,
    Runner,
    ScriptedModel,
    ToolCalls,
    TransferToAgent,
    UsageError,
)


@tool
def echo(text: str) -> str:
    return text


def results(events):
    return [
        (event.message.tool_name, event.message.text)
        for event in events
        if event.message is not None and event.message.role == "tool"
    ]


def play(script, tools, **options):
    model = ScriptedModel(script)
    result = (
        Runner(ChatModelAgent(name="a", model=model, tools=tools, **options)).query("go").result(20)
    )
    return result, model


def test_two_concurrent_calls_of_one_tool_each_keep_their_own_action(run):
    async def main():
        both = asyncio.Barrier(2)

        @tool
        async def mark(context: ToolContext, value: int) -> str:
            await both.wait()
            context.send_action(CustomAction(value))
            await both.wait()
            return str(value)

        model = ScriptedModel(
            [
                ToolCalls(("mark", {"value": 1}), ("mark", {"value": 2}), ("echo", {"text": "3"})),
                "done",
            ]
        )
        return await Runner(ChatModelAgent(name="a", model=model, tools=[mark, echo])).query("go")

    shown = {
        event.message.text: event.action
        for event in run(main()).events
        if event.message.role == "tool"
    }
    assert shown == {"1": CustomAction(1), "2": CustomAction(2), "3": None}


def test_the_last_action_of_a_call_counts_and_one_of_a_thread_too():
    @tool
    def mark(context: ToolContext) -> str:
        context.send_action(CustomAction(1))
        context.send_action(CustomAction(2))
        return "x"

    result, _ = play([ToolCalls(mark={}), "done"], [mark])
    assert result.events[1].action == CustomAction(2)


def test_an_exit_that_a_tool_sends_ends_the_run():
    @tool
    async def stop(context: ToolContext) -> str:
        context.send_action(Exit())
        return "enough"

    result, model = play([ToolCalls(stop={})], [stop])
    assert (result.status, result.final_output, result.events[-1].action) == (
        "completed",
        "enough",
        Exit(),
    )
    assert len(model.requests) == 1


def test_breaking_a_loop_where_there_is_none_does_nothing():
    @tool
    async def leave(context: ToolContext) -> str:
        context.send_action(BreakLoop())
        return "x"

    result, _ = play([ToolCalls(leave={}), "done"], [leave])
    assert result.events[1].action == BreakLoop(by="a", done=False)
    assert result.final_output == "done"


@pytest.mark.parametrize(
    "action",
    [Exit(), TransferToAgent("b"), BreakLoop(), Interrupted()],
    ids=["Exit", "TransferToAgent", "BreakLoop", "Interrupted"],
)
def test_an_emitted_event_cannot_steer_the_agent(action):
    @tool
    def work(context: ToolContext) -> str:
        with pytest.raises(UsageError, match="emit"):
            context.emit(AgentEvent.of(action=action))
        return "refused"

    result, _ = play([ToolCalls(work={}), "ok"], [work])
    assert result.final_output == "ok"
    assert results(result.events) == [("work", "refused")]


def test_a_tool_interrupts_by_its_context_not_by_an_action():
    @tool
    def work(context: ToolContext) -> str:
        with pytest.raises(UsageError, match="interrupt"):
            context.send_action(Interrupted())
        return "refused"

    result, _ = play([ToolCalls(work={}), "ok"], [work])
    assert result.status == "completed"


@pytest.mark.parametrize("wrong", [None, "exit", Exit, 5])
def test_what_is_no_action_is_refused(wrong):
    problems = []

    @tool
    def mark(context: ToolContext) -> str:
        with pytest.raises(UsageError, match="send_action") as problem:
            context.send_action(wrong)
        problems.append(problem.value)
        return "x"

    play([ToolCalls(mark={}), "done"], [mark])
    assert len(problems) == 1


# --- events of a tool's own ---


def test_emitted_events_come_before_the_result_of_their_call_and_are_not_told_to_the_model():
    @tool
    def work(context: ToolContext) -> str:
        for number in range(3):
            context.emit(AgentEvent.of(custom_output=number))
        context.emit(AgentEvent(delta=MessageDelta("half")))
        context.emit(AgentEvent.of(action=CustomAction("x")))
        return "done"

    model = ScriptedModel([ToolCalls(work={}), "ok"])
    events = list(Runner(ChatModelAgent(name="a", model=model, tools=[work])).query("go"))
    kinds = [
        event.custom_output
        if event.delta is None and event.message is None and event.action is None
        else event.delta or event.action or event.message.role
        for event in events
    ]
    assert kinds == [
        "assistant",
        0,
        1,
        2,
        MessageDelta("half"),
        CustomAction("x"),
        "tool",
        "assistant",
    ]
    assert {(event.agent_name, event.run_path) for event in events} == {("a", ("a",))}
    assert [event.seq for event in events] == list(range(1, 9))
    assert [message.role for message in model.requests[1].messages] == ["user", "assistant", "tool"]


@pytest.mark.parametrize(
    "wrong",
    [None, "text", AgentEvent.say("hi"), AgentEvent(error=ValueError())],
    ids=["None", "text", "message", "error"],
)
def test_events_that_are_the_agents_to_make_are_refused(wrong):
    @tool
    def work(context: ToolContext) -> str:
        with pytest.raises(UsageError, match="emit"):
            context.emit(wrong)
        return "refused"

    result, _ = play([ToolCalls(work={}), "ok"], [work])
    assert results(result.events) == [("work", "refused")]


def collect(kind, count, **options):
    """The events of a run whose tool emits that many and returns at once."""

    def work(context: ToolContext) -> str:
        for number in range(count):
            context.emit(AgentEvent.of(custom_output=number))
        return "done"

    async def work_async(context: ToolContext) -> str:
        return work(context)

    model = ScriptedModel([ToolCalls(("work", {}), ("echo", {"text": "x"})), "ok"])
    agent = ChatModelAgent(
        name="a",
        model=model,
        tools=[echo, tool(name="work")(work if kind == "def" else work_async)],
    )
    return Runner(agent, **options).query("go")


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_none_of_them_is_lost_however_small_the_room_and_each_comes_before_the_result(kind):
    count = 3_000 if kind == "def" else 500
    events = list(collect(kind, count, event_buffer=2))
    assert [event.custom_output for event in events if event.custom_output is not None] == list(
        range(count)
    )
    last = max(index for index, event in enumerate(events) if event.custom_output is not None)
    result = next(
        index
        for index, event in enumerate(events)
        if event.message is not None and event.message.text == "done"
    )
    assert last < result
    assert events[-1].message.text == "ok"


def test_one_that_emits_when_nobody_looks_on_comes_to_its_end():
    result = collect("def", 3_000, event_buffer=2).result(20)
    assert result.status == "completed"


def test_a_thread_that_emits_to_a_consumer_who_has_gone_away_ends(run):
    ended, give_up = threading.Event(), threading.Event()

    @tool
    def work(context: ToolContext) -> str:
        for number in range(10_000):
            if give_up.is_set():
                break
            context.emit(AgentEvent.of(custom_output=number))
        ended.set()
        return "done"

    async def main():
        handle = Runner(
            ChatModelAgent(name="a", model=ScriptedModel([ToolCalls(work={})]), tools=[work]),
            event_buffer=2,
        ).query("go")
        async for event in handle:
            if event.custom_output is not None:
                break
        return await handle

    assert run(main()).status == "cancelled"
    try:
        assert ended.wait(3)
    finally:
        give_up.set()
        ended.wait(20)


def test_they_are_shown_while_the_tool_is_at_work(run):
    async def main():
        seen = asyncio.Event()

        @tool
        async def work(context: ToolContext) -> str:
            context.emit(AgentEvent.of(custom_output="begun"))
            await seen.wait()
            return "done"

        texts = []
        async for event in Runner(
            ChatModelAgent(name="a", model=ScriptedModel([ToolCalls(work={}), "ok"]), tools=[work])
        ).query("go"):
            texts.append(event.custom_output or event.message.text)
            if event.custom_output == "begun":
                seen.set()
        return texts

    assert run(main()) == ["", "begun", "done", "ok"]
