"""Tool calls that go wrong: what the model is told, what is shown, and what is kept of the other
calls.
"""

import asyncio
import threading

import pytest

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import AgentEvent, Exit, Runner, ScriptedModel, ToolCalls, ToolError


@tool
def echo(text: str) -> str:
    return text


@tool
async def fail(text: str) -> str:
    raise ValueError(f"no {text},\nnone at all")


@tool
def fail_in_a_thread(text: str) -> str:
    raise ValueError(f"no {text},\nnone at all")


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


UNKNOWN = "there is no tool named 'nothing'. The tools that exist: echo, fail, fail_in_a_thread."
# The call, and what the model is told of it.
WRONG = {
    "it raises": (("fail", {"text": "x"}), "tool fail failed: ValueError: no x, none at all"),
    "it raises in a thread": (
        ("fail_in_a_thread", {"text": "x"}),
        "tool fail_in_a_thread failed: ValueError: no x, none at all",
    ),
    "unknown tool": (("nothing", {"text": "x"}), UNKNOWN),
    "broken JSON": (("echo", '{"text": '), "arguments of echo are not valid"),
    "no JSON": (("echo", "text"), "arguments of echo are not valid"),
    "no object": (("echo", "[1]"), "arguments of echo are not valid"),
    "missing": (("echo", {}), "arguments of echo are not valid"),
    "wrong type": (("echo", {"text": {"a": 1}}), "arguments of echo are not valid"),
    "too much": (("echo", {"text": "x", "more": 1}), "arguments of echo are not valid"),
}


@pytest.mark.parametrize(("call", "text"), WRONG.values(), ids=WRONG)
def test_the_model_is_told_in_one_line_and_an_event_shows_it(call, text):
    result, model = play(
        [ToolCalls(call, ("echo", {"text": "fine"})), "sorry"], [echo, fail, fail_in_a_thread]
    )
    assert result.status == "completed"
    assert result.final_output == "sorry"
    assert sorted(results(result.events)) == sorted(results_told(model))
    told = model.requests[1].messages[2:]
    assert told[0].text.startswith(text)
    assert "\n" not in told[0].text
    assert (told[0].tool_name, told[0].tool_call_id) == (call[0], "call_1")
    assert told[1].text == "fine"


def results_told(model):
    return [
        (message.tool_name, message.text)
        for message in model.requests[-1].messages
        if message.role == "tool"
    ]


@pytest.mark.parametrize(("call", "text"), WRONG.values(), ids=WRONG)
def test_in_raise_mode_it_is_an_error_event_and_the_results_of_the_others_are_kept(call, text):
    result, model = play(
        [ToolCalls(("echo", {"text": "1"}), call, ("echo", {"text": "2"}))],
        [echo, fail, fail_in_a_thread],
        on_tool_error="raise",
    )
    assert result.status == "failed"
    assert sorted(results(result.events)) == [("echo", "1"), ("echo", "2")]
    assert isinstance(result.error, ToolError)
    assert result.events[-1].error is result.error
    assert sum(event.error is not None for event in result.events) == 1
    assert str(result.error).startswith(text)
    assert result.error.agent == "a"
    assert result.error.run == result.events[0].run_id
    assert len(model.requests) == 1
    if call[0].startswith("fail"):
        assert isinstance(result.error.__cause__, ValueError)


def test_in_raise_mode_the_error_comes_after_the_others_have_ended(run):
    async def main():
        failed = asyncio.Event()

        @tool
        async def slow() -> str:
            await failed.wait()
            await asyncio.sleep(0)
            return "slow"

        @tool
        async def break_down() -> str:
            failed.set()
            raise ValueError("x")

        model = ScriptedModel([ToolCalls(("break_down", {}), ("slow", {}))])
        return await Runner(
            ChatModelAgent(name="a", model=model, tools=[slow, break_down], on_tool_error="raise")
        ).query("go")

    result = run(main())
    assert [event.message.text if event.message else "error" for event in result.events] == [
        "",
        "slow",
        "error",
    ]


def test_in_raise_mode_the_others_are_made_even_one_by_one():
    calls = ToolCalls(("fail", {"text": "x"}), ("echo", {"text": "1"}))
    result, _ = play([calls], [echo, fail], on_tool_error="raise", parallel_tool_calls=False)
    assert results(result.events) == [("echo", "1")]
    assert isinstance(result.error, ToolError)


@pytest.mark.parametrize("mode", ["report", "raise"])
def test_unknown_tool_answers_for_tools_that_do_not_exist(mode):
    asked = []

    def by_def(name, arguments):
        asked.append((name, arguments))
        return {"no": name}

    async def by_async_def(name, arguments):
        return by_def(name, arguments)

    for answer in (by_def, by_async_def):
        result, _ = play(
            [ToolCalls(("nothing", '{"x": broken')), "ok"],
            [echo],
            unknown_tool=answer,
            on_tool_error=mode,
        )
        assert results(result.events) == [("nothing", '{"no":"nothing"}')]
        assert result.status == "completed"
    assert asked == [("nothing", '{"x": broken')] * 2


