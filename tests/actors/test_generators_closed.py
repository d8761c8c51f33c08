"""Async generators of users are closed on their loop, once, when nothing more of them is wanted."""

import asyncio

import pytest

from offbook.actors import Agent, ChatModelAgent
from offbook.runtime import AgentEvent, Exit, LimitedModel, MessageDelta, RetryModel, Runner


@pytest.mark.parametrize("kind", ["generator", "iterable"])
def test_an_agents_run_is_closed_when_it_has_ended_before_its_end(run, kind):
    closed = []

    async def events():
        try:
            yield AgentEvent.of(AgentEvent.say("x").message, Exit())
            yield AgentEvent.say("not taken")
        finally:
            closed.append(asyncio.get_running_loop())

    class Iterable:
        def __aiter__(self):
            return events()

    class Own(Agent):
        def run(self, input, context):
            return events() if kind == "generator" else Iterable()

    async def main():
        assert (await Runner(Own(name="A")).query("go")).status == "completed"
        assert closed == [asyncio.get_running_loop()]

    run(main())
    assert len(closed) == 1


@pytest.mark.parametrize(
    "wrap",
    [lambda model: model, RetryModel, lambda model: LimitedModel(model, max_concurrency=1)],
    ids=["plain", "retry", "limited"],
)
def test_a_models_stream_is_closed_when_its_run_is_cancelled(run, wrap):
    closed = []

    class Streams:
        async def generate(self, request):
            raise NotImplementedError

        async def stream(self, request):
            try:
                yield MessageDelta("a")
                await asyncio.get_running_loop().create_future()
            finally:
                closed.append(asyncio.get_running_loop())

    async def main():
        playing = Runner(ChatModelAgent(name="A", model=wrap(Streams())), streaming=True).query(
            "go"
        )
        async for event in playing:
            if event.delta is not None:
                break
        await playing.aclose()
        assert closed == [asyncio.get_running_loop()]

    run(main())
    assert len(closed) == 1
