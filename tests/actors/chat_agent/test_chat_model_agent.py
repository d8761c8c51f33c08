"""An agent that a chat model plays: what its model is shown, what its run shows, and how it
ends.
"""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, Middleware, exit_tool, tool
from offbook.runtime import (
    Exit,
    MaxIterationsExceeded,
    Message,
    ModelBehaviorError,
    ModelError,
    ModelSettings,
    Runner,
    ScriptedModel,
    ToolCall,
    ToolCalls,
    UsageError,
)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool
def shout(text: str) -> str:
    return text.upper()


def shown(event):
    """An event in one line."""
    if event.error is not None:
        return f"error {type(event.error).__name__}"
    message = event.message
    calls = "".join(f" ->{call.name}{call.arguments}" for call in message.tool_calls)
    action = "" if event.action is None else f" {{{type(event.action).__name__}}}"
    return (
        f"{message.role}{'' if message.tool_name is None else f'({message.tool_name})'} "
        f"{message.text!r}{calls}{action}"
    )


def play(agent, text="go", **options):
    return Runner(agent).query(text, **options).result()


def asked(model, number=-1):
    """What a request of the model held, as pairs of role and text."""
    return [(message.role, message.text) for message in model.requests[number].messages]


# --- one reply ---


def test_without_tools_it_is_one_model_call_and_one_event():
    model = ScriptedModel(["hello"])
    result = play(ChatModelAgent(name="a", instruction="Be brief.", model=model))
    assert [shown(event) for event in result.events] == ["assistant 'hello'"]
    assert asked(model) == [("system", "Be brief."), ("user", "go")]
    assert model.requests[0].tools == ()
    assert result.final_output == "hello"
    assert result.status == "completed"
    model.assert_done()


def test_without_an_instruction_there_is_no_system_message():
    model = ScriptedModel(["hello"])
    play(ChatModelAgent(name="a", model=model))
    assert asked(model) == [("user", "go")]


def test_an_empty_reply_is_a_reply():
    result = play(ChatModelAgent(name="a", model=ScriptedModel([""])))
    assert [shown(event) for event in result.events] == ["assistant ''"]
    assert result.status == "completed"
    assert result.final_output == ""


def test_the_input_messages_come_behind_the_instruction_as_they_are():
    model = ScriptedModel(["hello"])
    said = (
        Message.user("one"),
        Message.assistant("two", reasoning="hm"),
        Message.system("three"),
        Message.user("four"),
    )
    Runner(ChatModelAgent(name="a", instruction="I", model=model)).run(said).result()
    assert model.requests[0].messages == (Message.system("I"), *said)


def test_with_tools_it_asks_until_a_reply_has_no_calls():
    model = ScriptedModel(
        [ToolCalls(add={"a": 1, "b": 2}), ToolCalls("shout", {"text": "x"}, text="and"), "done"]
    )
    result = play(ChatModelAgent(name="a", model=model, tools=[add, shout]))
    assert [shown(event) for event in result.events] == [
        """assistant '' ->add{"a":1,"b":2}""",
        "tool(add) '3'",
        """assistant 'and' ->shout{"text":"x"}""",
        "tool(shout) 'X'",
        "assistant 'done'",
    ]
    assert asked(model) == [
        ("user", "go"),
        ("assistant", ""),
        ("tool", "3"),
        ("assistant", "and"),
        ("tool", "X"),
    ]
    call, answer = model.requests[-1].messages[1:3]
    assert answer.tool_call_id == call.tool_calls[0].id == "call_1"
    assert [spec.name for spec in model.requests[0].tools] == ["add", "shout"]
    assert model.requests[0].tools[0].description == "Add two numbers."


def test_one_definition_plays_many_runs_at_once(run):
    model = ScriptedModel([lambda request: request.messages[-1].text for _ in range(20)])
    agent = ChatModelAgent(name="a", model=model)

    async def main():
        return await asyncio.gather(*(Runner(agent).query(str(number)) for number in range(20)))

    assert [result.final_output for result in run(main())] == [str(number) for number in range(20)]


# --- the instruction ---


def test_placeholders_are_filled_from_session_values_and_other_braces_stay():
    model = ScriptedModel(["ok"])
    instruction = 'Hello {user}, you are {age}. {unknown} {"json": {}} {} {0} {{user}}'
    play(
        ChatModelAgent(name="a", instruction=instruction, model=model),
        session_values={"user": "Ann {age}", "age": 7},
    )
    assert asked(model)[0] == (
        "system",
        'Hello Ann {age}, you are 7. {unknown} {"json": {}} {} {0} {Ann {age}}',
    )


