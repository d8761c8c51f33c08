"""Runs that end at awkward moments: in a pause, behind a slow consumer, with a thread that goes on,
with an exception that misbehaves.
"""

import asyncio
import contextlib
import gc
import logging
import threading
import warnings
from collections import Counter

import pytest

from offbook.actors import (
    Agent,
    ChatModelAgent,
    Middleware,
    Parallel,
    Sequential,
    ToolContext,
    tool,
)
from offbook.runtime import (
    ActorSystem,
    AgentEvent,
    Backoff,
    Message,
    MessageDelta,
    Restart,
    RunHooks,
    Runner,
    ToolCall,
)
from offbook.runtime.run.run_supervisor import RunSupervisor
from offbook.runtime.testing import ManualClock


class Plays(Agent):
    """An agent that does what a function does."""

    def __init__(self, name, play, **options):
        super().__init__(name=name, **options)
        self.play = play

    async def run(self, input, context):
        async for event in self.play(context):
            yield event


class CallsOnce:
    """A model that calls a tool, as often as it is told at once, and then says what the last one
    has returned.
    """

    def __init__(self, name, arguments="{}", times=1):
        self.calls = tuple(ToolCall(f"c{number}", name, arguments) for number in range(times))

    async def generate(self, request):
        last = request.messages[-1]
        return (
            Message.assistant(last.text)
            if last.role == "tool"
            else Message.assistant("", self.calls)
        )


async def quick(context):
    for number in range(5):
        yield AgentEvent.say(str(number))
        await asyncio.sleep(0)


async def endless(context):
    yield AgentEvent.say("here")
    await asyncio.get_running_loop().create_future()


async def slow_to_leave(context):
    yield AgentEvent.say("here")
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        await asyncio.sleep(0.05)


async def turns(count=20):
    """Let what is ready on the loop go on."""
    for _ in range(count):
        await asyncio.sleep(0)


async def ended(runner):
    return await asyncio.wait_for(runner.query("go"), 3)


def texts(events):
    return [event.message.text for event in events if event.message is not None]


def test_a_cast_that_is_given_up_is_ended(run):
    limits, go = [], asyncio.Event()

    async def goes_on(context):
        yield AgentEvent.say("here")
        # Now the one that has cast it gives it up.
        limits[0].reschedule(asyncio.get_running_loop().time())
        await go.wait()
        yield AgentEvent.say("still here")

    child, other = Plays("child", goes_on), Plays("other", quick)

    async def play(context):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(None) as limit:
                limits.append(limit)
                await context.cast(child)
        yield AgentEvent.say("gave up")
        go.set()
        await turns()
        outcome = await context.cast(other)
        yield AgentEvent.say(outcome.kind)

    result = run(ended(Runner(Plays("parent", play, sub_agents=[child, other]))))
    assert texts(result.events) == ["here", "gave up", "0", "1", "2", "3", "4", "finished"]


def test_a_cast_that_is_given_up_before_it_was_begun_is_not_begun(run):
    child = Plays("child", quick)

    async def main():
        has_read, gave_up = asyncio.Event(), asyncio.Event()

        async def play(context):
            await has_read.wait()
            while not system.stats().by_class_and_state.get(("RunSupervisor", "running")):
                await asyncio.sleep(0)
            # Now the supervisor waits for room, and what it is asked for waits for it.
            try:
                async with asyncio.timeout(0):  # given up as soon as it has been asked for
                    await context.cast(child)
            except TimeoutError:
                gave_up.set()
            yield AgentEvent.say("end")

        agents = [Plays("beside", quick), Plays("parent", play, sub_agents=[child])]
        seen = []
        async with ActorSystem() as system:
            async for event in Runner(
                Parallel(name="p", sub_agents=agents), event_buffer=1, system=system
            ).query("go"):
                seen.append(event.agent_name)
                has_read.set()
                await gave_up.wait()
        assert seen.count("parent") == 1
        assert "child" not in seen

    run(main())


