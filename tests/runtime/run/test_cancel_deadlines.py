"""`run.cancel()` more than once, with a deadline, before the first event and after the last; the
timeout of a run; what a cancelled run says of where it stood.
"""

import asyncio

import pytest

from offbook.actors import Parallel, Sequential
from offbook.runtime import (
    ActorSystem,
    MemoryStore,
    RunHooks,
    Runner,
    RunStatus,
    ToolCalls,
    UsageError,
)
from offbook.runtime.testing import ManualClock
from tests.doubles.cancelling import (
    MODES,
    SAFE,
    CancelledRun,
    Door,
    Player,
    after,
    chat,
    quick,
    turns,
    waiting,
)

TIMER_OF_LEASES = 10.0


def deadlines(clock):
    """When the timers will be due that are not those of the leases."""
    return [due for due in clock.pending if due != TIMER_OF_LEASES]


# --- deadlines ---


@pytest.mark.parametrize("mode", SAFE)
def test_what_does_not_come_to_a_safe_point_in_time_is_cut_short(run, mode):
    async def main():
        clock, door = ManualClock(), Door()
        async with CancelledRun(chat("A", after(door, "never"), "a"), clock=clock) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel(mode, timeout=3)
            clock.advance(2.9)
            await turns(5)
            assert (stage.run.status, door.cut) == ("running", 0)
            clock.advance(0.1)
            assert await handle is True
            assert await stage.end() == ["A RunCancelled"]
            assert "did not come to a safe point in time" in str((await stage.run).error)
            assert await stage.go_on() == ["A a"]

    run(main())


@pytest.mark.parametrize("timeouts", [(3, 10), (10, 3), (None, 3), (3, None), (10, 3, 10)])
def test_the_earliest_deadline_counts(run, timeouts):
    async def main():
        clock, door = ManualClock(), Door()
        async with CancelledRun(chat("A", after(door, "never")), clock=clock) as stage:
            await stage.play()
            await door.somebody()
            handles = [await stage.cancel("after_tools", timeout=timeout) for timeout in timeouts]
            assert deadlines(clock) == [3]
            clock.advance(2)
            handles.append(await stage.cancel("after_tools", timeout=2))
            assert deadlines(clock) == [1], (
                "two seconds from now is later than the one that was set"
            )
            clock.advance(1)
            assert [await handle for handle in handles] == [True] * len(handles)
            assert await stage.end() == ["A RunCancelled"]

    run(main())


def test_a_deadline_of_a_run_that_comes_to_a_safe_point_is_forgotten(run):
    async def main():
        clock, door = ManualClock(), Door()
        async with CancelledRun(
            Sequential(name="S", sub_agents=[Player("A", door, "a"), Player("B", "b")]), clock=clock
        ) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel("after_tools", timeout=3)
            door.open()
            assert await handle is True
            assert await stage.end() == ["A a", "S RunCancelled"]
            assert deadlines(clock) == []

    run(main())


def test_no_time_at_all_is_immediate(run):
    async def main():
        clock, door = ManualClock(), Door()
        async with CancelledRun(chat("A", after(door, "never")), clock=clock) as stage:
            await stage.play()
            await door.somebody()
            handle = await stage.cancel("after_model", timeout=0)
            clock.advance(0)
            assert await handle is True
            assert door.cut == 1

    run(main())


# --- several ---


@pytest.mark.parametrize("first", SAFE)
def test_immediate_wins(run, first):
    async def main():
        clock, door = ManualClock(), Door()
        async with CancelledRun(chat("A", after(door, "never"), "a"), clock=clock) as stage:
            await stage.play()
            await door.somebody()
            handles = [
                await stage.cancel(first, timeout=3),
                await stage.cancel("immediate"),
                await stage.cancel(first),
            ]
            assert [await handle for handle in handles] == [True] * 3
            assert await stage.end() == ["A RunCancelled"]
            assert deadlines(clock) == []

    run(main())


@pytest.mark.parametrize("order", [("after_model", "after_tools"), ("after_tools", "after_model")])
def test_of_two_modes_the_one_that_is_satisfied_first_counts(run, order):
    async def main():
        door, slow = Door(), Door()
        async with CancelledRun(
            chat("A", after(door, ToolCalls(slow={})), "never", tools=[waiting(slow)])
        ) as stage:
            await stage.play()
            await door.somebody()
            handles = [await stage.cancel(mode) for mode in order]
            door.open()
            assert [await handle for handle in handles] == [True, True]
            assert await stage.end() == ["A calls slow", "A RunCancelled"]
            assert slow.reached == 0

    run(main())