@pytest.mark.parametrize("name", ["имя", "user name", "1st", "a/b"])
def test_a_value_may_have_any_name(name):
    model = ScriptedModel(["ok"])
    play(
        ChatModelAgent(name="a", instruction=f"Hello {{{name}}}", model=model),
        session_values={name: "Ann"},
    )
    assert asked(model)[0] == ("system", "Hello Ann")


def test_a_value_that_is_none_is_a_value():
    model = ScriptedModel(["ok"])
    play(ChatModelAgent(name="a", instruction="{x}", model=model), session_values={"x": None})
    assert asked(model)[0] == ("system", "None")


def test_braces_in_the_description_of_another_agent_stay():
    model = ScriptedModel(["ok"])
    other = ChatModelAgent(name="b", description="knows {x} and {", model=ScriptedModel([]))
    play(
        ChatModelAgent(name="a", instruction="{x}", model=model, sub_agents=[other]),
        session_values={"x": 1},
    )
    text = asked(model)[0][1]
    assert text.startswith(
        "1\n\nAvailable other agents: \n- Agent name: b\n  Agent description: knows {x} and "
        "{\n\nDecision rule:"
    )


def by_def(context):
    return f"You are {context.agent_name}, {context.session['mood']}."


async def by_async_def(context):
    await asyncio.sleep(0)
    return by_def(context)


@pytest.mark.parametrize("instruction", [by_def, by_async_def])
def test_the_instruction_may_be_a_function_of_the_context(instruction):
    model = ScriptedModel([ToolCalls(add={"a": 1, "b": 2}), "ok"])
    play(
        ChatModelAgent(name="a", instruction=instruction, model=model, tools=[add]),
        session_values={"mood": "{mood}"},
    )
    assert [asked(model, number)[0] for number in (0, 1)] == [("system", "You are a, {mood}.")] * 2


def test_an_instruction_function_that_raises_is_the_agents_error():
    def instruction(context):
        raise LookupError("no mood")

    result = play(ChatModelAgent(name="a", instruction=instruction, model=ScriptedModel([])))
    assert [shown(event) for event in result.events] == ["error LookupError"]


def test_an_instruction_function_that_returns_no_text_is_told_so():
    result = play(
        ChatModelAgent(name="a", instruction=lambda context: None, model=ScriptedModel([]))
    )
    assert isinstance(result.error, UsageError)
    assert "instruction function must return a string, got None" in str(result.error)


def test_make_model_input_makes_what_the_model_is_given(run):
    model = ScriptedModel([ToolCalls(add={"a": 1, "b": 2}), "ok"])
    seen = []

    async def make(instruction, given, context):
        seen.append((instruction, given.messages, given.streaming, context.agent_name))
        return [Message.user("before"), *given.messages, Message.system(instruction)]

    play(
        ChatModelAgent(
            name="a", instruction="I am {x}", model=model, tools=[add], make_model_input=make
        ),
        session_values={"x": 1},
    )
    assert seen == [("I am 1", (Message.user("go"),), False, "a")]
    assert asked(model, 0) == [("user", "before"), ("user", "go"), ("system", "I am 1")]
    assert asked(model, 1) == [*asked(model, 0), ("assistant", ""), ("tool", "3")]


def test_make_model_input_may_be_a_plain_function():
    model = ScriptedModel(["ok"])
    play(
        ChatModelAgent(
            name="a",
            model=model,
            make_model_input=lambda instruction, given, context: given.messages[:1],
        )
    )
    assert asked(model) == [("user", "go")]


@pytest.mark.parametrize("wrong", ["text", [None], None, 5], ids=str)
def test_make_model_input_is_told_when_it_returns_no_messages(wrong):
    result = play(
        ChatModelAgent(name="a", model=ScriptedModel([]), make_model_input=lambda *_: wrong)
    )
    assert isinstance(result.error, UsageError), result.error
    assert "make_model_input" in str(result.error)


# --- the bound ---


def endless(request):
    return ToolCalls(add={"a": 1, "b": 1})


def test_max_iterations_counts_model_calls():
    model = ScriptedModel([endless] * 3)
    result = play(ChatModelAgent(name="a", model=model, tools=[add], max_iterations=3))
    assert [shown(event) for event in result.events] == [
        """assistant '' ->add{"a":1,"b":1}""",
        "tool(add) '2'",
    ] * 3 + ["error MaxIterationsExceeded"]
    assert len(model.requests) == 3
    assert result.status == "failed"
    assert isinstance(result.error, MaxIterationsExceeded)
    assert result.error.agent == "a"
    assert "max_iterations" in str(result.error)


