"""`coalesce_deltas`: pieces of one message that a slow consumer has not taken yet go together to
it.
"""

import asyncio

import pytest

from offbook.actors import Agent, ChatModelAgent, Parallel
from offbook.runtime import AgentEvent, Message, MessageDelta, Runner
from offbook.runtime.data.chat import ToolCallDelta


class Streams:
    """A model that streams so many pieces without a pause, and tells when it is done."""

    def __init__(self, pieces):
        self.pieces = pieces
        self.done = asyncio.Event()

    async def generate(self, request):
        raise AssertionError

    async def stream(self, request):
        for piece in self.pieces:
            yield piece
        self.done.set()
        yield Message.assistant("".join(piece.content for piece in self.pieces) or "x")


WORDS = [MessageDelta(f"{number} ") for number in range(1000)]


async def slow_consumer(model, **options):
    events = []
    async for event in Runner(
        ChatModelAgent(name="a", model=model), streaming=True, **options
    ).query("go"):
        if not events:
            await model.done.wait()
        events.append(event)
    return events


def test_a_slow_consumer_gets_the_rest_of_a_message_together(run):
    async def main():
        events = await slow_consumer(Streams(WORDS))
        deltas = [event for event in events if event.delta is not None]
        assert "".join(event.delta.content for event in deltas) == "".join(
            piece.content for piece in WORDS
        )
        assert len(deltas) == 65, "as many as may wait, and the one that it was slow over"
        assert [event.seq for event in events] == [*range(1, len(events) + 1)]
        assert events[-1].message.text == "".join(piece.content for piece in WORDS)

    run(main())


def test_a_consumer_that_keeps_up_gets_each_piece(run):
    async def main():
        seen = [
            event.delta
            async for event in Runner(
                ChatModelAgent(name="a", model=Streams(WORDS)), streaming=True
            ).query("go")
            if event.delta
        ]
        assert seen == WORDS

    run(main())


def test_without_coalesce_deltas_each_piece_is_an_event(run):
    async def main():
        events = await slow_consumer(Streams(WORDS), coalesce_deltas=False, event_buffer=2000)
        assert [event.delta for event in events if event.delta] == WORDS

    run(main())


def test_a_small_event_buffer_makes_the_run_wait_as_before(run, until):
    async def main():
        model = Streams(WORDS)
        events = aiter(
            Runner(ChatModelAgent(name="a", model=model), streaming=True, event_buffer=4).query(
                "go"
            )
        )
        await anext(events)
        for _ in range(100):
            await asyncio.sleep(0)
        assert not model.done.is_set()
        assert [event.delta async for event in events if event.delta] == WORDS[1:]

    run(main())


def test_reasoning_and_pieces_of_calls_stay_in_their_order(run):
    pieces = []
    for number in range(200):
        pieces += [
            MessageDelta(reasoning=f"r{number}"),
            MessageDelta(f"t{number}"),
            MessageDelta(tool_calls=(ToolCallDelta(number % 3, arguments=f"a{number}"),)),
        ]

    async def main():
        deltas = [event.delta for event in await slow_consumer(Streams(pieces)) if event.delta]
        assert len(deltas) < 100
        assert "".join(delta.content for delta in deltas) == "".join(
            piece.content for piece in pieces
        )
        assert "".join(delta.reasoning for delta in deltas) == "".join(
            piece.reasoning for piece in pieces
        )
        assert [call for delta in deltas for call in delta.tool_calls] == [
            call for piece in pieces for call in piece.tool_calls
        ]

    run(main())


def test_pieces_of_two_agents_do_not_mix(run):
    async def main():
        models = [
            Streams([MessageDelta(f"{name}{number} ") for number in range(300)]) for name in "xy"
        ]
        agents = [
            ChatModelAgent(name=name, model=model) for name, model in zip("xy", models, strict=True)
        ]
        texts, first = {"x": "", "y": ""}, True
        async for event in Runner(Parallel(name="p", sub_agents=agents), streaming=True).query(
            "go"
        ):
            if first:
                first = False
                await asyncio.gather(*(model.done.wait() for model in models))
            if event.delta is not None:
                texts[event.agent_name] += event.delta.content
        assert texts == {
            name: "".join(f"{name}{number} " for number in range(300)) for name in "xy"
        }

    run(main())


def test_other_events_are_never_put_together(run):
    class Talks(Agent):
        async def run(self, input, context):
            for number in range(200):
                yield AgentEvent.say(str(number))

    async def main():
        said = []
        async for event in Runner(Talks(name="t")).query("go"):
            if not said:
                await asyncio.sleep(0)
            said.append(event.message.text)
        assert said == [str(number) for number in range(200)]

    run(main())


@pytest.mark.parametrize("after", [1, 70])
def test_a_consumer_that_leaves_leaves_nothing(run, after):
    async def main():
        handle = Runner(ChatModelAgent(name="a", model=Streams(WORDS)), streaming=True).query("go")
        taken = 0
        async for _ in handle:
            taken += 1
            if taken == after:
                break
        assert (await handle).status == "cancelled"

    run(main())
