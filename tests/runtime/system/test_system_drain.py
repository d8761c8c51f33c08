"""`drain`: takes no new roots, waits for the work of every kind of actor, ends in time, and says
what it has left.
"""

import asyncio
import threading

import pytest

from offbook.runtime import (
    Actor,
    ActorSystem,
    Backoff,
    DrainReport,
    Restart,
    SystemDraining,
    ThreadActor,
    UsageError,
)
from offbook.runtime.testing import ManualClock
from tests.doubles.actors import Echo


class Gate(Actor):
    """Waits in its handler until its gate is opened; then does what it was sent, if that can be
    called.
    """

    def __init__(self):
        super().__init__()
        self.opened = asyncio.Event()
        self.under_way = asyncio.Event()

    async def on_receive(self, message):
        self.under_way.set()
        await self.opened.wait()
        return message(self) if callable(message) else message


class ThreadGate(ThreadActor):
    """The same, in a thread, in its handler and its hooks."""

    def __init__(self, opened, *, start_at_once=True):
        super().__init__()
        self.opened = opened
        self.start_at_once = start_at_once
        self.handled = 0

    def on_start(self):
        if not self.start_at_once:
            self.opened.wait(10)

    def on_receive(self, message):
        self.opened.wait(10)
        self.handled += 1


async def turns(count=10):
    """Let everybody on the loop who can go on do so."""
    for _ in range(count):
        await asyncio.sleep(0)


def test_a_system_with_nothing_to_do_is_drained_at_once(run):
    async def main():
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(Echo)
            await ref.request("!")
            assert await system.drain(5) == DrainReport(
                drained=True, seconds=0.0, busy=(), queued=0
            )
            assert ref.is_alive()  # leaving stops it
            assert await ref.request("still here") == "still here"
            assert clock.pending == ()

    run(main())


def test_drain_waits_for_the_handler_under_way_and_for_what_is_queued(run):
    async def main():
        async with ActorSystem(clock=ManualClock()) as system:
            ref = system.spawn(Gate)
            replies = [asyncio.ensure_future(ref.request(number)) for number in range(3)]
            draining = asyncio.ensure_future(system.drain(5))
            await turns()
            assert not draining.done()
            assert system.stats().state == "draining"
            ref._cell.actor.opened.set()
            assert (await draining).drained
            assert [reply.done() for reply in replies] == [True] * 3
            assert await asyncio.gather(*replies) == [0, 1, 2]

    run(main())


def test_a_drain_that_is_not_done_in_time_says_who_is_busy_and_with_how_much(run):
    async def main():
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(Gate, name="busy")
            system.spawn(Echo, name="idle")
            for number in range(4):
                ref.tell(number)
            draining = asyncio.ensure_future(system.drain(5))
            await turns()
            clock.advance(4.9)
            await turns()
            assert not draining.done()
            clock.advance(0.1)
            report = await draining
            assert report == DrainReport(
                drained=False, seconds=pytest.approx(5.0), busy=("busy",), queued=3
            )
            ref._cell.actor.opened.set()
            assert (await system.drain(5)).drained  # it can be tried again

    run(main())


def test_a_drain_of_no_time_at_all_only_looks(run):
    async def main():
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(Gate, name="busy")
            ref.tell("go")
            draining = asyncio.ensure_future(system.drain(0))
            await turns()
            clock.advance(0)
            assert (await draining).busy == ("busy",)
            ref._cell.actor.opened.set()

    run(main())


def test_new_roots_are_refused_while_draining_and_children_are_not(run):
    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Gate)
            reply = ref.ask(lambda actor: actor.spawn(Echo), block=False)
            draining = asyncio.ensure_future(system.drain(60))
            await turns()
            with pytest.raises(SystemDraining, match="accepts no new work"):
                system.spawn(Echo)
            with pytest.raises(SystemDraining):
                Echo.start()
            ref._cell.actor.opened.set()
            child = await reply
            assert await child.request("born while draining") == "born while draining"
            assert (await draining).drained
            with pytest.raises(SystemDraining):
                system.spawn(Echo)

    run(main())


def test_drain_waits_for_work_that_work_makes(run):
    class Relay(Actor):
        """Hands a number down a chain of children, each of which needs some turns of the loop."""

        async def on_receive(self, left):
            await asyncio.sleep(0)
            if left:
                self.spawn(Relay).tell(left - 1)
            else:
                arrived.append("bottom")

    arrived = []

    async def main():
        async with ActorSystem(clock=ManualClock()) as system:
            system.spawn(Relay).tell(50)
            assert (await system.drain(5)).drained
            assert arrived == ["bottom"]

    run(main())


def test_drain_waits_for_an_actor_that_starts_or_stops(run):
    class Hooks(Actor):
        async def on_start(self):
            await opened["start"].wait()

        async def on_stop(self):
            await opened["stop"].wait()

    opened = {"start": asyncio.Event(), "stop": asyncio.Event()}

    async def main():
        async with ActorSystem(clock=ManualClock()) as system:
            ref = system.spawn(Hooks)
            draining = asyncio.ensure_future(system.drain(5))
            await turns()
            assert not draining.done()
            opened["start"].set()
            assert (await draining).drained
            stopped = ref.stop()
            draining = asyncio.ensure_future(system.drain(5))
            await turns()
            assert not draining.done()
            opened["stop"].set()
            assert (await draining).drained
            assert stopped.done()

    run(main())