def test_the_last_call_that_is_allowed_may_answer():
    model = ScriptedModel([endless, endless, "done"])
    assert (
        play(ChatModelAgent(name="a", model=model, tools=[add], max_iterations=3)).final_output
        == "done"
    )


def test_the_default_bound_is_twenty():
    model = ScriptedModel([endless] * 21)
    result = play(ChatModelAgent(name="a", model=model, tools=[add]))
    assert isinstance(result.error, MaxIterationsExceeded)
    assert len(model.requests) == 20


# --- ends ---


def test_the_exit_tool_ends_the_run_with_its_result():
    model = ScriptedModel([ToolCalls(exit={"final_result": "final result"})])
    result = play(ChatModelAgent(name="a", model=model, exit_tool=True))
    assert [shown(event) for event in result.events] == [
        """assistant '' ->exit{"final_result":"final result"}""",
        "tool(exit) 'final result' {Exit}",
    ]
    assert result.status == "completed"
    assert result.final_output == "final result"
    assert [spec.name for spec in model.requests[0].tools] == ["exit"]


def test_the_exit_tool_may_stand_among_the_tools():
    model = ScriptedModel([ToolCalls(("exit", {"final_result": "bye"}), ("add", {"a": 1, "b": 2}))])
    result = play(ChatModelAgent(name="a", model=model, tools=[exit_tool, add]))
    assert [shown(event) for event in result.events][1:] == [
        "tool(add) '3'",
        "tool(exit) 'bye' {Exit}",
    ]


def test_a_tool_of_ones_own_as_exit_tool_ends_the_run():
    @tool
    def finish(answer: str) -> str:
        return f"<{answer}>"

    model = ScriptedModel([ToolCalls(finish={"answer": "42"})])
    result = play(ChatModelAgent(name="a", model=model, tools=[add], exit_tool=finish))
    assert result.status == "completed"
    assert result.final_output == "<42>"
    assert result.events[-1].action == Exit()


@pytest.mark.parametrize(
    ("script", "text"),
    [
        (["x"], "x"),
        ([ToolCalls(shout={"text": "x"})], "X"),
        ([ToolCalls(exit={"final_result": "x"})], "x"),
    ],
    ids=["reply", "returned directly", "exit"],
)
def test_output_key_puts_the_text_of_the_last_message_into_the_session_values(script, text):
    agent = ChatModelAgent(
        name="a",
        model=ScriptedModel(script),
        tools=[shout],
        return_directly=["shout"],
        exit_tool=True,
        output_key="answer",
    )
    assert play(agent).session_values == {"answer": text}


def test_output_key_is_not_written_when_the_agent_fails():
    agent = ChatModelAgent(
        name="a", model=ScriptedModel([endless]), tools=[add], max_iterations=1, output_key="answer"
    )
    assert play(agent, session_values={"answer": "old"}).session_values == {"answer": "old"}


# --- models that do what they should not ---


class Model:
    """A model whose generate returns what it is given."""

    def __init__(self, reply):
        self.reply = reply

    async def generate(self, request):
        if isinstance(self.reply, BaseException):
            raise self.reply
        return self.reply


@pytest.mark.parametrize(
    "reply",
    [
        None,
        "text",
        5,
        pytest.param(Message.user("hi"), id="user"),
        pytest.param(Message.system("hi"), id="system"),
        pytest.param(Message.tool("x", "1", "add"), id="tool"),
    ],
)
def test_a_model_that_returns_no_assistant_message_has_misbehaved(reply):
    result = play(ChatModelAgent(name="a", model=Model(reply)))
    assert isinstance(result.error, ModelBehaviorError), repr(result.error)
    assert "assistant" in str(result.error)
    assert [shown(event) for event in result.events] == ["error ModelBehaviorError"]


@pytest.mark.parametrize(
    "error",
    [
        ModelError("down"),
        ValueError("bad"),
        asyncio.CancelledError(),
        StopIteration(),
        StopAsyncIteration(),
        TimeoutError(),
    ],
    ids=repr,
)
def test_a_model_that_raises_fails_the_agent(error):
    result = play(ChatModelAgent(name="a", model=Model(error)), timeout=10)
    assert result.status == "failed"
    assert len(result.events) == 1
    assert result.events[0].error is result.error
    if isinstance(error, ModelError | ValueError | TimeoutError):
        assert result.error is error


def test_a_model_may_return_a_message_of_a_class_of_its_own():
    class Annotated(Message):
        pass

    result = play(ChatModelAgent(name="a", model=Model(Annotated("assistant", "hi"))))
    assert result.final_output == "hi"