@pytest.mark.parametrize("mode", MODES)
def test_whoever_cancels_twice_sees_one_end(run, mode):
    async def main():
        door = Door()
        hooks = Ends()
        async with CancelledRun(
            Sequential(name="S", sub_agents=[Player("A", door, "a"), Player("B", "b")]), hooks=hooks
        ) as stage:
            await stage.play()
            await door.somebody()
            handles = [stage.run.cancel(mode), stage.run.cancel(mode)]
            await turns(5)
            door.open()
            assert [await handle for handle in handles] == [True, True]
            assert await stage.end() == [
                *(["A a"] if mode != "immediate" else []),
                "S RunCancelled",
            ]
            assert hooks.statuses == ["cancelled"]
            assert await stage.go_on() == [*(["A a"] if mode == "immediate" else []), "B b"]
            assert hooks.statuses == ["cancelled", "completed"]

    run(main())


class Ends(RunHooks):
    def __init__(self):
        self.statuses = []

    async def on_run_end(self, context, result):
        self.statuses.append(result.status.value)


# --- early and late ---


@pytest.mark.parametrize("durability", ["interrupt", "step"])
@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_is_cancelled_before_its_first_event_ends_and_what_was_kept_goes_on(
    run, mode, durability
):
    async def main():
        store = MemoryStore()
        runner = Runner(
            Sequential(name="S", sub_agents=[Player("A", "a"), Player("B", "b")]),
            store=store,
            durability=durability,
        )
        one = runner.query("q")
        handle = one.cancel(mode)
        result = await one
        assert await handle is True
        assert [event.error is None for event in result.events].count(False) == 1
        before = [event.message.text for event in result.events if event.message is not None]
        if await store.get(one.checkpoint_id) is None:
            assert not before, "it had not begun"
            assert await store.keys("") == []
            return
        rest = [event.message.text for event in (await runner.resume(one.checkpoint_id)).events]
        assert [*before, *rest] == ["a", "b"]

    run(main())


def test_a_run_that_has_not_been_started_is_started_and_cancelled():
    one = Runner(Player("A", "a", Door(), "never")).query("q")
    assert one.status is RunStatus.PENDING
    assert one.cancel().result(5) is True
    assert one.result(5).status is RunStatus.CANCELLED


@pytest.mark.parametrize("mode", MODES)
def test_a_run_that_has_ended_is_not_cancelled_any_more(run, mode):
    async def main():
        async with CancelledRun(chat("A", "a")) as stage:
            await stage.play()
            assert await stage.end() == ["A a"]
            result = await stage.run
            assert await stage.run.cancel(mode, timeout=1) is False
            assert await stage.run is result
            assert result.status == "completed"

    run(main())


def test_a_run_that_waits_for_something_is_not_cancelled_any_more(run):
    async def main():
        async with CancelledRun(Player("A", "ask")) as stage:
            await stage.play()
            assert await stage.end() == ["A waits for A?"]
            assert await stage.run.cancel() is False
            assert await stage.go_on(data="yes") == ["A heard yes"]

    run(main())


def test_a_cancelled_run_is_answered_once(run):
    async def main():
        door = Door()
        async with CancelledRun(chat("A", after(door, "never"), "a")) as stage:
            await stage.play()
            await door.somebody()
            await stage.run.cancel()
            key = stage.run.checkpoint_id
            assert await stage.go_on(key=key) == ["A a"]
            with pytest.raises(Exception, match="already answered"):
                await stage.go_on(key=key)

    run(main())


@pytest.mark.parametrize("bad", [{"mode": "soon"}, {"timeout": -1}, {"timeout": float("nan")}])
def test_what_is_no_mode_and_no_time_is_refused_and_cancels_nothing(run, bad):
    async def main():
        door = Door()
        async with CancelledRun(chat("A", after(door, "a"))) as stage:
            await stage.play()
            with pytest.raises(UsageError):
                stage.run.cancel(**bad)
            door.open()
            assert await stage.end() == ["A a"]

    run(main())


# --- the timeout of a run ---


@pytest.mark.parametrize("durability", ["interrupt", "step"])
def test_a_run_that_took_too_long_is_kept_and_goes_on(run, durability):
    async def main():
        clock, door = ManualClock(), Door()
        agent = chat("A", ToolCalls(quick={}), after(door, "never"), "a", tools=[quick])
        async with CancelledRun(agent, clock=clock, durability=durability) as stage:
            await stage.play(timeout=20)
            await door.somebody()
            clock.advance(20)
            assert await stage.end() == ["A calls quick", "A quick: quick done", "A RunCancelled"]
            result = await stage.run
            assert result.status == "cancelled"
            assert "took longer than its timeout of 20 s" in str(result.error)
            assert await stage.go_on() == ["A a"]
            assert deadlines(clock) == [], "the timeout was that of the first part"

    run(main())


