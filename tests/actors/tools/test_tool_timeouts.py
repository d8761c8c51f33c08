"""The timeout of a tool: by the system's clock, from when a function begins in its thread; what is
given up is told so, and what the model is told is true.
"""

import asyncio
import threading

import pytest

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import ActorSystem, Runner, ScriptedModel, ToolCalls
from offbook.runtime.testing import ManualClock


def agent_of(made, *, calls=1, **options):
    return ChatModelAgent(
        name="A",
        model=ScriptedModel([ToolCalls(*((made.name, {}) for _ in range(calls))), "done"]),
        tools=[made],
        **options,
    )


def told(result):
    return [
        event.message.text
        for event in result.events
        if event.message is not None and event.message.role == "tool"
    ]


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_timeout_is_by_the_systems_clock(run, until, kind):
    clock, begun, let_go = ManualClock(), threading.Event(), threading.Event()

    @tool(timeout=30)
    def slow_def() -> str:
        begun.set()
        let_go.wait(20)
        return "x"

    @tool(timeout=30)
    async def slow_async() -> str:
        begun.set()
        await asyncio.get_running_loop().create_future()
        return "x"

    async def main():
        async with ActorSystem(clock=clock, stop_timeout=20) as system:
            playing = Runner(
                agent_of(slow_def if kind == "def" else slow_async), system=system
            ).query("go")
            await until(lambda: begun.is_set() and clock.pending)
            clock.advance(29)
            await asyncio.sleep(0)
            assert playing.status == "running"
            clock.advance(1)
            (text,) = told(await playing)
            let_go.set()
        assert clock.pending == ()
        return text

    text = run(main())
    if kind == "def":
        assert text == (
            "tool slow_def timed out after 30 s. Its thread cannot be stopped: it may still be "
            "running, or may have completed. Check its effect before you call it again"
        )
    else:
        assert text == "tool slow_async took longer than its timeout of 30 s, and was cancelled"


def test_a_timeout_counts_from_when_the_function_begins_and_not_while_it_waits_for_a_thread(
    run, until
):
    clock, gates, begun = ManualClock(), [threading.Event() for _ in range(3)], []

    @tool(timeout=30)
    def work() -> str:
        begun.append(len(begun))
        gates[begun[-1]].wait(20)
        return "done in time"

    async def main():
        async with ActorSystem(clock=clock, worker_threads=1) as system:
            playing = Runner(agent_of(work, calls=3), system=system).query("go")
            for gate in gates:
                await until(lambda: gates.index(gate) in begun and clock.pending == (30,))  # noqa: B023 -- it is called before the next one
                clock.advance(29)
                gate.set()
            return await playing

    assert told(run(main())) == ["done in time"] * 3


def test_an_async_tool_whose_own_thread_is_left_at_work_does_not_claim_to_have_been_ended(
    run, until
):
    clock, begun, let_go = ManualClock(), threading.Event(), threading.Event()

    def block():
        begun.set()
        let_go.wait(20)

    @tool(timeout=30)
    async def mixed(context: ToolContext) -> str:
        await context.run_blocking(block)
        return "x"

    async def main():
        async with ActorSystem(clock=clock) as system:
            playing = Runner(agent_of(mixed), system=system).query("go")
            await until(begun.is_set)
            clock.advance(30)
            result = await playing
            let_go.set()
            return result

    assert told(run(main())) == [
        "tool mixed timed out after 30 s. Its thread cannot be stopped: it may still be running, "
        "or may have completed. Check its effect before you call it again"
    ]


