"""What stands between an agent and its model and tools: in which order, what it may change, and
what becomes of its errors.
"""

import pytest

from offbook.actors import AgentInput, ChatModelAgent, Middleware, tool
from offbook.runtime import (
    Message,
    ModelError,
    ModelSettings,
    Runner,
    ScriptedModel,
    ToolCall,
    ToolCalls,
    Usage,
    UsageError,
)

METHODS = ("before_agent", "before_model", "wrap_model", "after_model", "wrap_tool", "after_agent")


@tool
def echo(text: str) -> str:
    return text


def calls_then_done():
    return ScriptedModel([ToolCalls(echo={"text": "x"}), "done"])


def play(middleware, model=None, streaming=False, tools=(echo,), **options):
    model = model or calls_then_done()
    agent = ChatModelAgent(name="a", model=model, tools=tools, middleware=middleware, **options)
    return Runner(agent).query("go", streaming=streaming).result(20), model


class Log(Middleware):
    """Notes what it sees, with its name."""

    def __init__(self, name, log):
        self.name = name
        self.log = log

    def before_agent(self, context, input):
        assert context.agent_name == "a"
        assert input.messages == (Message.user("go"),)
        self.log.append(f"{self.name} before_agent")

    async def after_agent(self, context, message):
        self.log.append(f"{self.name} after_agent {message.text}")

    async def before_model(self, context, request):
        self.log.append(f"{self.name} before_model")

    def after_model(self, context, message):
        self.log.append(f"{self.name} after_model")

    async def wrap_model(self, context, request, call):
        self.log.append(f"{self.name} wrap_model in")
        reply = await call(request)
        self.log.append(f"{self.name} wrap_model out")
        return reply

    async def wrap_tool(self, context, tool_call, call):
        self.log.append(f"{self.name} wrap_tool in {context.tool_name}")
        result = await call(tool_call)
        self.log.append(f"{self.name} wrap_tool out {result}")
        return result


@pytest.mark.parametrize("streaming", [False, True])
def test_the_first_registered_is_the_outermost(streaming):
    log = []
    result, _ = play([Log("1", log), Log("2", log)], streaming=streaming)
    asking = [
        "1 before_model",
        "2 before_model",
        "1 wrap_model in",
        "2 wrap_model in",
        "2 wrap_model out",
        "1 wrap_model out",
        "2 after_model",
        "1 after_model",
    ]
    calling = [
        "1 wrap_tool in echo",
        "2 wrap_tool in echo",
        "2 wrap_tool out x",
        "1 wrap_tool out x",
    ]
    assert log == [
        "1 before_agent",
        "2 before_agent",
        *asking,
        *calling,
        *asking,
        "2 after_agent done",
        "1 after_agent done",
    ]
    assert result.final_output == "done"
    assert result.status == "completed"


def test_a_middleware_that_overrides_nothing_changes_nothing():
    class Idle(Middleware):
        pass

    plain, _ = play([])
    result, _ = play([Idle(), Middleware()])
    assert [event.message for event in result.events] == [event.message for event in plain.events]


def test_the_base_methods_may_be_called():
    class Polite(Middleware):
        def before_agent(self, context, input):
            return super().before_agent(context, input)

        def after_model(self, context, message):
            return super().after_model(context, message)

        async def wrap_model(self, context, request, call):
            return await super().wrap_model(context, request, call)

        async def wrap_tool(self, context, tool_call, call):
            return await super().wrap_tool(context, tool_call, call)

    result, _ = play([Polite()])
    assert result.final_output == "done"


def test_what_they_return_is_what_goes_on():
    class Change(Middleware):
        async def before_agent(self, context, input):
            return input.replace(messages=(*input.messages, Message.user("please")))

        def before_model(self, context, request):
            return request.replace(
                settings=ModelSettings(temperature=1.0),
                messages=(*request.messages, Message.system("now")),
            )

        async def after_model(self, context, message):
            return message.replace(content=message.text.upper()) if not message.tool_calls else None

        async def wrap_tool(self, context, tool_call, call):
            return await call(tool_call.replace(arguments='{"text":"changed"}')) + "!"

    result, model = play([Change()])
    first, second = model.requests
    assert [message.text for message in first.messages] == ["go", "please", "now"]
    assert [message.text for message in second.messages] == ["go", "please", "", "changed!", "now"]
    assert first.settings.temperature == 1.0
    assert [event.message.text for event in result.events] == ["", "changed!", "DONE"]
    assert second.messages[2].tool_calls[0].arguments == '{"text":"x"}'


