"""An agent as a tool of another one."""

import asyncio
import json

import pytest
from pydantic import BaseModel

from offbook.actors import ChatModelAgent, Loop, Sequential
from offbook.runtime import (
    AgentEvent,
    BreakLoop,
    Exit,
    ImagePart,
    Message,
    Runner,
    RunStatus,
    ScriptedModel,
    TextPart,
    ToolCalls,
    TransferToAgent,
)


def chat(name, *script, **options):
    return ChatModelAgent(
        name=name, description=f"about {name}", model=ScriptedModel(script), **options
    )


def call(request="do it", name="inner"):
    return ToolCalls((name, {"request": request}))


def outer_of(inner, *script, **tool_options):
    return chat("outer", *(script or (call(), "end")), tools=[inner.as_tool(**tool_options)])


def play(agent, **options):
    return Runner(agent).query("q", **options).result(10)


def result_of(inner, **tool_options):
    """What the outer model is told of the call."""
    outer = outer_of(inner, **tool_options)
    play(outer).raise_for_error()
    return outer.model.requests[1].messages[-1]


# --- what it is to the model ---


def test_the_schema_is_one_request(actor):
    outer = outer_of(actor("inner", "hello"))
    play(outer)
    (spec,) = outer.model.requests[0].tools
    assert (spec.name, spec.description) == ("inner", "plays inner")
    assert list(spec.parameters["properties"]) == ["request"]
    assert spec.parameters["properties"]["request"]["type"] == "string"
    assert spec.parameters["required"] == ["request"]


def test_name_and_description_may_be_others(actor):
    outer = outer_of(
        actor("inner", "hello"), call(name="ask"), "end", name="ask", description="asks"
    )
    play(outer)
    (spec,) = outer.model.requests[0].tools
    assert (spec.name, spec.description) == ("ask", "asks")
    assert outer.model.requests[1].messages[-1].text == "hello"


# --- what it is given ---


def test_the_request_is_the_only_user_message(actor):
    inner = actor("inner", "hello")
    play(outer_of(inner, call("the request")))
    assert inner.inputs == [(Message.user("the request"),)]


class Query(BaseModel):
    city: str
    days: int = 1


def test_with_parameters_the_arguments_json_is_the_only_user_message(actor):
    inner = actor("inner", "hello")
    outer = outer_of(inner, ToolCalls(inner={"city": "Paris", "days": 2}), "end", parameters=Query)
    play(outer).raise_for_error()
    ((message,),) = inner.inputs
    assert message.role == "user"
    assert json.loads(message.text) == {"city": "Paris", "days": 2}
    assert set(outer.model.requests[0].tools[0].parameters["properties"]) == {"city", "days"}


def test_with_parameters_arguments_that_do_not_validate_are_told_to_the_outer_model(actor):
    inner = actor("inner", "never")
    outer = outer_of(inner, ToolCalls(inner={"days": "many"}), "end", parameters=Query)
    assert play(outer).status is RunStatus.COMPLETED
    assert inner.inputs == []
    assert "city" in outer.model.requests[1].messages[-1].text


def test_with_full_history_the_outer_agent_s_messages_are_given_rewritten(actor):
    inner = actor("inner", "hello")

    def look() -> str:
        return "seen"

    outer = chat(
        "outer",
        ToolCalls(look={}),
        call("the request"),
        "end",
        tools=[look, inner.as_tool(full_history=True)],
    )
    Runner(Sequential(name="S", sub_agents=[actor("before", "b"), outer])).query(
        "q"
    ).result().raise_for_error()
    texts = [(message.role, message.text) for message in inner.inputs[0]]
    assert texts[:4] == [
        ("user", "q"),
        ("user", "For context: [before] said: b."),
        ("user", "For context: [outer] called tool: `look` with arguments: {}."),
        ("user", "For context: [outer] `look` tool returned result: seen."),
    ]
    assert all(role == "user" for role, _ in texts)


