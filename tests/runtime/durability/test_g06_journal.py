"""G6 in a store: the events in the journal are those that the consumer saw, in that order; also
over an interrupt, and where many things happen at once.
"""

import asyncio

import pytest

from offbook.actors import Agent, Parallel, Sequential, ToolContext, tool
from offbook.runtime import AgentEvent, CustomAction, Interrupted, Message, Runner
from offbook.runtime.codec.packing import unpack
from tests.programs.long_play import make_play


async def in_journal(store, run_id):
    """The events in the journal of a run, in their order."""
    records = await store.read(f"offbook:journal:{run_id}")
    return [change[2] for record in records for change in unpack(record) if change[0] == "event"]


def whole(event):
    """All of an event, as it is compared: also what two equal events may differ in."""
    message_id = None if event.message is None else event.message.id
    return (event, event.timestamp, event.run_id, event.invocation_id, message_id)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("buffer", [1, 1024])
def test_g06_the_journal_is_what_the_consumer_saw(run, store_of, kind, buffer):
    @tool(name="ask")
    async def ask(context: ToolContext) -> str:
        return f"told {context.interrupt('sure?')}"

    async def main():
        store = store_of(kind)
        runner = Runner(
            make_play(len, ask=ask), store=store, durability="step", event_buffer=buffer
        )
        first = runner.query("go")
        seen = [event async for event in first]
        assert isinstance(seen[-1].action, Interrupted)
        shown = await in_journal(store, first.id)
        assert [whole(event) for event in shown if event.agent_name != "Digger"] == [
            whole(event) for event in seen[:-1]
        ]
        second = runner.resume(first.id, data="yes")
        went_on = [event async for event in second]
        assert (await second).status == "completed"
        shown = await in_journal(store, first.id)
        assert [whole(event) for event in shown if event.agent_name != "Digger"] == [
            whole(event) for event in [*seen[:-1], *went_on]
        ]
        assert [event.seq for event in [*seen, *went_on]] == list(
            range(1, 1 + len(seen) + len(went_on))
        )

    run(main())


class Mixed(Agent):
    """Says, shows and fails, in between others."""

    def __init__(self, number):
        super().__init__(name=f"M{number}")
        self.number = number

    async def run(self, asked, context):
        for turn in range(3):
            for _ in range((self.number * 7 + turn * 5) % 4):
                await asyncio.sleep(0)
            yield AgentEvent.say(f"{self.name} {turn}")
            yield AgentEvent.of(None, CustomAction({"turn": turn}), custom_output=[self.name, turn])
        if self.number == 3:
            raise ValueError("three")


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_g06_where_many_things_happen_at_once_there_is_one_order_of_them(run, store_of, kind):
    async def main():
        store = store_of(kind)
        inner = Parallel(name="Q", sub_agents=[Mixed(number) for number in range(4, 8)])
        agent = Parallel(
            name="P",
            sub_agents=[
                *(Mixed(number) for number in range(4)),
                Sequential(name="S", sub_agents=[inner]),
            ],
        )
        seen = []
        running = Runner(agent, store=store, durability="step").query("go")
        async for event in running:
            seen.append(event)
            in_store = await in_journal(store, running.id)
            assert [whole(one)[1:] for one in in_store[: len(seen)]] == [
                whole(one)[1:] for one in seen
            ]
            assert [
                (one.message, one.custom_output, one.action, str(one.error))
                for one in in_store[: len(seen)]
            ] == [(one.message, one.custom_output, one.action, str(one.error)) for one in seen]
            last = in_store
        assert len(seen) == len(last) == 8 * 6 + 1
        assert [event.seq for event in last] == list(range(1, 50))

    run(main())


class Thing:
    """What no store can keep, and a consumer may be shown."""

    def __repr__(self):
        return "a thing"


def test_g06_of_what_only_the_consumer_can_be_shown_the_journal_has_a_text(run, store_of):
    class Shows(Agent):
        async def run(self, asked, context):
            yield AgentEvent.of(
                Message.assistant("look"), CustomAction(Thing()), custom_output=Thing()
            )
            yield AgentEvent.say("that was it")

    async def main():
        store = store_of("memory")
        running = Runner(Shows(name="A"), store=store, durability="step").query("go")
        kept = []
        async for event in running:
            kept = await in_journal(store, running.id) or kept
            if event.seq == 1:
                assert isinstance(event.custom_output, Thing)
        first, second = kept
        assert (first.message.text, first.custom_output, first.action) == (
            "look",
            "a thing",
            CustomAction("a thing"),
        )
        assert second.message.text == "that was it"

    run(main())
