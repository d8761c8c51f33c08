"""`self.timers`: messages of an actor to itself, on the clock of its system; for both kinds of
actor.
"""

import asyncio
import gc
import weakref

import pytest

from offbook.runtime import (
    Actor,
    ActorDeadError,
    ActorSystem,
    Backoff,
    MailboxSettings,
    Restart,
    Resume,
    ThreadActor,
    UsageError,
)
from offbook.runtime.testing import ManualClock

AT_ONCE = Restart(backoff=Backoff(initial=0))


class Timed:
    """Notes what it is sent, and does what it is told."""

    def __init__(self, seen, gate=None):
        super().__init__()
        self.seen, self.gate = seen, gate

    def on_receive(self, message):
        match message:
            case ("after" | "every" as how, seconds, what):
                self.handle = getattr(self.timers, how)(seconds, what)
                return self.handle
            case "cancel":
                self.handle.cancel()
            case "fail":
                raise ValueError(message)
            case "what?":
                return list(self.seen)
            case "wait":
                self.gate.block()
            case _:
                self.seen.append(message)


def of(kind):
    return type("Timed", (Timed, kind), {})


def acting(run, kind, story, gate=None, **options):
    """Play a story with one actor, its clock, and what it has seen."""

    async def main():
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(of(kind), [], gate, name="it", **options)
            await story(ref, clock)
            if ref.is_alive():
                await ref.request("what?")
        assert clock.pending == ()

    run(main())


async def seen(ref):
    return await ref.request("what?")


def test_a_message_comes_when_its_time_has_come(run, kind):
    async def story(ref, clock):
        handle = await ref.request(("after", 5, "tick"))
        clock.advance(4.9)
        assert (await seen(ref), handle.is_active) == ([], True)
        clock.advance(0.1)
        assert (await seen(ref), handle.is_active) == (["tick"], False)
        clock.advance(100)
        assert await seen(ref) == ["tick"]

    acting(run, kind, story)


def test_a_message_comes_again_and_again(run, kind):
    async def story(ref, clock):
        handle = await ref.request(("every", 5, "tick"))
        for count in range(1, 4):
            clock.advance(5)
            assert (await seen(ref), handle.is_active) == (["tick"] * count, True)

    acting(run, kind, story)


def test_no_time_at_all_is_as_soon_as_can_be(run, kind):
    async def story(ref, clock):
        await ref.request(("after", 0, "tick"))
        clock.advance(0)
        assert await seen(ref) == ["tick"]

    acting(run, kind, story)


def test_timers_come_in_the_order_of_their_times(run, kind):
    async def story(ref, clock):
        for seconds in (3, 1, 2):
            await ref.request(("after", seconds, seconds))
        clock.advance(10)
        assert await seen(ref) == [1, 2, 3]

    acting(run, kind, story)


@pytest.mark.parametrize("how", ["after", "every"])
def test_one_that_was_cancelled_does_not_come(run, kind, how):
    async def story(ref, clock):
        handle = await ref.request((how, 5, "tick"))
        await ref.request("cancel")
        clock.advance(20)
        assert (await seen(ref), handle.is_active, clock.pending) == ([], False, ())
        handle.cancel()  # a second time

    acting(run, kind, story)


@pytest.mark.parametrize("how", ["after", "every"])
def test_one_that_is_cancelled_while_it_waits_in_the_mailbox_is_not_handled(run, gate, how):
    async def story(ref, clock):
        handle = await ref.request((how, 5, "tick"))
        ref.tell("wait")
        await gate.reached()
        clock.advance(5)
        handle.cancel()
        gate.open()
        assert await seen(ref) == []

    acting(run, ThreadActor, story, gate)


def test_a_busy_actor_finds_one_and_not_all_that_were_due_meanwhile(run, gate):
    async def story(ref, clock):
        await ref.request(("every", 1, "tick"))
        ref.tell("wait")
        await gate.reached()
        for _ in range(50):
            clock.advance(1)
        gate.open()
        assert await seen(ref) == ["tick"]
        clock.advance(1)
        assert await seen(ref) == ["tick", "tick"]

    acting(run, ThreadActor, story, gate)


def test_a_busy_actor_on_the_loop_finds_one_too(run, gate):
    got = []

    class Busy(Actor):
        def on_start(self):
            self.timers.every(1, "tick")

        async def on_receive(self, message):
            got.append(message)
            if message == "wait":
                await gate.wait()

    async def main():
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(Busy)
            ref.tell("wait")
            await gate.reached()
            for _ in range(50):
                clock.advance(1)
            gate.open()
            await ref.request("done")
            assert got == ["wait", "tick", "done"]

    run(main())


