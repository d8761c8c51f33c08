"""Agents inside of tools that wait: the interrupt goes out, and what goes on is the inner run; the
outer model is not asked again.
"""

import pytest

from offbook.actors import Parallel, Sequential, ToolContext, tool
from offbook.runtime import AddressStep, Message, ToolCall, ToolCalls, Usage
from tests.doubles.waiting import Asker, Naive, Stage, chain, chat, ids, is_whole, told


@pytest.fixture(params=["interrupt", "step"])
def stage(request):
    """How to put an agent on a stage, with either durability."""
    return lambda agent, **options: Stage(agent, durability=request.param, **options)


def call(name="inner", request="do it"):
    return ToolCalls((name, {"request": request}))


@tool
async def ask(context: ToolContext, question: str = "?") -> str:
    return f"heard {context.interrupt(question)}"


# --- one level ---


@pytest.mark.parametrize("make", [Asker, lambda name: Naive(name=name)], ids=["asker", "naive"])
def test_the_interrupt_of_an_inner_agent_is_one_event_of_the_outer_one(lines, stage, make):
    inner = make("inner")
    outer = chat(
        "outer",
        ToolCalls(ToolCall("c1", "inner", '{"request":"do it"}')),
        "end",
        tools=[inner.as_tool()],
    )
    play = stage(outer)
    result = play.start()
    assert lines(result) == [
        'outer [outer] assistant "" tc(inner {"request":"do it"})',
        "outer [outer] {Interrupted 1}",
    ]
    (context,) = result.interrupts
    assert context.address == (
        AddressStep("agent", "outer"),
        AddressStep("tool", "inner", "c1"),
        AddressStep("agent", "inner"),
    )
    assert (context.info, context.is_root_cause) == ("inner?", True)
    result = play.go_on(data="x")
    assert lines(result) == [
        'outer [outer] tool(inner) "inner heard x"',
        'outer [outer] assistant "end"',
    ]
    assert len(outer.model.requests) == 2
    assert told(outer.model) == [("inner", "inner heard x")]
    assert is_whole(outer.model.requests[-1].messages)


def test_each_parent_of_an_inner_interrupt_encloses_it_and_is_no_root(stage):
    inner = Sequential(name="seq", sub_agents=[Asker("leaf")])
    (context,) = (
        stage(chat("outer", call("seq"), "end", tools=[inner.as_tool()])).start().interrupts
    )
    assert chain(context)[:2] == [
        "agent:outer/tool:seq/agent:seq/agent:leaf 'leaf?' root",
        "agent:outer/tool:seq/agent:seq 'Sequential workflow interrupted'",
    ]
    while context.parent is not None:
        assert context.address[: len(context.parent.address)] == context.parent.address
        context = context.parent
        assert not context.is_root_cause
    assert context.address == (AddressStep("agent", "outer"),)


def test_an_inner_agent_with_a_model_goes_on_where_it_was(lines, stage):
    inner = chat(
        "inner",
        ToolCalls(("ask", {"question": "1"})),
        ToolCalls(("ask", {"question": "2"})),
        "inner ends",
        tools=[ask],
    )
    outer = chat("outer", call(request="the request"), "end", tools=[inner.as_tool()])
    play = stage(outer)
    (context,) = play.start().interrupts
    assert chain(context)[0] == "agent:outer/tool:inner/agent:inner/tool:ask '1' root"
    assert [context.info for context in play.go_on(data="a").interrupts] == ["2"]
    result = play.go_on(data="b")
    assert lines(result) == [
        'outer [outer] tool(inner) "inner ends"',
        'outer [outer] assistant "end"',
    ]
    assert (len(outer.model.requests), len(inner.model.requests)) == (2, 3)
    assert [
        message.text for message in inner.model.requests[0].messages if message.role == "user"
    ] == ["the request"]
    assert told(inner.model) == [("ask", "heard a"), ("ask", "heard b")]
    assert is_whole(inner.model.requests[-1].messages)


def test_what_is_left_of_the_inner_model_calls_is_what_was_left(stage):
    inner = chat("inner", ToolCalls(ask={}), ToolCalls(ask={}), tools=[ask], max_iterations=1)
    outer = chat("outer", call(), "end", tools=[inner.as_tool()])
    play = stage(outer)
    play.start()
    assert play.go_on().status == "completed"
    ((_, text),) = told(outer.model)
    assert "MaxIterationsExceeded" in text
    assert len(inner.model.requests) == 1


