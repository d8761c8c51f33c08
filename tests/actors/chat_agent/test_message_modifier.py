"""`message_modifier=`: what stands between the messages of a run and what the model is given of
them, at each of its calls.
"""

import pytest

from offbook.actors import ChatModelAgent, Middleware, tool
from offbook.runtime import MemoryStore, Message, Runner, ScriptedModel, ToolCalls, UsageError


@tool
def echo(text: str) -> str:
    return text


def texts(request):
    return [f"{message.role}: {message.text}" for message in request.messages]


def agent_of(modifier, script, **options):
    model = ScriptedModel(script)
    return ChatModelAgent(
        name="a",
        instruction="Be brief.",
        model=model,
        tools=[echo],
        message_modifier=modifier,
        **options,
    ), model


def test_it_is_given_the_context_and_all_that_the_model_would_be_given_before_each_call():
    """Seed `002`: all messages are in the state; before they go to the model, the MessageModifier
    has them.
    """
    seen = []

    def modify(context, messages):
        seen.append((context.agent_name, [message.role for message in messages]))
        return [Message.system("You are a cook."), *messages[1:]]

    agent, model = agent_of(modify, [ToolCalls(echo={"text": "x"}), "done"])
    Runner(agent).query("q").result().raise_for_error()
    assert seen == [("a", ["system", "user"]), ("a", ["system", "user", "assistant", "tool"])]
    assert [texts(request)[0] for request in model.requests] == ["system: You are a cook."] * 2
    assert texts(model.requests[1]) == [
        "system: You are a cook.",
        "user: q",
        "assistant: ",
        "tool: x",
    ]


def test_nothing_of_it_is_recorded(run):
    """It is asked anew each time, for what was said as it was said."""

    async def modify(context, messages):
        return [*messages[:-1], Message.user(f"{messages[-1].text}!")]

    agent, model = agent_of(modify, ["one", "two"])

    async def main():
        session = Runner(agent, store=MemoryStore()).session("s")
        await session.query("q")
        await session.query("r")
        assert [message.text for message in await session.history()] == ["q", "one", "r", "two"]

    run(main())
    assert texts(model.requests[1]) == [
        "system: Be brief.",
        "user: q",
        "assistant: one",
        "user: r!",
    ]


def test_it_may_leave_out_messages_and_no_call_loses_its_result():
    agent, model = agent_of(
        lambda context, messages: messages[-1:],
        [ToolCalls(echo={"text": "x"}), ToolCalls(echo={"text": "y"}), "done"],
    )
    assert Runner(agent).query("q").result().final_output == "done"
    assert [texts(request) for request in model.requests] == [
        ["user: q"],
        [],
        [],
    ]  # the result alone, without its call, is not given

    agent, model = agent_of(
        lambda context, messages: messages[:3], [ToolCalls(echo={"text": "x"}), "done"]
    )
    assert Runner(agent).query("q").result().final_output == "done"
    assert texts(model.requests[1])[2:] == ["assistant: ", "tool: The call was not completed."]


def test_it_comes_behind_make_model_input_and_before_middleware():
    class Last(Middleware):
        def before_model(self, context, request):
            assert texts(request) == ["system: made", "user: modified"]

    agent, model = agent_of(
        lambda context, messages: [*messages, Message.user("modified")],
        ["done"],
        make_model_input=lambda instruction, given, context: [Message.system("made")],
        middleware=[Last()],
    )
    assert Runner(agent).query("q").result().final_output == "done"
    assert texts(model.requests[0]) == ["system: made", "user: modified"]


@pytest.mark.parametrize("wrong", [None, "text", [1]])
def test_what_is_no_messages_is_the_agents_error(wrong):
    agent, _ = agent_of(lambda context, messages: wrong, ["done"])
    result = Runner(agent).query("q").result()
    assert isinstance(result.error, UsageError)
    assert "agent 'a': message_modifier must return a sequence of Message, got" in str(result.error)


def test_what_it_raises_is_the_agents_error():
    def modify(context, messages):
        raise ValueError("no salt")

    agent, _ = agent_of(modify, ["done"])
    assert "no salt" in str(Runner(agent).query("q").result().error)


def test_what_is_no_function_is_refused():
    with pytest.raises(
        UsageError, match="message_modifier must be a function of context and messages, got 'x'"
    ):
        agent_of("x", [])
