"""`stats()` and dead letters: what is counted, by class and state, and who is told of a message
that nobody will handle.
"""

import asyncio
import threading
import time

import pytest

from offbook.runtime import (
    Actor,
    ActorDeadError,
    ActorSystem,
    Backoff,
    DeadLetter,
    MailboxSettings,
    Restart,
)
from offbook.runtime.testing import ManualClock
from tests.doubles.actors import Echo, ThreadEcho


class Gate(Actor):
    """Handles one message until its gate is opened."""

    def __init__(self):
        super().__init__()
        self.opened = asyncio.Event()

    async def on_receive(self, message):
        await self.opened.wait()
        return message

    async def on_stop(self):
        await self.opened.wait()


class Failing(Actor):
    def on_receive(self, message):
        raise ZeroDivisionError(message)


class SlowStart(Actor):
    def __init__(self):
        super().__init__()
        self.opened = asyncio.Event()

    async def on_start(self):
        await self.opened.wait()


def test_actors_are_counted_by_class_and_state(run):
    async def main():
        clock = ManualClock()
        async with ActorSystem("counted", clock=clock) as system:
            idle = [system.spawn(Echo) for _ in range(3)]
            await asyncio.gather(*(ref.request("!") for ref in idle))
            running = system.spawn(Gate)
            running.tell("go")
            starting = system.spawn(SlowStart)
            restarting = system.spawn(Failing, supervision=Restart(backoff=Backoff(initial=5)))
            restarting.tell("go")
            stopping = system.spawn(Gate)
            stopping.stop()
            threaded = system.spawn(ThreadEcho)
            assert await threaded.request("!") == "!"
            await asyncio.sleep(0)
            stats = system.stats()
            assert (stats.name, stats.state, stats.actors) == ("counted", "running", 8)
            assert stats.by_class == {
                "Echo": 3,
                "Gate": 2,
                "SlowStart": 1,
                "Failing": 1,
                "ThreadEcho": 1,
            }
            assert stats.by_state == {
                "open": 4,
                "running": 1,
                "starting": 1,
                "restarting": 1,
                "stopping": 1,
            }
            assert (
                stats.by_class_and_state[("Gate", "running")]
                == stats.by_class_and_state[("Gate", "stopping")]
                == 1
            )
            for ref in (starting, running, stopping):
                ref._cell.actor.opened.set()
        assert system.stats().actors == 0
        assert system.stats().state == "stopped"

    run(main())


def test_children_are_counted_too(run):
    class Parent(Actor):
        def on_receive(self, message):
            for _ in range(message):
                self.spawn(Echo)

    async def main():
        async with ActorSystem() as system:
            await system.spawn(Parent).request(10)
            assert system.stats().by_class == {"Parent": 1, "Echo": 10}

    run(main())


def test_depths_tell_where_messages_wait(run):
    async def main():
        async with ActorSystem() as system:
            refs = [system.spawn(Gate, name=f"gate-{number}") for number in range(12)]
            for number, ref in enumerate(refs):
                await asyncio.sleep(0)
                for message in range(number + 1):  # the first of them is under way, the others wait
                    ref.tell(message)
            while system.stats().by_state.get("running") != 12:
                await asyncio.sleep(0)
            stats = system.stats()
            assert stats.queued == sum(range(12))
            assert stats.deepest == tuple((f"gate-{number}", number) for number in range(11, 1, -1))
            for ref in refs:
                ref._cell.actor.opened.set()
            await asyncio.gather(*(ref.stop(drain=True) for ref in refs))
            assert system.stats().queued == 0
            assert system.stats().deepest == ()

    run(main())


def test_handled_counts_messages_of_every_kind_of_handler(run):
    class Async(Actor):
        async def on_receive(self, message):
            await asyncio.sleep(0)

        def method(self):
            raise ZeroDivisionError

    async def main():
        async with ActorSystem() as system:
            echo, coroutine, threaded = (
                system.spawn(Echo),
                system.spawn(Async),
                system.spawn(ThreadEcho),
            )
            before = system.stats().handled
            for ref in (echo, coroutine, threaded):
                for _ in range(5):
                    await ref.request("!")
            with pytest.raises(ZeroDivisionError):
                await coroutine.proxy().method()
            assert system.stats().handled - before == 16

    run(main())


def test_handled_is_exact_when_many_threads_handle(run):
    async def main():
        async with ActorSystem() as system:
            refs = [system.spawn(kind) for kind in (Echo, ThreadEcho, ThreadEcho, ThreadEcho)]
            for ref in refs:
                for number in range(500):
                    ref.tell(number)
            await asyncio.gather(*(ref.request("last") for ref in refs))
            assert system.stats().handled == 4 * 501

    run(main())


def test_restarts_are_counted(run):
    async def main():
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(
                Failing, supervision=Restart(max_restarts=2, backoff=Backoff(initial=1, jitter=0))
            )
            for restarts in (1, 2):
                ref.tell("go")
                while not clock.pending:
                    await asyncio.sleep(0)
                clock.advance(10)
                while system.stats().by_state != {"open": 1}:
                    await asyncio.sleep(0)
                assert system.stats().restarts == restarts
            ref.tell("go")
            await ref.wait_stopped()
            assert system.stats().restarts == 2

    run(main())


