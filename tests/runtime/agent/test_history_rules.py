"""What an agent is given of what was said before it."""

import pytest

from offbook.actors import ChatModelAgent, Loop, Parallel, Sequential, Supervisor
from offbook.runtime import (
    AgentEvent,
    AudioPart,
    FilePart,
    ImagePart,
    Message,
    MessageDelta,
    Runner,
    ScriptedModel,
    TextPart,
    ToolCall,
    ToolCalls,
    TransferToAgent,
)

CALL = (
    "For context: [Router] called tool: `transfer_to_agent` with arguments: "
    '{"agent_name":"Weather"}.'
)
RESULT = (
    "For context: [Router] `transfer_to_agent` tool returned result: successfully transferred to "
    "agent [Weather]."
)


def to(name):
    return ToolCalls(transfer_to_agent={"agent_name": name})


def chat(name, *script, **options):
    return ChatModelAgent(name=name, model=ScriptedModel(script), **options)


def given(agent, before, *, messages="q", **runner_options):
    """What the agent is given after those before it, in a Sequential."""
    Runner(Sequential(name="S", sub_agents=[*before, agent]), **runner_options).run(
        messages
    ).result().raise_for_error()
    return list(agent.inputs[-1])


# --- the lane ---


def test_the_target_of_a_transfer_is_told_what_the_router_did():
    weather = chat(
        "Weather", "25°C", instruction="Tell the weather.", disallow_transfer_to_parent=True
    )
    Runner(chat("Router", to("Weather"), sub_agents=[weather])).query("weather in Paris?").result()
    assert weather.model.requests[0].messages == (
        Message.system("Tell the weather."),
        Message.user("weather in Paris?"),
        Message.user(CALL),
        Message.user(RESULT),
    )


def test_the_input_of_the_run_is_given_verbatim(actor):
    image = ImagePart(url="https://example.org/a.png")
    messages = [
        Message.system("a system message of the user's"),
        Message.user(["look", image]),
        Message.assistant("", [ToolCall("1", "t", "{}")], reasoning="hm"),
        Message.tool("r", "1", "t"),
        Message.user("q"),
    ]
    agent = actor("B", "b")
    assert given(agent, [actor("A", "a")], messages=messages) == [
        *messages,
        Message.user("For context: [A] said: a."),
    ]


def test_text_of_another_agent_is_told_as_said(actor):
    assert given(actor("B"), [actor("A", "hello there")])[1:] == [
        Message.user("For context: [A] said: hello there.")
    ]


def test_text_and_calls_of_another_agent_are_one_user_message(actor):
    calls = (ToolCall("1", "f", '{"x": 1}'), ToolCall("2", "g", "broken {"))
    told = given(actor("B"), [actor("A", Message.assistant("I look.", calls))])[1:]
    assert told == [
        Message.user(
            'For context: [A] said: I look.. [A] called tool: `f` with arguments: {"x": 1}. '
            "[A] called tool: `g` with arguments: broken {."
        )
    ]


def test_a_tool_result_of_another_agent_names_the_tool(actor):
    told = given(actor("B"), [actor("A", Message.tool("42", "1", "f"))])[1:]
    assert told == [Message.user("For context: [A] `f` tool returned result: 42.")]


@pytest.mark.parametrize(
    "part",
    [
        ImagePart(url="https://example.org/a.png", detail="low"),
        AudioPart(data=b"\x00", media_type="audio/wav"),
        FilePart(url="file://x", name="x"),
    ],
)
def test_parts_that_are_no_text_are_kept_as_parts_of_the_user(actor, part):
    (told,) = given(
        actor("B"), [actor("A", Message("assistant", (TextPart("see "), part, TextPart("this"))))]
    )[1:]
    assert told == Message("user", (TextPart("For context: [A] said: see this."), part))


def test_parts_in_a_tool_result_are_kept_too(actor):
    part = ImagePart(url="https://example.org/a.png")
    (told,) = given(actor("B"), [actor("A", Message.tool((TextPart("plot"), part), "1", "draw"))])[
        1:
    ]
    assert told == Message(
        "user", (TextPart("For context: [A] `draw` tool returned result: plot."), part)
    )


def test_reasoning_of_another_agent_is_dropped(actor):
    (told,) = given(actor("B"), [actor("A", Message.assistant("yes", reasoning="because"))])[1:]
    assert told == Message.user("For context: [A] said: yes.")
    assert told.reasoning is None


def test_an_agent_sees_its_own_earlier_messages_verbatim_reasoning_and_all(actor):
    own = Message(
        "assistant",
        (TextPart("see"), ImagePart(url="https://example.org/a.png")),
        reasoning="because",
    )
    a = actor("A", [own], ["again"])
    Runner(Loop(name="L", sub_agents=[a], max_iterations=2)).query("q").result()
    assert a.inputs[1] == (Message.user("q"), own)


