"""Restart: what stays, what is fresh, and how many there may be.

The wait before it: test_lifecycle_backoff.py.
"""

import asyncio
import threading

import pytest

from offbook.runtime import (
    ActorDeadError,
    ActorSystem,
    Backoff,
    Escalate,
    Failed,
    Restart,
    Stop,
    Stopped,
    Terminated,
    ThreadActor,
)
from offbook.runtime.testing import ManualClock

AT_ONCE = Restart(max_restarts=3, backoff=Backoff(initial=0))


# --- what stays and what is fresh ---


def test_a_restart_calls_on_failure_and_then_makes_and_starts_a_fresh_instance(run, phoenix):
    log = []

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(phoenix, log, supervision=AT_ONCE)
            ref.tell("fail")
            assert await ref.request("m") == 2
            assert system.stats().restarts == 1

    run(main())
    assert log == [
        "init 1",
        "start 1",
        "failure 1: RuntimeError of 1",
        "init 2",
        "start 2",
        "m 2",
        "stop 2",
    ]


def test_the_fresh_instance_gets_the_very_same_arguments(run, phoenix):
    async def main():
        treasure = object()
        async with ActorSystem() as system:
            ref = system.spawn(phoenix, log := [], treasure=treasure, supervision=AT_ONCE)
            first = await ref.request("self")
            ref.tell("fail")
            second = await ref.request("self")
            assert second is not first
            assert second.log is log
            assert second.options["treasure"] is treasure

    run(main())


def test_a_restart_keeps_the_ref_its_names_and_proxies(run, phoenix):
    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(phoenix, [], name="it", supervision=AT_ONCE)
            proxy, urn = ref.proxy(), ref.actor_urn
            assert await proxy.number == 1
            ref.tell("fail")
            assert await ref.request("m") == 2
            assert await proxy.number == 2
            assert (ref.actor_urn, ref.path, ref.name) == (urn, "it", "it")
            fresh = await ref.request("self")
            assert fresh.actor_ref == ref
            assert fresh.actor_urn == urn
            assert system.stats().actors == 1

    run(main())


def test_what_is_queued_is_handled_by_the_fresh_instance_and_the_failed_message_is_not_handled_again(
    run, phoenix, gate
):
    log = []

    class Held(phoenix):
        async def on_receive(self, message):
            if message == "hold":
                await gate.wait()
                message = "fail"
            return super().on_receive(message)

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Held, log, supervision=AT_ONCE)
            ref.tell("hold")
            await gate.reached()
            replies = [ref.ask(message, block=False) for message in "abc"]
            gate.open()
            assert [await reply for reply in replies] == [2, 2, 2]

    run(main())
    assert log[-4:] == ["a 2", "b 2", "c 2", "stop 2"]
    assert log.count("failure 1: RuntimeError of 1") == 1


def test_a_thread_actor_restarts_in_its_thread(run):
    threads = []

    class Threaded(ThreadActor):
        def on_start(self):
            threads.append(threading.get_ident())

        def on_receive(self, message):
            return 1 / message

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Threaded, supervision=AT_ONCE)
            ref.tell(0)
            assert await ref.request(1) == 1

    run(main())
    assert len(threads) == 2
    assert len(set(threads)) == 1


def test_children_of_the_failed_instance_are_stopped_before_the_fresh_one_is_made(
    run, phoenix, kind
):
    log = []

    class Child(kind):
        async def on_stop(self):
            await asyncio.sleep(0)
            log.append("child stopped")

    class Parent(phoenix):
        def on_start(self):
            super().on_start()
            self.spawn(Child)

        def on_receive(self, message):
            return self.actor_children if message == "children" else super().on_receive(message)

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Parent, log, supervision=AT_ONCE)
            (first,) = await ref.request("children")
            ref.tell("fail")
            (second,) = await ref.request("children")
            assert first != second
            assert not first.is_alive()
            assert second.is_alive()
            assert system.stats().actors == 2

    run(main())
    assert log == [
        "init 1",
        "start 1",
        "child stopped",
        "failure 1: RuntimeError of 1",
        "init 2",
        "start 2",
        "child stopped",
        "stop 2",
    ]


