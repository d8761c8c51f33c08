"""Who ended it: what a caller wants ends a run; a consumer that is cancelled, a loop that ends, or
a system that is left does not end one that is kept.
"""

import asyncio
import gc
import warnings

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import ActorSystem, MemoryStore, Message, Runner, ToolCall
from offbook.runtime.testing import ManualClock
from tests.doubles.held_stores import HeldStore, soon
from tests.doubles.watched_stores import unfinished


class LooksOnce:
    """A model that has one tool called, and then says that it is done: for any number of runs at
    once.
    """

    async def generate(self, request):
        if request.messages[-1].role == "tool":
            return Message.assistant("done")
        return Message.assistant("", tool_calls=[ToolCall("call", "look", "{}")])


def agent(asked, go):
    @tool
    async def look() -> str:
        """Look."""
        asked.set()
        await go.wait()
        return "seen"

    return ChatModelAgent(name="A", model=LooksOnce(), tools=[look])


async def leave(running, asked, how, before=lambda: None):
    async def consume():
        if how == "awaits":
            await running
        else:
            async for _event in running:
                pass

    consumer = asyncio.create_task(consume())
    await asked.wait()
    before()
    consumer.cancel()
    await asyncio.gather(consumer, return_exceptions=True)
    return consumer


@pytest.mark.parametrize("how", ["awaits", "iterates"])
def test_g10_a_consumer_that_is_cancelled_leaves_a_kept_run_for_recover(run, how):
    async def main():
        asked, go = asyncio.Event(), asyncio.Event()
        async with ActorSystem() as system:
            runner = Runner(agent(asked, go), store=MemoryStore(), durability="step", system=system)
            running = runner.query("go")
            consumer = await leave(running, asked, how)  # which is still held here
            result = await running
            assert (result.status, consumer.cancelled()) == ("drained", True)
            go.set()
            (recovered,) = await runner.recover()
            assert (await recovered).final_output == "done"

    run(main())


@pytest.mark.parametrize("how", ["awaits", "iterates"])
@pytest.mark.parametrize("store", [None, MemoryStore()], ids=["none", "interrupt"])
def test_g10_a_consumer_that_is_cancelled_cancels_a_run_that_is_not_kept(run, store, how):
    async def main():
        asked, go = asyncio.Event(), asyncio.Event()
        async with ActorSystem() as system:
            running = Runner(agent(asked, go), store=store, system=system).query("go")
            consumer = await leave(running, asked, how)
            assert ((await running).status, consumer.cancelled()) == ("cancelled", True)

    run(main())


def test_a_wait_for_one_event_that_runs_out_of_time_is_no_leaving(run):
    async def main():
        asked, go = asyncio.Event(), asyncio.Event()
        async with ActorSystem() as system:
            events = aiter(
                Runner(
                    agent(asked, go), store=MemoryStore(), durability="step", system=system
                ).query("go")
            )
            await anext(events)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(events), 0.01)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await anext(events)
            go.set()
            assert [event.message.text async for event in events] == ["seen", "done"]

    run(main())


@pytest.mark.parametrize("end", ["cancel", "timeout", "break"])
def test_what_a_caller_wants_ended_is_not_recovered_and_may_be_resumed(run, end):
    async def main():
        asked, go, clock = asyncio.Event(), asyncio.Event(), ManualClock()
        async with ActorSystem(clock=clock) as system:
            runner = Runner(agent(asked, go), store=MemoryStore(), durability="step", system=system)
            running = runner.query("go", timeout=5 if end == "timeout" else None)
            if end == "break":
                async for _event in running:
                    break
            else:
                await asked.wait()
            if end == "cancel":
                running.cancel()
            elif end == "timeout":
                clock.advance(5)
            assert (await running).status == "cancelled"
            assert await runner.recover() == []
            go.set()
            assert (await runner.resume(running.checkpoint_id)).final_output == "done"

    run(main())


def test_g08_of_many_runs_whose_loop_ends_each_is_found_again_however_far_it_was(run, tmp_path):
    from offbook.runtime import SQLiteStore

    store, going = SQLiteStore(tmp_path / "runs.db"), 20

    def runner(asked, go):
        return Runner(agent(asked, go), store=store, durability="step")

    async def begin():
        asked, go = asyncio.Event(), asyncio.Event()
        here = runner(asked, go)
        waiting = [
            asyncio.create_task(wait_for(here.query("go", run_id=f"r{number}")))
            for number in range(going)
        ]
        await asked.wait()
        # One that is not written down has not begun.
        while len(await unfinished(store)) < going:
            await asyncio.sleep(0)
        del waiting  # which the loop cancels when it ends

    async def wait_for(running):
        return await running

    async def go_on():
        asked, go = asyncio.Event(), asyncio.Event()
        go.set()
        async with ActorSystem() as system:
            runs = await Runner(
                agent(asked, go), store=store, durability="step", system=system
            ).recover()
            return [(running.id, (await running).final_output) for running in runs]

    asyncio.run(begin())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        # What was told while the loop was closed has a task that never began: its coroutine says so
        # here, and in no other test.
        gc.collect()
    found = asyncio.run(go_on())
    assert {output for _, output in found} == {"done"}
    begun = {name for name, _ in found}

    async def rest():
        return await unfinished(store)

    assert asyncio.run(rest()) == []
    assert len(begun) == going
    store.close()


