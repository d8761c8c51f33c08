"""Tools that wait for something from outside are called again, and are told what came; nothing else
is done twice.
"""

import sys
import threading

import pytest
from pydantic import BaseModel

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    CustomAction,
    Exit,
    MaxIterationsExceeded,
    Message,
    Options,
    ScriptedModel,
    ToolCall,
    ToolCalls,
    Usage,
)
from tests.doubles.waiting import Stage, chain, chat, is_whole, told


class Seen(list):
    """What the tools of a test note down, and how often each was called."""

    def count_of(self, name):
        return sum(entry[0] == name for entry in self)


@pytest.fixture
def seen():
    return Seen()


def both_kinds(body):
    """The same tool as `async def`, and as `def`, which runs in a thread."""

    @tool(name="ask")
    async def on_the_loop(context: ToolContext, question: str) -> str:
        return body(context, question)

    @tool(name="ask")
    def in_a_thread(context: ToolContext, question: str) -> str:
        assert threading.current_thread().name != "default-loop"
        return body(context, question)

    return {"async def": on_the_loop, "def": in_a_thread}


@pytest.fixture(params=["async def", "def"])
def make(request):
    return lambda body: both_kinds(body)[request.param]


@pytest.fixture
def ask(make, seen):
    """Asks once, with its question as its state."""

    def body(context, question):
        seen.append(
            ("ask", question, context.is_resume, context.is_resume_target, context.interrupt_state)
        )
        return f"{question} {context.interrupt(question, state=[question])}"

    return make(body)


@pytest.fixture
def echo(seen):
    @tool
    async def echo(text: str) -> str:
        seen.append(("echo", text))
        return text

    return echo


def calls(*questions):
    return ToolCalls(*(("ask", {"question": question}) for question in questions))


# --- one call ---


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_the_call_is_made_again_and_gets_the_data(lines, ask, seen, durability):
    agent = chat("a", calls("size?"), "end", tools=[ask])
    stage = Stage(agent, durability=durability)
    assert lines(stage.start()) == [
        'a [a] assistant "" tc(ask {"question":"size?"})',
        "a [a] {Interrupted 1}",
    ]
    result = stage.go_on(data="XL")
    assert lines(result) == ['a [a] tool(ask) "size? XL"', 'a [a] assistant "end"']
    assert (result.status, result.final_output) == ("completed", "end")
    assert seen == [("ask", "size?", False, False, None), ("ask", "size?", True, True, ["size?"])]
    agent.model.assert_done()
    assert told(agent.model) == [("ask", "size? XL")]
    assert is_whole(agent.model.requests[-1].messages)


def test_the_address_ends_with_the_call_and_its_parent_is_the_agent(ask):
    (context,) = (
        Stage(chat("a", ToolCalls(ToolCall("call_7", "ask", '{"question":"?"}')), tools=[ask]))
        .start()
        .interrupts
    )
    assert [(step.kind, step.name, step.call_id) for step in context.address] == [
        ("agent", "a", None),
        ("tool", "ask", "call_7"),
    ]
    assert chain(context)[0] == "agent:a/tool:ask '?' root"


@pytest.mark.parametrize(
    "data",
    [None, False, 0, "", [], {"a": [1, None]}, ("t", 1), Message("user", "hi", id="m1")],
    ids=repr,
)
def test_the_data_is_what_was_given(make, data):
    heard = []

    def body(context, question):
        heard.append(context.interrupt(question))
        return "ok"

    stage = Stage(chat("a", calls("?"), "end", tools=[make(body)]))
    stage.start()
    assert stage.go_on(data=data).status == "completed"
    assert heard == [data]
    assert type(heard[0]) is type(data)


def test_what_was_done_before_the_interrupt_is_done_again_and_can_be_left_out(make):
    done = []

    def body(context, question):
        if not context.is_resume:
            done.append("once")
        return str(context.interrupt(question))

    stage = Stage(chat("a", calls("?"), "end", tools=[make(body)]))
    stage.start()
    stage.go_on()
    assert done == ["once"]