def test_with_full_history_in_a_lane_the_siblings_are_not_seen(actor):
    from offbook.actors import Parallel

    inner = actor("inner", "hello")
    p = Parallel(
        name="P",
        max_concurrency=1,
        sub_agents=[actor("A", "a"), outer_of(inner, full_history=True)],
    )
    play(p).raise_for_error()
    assert not any("[A]" in message.text for message in inner.inputs[0])


# --- what comes back ---


def test_the_text_of_the_last_message_is_the_result(actor, lines):
    inner = actor("inner", "first", "last", AgentEvent.of(custom_output=1))
    outer = outer_of(inner)
    assert lines(play(outer)) == [
        'outer [outer] assistant "" tc(inner {"request":"do it"})',
        'outer [outer] tool(inner) "last"',
        'outer [outer] assistant "end"',
    ]


def test_the_result_of_a_workflow_is_what_was_said_last_in_it(actor):
    assert (
        result_of(Sequential(name="inner", sub_agents=[actor("x", "x"), actor("y", "y")])).text
        == "y"
    )
    assert (
        result_of(
            Loop(
                name="inner", sub_agents=[actor("x", ["x1"], ["x2", BreakLoop()]), actor("y", "y")]
            )
        ).text
        == "x2"
    )


def test_the_result_is_that_of_the_agent_handed_over_to(actor):
    inner = actor("inner", "i", TransferToAgent("z"), sub_agents=[actor("z", "from z")])
    assert result_of(inner).text == "from z"


def test_the_result_of_parts_is_their_text(actor):
    inner = actor("inner", Message("assistant", (TextPart("see "), TextPart("this"))))
    assert result_of(inner).text == "see this"


def test_the_result_is_text_only(actor):
    inner = actor(
        "inner", Message("assistant", (TextPart("see"), ImagePart(url="https://example.org/a.png")))
    )
    assert result_of(inner).content == "see"


@pytest.mark.parametrize("silent", ["exit", "sequence", "transfer", "cast", "loop"])
def test_the_last_message_counts_whoever_comes_after_it_in_silence(actor, silent):
    child = actor("child", "hello")

    async def note(_context):
        return AgentEvent.of(custom_output=1)

    inner = {
        "exit": lambda: actor("inner", "hello", Exit()),
        "sequence": lambda: Sequential(name="inner", sub_agents=[actor("x", "hello"), actor("y")]),
        "transfer": lambda: actor("inner", "hello", TransferToAgent("z"), sub_agents=[actor("z")]),
        "cast": lambda: actor(
            "inner", lambda context: context.cast(child), note, sub_agents=[child]
        ),
        "loop": lambda: Loop(
            name="inner", sub_agents=[actor("x", "hello"), actor("y", BreakLoop())]
        ),
    }[silent]()
    assert result_of(inner).text == "hello"


def test_the_final_result_of_the_exit_tool_is_the_result():
    assert (
        result_of(chat("inner", ToolCalls(exit={"final_result": "R"}), exit_tool=True)).text == "R"
    )


def test_without_any_message_the_outer_agent_is_told_of_an_error(actor):
    assert "inner ended without a message" in result_of(actor("inner")).text


def test_without_any_message_the_outer_agent_fails_if_it_wants_to(actor):
    outer = chat("outer", call(), "never", tools=[actor("inner").as_tool()], on_tool_error="raise")
    result = play(outer)
    assert result.status is RunStatus.FAILED
    assert "inner ended without a message" in str(result.error)
    assert len(outer.model.requests) == 1


def test_an_inner_failure_is_told_to_the_outer_model(lines, actor):
    result = play(outer_of(actor("inner", "i", ValueError("broken"))))
    assert result.status is RunStatus.COMPLETED
    assert lines(result)[1:] == [
        'outer [outer] tool(inner) "agent inner failed: ValueError: broken"',
        'outer [outer] assistant "end"',
    ]


def test_an_inner_failure_ends_the_outer_agent_if_it_wants_to(actor):
    outer = chat(
        "outer",
        call(),
        "never",
        tools=[actor("inner", ValueError("broken")).as_tool()],
        on_tool_error="raise",
    )
    result = play(outer)
    assert result.status is RunStatus.FAILED
    assert "ValueError: broken" in str(result.error)
    assert [event.agent_name for event in result.events] == ["outer", "outer"]


