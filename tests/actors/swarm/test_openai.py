"""Swarm with OpenAI's own clients, over real HTTP."""

import asyncio
from contextlib import aclosing

import pytest
from openai import AsyncOpenAI, OpenAI, RateLimitError

from offbook.actors.swarm import Agent, Swarm
from tests.doubles.swarm_clients import USER, call, reply
from tests.programs import openai_wire as wire

SCRIPT = (
    wire.saying(reply("", call("get_weather", city="Paris"))),
    wire.saying(reply("It is sunny in Paris.")),
)


def get_weather(city: str):
    return f"sunny in {city}"


AGENT = Agent(name="Weather", functions=[get_weather])


def check(response, seen):
    assert [message["content"] for message in response.messages] == [
        "",
        "sunny in Paris",
        "It is sunny in Paris.",
    ]
    assert [message["role"] for message in seen[1].body["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    assert {one.headers["authorization"] for one in seen} == {"Bearer the-key"}
    assert seen[0].body["tools"][0]["function"]["parameters"]["properties"] == {
        "city": {"type": "string"}
    }


def client_of(kind, server):
    return kind(api_key="the-key", base_url=server.url, max_retries=0)


@pytest.mark.parametrize("stream", [False, True])
def test_a_synchronous_client_is_asked_where_swarm_is_called(stream, run):
    def play(server):
        with client_of(OpenAI, server) as client:
            made = Swarm(client).run(AGENT, USER, stream=stream)
            return list(made)[-1]["response"] if stream else made

    async def main():
        async with wire.WireServer(*SCRIPT) as server:
            check(await asyncio.to_thread(play, server), server.seen)

    run(main())


@pytest.mark.parametrize("kind", [OpenAI, AsyncOpenAI])
@pytest.mark.parametrize("stream", [False, True])
def test_either_client_is_asked_by_arun(stream, kind, run):
    async def main():
        async with wire.WireServer(*SCRIPT) as server:
            client = client_of(kind, server)
            made = await Swarm(client).arun(AGENT, USER, stream=stream)
            check([piece async for piece in made][-1]["response"] if stream else made, server.seen)
            if kind is OpenAI:
                client.close()
            else:
                await client.close()

    run(main())


def test_whoever_goes_away_lets_the_connection_go(run):
    """It is closed in the middle of the reply, and not when somebody collects the garbage."""

    async def endless(one):
        await one.open_stream()
        await one.chunk(wire.event(wire.chunk(role="assistant", content="on and ")))
        await one.seen.gone.wait()

    async def main():
        async with wire.WireServer(endless) as server:
            async with client_of(AsyncOpenAI, server) as client:
                async with aclosing(await Swarm(client).arun(AGENT, USER, stream=True)) as pieces:
                    async for piece in pieces:
                        if "sender" in piece:
                            break
                await asyncio.wait_for(server.seen[0].gone.wait(), 10)

    run(main())


def test_what_the_provider_refuses_is_the_client_s_own_error(run):
    async def refuse(one):
        await one.answer({"error": {"message": "slow down"}}, 429)

    async def main():
        async with wire.WireServer(refuse) as server, client_of(AsyncOpenAI, server) as client:
            with pytest.raises(RateLimitError, match="slow down"):
                await Swarm(client).arun(AGENT, USER)

    run(main())
