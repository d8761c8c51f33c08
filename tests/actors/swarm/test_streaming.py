"""Streaming: the pieces, when they come, and what is left when somebody goes away in the middle."""

import asyncio
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from openai.types.chat import ChatCompletionChunk
from openai.types.chat.chat_completion_chunk import ChoiceDelta

from offbook.actors.swarm import Agent, Swarm
from offbook.runtime.run import run_factory
from tests.doubles.swarm_clients import (
    USER,
    AsyncScriptedClient,
    MockOpenAIClient,
    ScriptedClient,
    call,
    reply,
)
from tests.programs import openai_wire as wire


def sales():
    return Agent(name="Sales")


def chunks(*deltas):
    return [ChatCompletionChunk.model_validate(wire.chunk(**delta)) for delta in deltas]


class Streams(ScriptedClient):
    """Streams these chunks; `taken` says how many have been asked for.

    A function in their place is called.
    """

    def __init__(self, *streams):
        super().__init__(*streams)
        self.taken = 0
        self.closed = 0

    def create(self, **request):
        return self._each(self.left.popleft())

    def _each(self, chunks):
        for chunk in chunks:
            self.taken += 1
            yield chunk() if callable(chunk) else chunk


class AsyncStreams(Streams):
    async def create(self, **request):
        return self._each_of(self.left.popleft())

    async def _each_of(self, chunks):
        try:
            for chunk in chunks:
                self.taken += 1
                yield await chunk() if callable(chunk) else chunk
        finally:
            self.closed += 1


HELLO = ({"role": "assistant", "content": ""}, {"content": "Hel"}, {"content": "lo"}, {})


@pytest.mark.parametrize("kind", [ScriptedClient, AsyncScriptedClient])
def test_a_run_streams_its_pieces_and_its_response(kind):
    client = kind(reply("I ask Sales.", call("sales")), "Hi!")
    *pieces, last = Swarm(client).run(Agent(name="A", functions=[sales]), USER, stream=True)
    assert [piece["delim"] for piece in pieces if "delim" in piece] == [
        "start",
        "end",
        "start",
        "end",
    ]
    assert pieces[0] == {"delim": "start"}
    assert [piece["sender"] for piece in pieces if "sender" in piece] == ["A", "Sales"]
    assert "".join(piece.get("content") or "" for piece in pieces) == "I ask Sales.Hi!"
    (named,) = [
        one["function"]["name"]
        for piece in pieces
        for one in piece.get("tool_calls") or ()
        if one["function"]["name"]
    ]
    assert named == "sales"
    response = last["response"]
    assert response.agent.name == "Sales"
    assert [message["content"] for message in response.messages] == [
        "I ask Sales.",
        '{"assistant": "Sales"}',
        "Hi!",
    ]
    wanted = {
        "function": {"arguments": "{}", "name": "sales"},
        "id": "call_sales",
        "type": "function",
    }
    assert response.messages[0] == {
        "content": "I ask Sales.",
        "sender": "A",
        "role": "assistant",
        "function_call": None,
        "tool_calls": [wanted],
    }
    assert response.messages[-1]["tool_calls"] is None
    # As Swarm has it: the one with whom the run began.
    assert response.messages[-1]["sender"] == "A"


def test_nothing_happens_before_the_first_piece_is_asked_for_nor_between_two():
    client = Streams(chunks(*HELLO))
    pieces = Swarm(client).run(Agent(), USER, stream=True)
    assert len(client.left) == 1
    assert next(pieces) == {"delim": "start"}
    for taken in range(1, 5):
        assert client.taken == taken - 1
        next(pieces)
        assert client.taken == taken
    assert next(pieces) == {"delim": "end"}
    assert next(pieces)["response"].messages[0]["content"] == "Hello"
    with pytest.raises(StopIteration):
        next(pieces)


def test_pieces_are_shown_as_they_come(run):
    async def main():
        shown = asyncio.Event()

        async def second():
            await shown.wait()  # set by whoever has seen the first one
            return chunks({"content": "second"})[0]

        client = AsyncStreams([*chunks({"role": "assistant", "content": "first"}), second])
        seen = []
        async for piece in await Swarm(client).arun(Agent(), USER, stream=True):
            seen.append(piece)
            if piece.get("content") == "first":
                shown.set()
        return seen

    assert [piece.get("content") for piece in run(main())[1:3]] == ["first", "second"]