@pytest.mark.parametrize(
    "crash", [KeyboardInterrupt(), SystemExit(1), asyncio.CancelledError()], ids=repr
)
def test_an_inner_crash_is_a_failure(actor, crash):
    result = play(outer_of(actor("inner", crash)))
    assert result.status is RunStatus.COMPLETED
    assert "crashed" in result.events[1].message.text


# --- what is its own, and what is shared ---


def test_the_inner_run_has_a_history_of_its_own_each_time(actor):
    inner = actor("inner", ["one"], ["two"])
    outer = outer_of(inner, call("first"), call("second"), "end")
    play(Sequential(name="S", sub_agents=[actor("before", "b"), outer]))
    assert inner.inputs == [(Message.user("first"),), (Message.user("second"),)]


def test_within_the_inner_run_its_agents_see_one_another(actor):
    y = actor("y", "y")
    play(outer_of(Sequential(name="inner", sub_agents=[actor("x", "x"), y]), call("r")))
    assert y.inputs == [(Message.user("r"), Message.user("For context: [x] said: x."))]


@pytest.mark.parametrize("emit", [True, False])
def test_the_inner_run_leaves_nothing_in_the_outer_history(actor, emit):
    after = actor("after", "z")
    play(
        Sequential(
            name="S",
            sub_agents=[outer_of(actor("inner", "first", "last"), emit_events=emit), after],
        )
    )
    assert [message.text for message in after.inputs[0]] == [
        "q",
        'For context: [outer] called tool: `inner` with arguments: {"request":"do it"}.',
        "For context: [outer] `inner` tool returned result: last.",
        "For context: [outer] said: end.",
    ]


def test_session_values_are_shared_both_ways(actor):
    async def swap(context):
        context.session["back"] = context.session["there"] + 1

    result = play(outer_of(actor("inner", swap, "done")), session_values={"there": 1})
    assert result.session_values == {"there": 1, "back": 2}


def test_two_calls_at_once_do_not_see_each_other(actor):
    inner = actor("inner", "hello")
    both = ToolCalls(("inner", {"request": "a"}), ("inner", {"request": "b"}))
    result = play(outer_of(inner, both, "end"))
    assert sorted(inner.inputs, key=str) == [(Message.user("a"),), (Message.user("b"),)]
    assert [event.message.text for event in result.events] == ["", "hello", "hello", "end"]


# --- what stays inside ---


def test_an_exit_stays_inside(lines, actor):
    result = play(outer_of(actor("inner", "hello", Exit(), "never")))
    assert lines(result)[-1] == 'outer [outer] assistant "end"'
    assert all(event.action is None for event in result.events)


def test_an_exit_in_a_workflow_inside_ends_all_of_that(actor):
    never = actor("z", "never")
    inner = Sequential(
        name="inner", sub_agents=[Loop(name="l", sub_agents=[actor("x", "x", Exit())]), never]
    )
    assert play(outer_of(inner)).final_output == "end"
    assert never.inputs == []


def test_a_transfer_stays_inside_and_finds_nobody_outside(actor):
    inner = actor("inner", TransferToAgent("other"))
    outer = chat(
        "outer", call(), "end", tools=[inner.as_tool()], sub_agents=[actor("other", "never")]
    )
    result = play(outer)
    assert result.final_output == "end"
    assert "agent 'other' not found when transferring from 'inner'" in result.events[1].message.text


def test_the_outer_agent_is_not_reachable_from_inside(actor):
    result = play(outer_of(actor("inner", TransferToAgent("outer"))))
    assert "agent 'outer' not found" in result.events[1].message.text


def test_a_definition_may_be_a_tool_and_a_sub_agent(lines, actor):
    a = actor("inner", "hello")
    outer = chat(
        "outer",
        call(),
        ToolCalls(transfer_to_agent={"agent_name": "inner"}),
        tools=[a.as_tool()],
        sub_agents=[a],
    )
    assert lines(play(outer))[-1] == 'inner [outer,inner] assistant "hello"'