def test_what_is_late_does_not_move_the_next_one(run):
    """A loop that was held for a while: the times stay those that were agreed on."""
    got = []

    class Regular(Actor):
        def on_start(self):
            self.timers.every(10, "tick")

        def on_receive(self, message):
            got.append(self.actor_system.clock.monotonic() - 1_000_000)

    class Late(ManualClock):
        def advance(self, seconds):
            self._now += seconds  # nothing was called at its time
            super().advance(0)

    async def main():
        clock = Late()
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(Regular)
            await ref.proxy().actor_urn
            for seconds in (10, 27, 3, 10):
                clock.advance(seconds)
                await ref.proxy().actor_urn
            assert got == [10, 37, 40, 50]

    run(main())


def test_they_end_with_the_actor(run, kind):
    async def story(ref, clock):
        handle = await ref.request(("every", 1, "tick"))
        await ref.stop()
        assert (handle.is_active, clock.pending) == (False, ())
        clock.advance(5)

    acting(run, kind, story)


def test_they_end_when_it_is_restarted(run, kind):
    async def story(ref, clock):
        old = await ref.request(("every", 1, "old"))
        ref.tell("fail")
        new = await ref.request(("every", 1, "new"))
        clock.advance(1)
        await seen(ref)
        assert (old.is_active, new.is_active) == (False, True)
        assert await seen(ref) == ["new"]

    acting(run, kind, story, supervision=AT_ONCE)


def test_they_go_on_when_it_is_resumed(run, kind):
    async def story(ref, clock):
        await ref.request(("every", 1, "tick"))
        ref.tell("fail")
        await seen(ref)
        clock.advance(1)
        assert await seen(ref) == ["tick"]

    acting(run, kind, story, supervision=Resume())


def test_they_need_no_room_in_a_bounded_mailbox(run, gate):
    async def story(ref, clock):
        await ref.request(("after", 1, "tick"))
        ref.tell("wait")
        await gate.reached()
        ref.tell("full")
        clock.advance(1)
        gate.open()
        await ref.send("last")
        while "last" not in (got := await seen(ref)):
            await asyncio.sleep(0)
        assert got == ["full", "tick", "last"]

    acting(run, ThreadActor, story, gate, mailbox=MailboxSettings(capacity=1, overflow="block"))


def test_one_that_is_lost_with_its_actor_is_no_dead_letter(run, gate):
    async def story(ref, clock):
        lost = []
        ref._cell.system.subscribe_dead_letters(lambda letter: lost.append(letter.message))
        await ref.request(("after", 1, "tick"))
        ref.tell("wait")
        await gate.reached()
        clock.advance(1)
        stopping = ref.stop(block=False)
        gate.open()
        await stopping
        assert lost == []

    acting(run, ThreadActor, story, gate)


@pytest.mark.parametrize(
    "call",
    [
        ("after", -1, "x"),
        ("after", "soon", "x"),
        ("after", float("inf"), "x"),
        ("every", 0, "x"),
        ("every", float("nan"), "x"),
    ],
)
def test_a_time_that_is_none_is_refused(run, kind, call):
    async def story(ref, clock):
        with pytest.raises(UsageError, match="must be a number of seconds"):
            await ref.request(call)

    acting(run, kind, story)


def test_an_actor_that_has_ended_sets_none(run):
    kept = []

    class Keeps(Actor):
        def on_start(self):
            kept.append(self)

    async def main():
        async with ActorSystem() as system:
            await system.spawn(Keeps).stop()
            with pytest.raises(ActorDeadError):
                kept.pop().timers.after(1, "x")
            assert system.extras == {}

    run(main())


def test_nothing_of_them_keeps_an_actor_alive(run):
    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(Actor), [])
            instance = weakref.ref(ref._cell.actor)
            handle = await ref.request(("every", 1000, "tick"))
            await ref.stop()
            del ref
            gc.collect()
            assert instance() is None
            assert not handle.is_active
            assert system.extras == {}

    run(main())


def test_a_class_may_have_an_attribute_of_that_name(run):
    class Own(Actor):
        def __init__(self):
            super().__init__()
            self.timers = {"mine": 1}

        def on_receive(self, message):
            return self.timers["mine"]

    async def main():
        async with ActorSystem() as system:
            assert await system.spawn(Own).request("?") == 1

    run(main())


def test_they_are_on_the_real_clock_where_there_is_no_other(run, kind):
    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(kind), [])
            await ref.request(("after", 0.001, "tick"))
            while await seen(ref) != ["tick"]:
                await asyncio.sleep(0.001)

    run(main())