def test_each_sees_what_the_one_before_it_has_made():
    class Add(Middleware):
        def __init__(self, word):
            self.word = word

        def before_agent(self, context, input):
            return AgentInput((*input.messages, Message.user(self.word)), input.streaming)

        def after_model(self, context, message):
            return message.replace(content=f"{message.text} {self.word}")

    result, model = play([Add("1"), Add("2")], ScriptedModel(["done"]))
    assert [message.text for message in model.requests[0].messages] == ["go", "1", "2"]
    assert result.final_output == "done 2 1"


def test_a_tool_call_that_after_model_adds_is_made():
    class Add(Middleware):
        def after_model(self, context, message):
            if message.text == "done" and "added" not in context.state:
                context.state["added"] = True
                return Message.assistant("", (ToolCall("", "echo", '{"text":"added"}'),))

    result, model = play([Add()], ScriptedModel(["done", "done"]))
    assert [event.message.text for event in result.events] == ["", "added", "done"]
    assert model.requests[1].messages[-1].tool_call_id


def test_wrap_model_may_answer_without_the_model_or_ask_it_again():
    class Cache(Middleware):
        async def wrap_model(self, context, request, call):
            return Message.assistant("cached")

    class Again(Middleware):
        async def wrap_model(self, context, request, call):
            try:
                return await call(request)
            except ModelError:
                return await call(request.replace(messages=(Message.user("shorter"),)))

    result, model = play([Cache()])
    assert (result.final_output, model.requests) == ("cached", [])
    result, model = play([Again()], ScriptedModel([ModelError("too long"), "fine"]))
    assert result.final_output == "fine"
    assert [request.messages[0].text for request in model.requests] == ["go", "shorter"]
    assert [event.error for event in result.events] == [None]


def test_what_each_reply_has_cost_is_counted_when_wrap_model_asks_twice():
    class Twice(Middleware):
        async def wrap_model(self, context, request, call):
            await call(request)
            return await call(request)

    usage = Usage(10, 5, 1, 1)
    result, _ = play(
        [Twice()],
        ScriptedModel([Message.assistant("1", usage=usage), Message.assistant("2", usage=usage)]),
    )
    assert result.usage == usage + usage


def test_what_a_reply_has_cost_is_counted_although_after_model_puts_another_in_its_place():
    class Other(Middleware):
        def after_model(self, context, message):
            return Message.assistant("other")

    usage = Usage(10, 5, 1, 1)
    result, _ = play([Other()], ScriptedModel([Message.assistant("1", usage=usage)]))
    assert result.usage == usage


def test_what_a_reply_has_cost_is_counted_although_after_model_fails():
    class Failing(Middleware):
        def after_model(self, context, message):
            raise LookupError("x")

    usage = Usage(10, 5, 1, 1)
    result, _ = play([Failing()], ScriptedModel([Message.assistant("1", usage=usage)]))
    assert result.usage == usage


@pytest.mark.parametrize("name", ["problem", "returned"])
def test_any_name_may_be_used_in_the_state(name):
    class Note(Middleware):
        def after_model(self, context, message):
            context.state[name] = "mine"

    result, _ = play([Note()])
    assert result.status == "completed"
    assert result.final_output == "done"


def test_wrap_tool_may_answer_without_the_tool_or_call_it_again():
    made = []

    @tool
    async def flaky() -> str:
        made.append(1)
        if len(made) == 1:
            raise ValueError("first")
        return "second"

    class Again(Middleware):
        async def wrap_tool(self, context, tool_call, call):
            if tool_call.name == "echo":
                return {"blocked": tool_call.name}
            try:
                return await call(tool_call)
            except ValueError:
                return await call(tool_call)

    result, _ = play(
        [Again()],
        ScriptedModel([ToolCalls(("flaky", {}), ("echo", {"text": "x"})), "done"]),
        tools=[flaky, echo],
    )
    assert {
        event.message.tool_name: event.message.text
        for event in result.events
        if event.message.role == "tool"
    } == {
        "flaky": "second",
        "echo": '{"blocked":"echo"}',
    }


