"""One round of tool calls: together or one by one, in which order they are shown, and which of them
ends the agent.
"""

import asyncio
import contextvars
import threading

import pytest

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    ImagePart,
    Message,
    Runner,
    ScriptedModel,
    TextPart,
    ToolCall,
    ToolCalls,
    add_session_value,
    current_session,
    get_session_value,
)

VARIABLE = contextvars.ContextVar("VARIABLE", default="nothing")


@tool
def echo(text: str) -> str:
    return text


@tool(return_directly=True)
def direct(text: str) -> str:
    return f"direct {text}"


def results(events):
    return [
        (event.message.tool_name, event.message.text)
        for event in events
        if event.message is not None and event.message.role == "tool"
    ]


def told(model, number=-1):
    """The tool results that a request of the model held."""
    return [message.text for message in model.requests[number].messages if message.role == "tool"]


def play(script, tools, **options):
    model = ScriptedModel(script)
    result = (
        Runner(ChatModelAgent(name="a", model=model, tools=tools, **options)).query("go").result(20)
    )
    return result, model


# --- together, or one by one ---


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_events_come_as_calls_complete_and_the_model_is_shown_them_in_the_order_of_its_calls(
    run, order
):
    async def main():
        gates = [asyncio.Event() for _ in range(3)]
        started = []

        @tool
        async def wait(number: int) -> str:
            started.append(number)
            if len(started) == 3:
                gates[order[0]].set()
            await gates[number].wait()
            return str(number)

        model = ScriptedModel(
            [ToolCalls(*(("wait", {"number": number}) for number in range(3))), "done"]
        )
        seen = []
        async for event in Runner(ChatModelAgent(name="a", model=model, tools=[wait])).query("go"):
            if event.message.role == "tool":
                seen.append(int(event.message.text))
                for number in order[len(seen) : len(seen) + 1]:
                    gates[number].set()
        return started, seen, told(model)

    started, seen, shown = run(main())
    assert started == [0, 1, 2], "all began before any had ended"
    assert seen == list(order)
    assert shown == ["0", "1", "2"]


def test_plain_functions_run_at_the_same_time_in_threads():
    barrier = threading.Barrier(3, timeout=10)

    @tool
    def meet(number: int) -> str:
        barrier.wait()
        return threading.current_thread().name

    result, _ = play(
        [ToolCalls(*(("meet", {"number": number}) for number in range(3))), "done"], [meet]
    )
    names = {text for _, text in results(result.events)}
    assert len(names) == 3
    assert threading.current_thread().name not in names


def test_without_parallel_tool_calls_each_begins_when_the_one_before_has_ended():
    steps = []

    @tool
    async def step(number: int) -> str:
        steps.append(f"begin {number}")
        await asyncio.sleep(0)
        steps.append(f"end {number}")
        return str(number)

    result, model = play(
        [ToolCalls(*(("step", {"number": number}) for number in range(3))), "done"],
        [step],
        parallel_tool_calls=False,
    )
    assert steps == ["begin 0", "end 0", "begin 1", "end 1", "begin 2", "end 2"]
    assert [text for _, text in results(result.events)] == told(model) == ["0", "1", "2"]
    assert model.requests[0].settings.parallel_tool_calls is False


def test_with_parallel_tool_calls_the_provider_decides():
    _, model = play([ToolCalls(echo={"text": "x"}), "done"], [echo])
    assert model.requests[0].settings.parallel_tool_calls is None


# --- tools that return directly ---


@pytest.mark.parametrize(
    "options", [{"tools": [echo], "return_directly": ["echo"]}, {"tools": [direct]}]
)
def test_a_tool_that_returns_directly_ends_the_agent_with_its_result(options):
    name = options["tools"][0].name
    result, model = play([ToolCalls(name, {"text": "x"})], **options)
    assert result.status == "completed"
    assert result.final_message.role == "tool"
    assert (
        result.final_output
        == result.events[-1].message.text
        == {"echo": "x", "direct": "direct x"}[name]
    )
    model.assert_done()


def test_beside_others_it_comes_last_after_all_have_been_made():
    made = []

    @tool
    async def slow(text: str) -> str:
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        made.append(text)
        return text

    result, _ = play(
        [ToolCalls(("direct", {"text": "x"}), ("slow", {"text": "1"}), ("slow", {"text": "2"}))],
        [slow, direct],
    )
    assert made == ["1", "2"]
    assert results(result.events) == [("slow", "1"), ("slow", "2"), ("direct", "direct x")]
    assert result.final_output == "direct x"