def test_a_model_whose_generate_is_no_coroutine_function_fails_the_agent():
    class Sync:
        def generate(self, request):
            return Message.assistant("hi")

    assert play(ChatModelAgent(name="a", model=Sync())).status == "failed"


@pytest.mark.parametrize("ids", [("", ""), ("x", "x"), ("", "x"), ("x", "")])
def test_calls_without_an_id_or_with_one_that_is_not_unique_keep_their_own_results(ids):
    calls = tuple(ToolCall(one, "add", f'{{"a":{number},"b":0}}') for number, one in enumerate(ids))
    model = ScriptedModel([Message.assistant("", calls), Message.assistant("", calls), "done"])
    result = play(ChatModelAgent(name="a", model=model, tools=[add]))
    assert result.final_output == "done"
    for reply, first, second in (
        model.requests[-1].messages[1:4],
        model.requests[-1].messages[4:7],
    ):
        made = [call.id for call in reply.tool_calls]
        assert len(set(made)) == 2
        assert all(made)
        assert [first.tool_call_id, second.tool_call_id] == made
        assert [first.text, second.text] == ["0", "1"]
    replies = [event.message for event in result.events if event.message.tool_calls]
    assert replies == [message for message in model.requests[-1].messages if message.tool_calls]


def test_the_settings_of_the_agent_reach_the_model():
    model = ScriptedModel(["ok"])
    play(
        ChatModelAgent(
            name="a", model=model, model_settings=ModelSettings(temperature=0.5, tool_choice="none")
        )
    )
    assert model.requests[0].settings.temperature == 0.5
    assert model.requests[0].tool_choice == "none"


@pytest.mark.parametrize("choice", ["required", "add"])
@pytest.mark.parametrize("where", ["agent", "model"])
def test_after_the_first_round_of_tools_the_model_may_answer(choice, where):
    model = ScriptedModel(
        [ToolCalls(add={"a": 1, "b": 2}), ToolCalls(add={"a": 3, "b": 4}), "done"]
    )
    settings = ModelSettings(tool_choice=choice)
    if where == "model":
        model.settings = settings  # as one of OpenAI's has them
    play(
        ChatModelAgent(
            name="a",
            model=model,
            tools=[add],
            model_settings=settings if where == "agent" else None,
        )
    )
    first, *others = [request.tool_choice for request in model.requests]
    assert first == (choice if where == "agent" else None)
    assert others == ["auto", "auto"]
    assert [request.settings.tool_choice for request in model.requests] == [first, *others]


def test_a_choice_that_is_not_to_be_reset_stays():
    model = ScriptedModel([ToolCalls(add={"a": 1, "b": 2}), "done"])
    agent = ChatModelAgent(
        name="a",
        model=model,
        tools=[add],
        model_settings=ModelSettings(tool_choice="required"),
        reset_tool_choice=False,
    )
    play(agent)
    assert [request.tool_choice for request in model.requests] == ["required", "required"]


def test_a_choice_that_leaves_the_model_free_stays_as_it_is():
    model = ScriptedModel([ToolCalls(add={"a": 1, "b": 2}), "done"])
    play(
        ChatModelAgent(
            name="a", model=model, tools=[add], model_settings=ModelSettings(tool_choice="none")
        )
    )
    assert [request.tool_choice for request in model.requests] == ["none", "none"]


def test_the_order_that_the_calls_come_in_is_the_order_that_the_model_sees_although_a_middleware_changes_the_reply():
    class Twice(Middleware):
        def after_model(self, context, message):
            return (
                Message.assistant("", (*message.tool_calls, *message.tool_calls))
                if message.tool_calls
                else None
            )

    model = ScriptedModel([ToolCalls(add={"a": 1, "b": 2}), "done"])
    result = play(ChatModelAgent(name="a", model=model, tools=[add], middleware=[Twice()]))
    assert asked(model) == [("user", "go"), ("assistant", ""), ("tool", "3"), ("tool", "3")]
    assert result.status == "completed"


def test_instructions_is_another_spelling_of_instruction():
    model = ScriptedModel(["hello"])
    Runner(ChatModelAgent(name="A", instructions="Be brief.", model=model)).query("q").result()
    assert (model.requests[0].messages[0].role, model.requests[0].messages[0].text) == (
        "system",
        "Be brief.",
    )
    with pytest.raises(UsageError, match="two spellings of one parameter"):
        ChatModelAgent(name="A", instruction="a", instructions="b", model=model)
