"""What a session and a store hold, where something comes between: a step that cannot be written, a
turn that is lost or drained while others follow.
"""

import asyncio

import pytest

from offbook.actors import Agent, ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    ActorSystem,
    AgentEvent,
    Interrupted,
    MemoryStore,
    Message,
    Runner,
    ScriptedModel,
    StoreError,
    ToolCalls,
)
from offbook.runtime.errors import RunLost
from offbook.runtime.testing import ManualClock
from tests.doubles.held_stores import (
    LEASE_SECONDS,
    Echo,
    Gate,
    HeldStore,
    beside,
    echoing,
    passing,
    soon,
    texts,
    turns,
)
from tests.doubles.left_runs import Counts, left_in_the_middle


def asking(*script):
    @tool
    async def ask(context: ToolContext) -> str:
        return f"told {context.interrupt('sure?')}"

    return ChatModelAgent(
        name="A", model=ScriptedModel(script or [ToolCalls("ask"), "done", "done"]), tools=[ask]
    )


# --- what could not be written ---


def test_what_could_not_be_written_is_not_in_the_session(run):
    """It was not shown, and whoever goes on with the run may say something else."""

    async def main():
        store = HeldStore()

        async def first(request):
            works.append(store.fail("append", "journal"))
            return "lost"

        works = []
        runner = Runner(
            ChatModelAgent(name="A", model=Says(first, "found")), store=store, durability="step"
        )
        failed = await soon(runner.session("s").query("go"))
        assert isinstance(failed.error, StoreError)
        works.pop()()
        (again,) = await runner.recover()
        assert (await soon(again)).final_output == "found"
        assert texts(await runner.session("s").history()) == ["go", "found"]

    run(main())


class Says:
    """A model that says what it is given, or what comes of it."""

    def __init__(self, *script):
        self.script = list(script)

    async def generate(self, request):
        line = self.script.pop(0)
        return Message.assistant(line if isinstance(line, str) else await line(request))


def test_an_answer_that_could_not_be_written_is_not_in_the_session(run):
    async def main():
        store = HeldStore()
        runner = Runner(asking(), store=store)
        first = runner.session("s").query("go")
        await soon(first)
        works = store.fail("put", "answered")
        assert isinstance(
            (await soon(runner.resume(first.checkpoint_id, data="lost"))).error, StoreError
        )
        works()
        await soon(runner.resume(first.checkpoint_id, data="found"))
        assert texts(await runner.session("s").history()) == ["go", "", "told found", "done"]

    run(main())


def test_who_answers_too_late_puts_nothing_into_the_session(run):
    """He has lost the run: what he says is nobody's."""

    async def main():
        store = HeldStore()
        runner = Runner(asking(), store=store)
        first = runner.session("s").query("go")
        await soon(first)
        gate = store.hold("put", "answered")
        late = runner.resume(first.checkpoint_id, data="late")
        await soon(gate.reached.wait())
        await MemoryStore.create(
            store, next(key for key in store.written("put") if "answered" in key), b"1"
        )  # somebody else was quicker
        gate.open()
        assert (await soon(late)).status == "failed"
        assert texts(await runner.session("s").history()) == ["go", ""]

    run(main())


def test_a_turn_whose_part_cannot_be_written_is_found_again(run):
    async def main():
        store = HeldStore()
        runner = Runner(echoing(), store=store, durability="step")
        works = store.fail("append", "session:")
        assert isinstance((await soon(runner.session("s").query("go"))).error, StoreError)
        works()
        for again in await runner.recover():
            await soon(again)
        assert texts(await runner.session("s").history()) == ["go", "1 go"]
        assert store.open_keys() == []

    run(main())


def test_a_turn_that_is_cut_off_at_its_end_is_not_said_to_be_completed(run):
    async def main():
        store = HeldStore()
        gate = store.hold("append", "session:")
        async with ActorSystem() as system:
            session = Runner(echoing(), system=system, store=store).session("s")
            play = session.query("go")
            await soon(gate.reached.wait())
        assert (await soon(play)).status == "cancelled"
        assert await session.history() == ()

    run(main())


# --- a turn that was lost, and others after it ---


@pytest.mark.parametrize("changes", ["another value", "the same value"])
def test_a_turn_that_was_lost_and_goes_on_takes_back_nothing_of_those_after_it(run, changes):
    async def main():
        store, gate = MemoryStore(), Gate()
        async with ActorSystem() as system:
            await soon(
                Runner(echoing(), system=system, store=store)
                .session("s")
                .query("x", session_values={"old": 1})
            )
        await left_in_the_middle(store, Counts(gate), gate.reached, "s")
        gate.open()
        async with ActorSystem() as system:
            runner = Runner(Counts(gate), system=system, store=store, durability="step")
            values = {"new": 2} if changes == "another value" else {"old": 2}
            await soon(
                Runner(echoing(), system=system, store=store)
                .session("s")
                .query("next", session_values=values)
            )
            (again,) = await runner.recover()
            await soon(again)
            assert await runner.session("s").values() == {"old": 1, "n": 1, "n end": 1, **values}
            assert texts(await runner.session("s").history()) == [
                "x",
                "1 x",
                "next",
                "3 next",
                "go",
                "begun",
                "end",
            ]

    run(main())