def test_recover_wakes_no_more_runs_at_once_than_it_is_told(run):
    async def main():
        store, asked, go = MemoryStore(), asyncio.Event(), asyncio.Event()
        async with ActorSystem() as system:
            runs = [
                Runner(agent(asked, go), store=store, durability="step", system=system).query("go")
                for _ in range(6)
            ]
            await asked.wait()
            await system.drain(0.05)
            assert {(await one).status for one in runs} == {"drained"}
        at_work, most, again = 0, 0, asyncio.Event()

        @tool
        async def look() -> str:
            """Look."""
            nonlocal at_work, most
            at_work += 1
            most = max(most, at_work)
            await asyncio.sleep(0)
            at_work -= 1
            return "seen"

        again.set()
        async with ActorSystem() as system:
            fresh = ChatModelAgent(name="A", model=LooksOnce(), tools=[look])
            runner = Runner(fresh, store=store, durability="step", system=system)
            assert len(await runner.recover(limit=1)) == 1
            found = await runner.recover(concurrency=2)
            assert [(await one).final_output for one in found] == ["done"] * len(found)
            assert most <= 3

    run(main())


@pytest.mark.parametrize("how", ["awaits", "iterates"])
def test_a_cancel_that_waits_for_a_safe_point_is_carried_out_when_the_consumer_is_cancelled(
    run, how
):
    async def main():
        asked, go = asyncio.Event(), asyncio.Event()
        async with ActorSystem() as system:
            runner = Runner(agent(asked, go), store=MemoryStore(), durability="step", system=system)
            running = runner.query("go")
            await leave(running, asked, how, before=lambda: running.cancel(mode="after_tools"))
            assert (await running).status == "cancelled"
            assert await runner.recover() == []
            go.set()
            assert (await runner.resume(running.id)).final_output == "done"

    run(main())


class GrantsLate(MemoryStore):
    """Its answer to a claim comes when the gate is open; what it has written stands before that."""

    def __init__(self):
        super().__init__()
        self.written, self.gate = asyncio.Event(), asyncio.Event()

    async def claim(self, *args, **options):
        claim = await super().claim(*args, **options)
        self.written.set()
        await self.gate.wait()
        return claim


@pytest.mark.parametrize("opens", ["before the system is left", "while it is left"])
def test_a_run_that_is_cancelled_while_it_is_written_down_is_continued_by_no_process(run, opens):
    async def main():
        asked, go, store = asyncio.Event(), asyncio.Event(), GrantsLate()
        async with ActorSystem() as system:
            running = Runner(agent(asked, go), store=store, durability="step", system=system).query(
                "go"
            )
            running.start()
            await store.written.wait()
            assert await running.cancel() is True
            assert (await running).status == "cancelled"
            if opens == "while it is left":
                asyncio.get_running_loop().call_soon(store.gate.set)
            else:
                store.gate.set()
        assert await store.keys() == []
        async with ActorSystem() as system:
            assert (
                await Runner(
                    agent(asked, go), store=store, durability="step", system=system
                ).recover()
                == []
            )

    run(main())


BEFORE_OR_AFTER = pytest.mark.parametrize(
    "after", [False, True], ids=["before the store has done it", "before the store has answered"]
)


def looking(note):
    """A tool that has to be approved, and notes that it was called."""

    @tool(needs_approval=True)
    def look() -> str:
        """Look."""
        note()
        return "seen"

    return look


async def asked_for_approval(runner):
    """A run that waits for an approval."""
    waiting = runner.query("go")
    assert (await soon(waiting)).status == "interrupted"
    return waiting


async def cancelled_while_it_is_written(run, gate):
    """Cancel a run when the store was asked to write that it goes on; then the store goes on."""
    await soon(gate.reached.wait())
    run.cancel()
    gate.open()
    result = await soon(run)
    assert result.status == "cancelled"