def test_the_slowest_handler_is_named(run):
    class Worker(Actor):
        async def work(self, seconds):
            for _ in range(3):
                time.sleep(seconds)  # holds the loop in each of its steps
                await asyncio.sleep(0)

        async def wait(self, event):
            await event.wait()

    async def main():
        async with ActorSystem() as system:
            quick, slow = system.spawn(Echo), system.spawn(Worker, name="slow")
            assert system.stats().slowest_handler is None
            await quick.request("!")
            first = system.stats().slowest_handler
            assert (first.actor, first.handler) == (quick.path, "on_receive")
            await slow.proxy().work(2 * first.seconds)
            slowest = system.stats().slowest_handler
            assert (slowest.actor, slowest.handler) == ("slow", "work")
            assert slowest.seconds > 6 * first.seconds
            gate = asyncio.Event()
            reply = slow.proxy().wait(gate)
            asyncio.get_running_loop().call_later(5 * slowest.seconds, gate.set)
            await reply
            assert system.stats().slowest_handler == slowest  # to wait is not to be slow

    run(main())


def test_dead_letters_say_what_was_lost_and_why(run):
    async def main():
        letters = []
        async with ActorSystem() as system:
            system.subscribe_dead_letters(letters.append)
            dead = system.spawn(Echo)
            await dead.stop()
            with pytest.raises(ActorDeadError):
                dead.tell("told")
            with pytest.raises(ActorDeadError):
                await dead.request("requested")
            full = system.spawn(Gate, mailbox=MailboxSettings(1, "drop_oldest"))
            full.tell("under way")
            await asyncio.sleep(0)
            while system.stats().by_state != {"running": 1}:
                await asyncio.sleep(0)
            full.tell("dropped")
            full.tell("left")
            full.stop()
            full._cell.actor.opened.set()
            await full.wait_stopped()
            assert system.stats().dead_letters == 4
        assert [(letter.message, letter.ref) for letter in letters] == [
            ("told", dead),
            ("requested", dead),
            ("dropped", full),
            ("left", full),
        ]
        assert all(isinstance(letter, DeadLetter) for letter in letters)
        assert len({letter.reason for letter in letters}) == 3
        assert letters[0].reason == letters[1].reason

    run(main())


def test_control_is_never_a_dead_letter(run):
    async def main():
        letters = []
        async with ActorSystem() as system:
            system.subscribe_dead_letters(letters.append)
            ref = system.spawn(Echo)
            assert await ref.stop()
            assert not await ref.stop()
            ref.cancel()
            await ref.wait_stopped()
        assert letters == []
        assert system.stats().dead_letters == 0

    run(main())


def test_a_subscriber_that_raises_is_logged_and_removed_and_breaks_nothing(run, caplog):
    async def main():
        broken, good = [], []

        def raise_it(letter):
            broken.append(letter.message)
            raise ZeroDivisionError

        async with ActorSystem() as system:
            system.subscribe_dead_letters(raise_it)
            system.subscribe_dead_letters(lambda letter: good.append(letter.message))
            ref = system.spawn(Echo)
            await ref.stop()
            for number in range(3):
                with pytest.raises(ActorDeadError):
                    ref.tell(number)
        assert broken == [0]
        assert good == [0, 1, 2]

    run(main())
    (record,) = [
        record for record in caplog.records if "dead-letter subscriber" in record.getMessage()
    ]
    assert record.exc_info[0] is ZeroDivisionError


def test_a_subscription_ends_when_it_is_told_to(run):
    async def main():
        first, second = [], []
        async with ActorSystem() as system:
            end_first = system.subscribe_dead_letters(first.append)
            end_again = system.subscribe_dead_letters(second.append)
            ref = system.spawn(Echo)
            await ref.stop()
            for end in (end_first, end_first, end_again):
                with pytest.raises(ActorDeadError):
                    ref.tell("?")
                end()
            with pytest.raises(ActorDeadError):
                ref.tell("?")
        assert len(first) == 1
        assert len(second) == 3

    run(main())


def test_each_of_two_subscriptions_of_one_callback_ends_by_itself(run):
    async def main():
        heard = []

        def hear(letter):
            heard.append(letter.message)

        async with ActorSystem() as system:
            ends = [system.subscribe_dead_letters(hear) for _ in range(2)]
            ref = system.spawn(Echo)
            await ref.stop()
            for message in "123":
                with pytest.raises(ActorDeadError):
                    ref.tell(message)
                if ends:
                    ends.pop()()
        assert heard == ["1", "1", "2"]

    run(main())


def test_a_subscriber_may_look_at_the_system_and_subscribe(run):
    """It is called under no lock."""

    async def main():
        seen = []
        async with ActorSystem() as system:

            def look(letter):
                seen.append(
                    (
                        system.stats().dead_letters,
                        len(system.tree().children),
                        letter.ref.is_alive(),
                    )
                )
                end()
                system.subscribe_dead_letters(seen.append)

            end = system.subscribe_dead_letters(look)
            ref = system.spawn(Echo)
            await ref.stop()
            for message in "12":
                with pytest.raises(ActorDeadError):
                    ref.tell(message)
        assert seen[0] == (1, 0, False)
        assert [letter.message for letter in seen[1:]] == ["2"]

    run(main())


def test_letters_that_many_threads_lose_are_all_counted():
    letters = []
    with ActorSystem.in_thread() as system:
        system.subscribe_dead_letters(letters.append)
        ref = system.spawn(Echo)
        ref.stop()

        def lose():
            for number in range(200):
                with pytest.raises(ActorDeadError):
                    ref.tell(number)

        threads = [threading.Thread(target=lose) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert system.stats().dead_letters == len(letters) == 8 * 200