def test_a_value_that_a_later_turn_has_removed_does_not_come_back(run):
    class Removes(Agent):
        async def run(self, input, context):
            context.session.delete("old")
            yield AgentEvent.say("removed")

    async def main():
        store = MemoryStore()
        async with ActorSystem() as system:
            runner = Runner(asking(), system=system, store=store)
            session = runner.session("s")
            first = session.query("go", session_values={"old": 1})
            assert (await soon(first)).status == "interrupted"
            await soon(
                Runner(Removes(name="R"), system=system, store=store).session("s").query("next")
            )
            assert (await soon(runner.resume(first.checkpoint_id, data=1))).final_output == "done"
            assert await session.values() == {}

    run(main())


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize("session", [False, True], ids=["alone", "in a session"])
def test_an_interrupt_may_be_answered_as_soon_as_it_is_seen(run, durability, session):
    """Its run may not have come to its end by then."""

    async def main():
        store = HeldStore()
        runner = Runner(asking(), store=store, durability=durability)
        gate = store.hold("append", "session:") if session else store.hold("delete", "open")
        if not session:
            gate.open()
        play = (runner.session("s") if session else runner).query("go")
        async for event in play:
            if isinstance(event.action, Interrupted):
                again = runner.resume(play.checkpoint_id, data=1)
                await turns()
                gate.open()
        assert (await soon(again)).final_output == "done"
        assert store.open_keys() == []

    run(main())


# --- recovering ---


def test_a_drained_run_that_waits_for_an_answer_by_now_is_not_recovered(run):
    async def main():
        store, clock, model = MemoryStore(), ManualClock(), Echo()

        async def first(request):
            return await model.generate(request)

        async with ActorSystem(clock=clock) as system:
            play = Runner(
                ChatModelAgent(name="A", model=Says(first), tools=asking().tools),
                system=system,
                store=store,
            ).query("wait")
            await soon(model.asked.wait())
            draining = asyncio.create_task(system.drain(10))
            await turns()
            clock.advance(9.5)  # it is cut short before its first word
            assert (await soon(draining)).drained
        async with ActorSystem() as system:
            runner = Runner(asking(), system=system, store=store)
            assert (await soon(runner.resume(play.id))).status == "interrupted"
            assert await runner.recover() == []
            assert (await soon(runner.resume(play.id, data="yes"))).final_output == "done"

    run(main())


def test_a_run_that_is_lost_while_it_waits_for_its_turn_writes_nothing(run):
    """Somebody else works on it by now: what is written into its journal would be his."""

    async def main():
        clock, gate = ManualClock(), Gate()
        store = HeldStore(time=clock.time)
        play = await left_in_the_middle(store, Counts(gate), gate.reached, "s")
        gate.open()
        here, there = store.door(), store.door()
        model = Echo()
        at_work = (
            Runner(echoing(model), system=beside(clock), store=there).session("s").query("wait")
        )
        await soon(model.asked.wait())
        runner = Runner(Counts(), system=beside(clock), store=here, durability="step")
        (waiting,) = await runner.recover()
        here.fail("keep_alive")
        await passing(clock, 2 * LEASE_SECONDS)
        assert [key for key in store.leases() if play.id in key] == []
        written = len(here.written())
        model.gate.set()
        await soon(at_work)
        await passing(clock, 2)
        assert isinstance((await soon(waiting)).error, RunLost)
        assert len(here.written()) == written
        (again,) = await Runner(
            Counts(), system=beside(clock), store=there, durability="step"
        ).recover()
        assert (await soon(again)).status == "completed"

    run(main())


class Sleeps(ManualClock):
    """The clock of a process that may be stopped for a while: what was due meanwhile is not called
    before it looks.
    """

    def sleep(self, seconds):
        self._now += seconds


@pytest.mark.parametrize("end", [False, True], ids=["in the middle", "at its end"])
def test_a_process_that_has_slept_writes_nothing_into_what_somebody_else_has_by_now(run, end):
    async def main():
        clock, gate = Sleeps(), Gate()
        store = HeldStore(time=clock.time)
        here, there = store.door(), store.door()
        late = Runner(Counts(gate), system=beside(clock), store=here, durability="step").query("go")
        await soon(gate.reached.wait())
        ending = here.hold("append", "journal", after=True)
        if end:
            gate.open()
            await soon(ending.reached.wait())
        clock.sleep(2 * LEASE_SECONDS)
        other = Gate()
        (again,) = await Runner(
            Counts(other), system=beside(), store=there, durability="step"
        ).recover()
        await soon(other.reached.wait())
        gate.open()
        ending.open()
        assert (await soon(late)).status == ("completed" if end else "failed")
        assert len(store.open_keys()) == 1, "nobody would find it any more"
        other.open()
        assert texts(event.message for event in (await soon(again)).events) == ["end"]
        assert store.open_keys() == []

    run(main())


# --- sessions that are closed, and runs that nobody reads ---


def test_closing_does_not_wait_for_a_run_that_was_never_begun():
    session = Runner(echoing(), store=MemoryStore()).session("s")
    kept = session.query("x")  # where no loop is running, it begins when somebody looks
    asyncio.run(soon(session.close()))
    assert kept.status == "pending"
    with pytest.warns(RuntimeWarning, match="was never started"):
        del kept


def test_closing_waits_for_a_run_that_was_begun_later(run):
    model = Echo()
    session = Runner(echoing(model), store=MemoryStore()).session("s")
    late = session.query("wait")

    async def main():
        late.start()
        await soon(model.asked.wait())
        closing = asyncio.create_task(session.close())
        await turns()
        assert not closing.done()
        model.gate.set()
        await soon(closing)
        assert late.status == "completed"

    run(main())


@pytest.mark.parametrize("kept", [False, True], ids=["dropped", "in a list of its own"])
def test_a_turn_that_nobody_reads_ends_all_the_same(run, kept):
    class Talks(Agent):
        async def run(self, input, context):
            for number in range(20):
                yield AgentEvent.say(str(number))

    async def main():
        session = Runner(
            Talks(name="A"), store=MemoryStore(), event_buffer=400 if kept else 4
        ).session("s")
        runs = [session.query("go")]
        if not kept:
            runs.clear()
        await soon(session.close())
        assert len(await session.history()) == 21

    run(main())