@pytest.mark.parametrize("parallel", [True, False])
def test_of_several_the_last_in_the_reply_counts(parallel):
    calls = ToolCalls(
        ("direct", {"text": "1"}),
        ("echo", {"text": "2"}),
        ("other", {"text": "3"}),
        ("echo", {"text": "4"}),
    )

    @tool(return_directly=True)
    async def other(text: str) -> str:
        return f"other {text}"

    result, model = play([calls], [echo, direct, other], parallel_tool_calls=parallel)
    assert sorted(results(result.events)[:-1]) == [
        ("direct", "direct 1"),
        ("echo", "2"),
        ("echo", "4"),
    ]
    assert results(result.events)[-1] == ("other", "other 3")
    assert result.final_output == "other 3"
    assert len(model.requests) == 1


def test_a_reply_that_calls_none_of_them_goes_on():
    result, model = play(
        [ToolCalls(echo={"text": "x"}), ToolCalls(direct={"text": "y"})], [echo, direct]
    )
    assert results(result.events) == [("echo", "x"), ("direct", "direct y")]
    assert len(model.requests) == 2


def test_images_and_files_are_shown_to_the_model_as_they_are():
    image = ImagePart(url="https://example.org/cat.png")

    @tool
    def look() -> list:
        return ["a cat", image]

    result, model = play([ToolCalls(look={}), "nice"], [look])
    assert result.events[1].message.content == (TextPart("a cat"), image)
    assert model.requests[1].messages[-1].content == (TextPart("a cat"), image)


# --- what a tool is given ---


def test_the_context_says_where_the_tool_is_called():
    seen = []

    @tool
    def look(context: ToolContext, number: int) -> str:
        seen.append(context)
        context.session["n"] = number
        return "x"

    result, _ = play(
        [ToolCalls(("look", {"number": 1})), ToolCalls(("look", {"number": 2})), "done"], [look]
    )
    first, second = seen
    assert (first.agent_name, first.run_path, first.tool_name, dict(first.options)) == (
        "a",
        ("a",),
        "look",
        {},
    )
    assert first.run_id == result.events[0].run_id
    assert [context.call_id for context in seen] == [
        event.message.tool_call_id for event in result.events if event.message.role == "tool"
    ]
    assert first.idempotency_key != second.idempotency_key
    assert (first.is_resume, first.is_resume_target, first.interrupt_state) == (False, False, None)
    assert result.session_values == {"n": 2}


def test_each_call_has_an_idempotency_key_of_its_own():
    keys = []

    @tool
    async def pay(context: ToolContext, amount: int) -> str:
        keys.append(context.idempotency_key)
        return "paid"

    calls = tuple(
        ToolCall(call_id, "pay", f'{{"amount":{amount}}}')
        for call_id in ("call_0", "")
        for amount in (1, 2)
    )
    play([Message.assistant("", calls), Message.assistant("", calls), "done"], [pay])
    assert len(set(keys)) == len(keys) == 8


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_session_functions_reach_tools(kind):
    def look() -> str:
        before = get_session_value("given")
        add_session_value("found", get_session_value("nowhere"))
        current_session()["thread"] = threading.current_thread().name
        return repr(before)

    async def look_async() -> str:
        return look()

    model = ScriptedModel([ToolCalls(look={}), "done"])
    made = tool(name="look")(look if kind == "def" else look_async)
    result = (
        Runner(ChatModelAgent(name="a", model=model, tools=[made]))
        .query("go", session_values={"given": 5})
        .result()
    )
    assert results(result.events) == [("look", "(5, True)")]
    assert result.session_values["found"] == (None, False)
    assert ("worker" in result.session_values["thread"]) == (kind == "def")
    assert current_session() == {}


@pytest.mark.parametrize("blocking", [True, False])
def test_context_variables_of_the_caller_reach_a_program_without_a_loop(blocking):
    def look() -> str:
        return VARIABLE.get()

    async def look_async() -> str:
        return VARIABLE.get()

    token = VARIABLE.set("of the caller")
    try:
        result, _ = play(
            [ToolCalls(look={}), "done"], [tool(name="look")(look if blocking else look_async)]
        )
    finally:
        VARIABLE.reset(token)
    assert results(result.events) == [("look", "of the caller")]


def test_context_variables_of_the_caller_reach_plain_tools_in_threads_and_stay_as_they_are(run):
    seen = []

    @tool
    def look() -> str:
        seen.append(VARIABLE.get())
        VARIABLE.set("of the tool")
        return "x"

    async def main():
        VARIABLE.set("of the caller")
        model = ScriptedModel([ToolCalls(("look", {}), ("look", {})), ToolCalls(look={}), "done"])
        await Runner(ChatModelAgent(name="a", model=model, tools=[look])).query("go")
        return VARIABLE.get()

    assert run(main()) == "of the caller"
    assert seen == ["of the caller"] * 3
