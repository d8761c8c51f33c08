"""Models and agents of one's own that are almost such: the error says what is wrong, and what to
do.
"""

import pytest

from offbook.actors import Agent, ChatModelAgent, make_planner
from offbook.runtime import (
    AgentEvent,
    FailoverModel,
    LimitedModel,
    Message,
    RetryModel,
    Runner,
    ScriptedModel,
    UsageError,
)


class Plain:
    """Its `generate` is no coroutine function."""

    def generate(self, request):
        return Message.assistant("hi")


class Forwards:
    """A plain function that returns what can be awaited."""

    def __init__(self):
        self.inner = ScriptedModel(["hi"])

    def generate(self, request):
        return self.inner.generate(request)


class BadStream(ScriptedModel):
    async def stream(self, request):
        return [Message.assistant("hi")]


def play(agent, **options):
    return Runner(agent, **options).query("go").result(10)


# --- models ---


@pytest.mark.parametrize(
    "around",
    [
        lambda model: model,
        RetryModel,
        lambda model: FailoverModel([model]),
        lambda model: LimitedModel(model, max_concurrency=1),
    ],
)
def test_a_model_whose_generate_is_a_plain_function(around):
    for agent in (ChatModelAgent(name="A", model=around(Plain())), make_planner(around(Plain()))):
        result = play(agent)
        assert isinstance(result.error, UsageError)
        assert "plain function" in str(result.error)
        assert "async def generate" in str(result.error)
        assert "Plain" in str(result.error)


def test_the_same_while_streaming():
    assert "async def generate" in str(
        play(ChatModelAgent(name="A", model=Plain()), streaming=True).error
    )


def test_a_model_that_forwards_is_one():
    assert play(ChatModelAgent(name="A", model=Forwards())).final_output == "hi"


def test_a_stream_that_is_none():
    result = play(ChatModelAgent(name="A", model=BadStream(["hi"])), streaming=True)
    assert isinstance(result.error, UsageError)
    assert "stream()" in str(result.error)
    assert "yield" in str(result.error)


# --- agents ---


class NoGenerator(Agent):
    async def run(self, input, context):
        return [AgentEvent.say("hi")]


class Listed(Agent):
    def run(self, input, context):
        return [AgentEvent.say("hi")]


class Sync(Agent):
    def run(self, input, context):
        yield AgentEvent.say("hi")


class Nothing(Agent):
    async def run(self, input, context):
        pass


@pytest.mark.parametrize("kind", [NoGenerator, Listed, Sync, Nothing])
def test_an_agent_whose_run_is_no_async_generator(kind):
    result = play(kind(name="A"))
    assert isinstance(result.error, UsageError)
    assert all(
        part in str(result.error) for part in (kind.__name__, "'A'", "async def run", "yield")
    )


class NoParameters(Agent):
    async def run(self):
        yield AgentEvent.say("hi")


def test_an_agent_whose_run_takes_something_else():
    result = play(NoParameters(name="A"))
    assert isinstance(result.error, UsageError)
    assert all(
        part in str(result.error) for part in ("NoParameters", "'A'", "run(self, input, context)")
    )


class Raises(Agent):
    async def run(self, input, context):
        raise TypeError("its own")
        yield


def test_what_an_agent_raises_itself_stays_what_it_is():
    result = play(Raises(name="A"))
    assert (type(result.error), str(result.error)) == (TypeError, "its own")


class Duck:
    """Has the methods of an agent, and is none."""

    name = "duck"

    async def run(self, input, context):
        yield AgentEvent.say("quack")


class Forgetful(Agent):
    def __init__(self):
        pass

    async def run(self, input, context):
        yield AgentEvent.say("hi")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (Duck(), ["'duck'", "Duck", "sub_agents", "offbook.actors.Agent"]),
        (Duck, ["is a class", "Duck(...)"]),
        (Nothing, ["is a class", "Nothing(...)"]),
        (Forgetful(), ["super().__init__"]),
        (5, ["5 is not an agent"]),
        (Message.user("x"), ["not an agent"]),
    ],
)
def test_what_is_no_agent(given, words):
    with pytest.raises(UsageError) as raised:
        Runner(given)
    assert all(word in str(raised.value) for word in words), str(raised.value)


@pytest.mark.parametrize("model", [Plain, ScriptedModel, object(), 5])
def test_what_is_no_model(model):
    with pytest.raises(UsageError, match=r"'A'.*model must be a ChatModel.*, got "):
        ChatModelAgent(name="A", model=model)