@pytest.mark.parametrize("kind", [Streams, AsyncStreams])
def test_whoever_goes_away_takes_the_run_along(kind):
    client = kind(chunks(*HELLO), chunks(*HELLO))
    swarm = Swarm(client)
    for piece in swarm.run(Agent(), USER, stream=True):
        if piece.get("content") == "Hel":
            break
    assert client.taken <= 3 if kind is AsyncStreams else client.taken == 2
    assert all(not system.roots for system in run_factory._systems.values())
    assert client.closed == (kind is AsyncStreams)


@pytest.mark.parametrize("kind", [Streams, AsyncStreams])
def test_whoever_goes_away_from_arun_takes_the_run_along(kind, run):
    async def main():
        client = kind(chunks(*HELLO))
        swarm = Swarm(client)
        pieces = await swarm.arun(Agent(), USER, stream=True)
        assert await anext(pieces) == {"delim": "start"}
        await pieces.aclose()
        assert all(not system.roots for system in run_factory._systems.values())
        assert client.closed == (kind is AsyncStreams and client.taken > 0)

    run(main())


@pytest.mark.parametrize("kind", [Streams, AsyncStreams])
def test_an_error_in_the_middle_comes_behind_the_pieces_before_it(kind):
    def fail():
        raise ConnectionError("cut")

    async def fail_later():
        raise ConnectionError("cut")

    client = kind([*chunks(*HELLO[:2]), fail if kind is Streams else fail_later])
    seen = []
    with pytest.raises(ConnectionError, match="cut"):
        seen.extend(Swarm(client).run(Agent(), USER, stream=True))
    assert [piece.get("content") for piece in seen] == [None, "", "Hel"]


def test_several_calls_in_one_chunk_and_chunks_that_say_nothing():
    def double(number: int):
        return 2 * number

    calls = [
        {
            "index": index,
            "id": f"c{index}",
            "function": {"name": "double", "arguments": f'{{"number": {index}}}'},
        }
        for index in range(3)
    ]
    empty = ChatCompletionChunk.model_validate(wire.chunk(with_usage=True))
    client = Streams(
        [empty, *chunks({"role": "assistant", "tool_calls": calls}), empty], chunks(*HELLO)
    )
    *_, last = Swarm(client).run(Agent(functions=[double]), USER, stream=True)
    assert [message["content"] for message in last["response"].messages] == [
        "",
        "0",
        "2",
        "4",
        "Hello",
    ]


def test_a_refusal_is_put_together_too():
    client = Streams(chunks({"role": "assistant", "refusal": "I "}, {"refusal": "won't."}))
    *_, last = Swarm(client).run(Agent(), USER, stream=True)
    assert last["response"].messages[0]["refusal"] == "I won't."


def test_a_delta_may_be_anything_that_says_itself_in_json():
    delta = SimpleNamespace(
        json=lambda: ChoiceDelta(role="assistant", content="hi").model_dump_json()
    )
    client = Streams([SimpleNamespace(choices=[SimpleNamespace(delta=delta)])])
    *_, last = Swarm(client).run(Agent(), USER, stream=True)
    assert last["response"].messages[0]["content"] == "hi"


def test_a_stream_may_be_a_mock():
    stream = MagicMock()
    stream.__iter__.return_value = chunks(*HELLO)
    client = MockOpenAIClient()
    client.set_response(stream)
    *_, last = Swarm(client).run(Agent(), USER, stream=True)
    assert last["response"].messages[0]["content"] == "Hello"


def test_run_and_stream_is_there_too():
    *_, last = Swarm(ScriptedClient("done")).run_and_stream(Agent(), USER)
    assert last["response"].messages[0]["content"] == "done"


def test_debug_prints_the_message_when_it_is_whole(capsys):
    list(Swarm(ScriptedClient("done")).run(Agent(), USER, stream=True, debug=True))
    out = capsys.readouterr().out
    assert "Received completion: {'content': 'done', 'sender': 'Agent'" in out
    assert "Ending turn." in out