# --- def or async def ---


class Plain(Middleware):
    """Each method as a plain function, that returns a result or an awaitable."""

    def wrap_model(self, context, request, call):
        return call(request)

    def wrap_tool(self, context, tool_call, call):
        return call(tool_call)


def test_plain_wrappers_may_hand_on_what_they_are_given():
    result, _ = play([Plain()])
    assert result.final_output == "done"


@pytest.mark.parametrize("method", ["wrap_model", "wrap_tool"])
def test_plain_wrappers_may_answer_themselves(method):
    answers = {"wrap_model": Message.assistant("done"), "wrap_tool": "x"}
    made = type(
        "Answer", (Middleware,), {method: lambda self, context, given, call: answers[method]}
    )
    result, _ = play([made()])
    assert result.status == "completed"
    assert result.final_output == "done"
    assert not any("failed" in event.message.text for event in result.events)


# --- errors ---


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize("method", METHODS)
def test_an_error_in_one_is_an_error_event(method, kind, streaming):
    def fail(self, *args):
        raise LookupError(method)

    async def fail_async(self, *args):
        raise LookupError(method)

    made = type("Failing", (Middleware,), {method: fail if kind == "def" else fail_async})
    after = []

    class After(Middleware):
        def after_agent(self, context, message):
            after.append(message)

    result, _ = play([made(), After()], streaming=streaming, on_tool_error="raise")
    assert result.status == "failed"
    assert result.events[-1].error is result.error
    assert isinstance(
        result.error if method != "wrap_tool" else result.error.__cause__, LookupError
    )
    assert len(after) == (method == "after_agent"), "after_agent only after success"


def test_an_error_in_wrap_tool_is_as_one_of_the_tool():
    class Failing(Middleware):
        async def wrap_tool(self, context, tool_call, call):
            raise PermissionError("not this one")

    result, model = play([Failing()])
    assert result.final_output == "done"
    assert model.requests[1].messages[-1].text == "tool echo failed: PermissionError: not this one"


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ([ModelError("down")], "failed"),
        ([ToolCalls(ask={})], "interrupted"),
        ([ToolCalls(echo={"text": "x"})] * 2, "failed"),
    ],
)
def test_after_agent_is_not_called_when_the_agent_has_not_come_to_its_end(script, status):
    log = []

    @tool(needs_approval=True)
    def ask() -> str:
        return "x"

    result, _ = play([Log("1", log)], ScriptedModel(script), tools=[echo, ask], max_iterations=2)
    assert result.status == status
    assert not [line for line in log if "after_agent" in line]


@pytest.mark.parametrize(
    ("script", "options"),
    [
        ([ToolCalls(echo={"text": "x"})], {"return_directly": ["echo"]}),
        ([ToolCalls(exit={"final_result": "x"})], {"exit_tool": True}),
    ],
    ids=["returned directly", "exit"],
)
def test_after_agent_is_called_after_each_kind_of_success(script, options):
    log = []
    result, _ = play([Log("1", log)], ScriptedModel(script), **options)
    assert result.status == "completed"
    assert log[-1] == "1 after_agent x"


@pytest.mark.parametrize("wrong", ["text", 5, {"role": "assistant"}], ids=str)
def test_a_wrap_model_that_returns_no_message_is_an_error_event(wrong):
    class Wrong(Middleware):
        async def wrap_model(self, context, request, call):
            return wrong

    result, _ = play([Wrong()])
    assert result.status == "failed"
    assert result.events[-1].error is result.error


@pytest.mark.parametrize("method", ["before_agent", "before_model", "after_model"])
def test_what_is_none_of_what_it_should_return_is_an_error_that_names_the_middleware(method):
    made = type("Wrong", (Middleware,), {method: lambda self, *args: "text"})
    result, _ = play([made()])
    assert isinstance(result.error, UsageError)
    assert f"Wrong.{method}" in str(result.error)