def test_usage_of_inner_models_adds_up(stage):
    inner = chat(
        "inner",
        Message("assistant", "", (ToolCall("c", "ask", "{}"),), usage=Usage(1, 1)),
        Message("assistant", "i", usage=Usage(10, 1)),
        tools=[ask],
    )
    outer = chat(
        "outer",
        Message("assistant", "", (ToolCall("c", "inner", '{"request":"r"}'),), usage=Usage(100, 1)),
        "end",
        tools=[inner.as_tool()],
    )
    play = stage(outer)
    assert play.start().usage == Usage(101, 2)
    assert play.go_on().usage == Usage(111, 3)


def test_session_values_are_shared_with_the_inner_run_after_an_interrupt_too(stage):
    @tool
    async def put(context: ToolContext) -> str:
        context.session["before"] = 1
        context.session["after"] = context.interrupt("?")
        return f"{context.session['given']}"

    outer = chat(
        "outer",
        call(),
        "{before} {after}",
        tools=[chat("inner", ToolCalls(put={}), "i", tools=[put]).as_tool()],
    )
    play = stage(outer)
    play.start(session_values={"given": "g"})
    result = play.go_on(data=2)
    assert result.session_values == {"given": "g", "before": 1, "after": 2}


# --- what is shown of it ---


def test_with_emit_events_the_inner_events_are_shown_but_not_the_inner_interrupt(lines, stage):
    inner = chat("inner", ToolCalls(ask={}), "inner ends", tools=[ask])
    play = stage(chat("outer", call(), "end", tools=[inner.as_tool(emit_events=True)]))
    assert lines(play.start()) == [
        'outer [outer] assistant "" tc(inner {"request":"do it"})',
        'inner [outer,inner] assistant "" tc(ask {})',
        "outer [outer] {Interrupted 1}",
    ]
    assert lines(play.go_on(data="x")) == [
        'inner [outer,inner] tool(ask) "heard x"',
        'inner [outer,inner] assistant "inner ends"',
        'outer [outer] tool(inner) "inner ends"',
        'outer [outer] assistant "end"',
    ]


def test_with_emit_events_the_inner_events_are_not_in_the_outer_history(actor, stage):
    after = actor("after", "a")
    outer = chat("outer", call(), "end", tools=[Asker("inner").as_tool(emit_events=True)])
    play = stage(Sequential(name="S", sub_agents=[outer, after]))
    play.start()
    play.go_on(data="x")
    assert [message.text.partition("] ")[2] for message in after.inputs[0][1:]] == [
        'called tool: `inner` with arguments: {"request":"do it"}.',
        "`inner` tool returned result: inner heard x.",
        "said: end.",
    ]


def test_with_full_history_the_inner_agent_has_the_same_input_again(stage, actor):
    inner = Asker("inner", "1?", "2?")
    outer = chat("outer", call(), "end", tools=[inner.as_tool(full_history=True)])
    play = stage(Sequential(name="S", sub_agents=[actor("before", "b"), outer]))
    play.start("the question")
    play.go_on(data=1)
    assert play.go_on(data=2).status == "completed"
    first, second, third = (given.messages for given in inner.inputs)
    assert first == second == third
    assert [message.text for message in first][:2] == [
        "the question",
        "For context: [before] said: b.",
    ]


def test_what_happens_inside_is_not_mixed_up_with_what_happens_outside(lines, stage):
    """The same name of a tool, and the same id of a call, on both levels."""
    inner = chat(
        "inner",
        Message.assistant("", (ToolCall("c", "ask", '{"question":"in"}'),)),
        "inner ends",
        tools=[ask],
    )
    both = Message.assistant(
        "", (ToolCall("c", "inner", '{"request":"r"}'), ToolCall("d", "ask", '{"question":"out"}'))
    )
    outer = chat("outer", both, "end", tools=[inner.as_tool(), ask])
    play = stage(outer)
    found = {context.info: context.id for context in play.start().interrupts}
    assert set(found) == {"in", "out"}
    result = play.go_on({found["out"]: "OUT"})
    assert lines(result) == ['outer [outer] tool(ask) "heard OUT"', "outer [outer] {Interrupted 1}"]
    assert play.go_on(data="IN").status == "completed"
    assert told(outer.model) == [("inner", "inner ends"), ("ask", "heard OUT")]
    assert told(inner.model) == [("ask", "heard IN")]


# --- several levels, several calls ---


