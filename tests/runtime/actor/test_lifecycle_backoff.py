"""The wait before a restart: how long it is, what happens meanwhile, and what ends it."""

import asyncio
import itertools

import pytest

from offbook.runtime import ActorDeadError, ActorSystem, Backoff, Restart, Stopped
from offbook.runtime.testing import ManualClock

SLOWLY = Restart(max_restarts=3, within=60, backoff=Backoff(initial=1, factor=2, jitter=0))


def test_messages_wait_while_the_backoff_does(run, phoenix, until):
    clock, log = ManualClock(), []

    async def main():
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(phoenix, log, supervision=SLOWLY)
            ref.tell("fail")
            reply = ref.ask("m", block=False)
            await until(lambda: clock.pending)
            assert clock.pending == (1,)
            assert ref.is_alive()
            assert system.stats().by_state == {"restarting": 1}
            assert system.stats().queued == 1
            clock.advance(0.9)
            await asyncio.sleep(0)
            assert log[-1].startswith("failure 1")
            clock.advance(0.1)
            assert await reply == 2
            assert clock.pending == ()

    run(main())


def test_delays_grow_with_each_try_and_begin_anew_when_the_span_is_over(run, phoenix, until):
    clock, delays = ManualClock(), []
    restart = Restart(
        max_restarts=5, within=60, backoff=Backoff(initial=1, factor=3, maximum=20, jitter=0)
    )

    async def main():
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(phoenix, [], supervision=restart)

            async def fail():
                ref.tell("fail")
                await until(lambda: clock.pending)
                delays.append(clock.pending[0])
                clock.advance(clock.pending[0])
                await ref.request("m")

            for _ in range(4):
                await fail()
            clock.advance(60)
            await fail()

    run(main())
    assert delays == [1, 3, 9, 20, 1]


def test_a_hundred_that_fail_together_do_not_come_back_together(run, phoenix, until):
    clock = ManualClock()

    async def main():
        async with ActorSystem(clock=clock) as system:
            restart = Restart(backoff=Backoff(initial=10, jitter=0.5))
            refs = [system.spawn(phoenix, [], supervision=restart) for _ in range(100)]
            for ref in refs:
                ref.tell("fail")
            await until(lambda: len(clock.pending) == len(refs))
            assert len(set(clock.pending)) > len(refs) / 2
            assert all(5 <= delay <= 15 for delay in clock.pending)

    run(main())


def test_a_restart_that_fails_in_init_or_on_start_is_tried_again_after_the_next_delay(
    run, phoenix, errors, until
):
    clock, log, made = ManualClock(), [], itertools.count(1)

    class Stubborn(phoenix):
        def __init__(self, *args):
            super().__init__(*args)
            if next(made) == 2:
                raise ValueError("init")

        def on_start(self):
            super().on_start()
            if self.number == 3:
                raise ValueError("start")

    async def main():
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(Stubborn, log, supervision=SLOWLY)
            ref.tell("fail")
            reply = ref.ask("m", block=False)
            for delay in (1, 2, 4):
                await until(lambda: clock.pending)
                assert clock.pending == (delay,)
                clock.advance(delay)
            assert await reply == 4

    run(main())
    assert log == [
        "init 1",
        "start 1",
        "failure 1: RuntimeError of 1",
        "init 2",
        "init 3",
        "start 3",
        "init 4",
        "start 4",
        "m 4",
        "stop 4",
    ]
    assert len(errors()) == 3


def test_a_stop_during_the_backoff_ends_it_at_once(run, phoenix, until, witness):
    clock, log, seen = ManualClock(), [], []

    async def main():
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(phoenix, log, supervision=SLOWLY)
            watcher = system.spawn(witness, seen)
            await watcher.request(ref)
            ref.tell("fail")
            queued = ref.ask("m", block=False)
            await until(lambda: clock.pending)
            assert await ref.stop() is True
            with pytest.raises(ActorDeadError):
                await queued
            assert clock.pending == ()
            await watcher.stop(drain=True)

    run(main())
    assert log == ["init 1", "start 1", "failure 1: RuntimeError of 1"], (
        "there is no instance to call on_stop of"
    )
    assert [notice.reason for notice in seen] == [Stopped()]


def test_leaving_the_system_during_a_backoff_does_not_wait_for_it(run, phoenix, until):
    clock, log = ManualClock(), []

    async def main():
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(phoenix, log, supervision=SLOWLY)
            ref.tell("fail")
            queued = ref.ask("m", block=False)
            await until(lambda: clock.pending)
        with pytest.raises(ActorDeadError):
            await queued
        assert clock.pending == ()

    run(main())
    assert log[-1].startswith("failure 1")