def test_the_idempotency_key_stays_the_same(make):
    keys = []

    def body(context, question):
        keys.append((question, context.idempotency_key))
        return str(context.interrupt(question))

    stage = Stage(chat("a", calls("1", "2"), "end", tools=[make(body)]))
    stage.start()
    stage.go_on()
    assert len(keys) == 4
    assert len(set(keys)) == 2, "the same for each of the calls, both times"
    assert len({key for _, key in keys}) == 2


# --- several, one after the other, in one call ---


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_a_call_may_ask_several_times_and_gets_each_answer_in_its_turn(make, durability):
    states = []

    def body(context, question):
        states.append((context.is_resume, context.interrupt_state))
        first = context.interrupt("first?", state="s1")
        second = context.interrupt(f"second, after {first}?", state="s2")
        third = context.interrupt(f"third, after {second}?")
        return f"{first} {second} {third}"

    agent = chat("a", calls("?"), "end", tools=[make(body)])
    stage = Stage(agent, durability=durability)
    infos = [
        result.interrupts[0].info
        for result in (stage.start(), stage.go_on(data="a"), stage.go_on(data=None))
    ]
    assert infos == ["first?", "second, after a?", "third, after None?"]
    assert stage.go_on(data="c").status == "completed"
    assert told(agent.model) == [("ask", "a None c")]
    assert states == [(False, None), (True, "s1"), (True, "s2"), (True, None)]


def test_a_call_that_asks_several_times_beside_others(make, echo, seen):
    def body(context, question):
        return f"{context.interrupt(question + '1')} {context.interrupt(question + '2')}"

    script = ToolCalls(
        ("ask", {"question": "a"}), ("echo", {"text": "e"}), ("ask", {"question": "b"})
    )
    agent = chat("a", script, "end", tools=[make(body), echo])
    stage = Stage(agent)
    first = {context.info: context.id for context in stage.start().interrupts}
    assert set(first) == {"a1", "b1"}
    second = {context.info: context.id for context in stage.go_on({first["a1"]: "A1"}).interrupts}
    assert set(second) == {"a2", "b1"}
    third = {context.info: context.id for context in stage.go_on({second["b1"]: "B1"}).interrupts}
    assert set(third) == {"a2", "b2"}
    assert stage.go_on({third["a2"]: "A2", third["b2"]: "B2"}).status == "completed"
    assert told(agent.model) == [("ask", "A1 A2"), ("echo", "e"), ("ask", "B1 B2")]
    assert seen.count_of("echo") == 1


# --- several calls of one reply ---


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_only_those_that_wait_are_called_again_and_the_model_sees_all_in_its_order(
    lines, ask, echo, seen, durability
):
    script = ToolCalls(
        ("echo", {"text": "1"}),
        ("ask", {"question": "a"}),
        ("echo", {"text": "2"}),
        ("ask", {"question": "b"}),
    )
    agent = chat("a", script, "end", tools=[ask, echo])
    stage = Stage(agent, durability=durability)
    result = stage.start()
    assert lines(result)[-1] == "a [a] {Interrupted 2}"
    assert sorted(lines(result)[1:-1]) == ['a [a] tool(echo) "1"', 'a [a] tool(echo) "2"']
    assert {context.info for context in result.interrupts} == {"a", "b"}
    assert len({context.address for context in result.interrupts}) == 2, (
        "each call has an address of its own"
    )
    result = stage.go_on({context.id: context.info.upper() for context in result.interrupts})
    assert sorted(lines(result)[:2]) == ['a [a] tool(ask) "a A"', 'a [a] tool(ask) "b B"']
    assert lines(result)[2:] == ['a [a] assistant "end"']
    assert (seen.count_of("echo"), seen.count_of("ask")) == (2, 4)
    assert told(agent.model) == [("echo", "1"), ("ask", "a A"), ("echo", "2"), ("ask", "b B")]
    assert is_whole(agent.model.requests[-1].messages)


