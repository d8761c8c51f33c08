"""Short spellings: `Runner.run_sync` and `Run.text_stream`."""

import asyncio
from contextlib import aclosing

import pytest

from offbook.actors import ChatModelAgent, Parallel
from offbook.runtime import Message, ModelError, Runner, ScriptedModel, UsageError
from tests.doubles.agents import PlannedAgent


async def never(_context):
    await asyncio.get_running_loop().create_future()


def agent(*replies, name="A"):
    return ChatModelAgent(name=name, model=ScriptedModel(list(replies)))


def test_run_sync_returns_the_result():
    result = Runner(agent("hello")).run_sync([Message.user("hi")], session_values={"key": 1})
    assert (result.text, result.session_values) == ("hello", {"key": 1})


def test_run_sync_in_a_coroutine_is_refused(run):
    async def main():
        with pytest.raises(UsageError, match="await"):
            Runner(agent("hello")).run_sync("hi")

    run(main())


@pytest.mark.parametrize("streaming", [False, True])
def test_a_text_stream_is_all_that_the_agents_say(run, streaming):
    async def main():
        asked = Runner(agent("hello, you two")).query("hi", streaming=streaming)
        texts = [text async for text in asked.text_stream()]
        assert "".join(texts) == "hello, you two"
        assert (len(texts) > 1) is streaming

    run(main())


def test_a_text_stream_of_agents_in_parallel_has_each_message_once(run):
    async def main():
        both = Parallel(name="P", sub_agents=[agent("one", name="A"), PlannedAgent("B", "two")])
        texts = [text async for text in Runner(both, streaming=True).query("hi").text_stream()]
        assert sorted("".join(texts)) == sorted("onetwo")

    run(main())


def test_a_text_stream_of_a_run_that_fails_raises(run):
    async def main():
        with pytest.raises(ModelError, match="down"):
            async for _ in Runner(agent(ModelError("down"))).query("hi").text_stream():
                pass

    run(main())


def test_leaving_a_text_stream_cancels_the_run(run):
    async def main():
        asked = Runner(PlannedAgent("A", "one", never)).query("hi")
        async with aclosing(asked.text_stream()) as texts:
            assert await anext(texts) == "one"
        assert (await asked).status == "cancelled"

    run(main())