@pytest.mark.parametrize(
    "how", ["timeout", "the run is cancelled", "the run is over", "the system is left"]
)
def test_a_function_in_a_thread_is_told_that_its_call_was_given_up(run, until, how):
    seen, begun, ended = [], threading.Event(), threading.Event()
    clock = ManualClock()

    @tool(timeout=30)
    def work(context: ToolContext) -> str:
        seen.append(context.cancelled.is_set())
        begun.set()
        seen.append(context.cancelled.wait(20))
        ended.set()
        return "x"

    async def main():
        async with ActorSystem(clock=clock) as system:
            playing = Runner(agent_of(work), system=system).query(
                "go", timeout=20 if how == "the run is over" else None
            )
            await until(begun.is_set)
            if how == "timeout":
                await until(lambda: clock.pending)
                clock.advance(30)
                assert (await playing).status == "completed"
            elif how == "the run is over":
                clock.advance(20)
                await playing
            elif how == "the run is cancelled":
                assert await playing.cancel()
        assert ended.is_set(), "leaving waits for it"

    run(main())
    assert seen == [False, True]


def test_a_call_that_returns_is_not_given_up(run):
    events = []

    @tool(timeout=30)
    def work(context: ToolContext) -> str:
        events.append(context.cancelled)
        return "x"

    async def main():
        async with ActorSystem() as system:
            return await Runner(agent_of(work), system=system).query("go")

    assert told(run(main())) == ["x"]
    assert [event.is_set() for event in events] == [False]


def test_each_attempt_has_an_event_of_its_own(run, until):
    clock, events = ManualClock(), []

    @tool(timeout=30, retries=1, retry_at_work=True)
    def work(context: ToolContext) -> str:
        events.append(context)
        if len(events) == 2:
            return f"second, {context.cancelled.is_set()}"
        context.cancelled.wait(20)
        return "first"

    async def main():
        async with ActorSystem(clock=clock) as system:
            playing = Runner(agent_of(work), system=system).query("go")
            await until(lambda: events and clock.pending)
            clock.advance(30)
            return await playing

    assert told(run(main())) == ["second, False"]
    assert [context.cancelled.is_set() for context in events] == [True, False]


@pytest.mark.parametrize("asked", [False, True])
def test_a_call_that_may_still_be_at_work_is_tried_again_only_if_asked_for(run, until, asked):
    """Three attempts at a payment would otherwise pay three times at once."""
    clock, let_go, paid = ManualClock(), threading.Event(), []

    @tool(timeout=30, retries=2, retry_at_work=asked)
    def pay() -> str:
        paid.append("paid")
        let_go.wait(20)
        return "x"

    async def main():
        async with ActorSystem(clock=clock, stop_timeout=20) as system:
            playing = Runner(agent_of(pay), system=system).query("go")
            for attempt in range(3 if asked else 1):
                await until(lambda: len(paid) == attempt + 1 and clock.pending)  # noqa: B023 -- it is called before the next one
                clock.advance(30)
            (text,) = told(await playing)
            let_go.set()
            return text

    assert "may still be running" in run(main())
    assert len(paid) == (3 if asked else 1)


def test_what_has_ended_is_tried_again(run, until):
    clock, tries = ManualClock(), []

    @tool(timeout=30, retries=2)
    async def slow() -> str:
        tries.append(1)
        await asyncio.get_running_loop().create_future()

    async def main():
        async with ActorSystem(clock=clock) as system:
            playing = Runner(agent_of(slow), system=system).query("go")
            for attempt in range(3):
                await until(lambda: len(tries) == attempt + 1 and clock.pending)  # noqa: B023 -- as above
                clock.advance(30)
            await playing

    run(main())
    assert len(tries) == 3


def test_an_async_tool_that_ignores_its_cancellation_is_told_of_in_the_log(run, until, caplog):
    clock, let_go = ManualClock(), asyncio.Event()

    @tool(timeout=30)
    async def stubborn() -> str:
        while not let_go.is_set():
            try:
                await let_go.wait()
            except asyncio.CancelledError:
                pass
        return "at last"

    async def main():
        async with ActorSystem(clock=clock) as system:
            playing = Runner(agent_of(stubborn), system=system).query("go")
            await until(lambda: clock.pending)
            clock.advance(30)
            await asyncio.sleep(0)
            assert "ignores its cancellation" not in caplog.text
            clock.advance(5)
            assert "stubborn" in caplog.text
            assert "ignores its cancellation" in caplog.text
            let_go.set()
            await playing
        assert clock.pending == ()

    run(main())
