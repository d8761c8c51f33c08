"""The life of a system: entering and leaving it in all its ways, and what is left afterwards."""

import asyncio
import gc
import threading
import weakref

import pytest

from offbook.runtime import Actor, ActorDeadError, ActorSystem, ThreadActor, UsageError
from offbook.runtime.system.system import SystemState
from offbook.runtime.testing import ManualClock
from tests.doubles.actors import Echo


class Where(Actor):
    def on_receive(self, message):
        return threading.get_ident()


class Node(Actor):
    """Notes its end. Spawns one child for each number in the list that it is sent."""

    kind = None

    def __init__(self, ends):
        super().__init__()
        self.ends = ends

    def on_receive(self, names):
        return [self.spawn(type(self), self.ends, name=name) for name in names]

    def on_stop(self):
        self.ends.append(self.actor_ref.path)


class ThreadNode(ThreadActor):
    def __init__(self, ends):
        super().__init__()
        self.ends = ends

    def on_receive(self, names):
        return [self.spawn(Node, self.ends, name=name) for name in names]

    def on_stop(self):
        self.ends.append(self.actor_ref.path)


class Waiter(Actor):
    """Waits in its handler until the end of the world; notes how that ended."""

    def __init__(self, started, ends):
        super().__init__()
        self.started = started
        self.ends = ends

    async def on_receive(self, message):
        self.started.set()
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.ends.append("cancelled")
            raise


def test_a_system_runs_on_the_loop_that_it_is_entered_on(run):
    async def main():
        async with ActorSystem() as system:
            assert system.state is SystemState.RUNNING
            assert system.loop is asyncio.get_running_loop()
            assert await system.spawn(Where).request("?") == threading.get_ident()
        assert system.state is SystemState.STOPPED

    run(main())


def test_start_and_stop_do_what_the_block_does(run):
    async def main():
        ends = []
        system = ActorSystem("by-hand")
        await system.start()
        ref = system.spawn(Node, ends, name="only")
        assert ref.is_alive()
        await system.stop()
        assert ends == ["only"]
        assert not ref.is_alive()
        await system.stop()  # a second time is no mistake
        assert ends == ["only"]

    run(main())


def test_stop_of_a_system_that_was_never_entered_does_nothing(run):
    async def main():
        system = ActorSystem()
        await system.stop()
        assert system.state is SystemState.NEW

    run(main())


@pytest.mark.parametrize("root", [Node, ThreadNode])
def test_g05_children_are_stopped_before_their_parents(run, root):
    async def main():
        ends = []
        async with ActorSystem() as system:
            a = system.spawn(root, ends, name="a")
            (b, c) = await a.request(["b", "c"])
            await b.request(["d"])
            await c.request(["e"])
        return ends

    ends = run(main())
    assert sorted(ends) == ["a", "a/b", "a/b/d", "a/c", "a/c/e"]
    for path in ends:
        assert all(
            ends.index(path) > ends.index(other) for other in ends if other.startswith(path + "/")
        ), ends


def test_g05_nothing_is_left_after_leaving(run):
    """No task, no thread, no instance, no ref: `run` looks for tasks, and `conftest.py` for
    threads.
    """
    born = []

    class Heavy(Actor):
        def __init__(self):
            super().__init__()
            born.append(weakref.ref(self))

        async def on_receive(self, message):
            await asyncio.sleep(0)
            return await self.spawn(Heavy).request(message - 1) if message else "bottom"

    class HeavyThread(ThreadActor):
        def __init__(self):
            super().__init__()
            born.append(weakref.ref(self))

    async def main():
        threads = threading.active_count()
        async with ActorSystem() as system:
            assert await system.spawn(Heavy).request(5) == "bottom"
            system.spawn(HeavyThread)
            await system.run_blocking(threading.get_ident)
            assert threading.active_count() > threads
        assert threading.active_count() <= threads + 1  # the idle worker may be on its way out
        gc.collect()
        assert len(born) == 7
        assert [ref() for ref in born if ref() is not None] == []
        return weakref.ref(system)

    system = run(main())
    gc.collect()
    assert system() is None