def test_an_agent_that_is_handed_back_to_sees_its_own_call_and_result():
    weather = chat("Weather", to("Router"))
    router = chat("Router", to("Weather"), "done", sub_agents=[weather])
    Runner(router).query("q").result()
    call, result = router.model.requests[1].messages[2:4]
    assert (call.role, [one.name for one in call.tool_calls]) == (
        "assistant",
        ["transfer_to_agent"],
    )
    assert (result.role, result.tool_call_id) == ("tool", call.tool_calls[0].id)
    assert [message.text for message in router.model.requests[1].messages[4:]] == [
        "For context: [Weather] called tool: `transfer_to_agent` with arguments: "
        '{"agent_name":"Router"}.',
        "For context: [Weather] `transfer_to_agent` tool returned result: successfully "
        "transferred to agent [Router].",
    ]


def test_in_a_loop_each_sees_itself_verbatim_and_the_other_retold(actor):
    a, b = actor("A", ["a1"], ["a2"]), actor("B", ["b1"], ["b2"])
    Runner(Loop(name="L", sub_agents=[a, b], max_iterations=2)).query("q").result()
    assert [message.text for message in b.inputs[1]] == [
        "q",
        "For context: [A] said: a1.",
        "b1",
        "For context: [A] said: a2.",
    ]
    assert [message.role for message in b.inputs[1]] == ["user", "user", "assistant", "user"]


def test_deltas_are_not_recorded(actor):
    delta = AgentEvent(delta=MessageDelta("hel"))
    assert given(actor("B"), [actor("A", delta, "hello")])[1:] == [
        Message.user("For context: [A] said: hello.")
    ]


def test_events_without_a_message_tell_nobody_anything(actor):
    assert given(actor("B"), [actor("A", AgentEvent.of(custom_output={"x": 1}))]) == [
        Message.user("q")
    ]


def test_streaming_records_the_whole_message_only(actor):
    b = actor("B")
    Runner(Sequential(name="S", sub_agents=[chat("A", "one two three"), b]), streaming=True).query(
        "q"
    ).result()
    assert b.inputs[0][1:] == (Message.user("For context: [A] said: one two three."),)


def test_each_event_is_recorded_once_even_through_several_workflows(actor):
    inner = Sequential(
        name="S1",
        sub_agents=[
            Loop(
                name="L",
                sub_agents=[Parallel(name="P", sub_agents=[actor("A", "a")])],
                max_iterations=1,
            )
        ],
    )
    assert given(actor("B"), [inner])[1:] == [Message.user("For context: [A] said: a.")]


def test_an_agent_is_not_given_what_was_said_after_it_began(actor):
    seen = []

    async def cast(context):
        await context.cast(child)

    child = actor("C", "c")
    parent = actor("A", "a1", cast, "a2")
    after = actor("B", "b")
    given(after, [parent])
    seen = [message.text for message in child.inputs[0]]
    assert seen == ["q", "For context: [A] said: a1."]
    assert [message.text for message in after.inputs[0]] == [
        "q",
        *(
            f"For context: [{who}] said: {text}."
            for who, text in (("A", "a1"), ("C", "c"), ("A", "a2"))
        ),
    ]


def test_a_call_that_was_never_answered_is_said_not_to_have_been_completed(actor):
    a = actor("A", [Message.assistant("", [ToolCall("1", "f", "{}")])], ["again"])
    Runner(Loop(name="L", sub_agents=[a], max_iterations=2)).query("q").result()
    call, result = a.inputs[1][1:]
    assert call.tool_calls[0].id == result.tool_call_id == "1"
    assert result.role == "tool"
    assert "not completed" in result.text


# --- without the transfers ---


def test_skip_transfer_messages_leaves_out_the_call_and_its_result():
    weather = chat("Weather", "25°C", disallow_transfer_to_parent=True)
    Runner(chat("Router", to("Weather"), sub_agents=[weather]), skip_transfer_messages=True).query(
        "q"
    ).result()
    assert weather.model.requests[0].messages == (Message.user("q"),)


def test_skip_transfer_messages_leaves_out_one_s_own_too():
    router = chat("Router", to("Weather"), "done", sub_agents=[chat("Weather", to("Router"))])
    Runner(router, skip_transfer_messages=True).query("q").result()
    assert [message.role for message in router.model.requests[1].messages] == ["system", "user"]