@BEFORE_OR_AFTER
@pytest.mark.parametrize(
    ("durability", "keep"), [("step", "unfinished"), ("step", None), ("interrupt", "all")]
)
def test_a_resume_that_is_cancelled_while_it_is_written_that_it_goes_on_is_continued_by_no_process(
    run, durability, keep, after
):
    paid = []
    look = looking(lambda: paid.append("once"))

    async def main():
        store = HeldStore()
        async with ActorSystem() as system:
            runner = Runner(
                ChatModelAgent(name="A", model=LooksOnce(), tools=[look]),
                store=store,
                durability=durability,
                keep=keep,
                system=system,
            )
            waiting = await asked_for_approval(runner)
            gate = store.hold("open", ":open:", after=after)
            again = runner.resume(waiting.checkpoint_id, data=True)
            await cancelled_while_it_is_written(again, gate)
            assert (paid, [info.status for info in await runner.runs()], store.open_keys()) == (
                [],
                ["cancelled"],
                [],
            )
        async with ActorSystem() as system:
            runner = Runner(
                ChatModelAgent(name="A", model=LooksOnce(), tools=[look]),
                store=store,
                durability=durability,
                keep=keep,
                system=system,
            )
            assert await soon(runner.recover()) == []
            assert (await soon(runner.resume(again.checkpoint_id))).final_output == "done"
            assert paid == ["once"]

    run(main())


@BEFORE_OR_AFTER
@pytest.mark.parametrize(
    ("how", "word"),
    [
        ("cancelled", "get"),
        ("cancelled", "claim"),
        ("cancelled", "read"),
        ("cancelled", "append"),
        ("drained", "append"),
    ],
)
def test_a_resume_that_is_left_before_it_goes_on_makes_its_calls_once(run, how, word, after):
    """Its consumer is cancelled, or its system is drained, while it is found out from where it goes
    on.
    """
    paid = []
    look = looking(lambda: paid.append("once"))

    async def main():
        store = HeldStore()
        async with ActorSystem() as system:
            runner = Runner(
                ChatModelAgent(name="A", model=LooksOnce(), tools=[look]),
                store=store,
                durability="step",
                system=system,
            )
            waiting = await asked_for_approval(runner)
            gate = store.hold(word, waiting.id, after=after)
            again = runner.resume(waiting.checkpoint_id, data=True)
            consumer = asyncio.create_task(soon(again))
            await soon(gate.reached.wait())
            if how == "cancelled":
                consumer.cancel()
                await asyncio.gather(consumer, return_exceptions=True)
                gate.open()
            else:
                draining = asyncio.create_task(system.drain(30))
                await asyncio.sleep(0)
                gate.open()
                await soon(draining)
            assert (await soon(again)).status == "drained"
            assert paid == (
                ["once"] if how == "drained" else []
            )  # a drain has the calls made that the reply wants
        async with ActorSystem() as system:
            runner = Runner(
                ChatModelAgent(name="A", model=LooksOnce(), tools=[look]),
                store=store,
                durability="step",
                system=system,
            )
            (last,) = await soon(runner.recover())
            assert ((await soon(last)).final_output, paid) == ("done", ["once"])

    run(main())


@BEFORE_OR_AFTER
def test_a_run_that_is_recovered_and_cancelled_while_it_is_written_that_it_goes_on_is_recovered_no_more(
    run, after
):
    async def main():
        asked, go, store = asyncio.Event(), asyncio.Event(), HeldStore()
        async with ActorSystem() as system:
            left = Runner(agent(asked, go), store=store, durability="step", system=system).query(
                "go"
            )
            await soon(asked.wait())
        go.set()
        async with ActorSystem() as system:
            runner = Runner(agent(asked, go), store=store, durability="step", system=system)
            gate = store.hold("append", "journal:", after=after)
            (again,) = await soon(runner.recover())
            await cancelled_while_it_is_written(again, gate)
            assert await soon(runner.recover()) == []
            assert (await soon(runner.resume(left.id))).final_output == "done"

    run(main())


@pytest.mark.parametrize("mode", ["immediate", "after_model", "after_tools"])
@pytest.mark.parametrize("store_class", [MemoryStore, HeldStore])
def test_a_run_whose_caller_has_cancelled_it_ends_before_its_system_is_left_and_is_continued_by_no_process(
    run, store_class, mode
):
    async def main():
        asked, go, store = asyncio.Event(), asyncio.Event(), store_class()
        async with ActorSystem() as system:
            running = Runner(agent(asked, go), store=store, durability="step", system=system).query(
                "go"
            )
            await soon(asked.wait())
            running.cancel(mode)
        result = await running
        assert (result.status, "recover()" in str(result.error)) == ("cancelled", False)
        go.set()
        async with ActorSystem() as system:
            runner = Runner(agent(asked, go), store=store, durability="step", system=system)
            assert await soon(runner.recover()) == []
            assert [info.status for info in await runner.runs()] == ["cancelled"]
            assert (await soon(runner.resume(running.id))).final_output == "done"

    run(main())
