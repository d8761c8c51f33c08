"""What is said of mistakes that are easily made: what is wrong, where, and what to do."""

import asyncio

import pytest

from offbook.actors import Agent, ChatModelAgent, Sequential
from offbook.runtime import (
    ActorSystem,
    AgentEvent,
    MemoryStore,
    Message,
    Runner,
    RunStatus,
    ScriptedModel,
    UsageError,
)


class Forgets:
    """A model whose generate() takes no request."""

    async def generate(self):
        return Message.assistant("hi")


class AsOthersHaveIt:
    async def generate(self, messages, tools):
        return Message.assistant("hi")

    async def stream(self, messages, tools):
        yield Message.assistant("hi")


class FailsWithin:
    async def generate(self, request):
        return Message.assistant("hi" + 1)


@pytest.mark.parametrize(
    ("model", "streaming"),
    [(Forgets(), False), (Forgets(), True), (AsOthersHaveIt(), False), (AsOthersHaveIt(), True)],
)
def test_a_model_that_takes_no_request_is_told_how_its_method_is_written(model, streaming):
    result = Runner(ChatModelAgent(name="A", model=model)).query("q", streaming=streaming).result()
    assert isinstance(result.error, UsageError)
    method = "stream" if streaming and isinstance(model, AsOthersHaveIt) else "generate"
    assert f"{type(model).__name__}.{method}()" in str(result.error)
    assert f"Write `async def {method}(self, request)`" in str(result.error)


def test_a_type_error_of_the_model_itself_is_left_as_it_is():
    result = Runner(ChatModelAgent(name="A", model=FailsWithin())).query("q").result()
    assert type(result.error) is TypeError


class Asks(Agent):
    async def run(self, input, context):
        context.state["client"] = {"open": [lambda: None]}
        yield context.interrupt("well?")


class Says(Agent):
    async def run(self, input, context):
        context.state["client"] = {"open": [lambda: None]}
        yield AgentEvent.say("one")
        yield AgentEvent.say("two")


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize("kind", [Asks, Says])
def test_state_that_cannot_be_kept_is_named_by_its_agent_and_its_key(durability, kind):
    first = ChatModelAgent(name="first", model=ScriptedModel(["one"]))
    runner = Runner(
        Sequential(name="all", sub_agents=[first, kind(name="second")]),
        store=MemoryStore(),
        durability=durability,
    )
    result = runner.query("q").result()
    if kind is Says and durability == "interrupt":
        assert result.status is RunStatus.COMPLETED
        return
    assert "agent 'second': context.state['client'] cannot be stored" in str(result.error)
    assert "['open'][0] is a function" in str(result.error)
    assert "image" not in str(result.error)


@pytest.mark.parametrize("session_id", [42, "", b"s"])
def test_a_session_id_is_a_text(session_id):
    with pytest.raises(UsageError, match="session_id must be a string that is not empty, got"):
        Runner(ChatModelAgent(name="A", model=ScriptedModel([]))).query("q", session_id=session_id)


@pytest.mark.parametrize(
    ("given", "instead"),
    [
        ("redis://localhost", "RedisStore('redis://localhost')"),
        ("postgresql://me:secret@host/db", "PostgresStore("),
        ("runs.db", "SQLiteStore('runs.db')"),
        ("sqlite:///runs.db", "SQLiteStore('runs.db')"),
    ],
)
def test_a_text_in_place_of_a_store_is_answered_with_the_store_that_is_meant(given, instead):
    with pytest.raises(UsageError) as raised:
        Runner(ChatModelAgent(name="A", model=ScriptedModel([])), store=given)
    assert instead in str(raised.value)
    assert "secret" not in str(raised.value)


def test_a_runner_whose_system_was_left_says_so():
    agent = ChatModelAgent(name="A", model=ScriptedModel(["hi"]))

    async def make():
        async with ActorSystem() as system:
            return Runner(agent, system=system, store=MemoryStore())

    runner = asyncio.run(make())
    for start in (
        lambda: runner.query("q").result(),
        lambda: runner.session("s").query("q").result(),
        lambda: asyncio.run(_ask(runner)),
    ):
        with pytest.raises(UsageError, match=r"is stopped\. Make a new system"):
            start()


async def _ask(runner):
    return await runner.query("q")