def test_an_asynchronous_on_failure_ends_before_the_fresh_instance_is_made(run, phoenix, gate):
    log = []

    class Careful(phoenix):
        async def on_failure(self, *args):
            await gate.wait()
            super().on_failure(*args)

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Careful, log, supervision=AT_ONCE)
            ref.tell("fail")
            reply = ref.ask("m", block=False)
            await gate.reached()
            assert log == ["init 1", "start 1"]
            gate.open()
            assert await reply == 2

    run(main())


def test_watchers_hear_nothing_of_a_restart(run, phoenix, witness):
    async def main():
        seen = []
        async with ActorSystem() as system:
            ref = system.spawn(phoenix, [], supervision=AT_ONCE)
            watcher = system.spawn(witness, seen)
            await watcher.request(ref)
            ref.tell("fail")
            await ref.request("m")
            await watcher.request(ref)
            assert seen == []
            await ref.stop()
            await watcher.stop(drain=True)
        assert seen == [Terminated(ref, Stopped())]

    run(main())


def test_a_failure_and_the_escalation_of_a_child_that_caused_it_are_one_restart(
    run, phoenix, errors, kind
):
    """The parent waits for its child's reply; the child crashes: the parent's handler raises, and
    the child's failure escalates, too.
    """
    log = []

    class Child(kind):
        def on_receive(self, message):
            raise KeyboardInterrupt

    class Parent(phoenix):
        async def on_receive(self, message):
            if message == "work":
                await self.spawn(Child, supervision=Escalate()).request("crash")
            return super().on_receive(message)

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Parent, log, supervision=AT_ONCE)
            ref.tell("work")
            assert await ref.request("m") == 2
            assert await ref.request("n") == 2
            assert system.stats().restarts == 1

    run(main())
    assert log[-3:] == ["m 2", "n 2", "stop 2"]


# --- how many ---


def test_one_restart_too_many_within_the_span_stops_the_actor(run, phoenix, errors, witness):
    clock, log, seen = ManualClock(), [], []

    async def main():
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(
                phoenix,
                log,
                supervision=Restart(max_restarts=2, within=60, backoff=Backoff(initial=0)),
            )
            watcher = system.spawn(witness, seen)
            await watcher.request(ref)
            for number in (1, 2):
                assert await ref.request("m") == number
                ref.tell("fail")
            assert await ref.request("m") == 3
            ref.tell("fail")
            queued = ref.ask("m", block=False)
            await ref.wait_stopped()
            with pytest.raises(ActorDeadError):
                await queued
            await watcher.stop(drain=True)
            assert system.stats().restarts == 2

    run(main())
    assert log[-1] == "failure 3: RuntimeError of 3"
    assert [str(notice.reason.error) for notice in seen] == ["of 3"]
    assert isinstance(seen[0].reason, Failed)
    assert len(errors()) == 3
    assert "after 2 restarts within 60 s" in errors()[-1]


def test_restarts_that_are_long_ago_do_not_count(run, phoenix):
    clock = ManualClock()

    async def main():
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(
                phoenix,
                [],
                supervision=Restart(max_restarts=1, within=60, backoff=Backoff(initial=0)),
            )
            for number in range(1, 6):
                assert await ref.request("m") == number
                ref.tell("fail")
                assert await ref.request("m") == number + 1
                clock.advance(60)
            ref.tell("fail")
            assert await ref.request("m") == 7
            clock.advance(59)
            ref.tell("fail")
            await ref.wait_stopped()

    run(main())


def test_no_restart_at_all_is_a_stop(run, phoenix):
    log = []

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(phoenix, log, supervision=Restart(max_restarts=0))
            ref.tell("fail")
            await ref.wait_stopped()

    run(main())
    assert log == ["init 1", "start 1", "failure 1: RuntimeError of 1"]


def test_without_supervision_a_failure_stops_the_actor(run, phoenix):
    for supervision in (None, Stop(), Escalate()):
        log = []

        async def main(log=log, supervision=supervision):
            async with ActorSystem() as system:
                ref = system.spawn(phoenix, log, supervision=supervision)
                ref.tell("fail")
                await ref.wait_stopped()

        run(main())
        assert log == ["init 1", "start 1", "failure 1: RuntimeError of 1"]