def test_an_agent_in_an_agent_in_an_agent_waits(lines, stage):
    deepest = Asker("c", "1?", "2?")
    middle = chat("b", call("c"), "b ends", tools=[deepest.as_tool()])
    outer = chat("a", call("b"), "a ends", tools=[middle.as_tool()])
    play = stage(outer)
    result = play.start()
    assert lines(result)[-1] == "a [a] {Interrupted 1}"
    assert chain(result.interrupts[0])[0] == "agent:a/tool:b/agent:b/tool:c/agent:c '1?' root"
    result = play.go_on(data=1)
    assert lines(result) == ["a [a] {Interrupted 1}"]
    result = play.go_on(data=2)
    assert lines(result) == ['a [a] tool(b) "b ends"', 'a [a] assistant "a ends"']
    assert told(middle.model) == [("c", "c heard 1,2")]
    assert (len(outer.model.requests), len(middle.model.requests)) == (2, 2)


def test_two_calls_of_one_inner_agent_wait_each_for_its_own(stage):
    twice = ToolCalls(("inner", {"request": "1"}), ("inner", {"request": "2"}))
    outer = chat("outer", twice, "end", tools=[Asker("inner").as_tool()])
    play = stage(outer)
    first, second = play.start().interrupts
    assert first.address != second.address
    again = play.go_on({second.id: "two"})
    assert [context.address for context in again.interrupts] == [first.address]
    assert play.go_on(data="one").status == "completed"
    assert told(outer.model) == [("inner", "inner heard one"), ("inner", "inner heard two")]


def test_an_inner_agent_that_waits_and_tools_that_do_not_keep_each_its_own(stage):
    made = []

    @tool
    async def look() -> str:
        made.append("look")
        return "seen"

    other = chat("other", "other ends")
    script = ToolCalls(("look", {}), ("inner", {"request": "r"}), ("other", {"request": "r"}))
    outer = chat("outer", script, "end", tools=[look, Asker("inner").as_tool(), other.as_tool()])
    play = stage(outer)
    play.start()
    assert play.go_on(data="x").status == "completed"
    assert told(outer.model) == [
        ("look", "seen"),
        ("inner", "inner heard x"),
        ("other", "other ends"),
    ]
    assert made == ["look"]
    assert len(other.model.requests) == 1


def test_a_parallel_inside_of_a_tool_waits_with_all_its_roots(lines, stage):
    inner = Parallel(name="P", sub_agents=[Asker("A"), Asker("B")])
    outer = chat("outer", call("P"), "end", tools=[inner.as_tool()])
    play = stage(outer)
    result = play.start()
    assert lines(result)[1:] == ["outer [outer] {Interrupted 2}"]
    assert chain(result.interrupts[1])[:2] == [
        "agent:outer/tool:P/agent:P/agent:B 'B?' root",
        "agent:outer/tool:P/agent:P 'Parallel workflow interrupted'",
    ]
    result = play.go_on({ids(result)["A"]: "a"})
    assert lines(result) == ["outer [outer] {Interrupted 1}"]
    assert lines(play.go_on(data="b"))[-1] == 'outer [outer] assistant "end"'


def test_an_outer_agent_in_a_parallel_waits_as_part_of_it(lines, stage):
    outer = chat("outer", call(), "end", tools=[Asker("inner").as_tool()])
    play = stage(Parallel(name="P", sub_agents=[outer, Asker("B")]))
    result = play.start()
    assert lines(result)[-1] == "P [P] {Interrupted 2}"
    assert (
        chain(result.interrupts[0])[0] == "agent:P/agent:outer/tool:inner/agent:inner 'inner?' root"
    )
    assert lines(play.go_on({ids(result)["inner"]: 1}))[-1] == "P [P] {Interrupted 1}"
    assert play.go_on(data=2).status == "completed"


# --- how the inner run ends ---


def test_an_inner_run_that_fails_when_it_goes_on_is_a_failed_call(stage):
    @tool
    async def fail(context: ToolContext) -> str:
        context.interrupt("?")
        raise LookupError("sold out")

    outer = chat(
        "outer",
        call(),
        "end",
        tools=[chat("inner", ToolCalls(fail={}), tools=[fail], on_tool_error="raise").as_tool()],
    )
    play = stage(outer)
    play.start()
    assert play.go_on().status == "completed"
    ((_, text),) = told(outer.model)
    assert "sold out" in text


@pytest.mark.parametrize("data", [True, False])
def test_an_approval_inside_of_a_tool_is_given_or_denied_from_outside(stage, data):
    paid = []

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    inner = chat("inner", ToolCalls(pay={"amount": 5}), "inner ends", tools=[pay])
    outer = chat("outer", call(), "end", tools=[inner.as_tool()])
    play = stage(outer)
    assert play.start().interrupts[0].info.tool_name == "pay"
    assert play.go_on(data=data).status == "completed"
    assert paid == ([5] if data else [])
    assert told(outer.model) == [("inner", "inner ends")]