def test_an_agent_tool_that_a_middleware_gives_up_is_ended(run):
    class Impatient(Middleware):
        async def wrap_tool(self, context, call, inner):
            try:
                return await asyncio.wait_for(inner(call), 0.02)
            except TimeoutError:
                return "gave up"

    class Counts(CallsOnce):
        async def generate(self, request):
            if request.messages[-1].role == "tool":
                at_work.append(system.stats().actors)
            return await super().generate(request)

    at_work = []
    inner = Plays("inner", slow_to_leave)
    outer = ChatModelAgent(
        name="outer",
        model=Counts("inner", '{"request": "go"}'),
        tools=[inner.as_tool()],
        middleware=[Impatient()],
    )
    system = ActorSystem()

    async def main():
        async with system:
            result = await ended(Runner(outer, system=system))
            assert result.final_output == "gave up"
        assert at_work == [2]  # the run's supervisor and the outer agent

    run(main())


def test_a_system_is_left_at_once_although_a_cancelled_run_has_not_ended(run, caplog):
    begun = asyncio.Event()

    async def play_child(context):
        begun.set()
        async for event in slow_to_leave(context):
            yield event

    child = Plays("child", play_child)

    async def play(context):
        await context.cast(child)
        yield AgentEvent.say("never")

    async def main():
        async with ActorSystem(stop_timeout=1) as system:
            a_run = Runner(Plays("parent", play, sub_agents=[child]), system=system).query("go")
            await begun.wait()
            a_run.cancel()
            await turns()
        assert a_run.status == "cancelled"

    run(main())
    assert "does not stop" not in caplog.text


def test_a_tool_in_a_thread_that_timed_out_shows_nothing_any_more(run):
    over, has_tried = threading.Event(), threading.Event()

    @tool(timeout=0.03)
    def slow(context: ToolContext) -> str:
        """Go on for long."""
        context.emit(AgentEvent(custom_output="in time"))
        over.wait(2)
        try:
            context.emit(AgentEvent(custom_output="too late"))
        finally:
            has_tried.set()
        return "x"

    async def play(context):
        over.set()
        assert await asyncio.to_thread(has_tried.wait, 10)
        await turns()
        yield AgentEvent.say("next")

    agents = [ChatModelAgent(name="a", model=CallsOnce("slow"), tools=[slow]), Plays("b", play)]
    result = run(ended(Runner(Sequential(name="s", sub_agents=agents))))
    assert [event.custom_output for event in result.events if event.custom_output] == ["in time"]


def test_the_timer_of_a_run_ends_with_it(run):
    async def main():
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            for _ in range(5):
                await Runner(Plays("a", quick), system=system).query("go", timeout=10)
            left = Runner(Plays("a", endless), system=system).query("go", timeout=10)
            assert len(clock.pending) == 1
        assert left.status == "cancelled"
        assert not clock.pending
        clock.advance(20)
        gc.collect()
        assert not [one for one in gc.get_objects() if type(one) is RunSupervisor]

    run(main())


def test_the_last_event_of_a_run_whose_system_is_left_is_numbered_like_the_others(run):
    class Model:
        async def generate(self, request):
            raise AssertionError

        async def stream(self, request):
            for _ in range(3):
                yield MessageDelta()
            await asyncio.get_running_loop().create_future()

    async def main():
        async with ActorSystem() as system:
            events = aiter(
                Runner(
                    ChatModelAgent(name="a", model=Model()), streaming=True, system=system
                ).query("go")
            )
            assert [(await anext(events)).seq for _ in range(3)] == [1, 2, 3]
        rest = [event async for event in events]
        assert [event.seq for event in rest] == [4]
        assert rest[0].timestamp > 0

    run(main())


def test_a_model_that_streams_without_end_does_not_outlast_the_timeout(run):
    class Model:
        async def generate(self, request):
            raise AssertionError

        async def stream(self, request):
            for _ in range(50_000):
                yield MessageDelta()
            yield Message.assistant("too late")

    async def main():
        result = await Runner(ChatModelAgent(name="a", model=Model()), streaming=True).query(
            "go", timeout=0.02
        )
        assert result.status == "cancelled"

    run(main())


def test_cancelling_a_round_that_has_hardly_begun_leaves_nothing_unawaited(run):
    @tool
    async def quiet() -> str:
        """Nothing."""
        return ""

    async def main():
        for turns in range(8):
            runner = Runner(
                ChatModelAgent(name="a", model=CallsOnce("quiet", times=3), tools=[quiet]),
                event_buffer=1,
            )
            a_run = runner.query("go")
            events = aiter(a_run)
            await anext(events)
            for _ in range(turns):
                await asyncio.sleep(0)
            a_run.cancel()
            await events.aclose()
            await a_run

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(main())
    assert not [str(one.message) for one in caught]


