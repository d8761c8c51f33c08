"""G5, in runs: after a finished run, no actor, task or thread of it is left, and memory returns."""

import asyncio
import gc
import logging
import threading
import time
import tracemalloc

import pytest

from offbook.actors import Agent, ChatModelAgent, Parallel, tool
from offbook.runtime import ActorSystem, AgentEvent, MemoryStore, Message, Runner, ToolCall


class CallsThree:
    async def generate(self, request):
        if request.tools and request.messages[-1].role != "tool":
            return Message.assistant(
                "", tuple(ToolCall(f"c{number}", "slow", "{}") for number in range(3))
            )
        return Message.assistant("done")


@tool
def slow() -> str:
    """In a thread."""
    return threading.current_thread().name


def talker(name="talker"):
    return ChatModelAgent(name=name, model=CallsThree(), tools=[slow])


def test_g05_a_finished_run_leaves_no_thread_and_no_task(run):
    async def main():
        before = threading.active_count()
        for _ in range(3):
            result = await Runner(talker()).query("go")
            assert "worker" in result.events[1].message.text
            assert threading.active_count() == before
            assert asyncio.all_tasks() == {asyncio.current_task()}

    run(main())


def test_g05_a_finished_run_in_a_program_without_a_loop_leaves_no_thread_but_the_loops():
    Runner(talker()).query("go").result()
    before = threading.active_count()
    Runner(talker()).query("go").result()
    assert threading.active_count() == before


def ours_in_cycles(work):
    """What of this package only the garbage collector finds, behind that work."""
    gc.collect()
    gc.disable()
    try:
        gc.set_debug(gc.DEBUG_SAVEALL)
        work()
        gc.collect()
        return sorted(
            {
                type(one).__name__
                for one in gc.garbage
                if type(one).__module__.startswith("offbook.")
            }
        )
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


@pytest.mark.parametrize(
    "team",
    [lambda: talker(), lambda: Parallel(name="p", sub_agents=[talker("a"), talker("b")])],
    ids=["one", "parallel"],
)
def test_g05_a_finished_run_leaves_nothing_to_the_garbage_collector(team):
    """Under many live runs, the collector costs more than the runs: what a run was made of goes
    when its last reference goes.
    """
    with asyncio.Runner() as loop:

        async def once(runner):
            assert (await runner.query("go")).status == "completed"

        runner = Runner(team())
        loop.run(once(runner))
        assert ours_in_cycles(lambda: loop.run(once(runner))) == []


def test_g05_a_run_that_was_resumed_leaves_nothing_to_the_garbage_collector():
    @tool(needs_approval=True)
    async def slow() -> str:
        """Asks first."""
        return "done"

    with asyncio.Runner() as loop:
        runner = Runner(
            ChatModelAgent(name="a", model=CallsThree(), tools=[slow]), store=MemoryStore()
        )

        async def once():
            run = runner.query("go")
            await run
            assert (await runner.resume(run.checkpoint_id, data=True)).status == "completed"

        loop.run(once())
        assert ours_in_cycles(lambda: loop.run(once())) == []


def test_g05_a_run_in_a_system_leaves_no_actor(run):
    async def main():
        async with ActorSystem() as system:
            runner = Runner(
                Parallel(name="p", sub_agents=[talker("a"), talker("b")]), system=system
            )
            async for _ in runner.query("go"):
                assert system.stats().actors > 0
            assert system.stats().actors == 0

    run(main())


@pytest.mark.parametrize("how", ["finished", "cancelled", "failed", "left"])
def test_g05_memory_returns(run, how, caplog):
    caplog.set_level(logging.CRITICAL, logger="offbook")  # pytest keeps each line

    class Speaks(Agent):
        async def run(self, input, context):
            yield AgentEvent.say("x" * 1000)
            if how == "failed":
                raise ValueError("x" * 1000)
            if how == "cancelled":
                await asyncio.get_running_loop().create_future()

    async def once(runner):
        a_run = runner.query("go")
        async for _ in a_run:
            if how == "cancelled":
                a_run.cancel()
            if how == "left":
                break
        if how != "left":
            await a_run
        del a_run

    async def main():
        async with ActorSystem() as system:
            runner = Runner(Speaks(name="s"), system=system)
            for _ in range(100):
                await once(runner)
            await settle(system)
            gc.collect()
            tracemalloc.start()
            # A leak grows in each round; what other code of the process allocates once does not.
            for _ in range(3):
                before = tracemalloc.get_traced_memory()[0]
                for _ in range(300):
                    await once(runner)
                await settle(system)
                gc.collect()
                grown = tracemalloc.get_traced_memory()[0] - before
                if grown < 60_000:
                    break
            tracemalloc.stop()
            assert grown < 60_000, grown

    async def settle(system):
        until = time.monotonic() + 5
        while system.stats().actors and time.monotonic() < until:
            await asyncio.sleep(0)

    run(main())