def test_unknown_tool_that_raises_is_as_a_tool_that_does():
    def answer(name, arguments):
        raise LookupError(name)

    result, _ = play([ToolCalls("nothing", {}), "ok"], [], unknown_tool=answer)
    assert results(result.events) == [("nothing", "tool nothing failed: LookupError: nothing")]
    result, _ = play([ToolCalls("nothing", {})], [], unknown_tool=answer, on_tool_error="raise")
    assert isinstance(result.error, ToolError)


def test_an_agent_without_tools_says_that_there_are_none():
    result, _ = play([ToolCalls("nothing", {}), "ok"], [])
    assert results(result.events) == [
        ("nothing", "there is no tool named 'nothing'. The tools that exist: none at all.")
    ]


@pytest.mark.parametrize("mode", ["report", "raise"])
def test_what_cannot_be_shown_to_a_model_is_an_error_of_the_tool(mode):
    @tool
    def bad() -> object:
        return object()

    result, _ = play([ToolCalls(bad={}), "ok"], [bad], on_tool_error=mode)
    text = results(result.events)[0][1] if mode == "report" else str(result.error)
    assert "JSON cannot represent" in text
    assert "\n" not in text
    assert result.status == ("completed" if mode == "report" else "failed")
    if mode == "raise":
        assert isinstance(result.error, ToolError)


# --- what ordinary code raises by accident ---


ACCIDENTS = (
    StopIteration,
    StopAsyncIteration,
    asyncio.CancelledError,
    TimeoutError,
    ExceptionGroup("x", [ValueError()]),
)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        pytest.param(kind, error, id=f"{kind} {getattr(error, '__name__', 'group')}")
        for kind in ("async def", "def")
        for error in ACCIDENTS
    ],
)
def test_whatever_a_tool_raises_is_reported_and_the_run_goes_on(kind, error):
    def bad() -> str:
        raise error

    async def bad_async() -> str:
        raise error

    model = ScriptedModel([ToolCalls(("bad", {}), ("echo", {"text": "x"})), "ok"])
    agent = ChatModelAgent(
        name="a", model=model, tools=[tool(name="bad")(bad if kind == "def" else bad_async), echo]
    )
    result = Runner(agent).query("go", timeout=1).result(20)
    assert result.status == "completed", repr(result.error)
    assert [name for name, _ in results_told(model)] == ["bad", "echo"]