def test_drain_waits_for_a_restart(run):
    class Failing(Actor):
        def on_receive(self, message):
            raise ZeroDivisionError

    async def main():
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(
                Failing, name="failing", supervision=Restart(backoff=Backoff(initial=3, jitter=0))
            )
            ref.tell("go")
            draining = asyncio.ensure_future(system.drain(10))
            await turns()
            assert not draining.done()
            clock.advance(3)
            report = await draining
            assert (report.drained, report.seconds) == (True, pytest.approx(3.0))
            assert ref.is_alive()

    run(main())


@pytest.mark.parametrize("start_at_once", [True, False], ids=["handling", "starting"])
def test_drain_waits_for_thread_actors(run, start_at_once):
    async def main():
        async with ActorSystem(clock=ManualClock()) as system:
            opened = threading.Event()
            ref = system.spawn(ThreadGate, opened, start_at_once=start_at_once)
            for number in range(3):
                ref.tell(number)
            draining = asyncio.ensure_future(system.drain(5))
            await turns(100)
            assert not draining.done()
            opened.set()
            assert (await asyncio.wait_for(draining, 10)).drained
            assert ref._cell.actor.handled == 3

    run(main())


def test_a_thread_actor_that_is_not_done_in_time_is_named(run):
    async def main():
        clock, opened = ManualClock(), threading.Event()
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(ThreadGate, opened, name="thread")
            under_way = ref.ask("go", block=False)
            ref.tell("and this")
            draining = asyncio.ensure_future(system.drain(5))
            while system.stats().queued != 1:
                await asyncio.sleep(0)
            clock.advance(5)
            report = await draining
            assert (report.drained, report.busy, report.queued) == (False, ("thread",), 1)
            opened.set()
            await under_way

    run(main())


def test_drain_does_not_overlook_a_message_that_a_thread_has_just_taken(run):
    """Between the taking of a message and the call of its handler, the actor is busy as well."""

    class Slippery:
        """A message that holds up whoever looks what it is: the first to do so is the thread that
        has just taken it.
        """

        @property
        def __class__(self):
            taken.set()
            opened.wait(10)
            return Slippery

    taken, opened = threading.Event(), threading.Event()

    async def main():
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(ThreadGate, opened, name="thread")
            await ref.proxy().handled
            ref.tell(Slippery())
            while not taken.is_set():
                await asyncio.sleep(0)
            draining = asyncio.ensure_future(system.drain(5))
            await turns()
            overlooked = draining.done()
            opened.set()
            assert not overlooked
            assert (await draining).drained
            assert await ref.proxy().handled == 1

    run(main())


def test_several_may_drain_at_once(run):
    async def main():
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(Gate)
            ref.tell("go")
            drains = [asyncio.ensure_future(system.drain(seconds)) for seconds in (1, 5, 10)]
            await turns()
            clock.advance(1)
            await turns()
            assert [drain.done() for drain in drains] == [True, False, False]
            ref._cell.actor.opened.set()
            await turns(50)
            assert [drain.done() for drain in drains] == [True, True, True]
            assert [(await drain).drained for drain in drains] == [False, True, True]

    run(main())


def test_a_drain_that_is_cancelled_leaves_no_timer_and_no_new_roots(run):
    async def main():
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(Gate)
            ref.tell("go")
            draining = asyncio.ensure_future(system.drain(5))
            await turns()
            draining.cancel()
            with pytest.raises(asyncio.CancelledError):
                await draining
            assert clock.pending == ()
            with pytest.raises(SystemDraining):
                system.spawn(Echo)
            ref._cell.actor.opened.set()

    run(main())


def test_leaving_ends_a_drain(run):
    async def main():
        system = ActorSystem(clock=ManualClock())
        await system.start()
        system.spawn(Gate).tell("go")
        draining = asyncio.ensure_future(system.drain(5))
        await turns()
        await system.stop()
        await turns()
        assert draining.done()
        assert isinstance(await draining, DrainReport)

    run(main())


def test_only_a_running_system_can_be_drained(run):
    async def main():
        system = ActorSystem()
        with pytest.raises(UsageError, match="not running"):
            await system.drain(5)
        async with system:
            pass
        with pytest.raises(UsageError, match="not running"):
            await system.drain(5)

    run(main())


def test_a_system_that_was_drained_can_be_entered_again_and_takes_roots(run):
    async def main():
        system = ActorSystem()
        async with system:
            await system.drain(5)
        async with system:
            assert await system.spawn(Echo).request("!") == "!"

    run(main())


def test_a_drain_from_another_loop_is_refused_or_works(run):
    async def elsewhere(system, ref):
        try:
            report = await asyncio.wait_for(system.drain(5), 10)
        except UsageError:
            return
        assert report.drained

    with ActorSystem.in_thread() as system:
        run(elsewhere(system, system.spawn(Echo)))
