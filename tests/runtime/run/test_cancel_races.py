"""A run is cancelled while its supervisor writes to a store: what agents do meanwhile is neither
lost nor done again.
"""

import asyncio

import pytest

from offbook.actors import Agent, ChatModelAgent, Parallel, Sequential, ToolContext, tool
from offbook.runtime import ActorSystem, AgentEvent, MemoryStore, Runner, ScriptedModel, ToolCalls
from tests.doubles.cancelling import Door, Player, chat, line_of, turns
from tests.doubles.held_stores import HeldStore, soon
from tests.doubles.watched_stores import WatchedStore


class Held(WatchedStore):
    """A store whose writes wait at a door, if there is one: those of records and of what says that
    an interrupt was answered.
    """

    def __init__(self):
        super().__init__()
        self.door = None

    async def before(self, call):
        if self.door is not None and (call.has("append") or call.has("put", ":answered:")):
            await self.door.wait()


class Steps(Agent):
    """Waits, then does something once, then says it."""

    def __init__(self, name, before):
        super().__init__(name=name)
        self.before = before
        self.made = 0

    async def run(self, input, context):
        await self.before.wait()
        made = await context.step("make", self._make)
        yield AgentEvent.say(f"made {made}")

    async def _make(self):
        self.made += 1
        return self.made


async def cancelled_while_writing(agent, first, second, durability, mode="immediate"):
    """What was shown before and behind the cancel.

    It comes while the first event is being written; what is behind the second door happens
    meanwhile.
    """
    store = Held()
    async with ActorSystem() as system:
        runner = Runner(agent, system=system, store=store, durability=durability)
        one = runner.query("q")
        if durability == "interrupt":  # where nothing is written but what says that it goes on
            await _both(first, second, 1)
            await one.cancel()
            one = runner.resume(one.checkpoint_id)
        looking = asyncio.create_task(_lines(one))
        await _both(first, second, 1 if durability == "step" else 2)
        store.door = writing = Door()
        first.open()
        await writing.somebody()
        one.cancel(mode)
        second.open()
        await turns(10)
        store.door = None
        writing.open()
        shown = await asyncio.wait_for(looking, 5)
        assert shown.pop().endswith("RunCancelled")
        return shown, await asyncio.wait_for(_lines(runner.resume(one.checkpoint_id)), 5)


async def _both(first, second, times):
    while min(first.reached, second.reached) < times:
        await asyncio.sleep(0)


async def _lines(one):
    return [line_of(event) async for event in one]


@pytest.fixture(params=["interrupt", "step"])
def durability(request):
    return request.param


@pytest.mark.parametrize("mode", ["immediate", "after_tools"])
def test_what_an_agent_has_said_by_then_is_said_once(run, durability, mode):
    async def main():
        first, second = Door(), Door()
        b = Sequential(name="S", sub_agents=[Player("B", second, "b1", "b2"), Player("C", "c")])
        shown, rest = await cancelled_while_writing(
            Parallel(name="P", sub_agents=[Player("A", first, "a"), b]),
            first,
            second,
            durability,
            mode,
        )
        assert sorted([*shown, *rest]) == ["A a", "B b1", "B b2", "C c"]

    run(main())


def test_g08_what_an_agent_has_done_by_then_is_done_once(run, durability):
    async def main():
        first, second = Door(), Door()
        steps = Steps("B", second)
        shown, rest = await cancelled_while_writing(
            Parallel(name="P", sub_agents=[Player("A", first, "a"), steps]),
            first,
            second,
            durability,
        )
        assert sorted([*shown, *rest]) == ["A a", "B made 1"]
        assert steps.made == 1

    run(main())


def test_the_lanes_of_a_parallel_that_has_ended_by_then_are_joined_once(run, durability):
    async def main():
        first, second = Door(), Door()
        heard = []

        def listen(entries):
            heard[:] = [entry.message.text for entry in entries if not entry.is_user_input]
            return []

        inner = Parallel(name="Q", sub_agents=[Player("B", "b", second)])
        outer = Parallel(name="P", sub_agents=[Player("A", first, "a"), inner])
        agent = Sequential(name="S", sub_agents=[outer, Player("C", "c", history=listen)])
        shown, rest = await cancelled_while_writing(agent, first, second, durability)
        assert sorted([*shown, *rest]) == ["A a", *(["B b"] if durability == "step" else []), "C c"]
        assert heard == ["a", "b"]

    run(main())


def test_what_a_cancelled_run_says_that_it_waits_for_can_be_answered(run, durability):
    @tool
    async def ask(context: ToolContext, what: str) -> str:
        return f"{what}: {context.interrupt(what)}"

    async def main():
        agent = chat(
            "A", ToolCalls(("ask", {"what": "one"}), ("ask", {"what": "two"})), "done", tools=[ask]
        )
        runner = Runner(agent, store=MemoryStore(), durability=durability)
        one = runner.query("q")
        first, second = (await one).interrupts
        again = runner.resume(one.checkpoint_id, {first.id: "1"})
        async for _ in again:
            again.cancel()
        waiting = (await again).error.contexts
        assert [
            (context.info, context.address) for context in waiting if context.info != "cancelled"
        ] == [("two", second.address)]
        lines = await _lines(
            runner.resume(
                one.checkpoint_id,
                {context.id: "2" for context in waiting if context.info != "cancelled"},
            )
        )
        assert lines == ["A ask: two: 2", "A done"]

    run(main())


@pytest.mark.parametrize(
    "after", [False, True], ids=["before the store has done it", "before the store has answered"]
)
@pytest.mark.parametrize("who", ["its caller", "its consumer"])
def test_a_call_that_the_model_wants_is_not_begun_by_a_run_that_is_cancelled_while_that_is_written(
    run, who, after
):
    """Its result would be recorded nowhere, and whoever goes on with the run would make it once
    more.
    """
    paid = []

    @tool
    def pay() -> str:
        paid.append("once")
        return "paid"

    async def main():
        store, agent = (
            HeldStore(),
            ChatModelAgent(
                name="A", model=ScriptedModel([ToolCalls(("pay", {})), "done"]), tools=[pay]
            ),
        )
        async with ActorSystem() as system:
            runner = Runner(agent, system=system, store=store, durability="step")
            # Behind the record with which it begins.
            gate = store.hold("append", "journal:", after=after, skip=1)
            play = runner.query("go")
            consumer = asyncio.create_task(soon(play))
            await soon(gate.reached.wait())
            if who == "its caller":
                play.cancel()
            else:
                consumer.cancel()
                await asyncio.gather(consumer, return_exceptions=True)
            gate.open()
            await soon(asyncio.gather(consumer, return_exceptions=True))
            assert ((await play).status, paid) == (
                "cancelled" if who == "its caller" else "drained",
                [],
            )
            (again,) = (
                [runner.resume(play.id)] if who == "its caller" else await soon(runner.recover())
            )
            assert ((await soon(again)).final_output, paid) == ("done", ["once"])

    run(main())