def test_exceptions_that_misbehave_are_their_agents_failure_and_nobody_elses(run, caplog):
    class Wordless(BaseException):
        def __str__(self):
            raise ValueError("no words")

    class Empty(Exception):
        def __len__(self):
            return 0

    def crashes(error):
        async def play(context):
            yield AgentEvent.say("here")
            raise error

        return play

    restart = Restart(max_restarts=1, backoff=Backoff(initial=0))
    agents = [
        Plays("w", crashes(Wordless())),
        Plays("e", crashes(Empty()), on_failure=restart),
        Plays("q", quick),
    ]
    logging.getLogger("offbook").propagate = False
    # It would have to write down what cannot be written.
    logging.getLogger("offbook").addHandler(silent := logging.NullHandler())
    try:
        result = run(ended(Runner(Parallel(name="p", sub_agents=agents))))
    finally:
        logging.getLogger("offbook").removeHandler(silent)
        logging.getLogger("offbook").propagate = True
    assert texts(event for event in result.events if event.agent_name == "q") == [
        "0",
        "1",
        "2",
        "3",
        "4",
    ]
    failures = Counter(
        (event.agent_name, type(event.error).__name__)
        for event in result.events
        if event.error is not None
    )
    assert failures == {("w", "AgentError"): 1, ("e", "Empty"): 1}


@pytest.mark.parametrize("end", ["cancel", "timeout", "leave", "abandon"])
def test_a_run_ends_in_the_pause_before_a_restart(run, caplog, end):
    async def play(context):
        yield AgentEvent.say("here")
        raise ValueError("again")

    agent = Plays("a", play, on_failure=Restart(max_restarts=3, backoff=Backoff(initial=100)))

    async def main():
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            a_run = Runner(agent, system=system).query("go", timeout=10)
            events = aiter(a_run)
            await anext(events)
            while len(clock.pending) < 2:  # the timeout of the run, and the pause
                await asyncio.sleep(0)
            if end == "cancel":
                a_run.cancel()
            elif end == "timeout":
                clock.advance(11)
            elif end == "abandon":
                await events.aclose()
            if end != "leave":
                assert (await asyncio.wait_for(a_run, 1)).status == "cancelled"
                assert system.stats().actors == 0
        result = await asyncio.wait_for(a_run, 1)
        assert [type(event.error).__name__ for event in result.events] == [
            "NoneType",
            "RunCancelled",
        ]

    run(main())


def test_a_second_cancel_reaches_an_agent_that_has_swallowed_the_first(run, caplog):
    async def play(context):
        yield AgentEvent.say("here")
        for gate in waiting:
            with contextlib.suppress(asyncio.CancelledError):
                gate.set()
                await asyncio.get_running_loop().create_future()

    waiting = [asyncio.Event(), asyncio.Event()]

    async def main():
        async with ActorSystem(stop_timeout=0.1) as system:
            a_run = Runner(Plays("a", play), system=system).query("go")
            for gate in waiting:
                await gate.wait()
                a_run.cancel()
            await turns()
            assert a_run.status == "cancelled"

    run(main())


def test_a_hook_that_does_not_end_is_cut_short_by_a_cancel(run):
    class Hangs(RunHooks):
        async def on_run_end(self, context, result):
            hanging.set()
            await asyncio.get_running_loop().create_future()

    hanging = asyncio.Event()

    async def main():
        a_run = Runner(Plays("a", quick), hooks=Hangs()).query("go")
        await hanging.wait()
        assert a_run.status == "running"
        a_run.cancel()
        assert (await a_run).status == "completed"

    run(main())


def test_a_hook_that_does_not_end_is_cut_short_by_the_timeout(run):
    class Hangs(RunHooks):
        async def on_run_end(self, context, result):
            await asyncio.get_running_loop().create_future()

    async def main():
        assert (
            await Runner(Plays("a", quick), hooks=Hangs()).query("go", timeout=0.05)
        ).status == "completed"

    run(main())