def test_a_call_that_is_no_target_waits_again_with_its_state(lines, ask, seen):
    agent = chat("a", calls("1", "2"), "end", tools=[ask])
    stage = Stage(agent)
    first, second = sorted(stage.start().interrupts, key=lambda context: context.info)
    result = stage.go_on({first.id: "one"})
    assert lines(result) == ['a [a] tool(ask) "1 one"', "a [a] {Interrupted 1}"]
    (again,) = result.interrupts
    assert (again.address, again.info) == (second.address, "2")
    assert again.id != second.id
    assert len(agent.model.requests) == 1
    assert stage.go_on(data="two").status == "completed"
    assert seen[-1] == ("ask", "2", True, True, ["2"])
    assert told(agent.model) == [("ask", "1 one"), ("ask", "2 two")]


@pytest.fixture
def hasty_threads():
    """Threads take turns after as little work as there can be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("hasty_threads")
def test_calls_that_ask_in_threads_at_the_same_instant_are_all_answered():
    many, rounds = 4, 40  # no more at once than there are worker threads on the smallest machine
    first_time = threading.Event()
    together = threading.Barrier(many)

    @tool
    def ask(context: ToolContext, question: str) -> str:
        if first_time.is_set():
            together.wait(20)
        return f"{context.interrupt(question, state=question)} {context.interrupt_state}"

    for _ in range(rounds):
        agent = chat("a", calls(*map(str, range(many))), "end", tools=[ask])
        stage = Stage(agent)
        first_time.set()
        interrupts = stage.start().interrupts
        assert len(interrupts) == many
        first_time.clear()
        assert (
            stage.go_on({context.id: f"to {context.info}" for context in interrupts}).status
            == "completed"
        )
        assert told(agent.model) == [("ask", f"to {number} {number}") for number in range(many)]


@pytest.mark.parametrize("call_id", ["same", ""])
def test_calls_without_ids_or_with_the_same_id_are_told_apart(ask, call_id):
    twins = Message.assistant(
        "",
        (
            ToolCall(call_id, "ask", '{"question":"1"}'),
            ToolCall(call_id, "ask", '{"question":"2"}'),
        ),
    )
    agent = chat("a", twins, "end", tools=[ask])
    stage = Stage(agent)
    contexts = stage.start().interrupts
    assert len({context.id for context in contexts}) == 2
    result = stage.go_on({context.id: context.info * 2 for context in contexts})
    assert result.status == "completed"
    assert told(agent.model) == [("ask", "1 11"), ("ask", "2 22")]


def test_one_by_one_the_calls_behind_are_made_when_it_goes_on(lines, ask, echo, seen):
    script = ToolCalls(
        ("echo", {"text": "1"}),
        ("ask", {"question": "a"}),
        ("echo", {"text": "2"}),
        ("ask", {"question": "b"}),
        ("echo", {"text": "3"}),
    )
    agent = chat("a", script, "end", tools=[ask, echo], parallel_tool_calls=False)
    stage = Stage(agent)
    assert [context.info for context in stage.start().interrupts] == ["a"]
    result = stage.go_on(data="A")
    assert lines(result) == [
        'a [a] tool(ask) "a A"',
        'a [a] tool(echo) "2"',
        "a [a] {Interrupted 1}",
    ]
    assert [context.info for context in result.interrupts] == ["b"]
    assert lines(stage.go_on(data="B")) == [
        'a [a] tool(ask) "b B"',
        'a [a] tool(echo) "3"',
        'a [a] assistant "end"',
    ]
    assert told(agent.model) == [
        ("echo", "1"),
        ("ask", "a A"),
        ("echo", "2"),
        ("ask", "b B"),
        ("echo", "3"),
    ]
    assert seen.count_of("echo") == 3


# --- how a call that was resumed ends ---


def test_a_call_that_fails_when_it_goes_on_is_reported(make):
    def body(context, question):
        context.interrupt(question)
        raise LookupError("sold out")

    agent = chat("a", calls("?"), "end", tools=[make(body)])
    stage = Stage(agent)
    stage.start()
    assert stage.go_on().status == "completed"
    ((_, text),) = told(agent.model)
    assert "sold out" in text


def test_a_call_that_fails_when_it_goes_on_ends_the_run_if_it_is_to(make):
    def body(context, question):
        context.interrupt(question)
        raise LookupError("sold out")

    stage = Stage(chat("a", calls("?"), tools=[make(body)], on_tool_error="raise"))
    stage.start()
    result = stage.go_on()
    assert result.status == "failed"
    assert "sold out" in str(result.error)


def test_a_call_that_goes_on_may_attach_an_action(lines, make):
    def body(context, question):
        answer = context.interrupt(question)
        context.send_action(Exit() if answer == "stop" else CustomAction(answer))
        return "ok"

    for data, shown in (
        ("stop", ['a [a] tool(ask) "ok" {Exit}']),
        ("on", ["a [a] tool(ask) \"ok\" {CustomAction 'on'}", 'a [a] assistant "end"']),
    ):
        stage = Stage(chat("a", calls("?"), "end", tools=[make(body)]))
        stage.start()
        assert lines(stage.go_on(data=data)) == shown


def test_a_tool_that_returns_directly_does_so_when_it_goes_on(lines, echo):
    @tool(return_directly=True)
    async def last(context: ToolContext) -> str:
        return f"last {context.interrupt('?')}"

    stage = Stage(chat("a", ToolCalls(("last", {}), ("echo", {"text": "x"})), tools=[last, echo]))
    stage.start()
    assert lines(stage.go_on(data="word")) == ['a [a] tool(last) "last word"']


# --- the agent around it ---


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_what_is_left_of_the_model_calls_is_what_was_left(ask, durability, streaming):
    agent = chat("a", calls("1"), calls("2"), calls("3"), tools=[ask], max_iterations=2)
    stage = Stage(agent, durability=durability, streaming=streaming)
    stage.start()
    assert stage.go_on().status == "interrupted"
    result = stage.go_on()
    assert result.status == "failed"
    assert isinstance(result.error, MaxIterationsExceeded)
    assert len(agent.model.requests) == 2


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_usage_adds_up_over_all_parts_of_a_run(ask, durability):
    def reply(number, question=None):
        used = (
            ()
            if question is None
            else (ToolCall(f"c{number}", "ask", f'{{"question":"{question}"}}'),)
        )
        return Message(
            "assistant", "" if used else "end", used, usage=Usage(number, 10 * number, requests=1)
        )

    stage = Stage(
        chat("a", reply(1, "?"), reply(100, "?"), reply(10_000), tools=[ask]), durability=durability
    )
    assert stage.start().usage == Usage(1, 10, requests=1)
    assert stage.go_on().usage == Usage(101, 1_010, requests=2)
    assert stage.go_on().usage == Usage(10_101, 101_010, requests=3)


def test_the_conversation_a_model_is_shown_after_an_interrupt_is_the_whole_one(asked, ask):
    agent = chat("a", calls("1"), calls("2"), "end", tools=[ask], instruction="Ask {whom}.")
    stage = Stage(agent)
    stage.start("go", session_values={"whom": "Ada"})
    stage.go_on(data="one")
    stage.go_on(data="two")
    assert asked(agent.model.requests[-1].messages) == [
        'system "Ask Ada."',
        'user "go"',
        'assistant "" tc(ask {"question":"1"})',
        'tool(ask) "1 one"',
        'assistant "" tc(ask {"question":"2"})',
        'tool(ask) "2 two"',
    ]
    assert is_whole(agent.model.requests[-1].messages)


def test_streaming_goes_on_streaming(ask):
    stage = Stage(chat("a", calls("?"), "two words", tools=[ask]), streaming=True)
    stage.start()
    events = list(stage.runner.resume(stage.id, data="x"))
    assert [event.message.text for event in events if event.message] == ["? x", "two words"]
    assert "".join(event.delta.content for event in events if event.delta) == "two words"


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_an_answer_in_a_certain_form_is_still_asked_for(ask, durability):
    class City(BaseModel):
        name: str

    agent = ChatModelAgent(
        name="a",
        model=ScriptedModel([calls("?"), '{"name": "Paris"}']),
        tools=[ask],
        output_type=City,
        output_key="city",
    )
    stage = Stage(agent, durability=durability)
    stage.start(options=Options(x=1))
    result = stage.go_on()
    assert result.final_output == City(name="Paris")
    assert "city" in result.session_values