def test_leaving_cancels_handlers_under_way_and_answers_who_asked(run):
    async def main():
        started, ends = asyncio.Event(), []
        async with ActorSystem() as system:
            ref = system.spawn(Waiter, started, ends)
            under_way = asyncio.ensure_future(ref.request("first"))
            queued = asyncio.ensure_future(ref.request("second"))
            await started.wait()
        assert ends == ["cancelled"]
        with pytest.raises(ActorDeadError, match="was left"):
            await under_way
        with pytest.raises(ActorDeadError):
            await queued

    run(main())


def test_an_error_in_the_block_stops_everything_and_goes_on(run):
    async def main():
        ends = []
        with pytest.raises(ZeroDivisionError):
            async with ActorSystem() as system:
                system.spawn(Node, ends, name="a")
                1 / 0  # noqa: B018
        assert ends == ["a"]

    run(main())


def test_a_task_that_is_cancelled_in_its_block_stops_everything(run):
    async def main():
        ends, started = [], asyncio.Event()

        async def service():
            async with ActorSystem() as system:
                system.spawn(Node, ends, name="a")
                started.set()
                await asyncio.get_running_loop().create_future()

        task = asyncio.ensure_future(service())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ends == ["a"]

    run(main())


def test_cancelling_the_leaving_leaves_nothing_either(run):
    class Stubborn(Actor):
        async def on_stop(self):
            stopping.set()
            await asyncio.get_running_loop().create_future()

    async def main():
        system = ActorSystem()
        await system.start()
        ref = system.spawn(Stubborn)
        await ref.request("let it start", timeout=5)
        leaving = asyncio.ensure_future(system.stop())
        await stopping.wait()
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        assert system.state is SystemState.STOPPED
        assert system.stats().actors == 0
        await asyncio.sleep(0)  # what was cancelled takes one turn to end

    stopping = asyncio.Event()
    run(main())


def test_two_who_leave_at_once_both_wait_for_the_end(run):
    class Slow(Actor):
        async def on_stop(self):
            stopping.set()
            await gate.wait()
            ends.append("slow")

    ends = []
    stopping, gate = asyncio.Event(), asyncio.Event()

    async def main():
        system = ActorSystem()
        await system.start()
        await system.spawn(Slow).request("let it start")
        first, second = asyncio.ensure_future(system.stop()), asyncio.ensure_future(system.stop())
        await stopping.wait()
        await asyncio.sleep(0)
        assert not first.done()
        assert not second.done()
        gate.set()
        await asyncio.gather(first, second)
        assert ends == ["slow"]

    run(main())


def test_a_hook_that_does_not_end_is_given_up_after_the_stop_timeout(run, caplog):
    """Leaving ends by the loop's own time, whatever clock the system has."""

    class Stubborn(Actor):
        async def on_stop(self):
            while True:
                try:
                    await asyncio.get_running_loop().create_future()
                except asyncio.CancelledError:
                    cancelled.append(self.actor_ref.path)
                    if len(cancelled) > 1:
                        raise

    cancelled = []

    async def main():
        async with ActorSystem(stop_timeout=0.01, clock=ManualClock()) as system:
            ref = system.spawn(Stubborn, name="stubborn")
            ended = ref.ask("let it start", block=False)
            await ended
            stopped = ref.stop(block=False)
        assert stopped.done()
        await asyncio.sleep(0)
        assert cancelled == ["stubborn", "stubborn"]

    run(main())
    assert any("stubborn does not stop" in record.getMessage() for record in caplog.records)
    assert any("stubborn is abandoned" in record.getMessage() for record in caplog.records)


def test_a_system_can_be_entered_again_after_it_was_left(run):
    system = ActorSystem()

    async def main():
        async with system:
            old = system.spawn(Echo)
            assert await old.request("one") == "one"
        async with system:
            new = system.spawn(Echo)
            assert await new.request("two") == "two"
            assert await system.run_blocking(lambda: "three") == "three"
            assert new != old
            with pytest.raises(ActorDeadError):
                await old.request("anybody there?")
            with pytest.raises(ActorDeadError):
                old.tell("anybody there?")

    run(main())
    run(main())  # on another loop, too


def test_a_handler_that_leaves_its_own_system_does_not_hang(run):
    class Suicidal(Actor):
        async def on_receive(self, message):
            await self.actor_system.stop()

    async def main():
        system = ActorSystem()
        await system.start()
        with pytest.raises((UsageError, ActorDeadError)):
            await system.spawn(Suicidal).request("go")
        await system.stop()
        assert system.state is SystemState.STOPPED
        assert system.stats().actors == 0

    run(main())
