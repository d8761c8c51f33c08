"""G7: an event is recorded before it is shown: whoever starts to play after the consumer has seen
an event finds it in its history.
"""

import asyncio

import pytest

from offbook.actors import Agent
from offbook.runtime import AgentEvent, Runner


class Child(Agent):
    """Says what it was given last."""

    async def run(self, asked, context):
        yield AgentEvent.say(f"given {asked.messages[-1].text}")


class Parent(Agent):
    """Says something, and has its child play as soon as that was seen; again and again."""

    def __init__(self, rounds, seen):
        super().__init__(name="Parent")
        self.child = Child(name="Child")
        self.rounds = rounds
        self.seen = seen

    async def run(self, asked, context):
        for number in range(self.rounds):
            yield AgentEvent.say(f"line {number}")
            await self.seen[number].wait()
            outcome = await context.cast(self.child)
            assert outcome.finished


@pytest.mark.parametrize("buffer", [1, 1024])
def test_g07_what_the_consumer_has_seen_is_in_the_history(run, buffer):
    async def main():
        seen = [asyncio.Event() for _ in range(5)]
        waiting = iter(seen)
        given = []
        async for event in Runner(Parent(5, seen), event_buffer=buffer).query("go"):
            assert event.error is None
            if event.agent_name == "Parent":
                next(waiting).set()
            else:
                given.append(event.message.text)
        assert given == [f"given For context: [Parent] said: line {number}." for number in range(5)]

    run(main())