def test_an_error_that_cannot_say_what_it_is_is_reported_all_the_same():
    class Wordless(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    @tool
    async def bad() -> str:
        raise Wordless

    result, model = play([ToolCalls(("bad", {}), ("echo", {"text": "x"})), "ok"], [bad, echo])
    assert result.status == "completed"
    assert [name for name, _ in results_told(model)] == ["bad", "echo"]
    assert "Wordless" in results_told(model)[0][1]


# --- timeouts and retries ---


@pytest.mark.parametrize("mode", ["report", "raise"])
def test_an_async_tool_that_takes_too_long_is_ended(run, mode):
    ended = []

    @tool(timeout=0.02)
    async def slow() -> str:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            ended.append("really")
        return "x"

    result, _ = play(
        [ToolCalls(("slow", {}), ("echo", {"text": "x"})), "ok"], [slow, echo], on_tool_error=mode
    )
    assert ended == ["really"]
    text = "tool slow took longer than its timeout of 0.02 s, and was cancelled"
    if mode == "report":
        assert ("slow", text) in results(result.events)
        assert result.status == "completed"
    else:
        assert isinstance(result.error, ToolError)
        assert str(result.error) == text
        assert isinstance(result.error.__cause__, TimeoutError)
    assert ("echo", "x") in results(result.events)


def test_a_plain_tool_that_takes_too_long_is_not_waited_for():
    go_on = threading.Event()
    ended = threading.Event()

    @tool(timeout=0.02)
    def slow() -> str:
        go_on.wait(20)
        ended.set()
        return "x"

    try:
        result, model = play([ToolCalls(slow={}), "ok"], [slow])
        assert not ended.is_set()
        told = (
            "tool slow timed out after 0.02 s. Its thread cannot be stopped: it may still be "
            "running, or may have completed. Check its effect before you call it again"
        )
        assert results_told(model) == [("slow", told)]
        assert result.status == "completed"
    finally:
        go_on.set()
    assert ended.wait(20)


def test_a_timeout_that_the_tool_raises_itself_is_its_own_error():
    @tool(timeout=20)
    async def impatient() -> str:
        raise TimeoutError("mine")

    _, model = play([ToolCalls(impatient={}), "ok"], [impatient])
    assert results_told(model) == [("impatient", "tool impatient failed: TimeoutError: mine")]


@pytest.mark.parametrize(("fails", "told"), [(2, "3"), (3, "tool flaky failed: ValueError: 3")])
@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_tool_is_tried_again_as_often_as_it_may(fails, told, kind):
    tries = []

    def flaky() -> int:
        tries.append(1)
        if len(tries) <= fails:
            raise ValueError(len(tries))
        return len(tries)

    async def flaky_async() -> int:
        return flaky()

    _, model = play(
        [ToolCalls(flaky={}), "ok"],
        [tool(name="flaky", retries=2)(flaky if kind == "def" else flaky_async)],
    )
    assert results_told(model) == [("flaky", told)]
    assert len(tries) == 3


def test_each_attempt_has_the_whole_timeout_and_invalid_arguments_are_not_tried_again():
    tries = []

    @tool(timeout=0.02, retries=1)
    async def flaky(number: int) -> str:
        tries.append(number)
        if len(tries) == 1:
            await asyncio.get_running_loop().create_future()
        return "second"

    _, model = play(
        [ToolCalls(("flaky", {"number": 1}), ("flaky", {"number": "x"})), "ok"], [flaky]
    )
    assert [text.split(":")[0] for _, text in results_told(model)] == [
        "second",
        "arguments of flaky are not valid",
    ]
    assert tries == [1, 1]


def test_an_interrupt_is_not_tried_again():
    tries = []

    @tool(retries=3, timeout=20)
    async def ask(context: ToolContext) -> str:
        tries.append(1)
        return context.interrupt("?")

    result, _ = play([ToolCalls(ask={})], [ask])
    assert result.status == "interrupted"
    assert tries == [1]


# --- beside actions, and tools that end the agent ---


def test_a_call_that_failed_takes_no_action():
    @tool
    async def half(context: ToolContext) -> str:
        context.send_action(Exit())
        raise ValueError("not done after all")

    result, model = play([ToolCalls(half={}), "told"], [half])
    assert result.final_output == "told"
    assert len(model.requests) == 2


def test_an_action_of_an_attempt_that_failed_is_not_taken():
    tries = []

    @tool(retries=1)
    async def half(context: ToolContext) -> str:
        tries.append(1)
        if len(tries) == 1:
            context.send_action(Exit())
            raise ValueError("try again")
        return "fine"

    result, _ = play([ToolCalls(half={}), "told"], [half])
    assert result.final_output == "told"


def test_a_transfer_with_arguments_that_are_not_valid_is_told_to_the_model():
    other = ChatModelAgent(name="b", model=ScriptedModel(["hi"]))
    model = ScriptedModel(
        [
            ToolCalls("transfer_to_agent", {"name": "b"}),
            ToolCalls("transfer_to_agent", {"agent_name": "b"}),
        ]
    )
    result = (
        Runner(ChatModelAgent(name="a", model=model, sub_agents=[other])).query("go").result(20)
    )
    assert result.final_output == "hi"
    assert result.last_agent == "b"


def test_an_exit_with_arguments_that_are_not_valid_is_told_to_the_model():
    model = ScriptedModel(
        [ToolCalls("exit", {"result": "x"}), ToolCalls("exit", {"final_result": "x"})]
    )
    result = Runner(ChatModelAgent(name="a", model=model, exit_tool=True)).query("go").result(20)
    assert result.final_output == "x"
    assert result.events[-1].action == Exit()


@pytest.mark.parametrize("mode", ["report", "raise"])
def test_what_a_tool_has_emitted_before_it_failed_is_shown(mode):
    @tool
    def work(context: ToolContext) -> str:
        context.emit(AgentEvent.of(custom_output="progress"))
        raise ValueError("x")

    result, _ = play([ToolCalls(work={}), "ok"], [work], on_tool_error=mode)
    assert result.events[1].custom_output == "progress"


def test_of_a_group_of_exceptions_the_model_is_told_each():
    @tool
    async def both() -> str:
        raise ExceptionGroup(
            "unhandled errors in a TaskGroup",
            [ValueError("no city"), ExceptionGroup("inner", [KeyError("day")])],
        )

    result, _ = play([ToolCalls(both={}), "done"], [both])
    ((_, text),) = results(result.events)
    assert "ValueError: no city" in text
    assert "KeyError: 'day'" in text


def test_a_text_of_an_error_without_end_is_cut_and_says_so():
    @tool
    async def shout() -> str:
        raise ValueError("x" * 5_000_000)

    result, _ = play([ToolCalls(shout={}), "done"], [shout])
    ((_, text),) = results(result.events)
    assert len(text) < 11_000
    assert "more characters" in text