def test_the_timeout_of_a_run_cuts_short_what_was_to_end_at_a_safe_point(run):
    async def main():
        clock, door = ManualClock(), Door()
        async with CancelledRun(chat("A", after(door, "never")), clock=clock) as stage:
            await stage.play(timeout=5)
            await door.somebody()
            handle = await stage.cancel("after_model", timeout=30)
            clock.advance(5)
            assert await handle is True
            assert "took longer than its timeout of 5 s" in str((await stage.run).error)
            assert deadlines(clock) == []

    run(main())


# --- whoever goes away ---


@pytest.mark.parametrize("how", ["break", "aclose", "task"])
def test_a_run_whose_consumer_went_away_is_kept_like_one_that_was_cancelled(run, how):
    async def main():
        door, store = Door(), MemoryStore()
        agent = Sequential(name="S", sub_agents=[Player("A", "a"), Player("B", door, "b")])
        one = Runner(agent, store=store).query("q")
        if how == "task":
            waiting_for_it = asyncio.create_task(_await(one))
            await door.somebody()
            waiting_for_it.cancel()
            await asyncio.wait([waiting_for_it])
        else:
            async for _ in one:
                await door.somebody()
                break
        await one.aclose()
        assert one.status == "cancelled"
        door.open()
        result = await Runner(agent, store=store).resume(one.checkpoint_id)
        assert [event.message.text for event in result.events] == ["b"]

    run(main())


async def _await(one):
    return await one


# --- where it stood ---


def places(contexts):
    return [
        (
            "/".join(f"{step.kind}:{step.name}" for step in context.address),
            context.info,
            context.is_root_cause,
        )
        for context in contexts
    ]


@pytest.mark.parametrize("store", [True, False])
def test_a_cancelled_run_says_who_was_at_work(run, store):
    async def main():
        first, second, third = Door(), Door(), Door()
        inner = chat("I", after(first, "never"))
        outer = chat("O", ToolCalls(I={"request": "go"}), tools=[inner.as_tool()])
        agent = Sequential(
            name="S",
            sub_agents=[
                Player("Z", "z"),
                Parallel(name="P", sub_agents=[outer, Player("C", second), Player("D", third)]),
            ],
        )
        async with CancelledRun(agent, store=store) as stage:
            await stage.play()
            for door in (first, second, third):
                await door.somebody()
            third.open()
            await turns(5)
            await stage.run.cancel()
            result = await stage.run
            assert places(result.error.contexts) == [
                ("agent:S/agent:P/agent:O/tool:I/agent:I", "cancelled", True),
                ("agent:S/agent:P/agent:C", "cancelled", True),
            ]
            assert result.interrupts == result.error.contexts
            above = result.error.contexts[1].parent
            assert [above.info, above.parent.info] == [
                "Parallel workflow interrupted",
                "Sequential workflow interrupted",
            ]
            assert (result.error.run, result.error.agent) == (result.events[-1].run_id, "S")

    run(main())


def test_a_run_that_ends_between_two_agents_says_who_encloses_them(run):
    async def main():
        door = Door()
        async with CancelledRun(
            Sequential(name="S", sub_agents=[Player("A", door, "a"), Player("B", "b")])
        ) as stage:
            await stage.play()
            await door.somebody()
            await stage.cancel("after_tools")
            door.open()
            assert places((await stage.run).error.contexts) == [("agent:S", "cancelled", True)]

    run(main())


class Hanging(RunHooks):
    """`on_run_end` never returns."""

    def __init__(self):
        self.reached = asyncio.Event()

    async def on_run_end(self, context, result):
        self.reached.set()
        await asyncio.Event().wait()


@pytest.mark.parametrize("how", ["cancel", "timeout"])
def test_a_run_that_was_cancelled_or_timed_out_does_not_wait_for_an_on_run_end_that_hangs(
    run, caplog, how
):
    async def main():
        clock, door, hooks = ManualClock(), Door(), Hanging()
        async with ActorSystem(clock=clock) as system:
            started = Runner(chat("A", after(door, "never")), hooks=hooks, system=system).query(
                "go", timeout=60 if how == "timeout" else None
            )
            waiter = asyncio.ensure_future(_result(started))
            await door.somebody()
            if how == "cancel":
                started.cancel()
            else:
                clock.advance(60)
            await asyncio.wait_for(hooks.reached.wait(), 5)
            await turns(5)
            assert not waiter.done()
            clock.advance(5)
            result = await asyncio.wait_for(waiter, 5)
            assert result.status is RunStatus.CANCELLED

    run(main())
    assert "on_run_end" in caplog.text


async def _result(started):
    return await started
