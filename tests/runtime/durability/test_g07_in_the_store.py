"""G7 in a store: with durability="step" each event is in the store before it is shown, and every
interrupt is saved before that.
"""

import asyncio

import pytest

from offbook.actors import Agent, ChatModelAgent, Parallel, ToolContext, tool
from offbook.runtime import AgentEvent, Interrupted, Runner, ScriptedModel, StoreError, ToolCalls
from offbook.runtime.codec.packing import unpack
from tests.doubles.watched_stores import WatchedStore
from tests.programs.long_play import make_play


async def numbers_in(store, run_id):
    """The numbers of the events that are in the journal."""
    records = await store.read(f"offbook:journal:{run_id}")
    return [
        change[2].seq for record in records for change in unpack(record) if change[0] == "event"
    ]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_g07_each_event_is_in_the_store_when_it_is_shown(run, store_of, kind):
    async def main():
        store = store_of(kind)
        running = Runner(make_play(len), store=store, durability="step").query("go")
        looked = 0
        async for event in running:
            assert event.seq in await numbers_in(store, running.id)
            looked += 1
        assert looked == 32
        assert (await running).status == "completed"

    run(main())


class Gated(WatchedStore):
    """Answers nothing that was written before `gate` is opened."""

    def __init__(self):
        super().__init__()
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = 0

    async def after(self, call):
        if call.is_done and not call.has("remove"):
            self.waiting += 1
            await self.gate.wait()
            self.waiting -= 1


class Talks(Agent):
    async def run(self, asked, context):
        for number in range(3):
            yield AgentEvent.say(f"{self.name} {number}")


def test_g07_what_the_store_has_not_answered_is_not_shown(run, until):
    """And the run does not go on behind it."""

    async def main():
        store = Gated()
        agent = Parallel(name="P", sub_agents=[Talks(name="A"), Talks(name="B")])
        running = Runner(agent, store=store, durability="step").query("go")
        seen = []

        async def consume():
            async for event in running:
                seen.append(event)

        consuming = asyncio.create_task(consume())
        for _ in range(6):
            store.gate.clear()
            await until(lambda: store.waiting)
            count = len(seen)
            for _ in range(50):
                await asyncio.sleep(0)
            assert len(seen) == count
            assert len(await numbers_in(store, running.id)) <= count + 1
            store.gate.set()
            await until(lambda count=count: len(seen) > count or not store.waiting)
        await consuming
        assert len(seen) == 6

    run(main())


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_g07_an_interrupt_is_in_the_store_when_it_is_shown(run, store_of, kind, durability):
    """Whoever sees it may answer it at once, from anywhere."""

    @tool
    async def ask(context: ToolContext) -> str:
        return f"told {context.interrupt('sure?')}"

    async def main():
        agent = ChatModelAgent(
            name="A", model=ScriptedModel([ToolCalls("ask"), "done"]), tools=[ask]
        )
        store = store_of(kind)
        running = Runner(agent, store=store, durability=durability).query("go", checkpoint_id="c")
        async for event in running:
            assert (await store.get("c") is not None) == isinstance(event.action, Interrupted)
        assert (
            await Runner(agent, store=store, durability=durability).resume("c", data=1)
        ).final_message.text == "done"

    run(main())


class Failing(WatchedStore):
    """Fails at the n-th record, and at all that come after it."""

    def __init__(self, left):
        super().__init__()
        self.left = left

    async def before(self, call):
        if call.records:
            if not self.left:
                raise OSError("no room left")
            self.left -= len(call.records)


@pytest.mark.parametrize("left", range(1, 8))
def test_g07_what_could_not_be_recorded_is_not_shown(run, left):
    """The run ends with an error that says so; what was recorded before can be continued."""

    async def main():
        store = Failing(left)
        runner = Runner(
            Parallel(name="P", sub_agents=[Talks(name="A"), Talks(name="B")]),
            store=store,
            durability="step",
        )
        running = runner.query("go")
        seen = [event async for event in running]
        result = await running
        recorded = await numbers_in(store, running.id)
        if left == 7:
            assert result.status == "completed"
            return
        assert result.status == "failed"
        *shown, last = seen
        assert isinstance(last.error, StoreError)
        assert last.error is result.error
        assert "no room left" in str(last.error)
        assert [event.seq for event in shown] == recorded == list(range(1, left))
        store.left = 99
        (recovered,) = await runner.recover()
        more = [event async for event in recovered]
        texts = [event.message.text for event in [*shown, *more]]
        assert sorted(set(texts)) == [f"{name} {number}" for name in "AB" for number in range(3)]

    run(main())