def test_a_break_stays_inside(actor):
    outer = outer_of(actor("inner", "hello", BreakLoop()), call(), "one", call(), "two")
    assert play(Loop(name="L", sub_agents=[outer], max_iterations=2)).final_output == "two"


# --- shown, or not ---


def test_without_emit_events_nothing_of_it_is_shown(actor):
    assert {
        event.agent_name
        for event in play(outer_of(Sequential(name="inner", sub_agents=[actor("x", "x")]))).events
    } == {"outer"}


def test_with_emit_events_all_of_it_is_shown_between_the_call_and_its_result(lines, actor):
    inner = Sequential(
        name="inner",
        sub_agents=[actor("x", "x", AgentEvent.of(custom_output=7)), actor("y", "y", Exit())],
    )
    assert lines(play(outer_of(inner, emit_events=True)))[:5] == [
        'outer [outer] assistant "" tc(inner {"request":"do it"})',
        'x [outer,inner,x] assistant "x"',
        "x [outer,inner,x] out(7)",
        'y [outer,inner,x,y] assistant "y"',
        "y [outer,inner,x,y] {Exit}",
    ]


def test_with_emit_events_an_inner_error_is_shown_and_the_outer_agent_goes_on(lines, actor):
    result = play(outer_of(actor("inner", ValueError("broken")), emit_events=True))
    assert lines(result)[1:] == [
        "inner [outer,inner] error ValueError: broken",
        'outer [outer] tool(inner) "agent inner failed: ValueError: broken"',
        'outer [outer] assistant "end"',
    ]
    assert (result.status, result.error) == (RunStatus.COMPLETED, None)


def test_with_emit_events_a_consumer_that_iterates_sees_all_of_it(run, actor):
    async def main():
        return [
            event.agent_name
            async for event in Runner(
                outer_of(actor("inner", ValueError("x")), emit_events=True)
            ).query("q")
        ]

    assert run(main()) == ["outer", "inner", "outer", "outer"]


def test_with_emit_events_streaming_goes_through(actor):
    inner = chat("inner", "one two")
    events = list(Runner(outer_of(inner, emit_events=True), streaming=True).query("q"))
    assert (
        "".join(
            event.delta.content
            for event in events
            if event.delta is not None and event.agent_name == "inner"
        )
        == "one two"
    )


def test_what_a_hidden_agent_shows_is_hidden(actor):
    leaf = actor("leaf", "leaf")
    mid = chat("mid", call(name="leaf"), "mid ends", tools=[leaf.as_tool(emit_events=True)])
    outer = chat("outer", call(name="mid"), "end", tools=[mid.as_tool()])
    assert [event.agent_name for event in play(outer).events] == ["outer"] * 3


def test_tools_within_tools_are_shown_with_the_whole_path(actor):
    leaf = actor("leaf", "leaf")
    mid = chat("mid", call(name="leaf"), "mid ends", tools=[leaf.as_tool(emit_events=True)])
    outer = chat("outer", call(name="mid"), "end", tools=[mid.as_tool(emit_events=True)])
    assert [event.run_path for event in play(outer).events if event.agent_name == "leaf"] == [
        ("outer", "mid", "leaf")
    ]


def test_an_interrupt_goes_out_as_one_event_of_the_outer_agent(actor):
    async def ask(context):
        return context.interrupt("which?")

    result = play(outer_of(actor("inner", "i", ask), emit_events=True))
    assert result.status is RunStatus.INTERRUPTED
    (event,) = [event for event in result.events if event.action is not None]
    assert (event.agent_name, event.run_path) == ("outer", ("outer",))


def test_full_history_leaves_out_transfers_where_the_runner_does(actor):
    inner = actor("inner", "hello")
    router = chat(
        "R",
        ToolCalls(transfer_to_agent={"agent_name": "outer"}),
        sub_agents=[outer_of(inner, full_history=True)],
    )
    Runner(router, skip_transfer_messages=True).query("q").result().raise_for_error()
    assert not any("transfer_to_agent" in message.text for message in inner.inputs[0])
