"""Tools that wait for something from outside: their run ends as interrupted, and says what each of
them waits for.
"""

import pytest

from offbook.actors import ApprovalRequest, ChatModelAgent, ToolContext, tool
from offbook.runtime import AgentEvent, Message, Runner, ScriptedModel, ToolCalls


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


def play(script, tools, **options):
    model = ScriptedModel(script)
    result = (
        Runner(ChatModelAgent(name="a", model=model, tools=tools, **options)).query("go").result(20)
    )
    return result, model


@tool(needs_approval=True)
def pay(amount: int) -> str:
    raise AssertionError("was not approved")


@tool
async def ask(context: ToolContext, question: str) -> str:
    return context.interrupt({"question": question}, state=1)


@tool
def ask_in_a_thread(context: ToolContext, question: str) -> str:
    return context.interrupt({"question": question})


@pytest.mark.parametrize("name", ["ask", "ask_in_a_thread"])
def test_a_tool_that_interrupts_ends_the_run_and_the_results_of_the_others_are_kept(name):
    calls = ToolCalls(("echo", {"text": "1"}), (name, {"question": "?"}), ("echo", {"text": "2"}))
    result, model = play([calls], [echo, ask, ask_in_a_thread])
    assert result.status == "interrupted"
    assert result.error is None
    assert sorted(results(result.events)) == [("echo", "1"), ("echo", "2")]
    (context,) = result.interrupts
    assert context.info == {"question": "?"}
    assert context.is_root_cause
    assert [(step.kind, step.name) for step in context.address] == [("agent", "a"), ("tool", name)]
    assert result.events[-1].action.contexts == result.interrupts
    assert len(model.requests) == 1


def test_several_that_interrupt_are_one_event_with_a_context_each():
    calls = ToolCalls(("ask", {"question": "1"}), ("pay", {"amount": 5}), ("echo", {"text": "x"}))
    result, _ = play([calls], [echo, ask, pay])
    assert [event.message.role if event.message else "interrupt" for event in result.events] == [
        "assistant",
        "tool",
        "interrupt",
    ]
    infos = [context.info for context in result.interrupts]
    assert {"question": "1"} in infos
    assert ApprovalRequest("pay", '{"amount":5}') in infos
    assert len({context.id for context in result.interrupts}) == 2


@pytest.mark.parametrize(
    "needed", [lambda context, arguments: True, lambda context, arguments: False], ids=["yes", "no"]
)
def test_whether_a_call_needs_approval_may_depend_on_it(needed):
    result, _ = play(
        [ToolCalls(echo={"text": "x"}), "done"],
        [tool(name="echo", needs_approval=needed)(lambda text: text)],
    )
    assert result.status == ("interrupted" if needed(None, None) else "completed")


def test_an_interrupt_goes_before_a_tool_that_returns_directly():
    result, _ = play(
        [ToolCalls(("direct", {"text": "x"}), ("ask", {"question": "?"}))], [ask, direct]
    )
    assert result.status == "interrupted"
    assert results(result.events) == []  # it comes behind that of the call which waits
    assert len(result.interrupts) == 1
    assert isinstance(result.events[0].message, Message)


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_what_a_tool_has_emitted_before_it_interrupts_is_shown(kind):
    def work(context: ToolContext) -> str:
        context.emit(AgentEvent.of(custom_output="progress"))
        return context.interrupt("?")

    async def work_async(context: ToolContext) -> str:
        return work(context)

    result, _ = play(
        [ToolCalls(work={})], [tool(name="work")(work if kind == "def" else work_async)]
    )
    assert [event.custom_output for event in result.events] == [None, "progress", None]


def test_one_by_one_the_calls_behind_an_interrupt_are_not_made():
    calls = ToolCalls(("echo", {"text": "1"}), ("ask", {"question": "?"}), ("echo", {"text": "2"}))
    result, _ = play([calls], [echo, ask], parallel_tool_calls=False)
    assert result.status == "interrupted"
    assert results(result.events) == [("echo", "1")]


@pytest.mark.parametrize("mode", ["report", "raise"])
def test_whether_a_call_needs_approval_may_be_asked_in_vain_and_then_it_does(mode):
    async def fail(context, arguments):
        raise LookupError("nobody knows")

    result, _ = play(
        [ToolCalls(echo={"text": "x"}), "done"],
        [tool(name="echo", needs_approval=fail)(lambda text: text)],
        on_tool_error=mode,
    )
    assert (result.status, result.interrupts[0].info) == (
        "interrupted",
        ApprovalRequest("echo", '{"text":"x"}'),
    )


def test_an_error_of_another_tool_in_raise_mode_goes_before_an_interrupt():
    calls = ToolCalls(("ask", {"question": "?"}), ("nothing", {}))
    result, _ = play([calls], [ask], on_tool_error="raise")
    assert result.status == "failed"
    assert result.interrupts == ()


@pytest.mark.parametrize("streaming", [False, True])
def test_an_interrupt_is_shown_when_streaming_too(streaming):
    agent = ChatModelAgent(
        name="a", model=ScriptedModel([ToolCalls(pay={"amount": 5})]), tools=[pay]
    )
    events = list(Runner(agent).query("go", streaming=streaming))
    assert events[-1].action.contexts[0].info == ApprovalRequest("pay", '{"amount":5}')
    assert (events[-1].agent_name, events[-1].run_path) == ("a", ("a",))
