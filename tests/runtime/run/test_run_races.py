"""Runs that several look on at once, from several threads and loops: whoever starts, waits, gives
up or finds the loop gone.
"""

import asyncio
import threading
import time

import pytest

from offbook.actors import Agent
from offbook.runtime import ActorSystem, AgentEvent, Runner, SystemDraining, UsageError


class Plays(Agent):
    """An agent that does what a function does."""

    def __init__(self, name, play, **options):
        super().__init__(name=name, **options)
        self.play = play

    async def run(self, input, context):
        async for event in self.play(context):
            yield event


async def quick(context):
    for number in range(5):
        yield AgentEvent.say(str(number))
        await asyncio.sleep(0)


async def endless(context):
    yield AgentEvent.say("here")
    await asyncio.get_running_loop().create_future()


def texts(events):
    return [event.message.text for event in events if event.message is not None]


def in_thread(work, *args):
    """Begin it in a thread, which must have ended within some seconds."""
    outcome = []

    def call():
        try:
            outcome.append(work(*args))
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()

    def ended():
        thread.join(3)
        assert outcome, "it hangs"
        return outcome[0]

    return ended


# --- starting ---


def test_a_run_is_started_inside_an_agent_while_a_thread_starts_one_of_the_same_runner():
    inside, other = threading.Event(), threading.Event()

    async def play(context):
        if not inside.is_set():
            inside.set()
            other.wait(2)
            time.sleep(0.05)  # the loop is at work while the thread wants it to
            yield AgentEvent.say((await runner.query("inner")).final_message.text)
        else:
            yield AgentEvent.say("ok")

    runner = Runner(Plays("a", play))
    first = in_thread(lambda: runner.query("outer").result())
    inside.wait(2)
    second = runner.query("second")
    other.set()
    assert in_thread(second.result)().final_message.text == "ok"
    assert first().final_message.text == "ok"


class SlowlyStarted(ActorSystem):
    """One in which the moment between a run's getting its place and its launch is long."""

    placed = None

    def on_loop(self, function, *args):
        if function.__name__ == "_start_here" and self.placed is not None:
            self.placed.set()
            time.sleep(0.1)
        return super().on_loop(function, *args)


@pytest.fixture
def slowly_started():
    async def bind():
        await system.start()

    system = SlowlyStarted()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(bind(), loop).result()
    system.placed = threading.Event()
    yield system
    asyncio.run_coroutine_threadsafe(system.stop(), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_cancelling_a_run_that_another_thread_is_about_to_start_cancels_it(slowly_started):
    a_run = Runner(Plays("a", endless), system=slowly_started).query("go")
    starting = in_thread(a_run.start)
    slowly_started.placed.wait(2)
    a_run.cancel()
    starting()
    assert in_thread(a_run.result)().status == "cancelled"


def test_a_run_that_cannot_be_started_says_so_to_a_thread_that_did_not_start_it(slowly_started):
    asyncio.run_coroutine_threadsafe(slowly_started.drain(1), slowly_started.loop).result()
    a_run = Runner(Plays("a", quick), system=slowly_started).query("go")
    starting = in_thread(a_run.start)
    slowly_started.placed.wait(2)
    assert isinstance(in_thread(a_run.result)(), SystemDraining)
    starting()


def test_threads_start_await_and_cancel_one_run_at_once():
    with ActorSystem.in_thread() as system:
        runner = Runner(Plays("a", quick), system=system)
        for _ in range(20):
            a_run = runner.query("go")
            ended = [in_thread(a_run.result), in_thread(a_run.result), in_thread(a_run.cancel)]
            first, second, _ = [wait() for wait in ended]
            assert first is second is a_run.result()
            assert first.status in ("completed", "cancelled")
            assert sum(event.error is not None for event in first.events) == (
                first.status == "cancelled"
            )
        assert system.stats().actors == 0


# --- looking on ---


def test_whoever_gives_up_waiting_for_an_event_from_another_loop_loses_none(run):
    go = threading.Event()

    async def play(context):
        await context.run_blocking(go.wait)
        for number in range(5):
            yield AgentEvent.say(str(number))
        await asyncio.sleep(0.1)

    async def main(system):
        events = aiter(Runner(Plays("a", play), system=system).query("go"))
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.02)
        go.set()
        time.sleep(0.1)  # this loop is busy while they come
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert texts([event async for event in events]) == ["0", "1", "2", "3", "4"]

    with ActorSystem.in_thread() as system:
        run(main(system))


def test_events_that_are_consumed_already_are_not_silently_missing(run):
    async def main():
        a_run = Runner(Plays("a", quick)).query("go")
        waiting = asyncio.ensure_future(a_run)
        await asyncio.sleep(0)
        with pytest.raises(UsageError, match="were consumed by"):
            aiter(a_run)
        assert (await waiting).status == "completed"

    run(main())


def test_one_task_iterates_and_others_await_one_run(run):
    async def main():
        a_run = Runner(Plays("a", quick)).query("go")
        events = aiter(a_run)

        async def iterate():
            return [event async for event in events]

        seen, first, second = await asyncio.gather(iterate(), a_run, a_run)
        assert first is second
        assert tuple(seen) == first.events
        await asyncio.gather(a_run.aclose(), a_run.aclose())

    run(main())


def test_the_result_of_a_run_outlives_its_loop(run):
    async def main():
        a_run = Runner(Plays("a", quick)).query("go")
        return a_run, await a_run

    async def again():
        return await a_run

    a_run, result = run(main())
    assert a_run.result() is result
    assert run(again()) is result
    assert in_thread(lambda: asyncio.run(again()))() is result


def test_a_thread_is_not_left_waiting_for_a_loop_of_its_own_that_does_not_run():
    async def begin():
        return Runner(Plays("a", quick)).query("go")

    with asyncio.Runner() as runner:
        a_run = runner.run(begin())
        with pytest.raises(UsageError, match="not running"):
            a_run.result()


def test_threads_that_look_on_when_the_system_is_left_see_the_end():
    with ActorSystem.in_thread() as system:
        runner = Runner(Plays("a", endless), system=system)
        awaited, iterated = runner.query("go"), runner.query("go")
        ended = in_thread(awaited.result), in_thread(lambda: list(iterated))
        while (
            awaited.status != "running" or iterated.status != "running" or system.stats().actors < 4
        ):
            time.sleep(0.001)
    assert ended[0]().status == "cancelled"
    events = ended[1]()
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert events[-1].error is not None


def test_a_thread_does_not_wait_for_a_loop_that_was_closed_under_the_run():
    async def begin():
        return Runner(Plays("a", endless)).query("go")

    loop = asyncio.new_event_loop()
    made, waited = threading.Event(), threading.Event()
    runs = []

    def live():
        runs.append(loop.run_until_complete(begin()))
        made.set()
        loop.run_until_complete(loop.run_in_executor(None, waited.wait))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()

    thread = threading.Thread(target=live)
    thread.start()
    made.wait(2)
    ended = in_thread(runs[0].result)
    time.sleep(0.05)
    waited.set()
    thread.join()
    try:
        assert isinstance(ended(), UsageError)
    finally:
        for task in asyncio.all_tasks(loop):
            task._log_destroy_pending = False  # which is what the test is about


def test_a_thread_gets_the_result_of_a_run_that_the_end_of_the_loop_has_ended(run):
    async def main():
        a_run = Runner(Plays("a", endless)).query("go")
        ended = in_thread(a_run.result)
        await asyncio.sleep(0.05)
        return ended

    ended = asyncio.run(main())
    assert ended().status in ("failed", "cancelled")
