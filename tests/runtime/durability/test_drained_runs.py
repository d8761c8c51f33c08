"""A system that is drained: runs that are kept come to rest at a safe point, and go on in another
one; the others go on to their end.
"""

import asyncio

import pytest

from offbook.actors import ChatModelAgent, Sequential, tool
from offbook.runtime import ActorSystem, MemoryStore, Message, Runner, ScriptedModel, ToolCall
from offbook.runtime.testing import ManualClock
from tests.doubles.held_stores import HeldStore, soon


class Held:
    """A model that answers when it may."""

    def __init__(self, reply):
        self.gate, self.asked, self.calls = asyncio.Event(), asyncio.Event(), 0
        self.reply = reply

    async def generate(self, request):
        self.calls += 1
        self.asked.set()
        await self.gate.wait()
        return (
            self.reply
            if not any(message.role == "tool" for message in request.messages)
            else Message.assistant("done")
        )


def team(first, log):
    @tool
    def work() -> str:
        log.append("work")
        return "worked"

    agents = [
        ChatModelAgent(name="A", model=first, tools=[work]),
        ChatModelAgent(name="B", model=ScriptedModel(["b"])),
    ]
    return Sequential(name="S", sub_agents=agents)


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_a_run_that_is_kept_comes_to_rest_and_is_recovered(run, durability):
    async def main():
        store, log = MemoryStore(), []
        model = Held(Message.assistant("", (ToolCall("c1", "work", "{}"),)))
        agent = team(model, log)
        async with ActorSystem() as system:
            play = Runner(agent, system=system, store=store, durability=durability).query("go")
            await model.asked.wait()
            draining = asyncio.create_task(system.drain(30))
            await asyncio.sleep(0)
            model.gate.set()
            assert (await draining).drained
            result = await play
            assert result.status == "drained"
            assert "drained" in str(result.error)
            assert log == ["work"]  # the reply's tools are made first
        async with ActorSystem() as system:
            (recovered,) = await Runner(
                agent, system=system, store=store, durability=durability
            ).recover()
            assert recovered.id == play.id
            rest = await recovered
            assert [event.agent_name for event in rest.events] == ["A", "B"]
            assert rest.status == "completed"
            assert (log, model.calls) == (["work"], 2)
            assert (
                await Runner(agent, system=system, store=store, durability=durability).recover()
                == []
            )

    run(main())


def test_what_comes_to_no_safe_point_in_time_is_cut_short_and_kept(run):
    async def main():
        store, clock = MemoryStore(), ManualClock()
        model = Held(Message.assistant("a"))
        async with ActorSystem(clock=clock) as system:
            runner = Runner(ChatModelAgent(name="A", model=model), system=system, store=store)
            play = runner.query("go")
            await model.asked.wait()
            draining = asyncio.create_task(system.drain(10))
            while len(clock.pending) < 2:  # that of the drain, and that of the run
                await asyncio.sleep(0)
            clock.advance(9.1)
            assert (await play).status == "drained"
            assert (await draining).drained
        model.gate.set()
        async with ActorSystem() as system:
            (recovered,) = await Runner(
                ChatModelAgent(name="A", model=model), system=system, store=store
            ).recover()
            assert (await recovered).final_output == "a"

    run(main())


def test_a_run_that_is_kept_nowhere_goes_on_to_its_end(run):
    async def main():
        model = Held(Message.assistant("a"))
        async with ActorSystem() as system:
            play = Runner(ChatModelAgent(name="A", model=model), system=system).query("go")
            await model.asked.wait()
            draining = asyncio.create_task(system.drain(30))
            await asyncio.sleep(0)
            assert not draining.done()
            model.gate.set()
            assert (await draining).drained
            assert (await play).final_output == "a"

    run(main())


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_a_session_that_was_drained_in_the_middle_of_a_turn_goes_on(run, durability):
    async def main():
        store = MemoryStore()
        model = Held(Message.assistant("a"))
        agent = Sequential(
            name="S",
            sub_agents=[
                ChatModelAgent(name="A", model=model),
                ChatModelAgent(name="B", model=ScriptedModel(["b"])),
            ],
        )
        async with ActorSystem() as system:
            runner = Runner(agent, system=system, store=store, durability=durability)
            play = runner.session("s").query("go")
            await model.asked.wait()
            draining = asyncio.create_task(system.drain(30))
            await asyncio.sleep(0)
            model.gate.set()
            assert (await draining).drained
            assert (await play).status == "drained"
            assert [message.text for message in await runner.session("s").history()] == ["go", "a"]
        async with ActorSystem() as system:
            runner = Runner(agent, system=system, store=store, durability=durability)
            (recovered,) = await runner.recover()
            await recovered
            assert [message.text for message in await runner.session("s").history()] == [
                "go",
                "a",
                "b",
            ]

    run(main())


def test_a_message_that_waits_for_its_turn_is_not_said_to_be_continued(run):
    async def main():
        store, model = MemoryStore(), Held(Message.assistant("a"))
        async with ActorSystem() as system:
            runner = Runner(
                ChatModelAgent(name="A", model=model), system=system, store=store, durability="step"
            )
            first, second = runner.session("s").query("one"), runner.session("s").query("two")
            await model.asked.wait()
            draining = asyncio.create_task(system.drain(30))
            await asyncio.sleep(0)
            model.gate.set()
            await draining
            assert (await first).status == "completed"
            assert "send it again" in str((await second).error)

    run(main())


@pytest.mark.parametrize(
    ("durability", "status"), [("step", "drained"), ("interrupt", "cancelled")]
)
def test_a_run_whose_system_is_left_says_whether_another_process_goes_on_with_it(
    run, durability, status
):
    async def main():
        store, model = MemoryStore(), Held(Message.assistant("done"))
        async with ActorSystem() as system:
            play = Runner(team(model, []), system=system, store=store, durability=durability).query(
                "go"
            )
            waiting = asyncio.create_task(_result_of(play))
            await model.asked.wait()
        assert (await waiting).status == play.status == status
        assert ("recover() continues" in str(play._progress.result.error)) == (status == "drained")
        async with ActorSystem() as system:
            model.gate.set()
            again = await Runner(
                team(model, []), system=system, store=store, durability="step"
            ).recover()
            assert [(await one).status for one in again] == ["completed"] * (status == "drained")

    run(main())


@pytest.mark.parametrize(
    "after", [False, True], ids=["before the store has done it", "before the store has answered"]
)
def test_a_run_whose_system_is_left_while_its_end_is_written_is_not_said_to_have_completed(
    run, after
):
    async def main():
        store, agent = (
            HeldStore(),
            ChatModelAgent(name="A", model=ScriptedModel(["done", "done again"])),
        )
        gate = store.hold("close", "open:", after=after)
        async with ActorSystem() as system:
            play = Runner(agent, system=system, store=store, durability="step").query(
                "go", run_id="named"
            )
            await soon(gate.reached.wait())
        assert ((await soon(play)).status, play._progress.result.events[:-1]) == ("drained", ())
        gate.open()
        async with ActorSystem() as system:
            runner = Runner(agent, system=system, store=store, durability="step")
            assert len(await soon(runner.recover())) == (0 if after else 1)
            assert (await soon(runner.query("go", run_id="named"))).final_output == (
                "done" if after else "done again"
            )

    run(main())


async def _result_of(play):
    return await play