def test_skip_transfer_messages_keeps_what_was_called_and_said_beside_it(asked):
    def look() -> str:
        return "seen"

    script = ToolCalls(
        ("look", {}), ("transfer_to_agent", {"agent_name": "Weather"}), text="Let me see."
    )
    weather = chat("Weather", to("Router"))
    router = chat("Router", script, "done", tools=[look], sub_agents=[weather])
    Runner(router, skip_transfer_messages=True).query("q").result()
    assert asked(weather.model.requests[0].messages)[1:] == [
        'user "q"',
        'user "For context: [Router] said: Let me see.. [Router] called tool: `look` with '
        'arguments: {}."',
        'user "For context: [Router] `look` tool returned result: seen."',
    ]
    assert asked(router.model.requests[1].messages)[1:] == [
        'user "q"',
        'assistant "Let me see." tc(look {})',
        'tool(look) "seen"',
    ]


def test_skip_transfer_messages_leaves_out_deterministic_ones_too(actor):
    s = actor("S", ["go", TransferToAgent("A")], ["end"])
    Runner(
        Supervisor(supervisor=s, sub_agents=[actor("A", "a")]), skip_transfer_messages=True
    ).query("q").result()
    assert [message.text for message in s.inputs[1]] == ["q", "go", "For context: [A] said: a."]


def test_the_events_are_the_same_with_skip_transfer_messages(lines):
    def make():
        return chat("Router", to("Weather"), sub_agents=[chat("Weather", "25°C")])

    assert lines(Runner(make(), skip_transfer_messages=True).query("q").result()) == lines(
        Runner(make()).query("q").result()
    )


# --- lanes ---


def test_a_child_of_a_parallel_sees_what_was_before_and_itself_but_not_its_siblings(actor):
    a2, b2 = actor("A2"), actor("B2")
    lanes = [
        Sequential(name="SA", sub_agents=[actor("A1", "a"), a2]),
        Sequential(name="SB", sub_agents=[actor("B1", "b"), b2]),
    ]
    given(actor("Z"), [actor("X", "x"), Parallel(name="P", max_concurrency=1, sub_agents=lanes)])
    assert [message.text for message in a2.inputs[0]] == [
        "q",
        "For context: [X] said: x.",
        "For context: [A1] said: a.",
    ]
    assert [message.text for message in b2.inputs[0]] == [
        "q",
        "For context: [X] said: x.",
        "For context: [B1] said: b.",
    ]


def test_lanes_are_joined_in_the_order_of_the_children_not_of_the_clock(run, actor):
    import asyncio

    async def main():
        turns = [asyncio.Event() for _ in range(6)]

        def turn(number):
            async def take(_context):
                await turns[number].wait()

            return take

        def then(number):
            async def give(_context):
                turns[number].set()

            return give

        # In time: c1 b1 a1 c2 b2 a2
        a = actor("A", turn(2), "a1", then(3), turn(5), "a2")
        b = actor("B", turn(1), "b1", then(2), turn(4), "b2", then(5))
        c = actor("C", "c1", then(1), turn(3), "c2", then(4))
        z = actor("Z")
        result = await Runner(
            Sequential(name="S", sub_agents=[Parallel(name="P", sub_agents=[a, b, c]), z])
        ).query("q")
        assert [event.message.text for event in result.events] == [
            "c1",
            "b1",
            "a1",
            "c2",
            "b2",
            "a2",
        ]
        assert [message.text[-3:-1] for message in z.inputs[0][1:]] == [
            "a1",
            "a2",
            "b1",
            "b2",
            "c1",
            "c2",
        ]

    run(main())


def test_lanes_within_lanes_are_joined_in_order_too(actor):
    def inner(name):
        return Parallel(
            name=name, sub_agents=[actor(f"{name}{number}", f"{name}{number}") for number in (1, 2)]
        )

    side = Sequential(name="T", sub_agents=[actor("B", "b"), inner("Q")])
    seen = given(actor("Z"), [Parallel(name="P", sub_agents=[inner("R"), side, inner("U")])])[1:]
    assert [message.text.split("said: ")[1] for message in seen] == [
        "R1.",
        "R2.",
        "b.",
        "Q1.",
        "Q2.",
        "U1.",
        "U2.",
    ]


def test_after_a_parallel_in_a_loop_each_child_sees_what_all_said_the_round_before(actor):
    a, b = actor("A", ["a1"], ["a2"]), actor("B", ["b1"], ["b2"])
    Runner(
        Loop(name="L", max_iterations=2, sub_agents=[Parallel(name="P", sub_agents=[a, b])])
    ).query("q").result()
    assert [message.text for message in a.inputs[1]] == ["q", "a1", "For context: [B] said: b1."]
    assert [message.text for message in b.inputs[1]] == ["q", "For context: [A] said: a1.", "b1"]


# --- an input given outright ---


def test_a_child_that_is_cast_with_an_input_is_given_that_and_nothing_else(actor):
    from offbook.actors import AgentInput

    child = actor("C", "c")
    parent = actor(
        "A", "a", lambda context: context.cast(child, AgentInput((Message.user("only this"),)))
    )
    Runner(parent).query("q").result()
    assert child.inputs == [(Message.user("only this"),)]
