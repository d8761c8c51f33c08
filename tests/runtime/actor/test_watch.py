"""Watching: one notice for each watch, after everything that the watched actor has sent, with the
true reason. Threads: test_watch_threads.py.
"""

import asyncio

import pytest

from offbook.runtime import (
    Actor,
    ActorRef,
    ActorSystem,
    Backoff,
    Escalate,
    Failed,
    MailboxSettings,
    Restart,
    Stop,
    Stopped,
    Terminated,
)

AT_ONCE = Restart(max_restarts=1, backoff=Backoff(initial=0))


@pytest.fixture
def watcher(kind):
    """Watches the refs that it is sent, stops watching those in a tuple, and keeps everything
    else.
    """

    class Watcher(kind):
        def __init__(self, seen):
            super().__init__()
            self.seen = seen

        def on_receive(self, message):
            if isinstance(message, ActorRef):
                self.watch(message)
            elif isinstance(message, tuple):
                self.unwatch(*message)
            elif isinstance(message, Exception):
                raise message
            elif message != "are you there?":
                self.seen.append(message)

    return Watcher


@pytest.fixture
def watched(kind):
    """Fails with the exceptions that it is sent."""

    class Watched(kind):
        def on_receive(self, message):
            if isinstance(message, BaseException):
                raise message
            return message

    return Watched


def test_the_end_of_a_watched_actor_arrives_as_a_message(run, watcher, watched):
    async def main():
        async with ActorSystem() as system:
            ref, watching = system.spawn(watched), system.spawn(watcher, seen := [])
            await watching.request(ref)
            await ref.request("alive")
            assert seen == []
            await ref.stop()
            await watching.request("are you there?")
            assert seen == [Terminated(ref, Stopped())]

    run(main())


def test_everybody_who_watches_is_told_once_however_often_they_have_asked(run, watcher, watched):
    async def main():
        async with ActorSystem() as system:
            ref, seen = system.spawn(watched), ([], [], [])
            watching = [system.spawn(watcher, each) for each in seen]
            for each in watching:
                for _ in range(3):
                    await each.request(ref)
            await ref.stop()
            for each in watching:
                await each.stop(drain=True)
            assert seen == ([Terminated(ref, Stopped())],) * 3

    run(main())


@pytest.mark.parametrize(
    "mailbox", [None, MailboxSettings(1, "block"), MailboxSettings(1, "reject")], ids=str
)
def test_the_notice_comes_after_everything_that_the_actor_has_sent(run, kind, watcher, mailbox):
    class Sender(kind):
        def __init__(self, to):
            super().__init__()
            self.to = to

        async def on_receive(self, message):
            for number in range(20):
                await self.to.send(f"{message} {number}")

        async def on_stop(self):
            await self.to.send("on_stop")

    async def main():
        async with ActorSystem() as system:
            watching = system.spawn(watcher, seen := [], mailbox=mailbox)
            ref = system.spawn(Sender, watching)
            # It watches: a watcher that comes to it only when it is told to stop is not told any
            # more.
            await watching.request(ref)
            ref.tell("a")
            ref.tell("b")
            await ref.stop(drain=True)
            await watching.stop(drain=True)
            assert seen[-1] == Terminated(ref, Stopped())
            assert seen[:-1] == [
                f"{message} {number}" for message in "ab" for number in range(20)
            ] + ["on_stop"]

    run(main())


def test_a_full_mailbox_takes_the_notice_all_the_same(run, watched, gate):
    seen = []

    class Full(Actor):
        async def on_receive(self, message):
            if isinstance(message, ActorRef):
                self.watch(message)
                await gate.wait()
            else:
                seen.append(message)

    async def main():
        async with ActorSystem() as system:
            ref, watching = (
                system.spawn(watched),
                system.spawn(Full, mailbox=MailboxSettings(1, "reject")),
            )
            watching.tell(ref)
            await gate.reached()
            watching.tell("the only one there is room for")
            await ref.stop()
            gate.open()
            await watching.stop(drain=True)
            assert seen == ["the only one there is room for", Terminated(ref, Stopped())]
            assert system.stats().dead_letters == 0

    run(main())


def test_watching_an_actor_that_has_ended_brings_the_notice_at_once(run, watcher, watched):
    async def main():
        async with ActorSystem() as system:
            ref, watching = system.spawn(watched), system.spawn(watcher, seen := [])
            await ref.stop()
            await watching.request(ref)
            await watching.request("are you there?")
            assert seen == [Terminated(ref, Stopped())]

    run(main())


@pytest.mark.parametrize("late", [False, True])
def test_the_reason_of_a_failure_is_the_error_however_late_the_watch_comes(
    run, watcher, watched, late
):
    async def main():
        error = ValueError("x")
        async with ActorSystem() as system:
            ref, watching = system.spawn(watched), system.spawn(watcher, seen := [])
            if not late:
                await watching.request(ref)
            ref.tell(error)
            await ref.wait_stopped()
            if late:
                await watching.request(ref)
            await watching.stop(drain=True)
            assert seen == [Terminated(ref, Failed(error))]
            assert seen[0].reason.error is error

    run(main())


def test_what_is_not_watched_any_more_is_not_told(run, watcher, watched):
    async def main():
        async with ActorSystem() as system:
            ref, other, watching = (
                system.spawn(watched),
                system.spawn(watched),
                system.spawn(watcher, seen := []),
            )
            await watching.request(ref)
            await watching.request(other)
            await watching.request((ref,))
            await ref.stop()
            await other.stop()
            await watching.stop(drain=True)
            assert seen == [Terminated(other, Stopped())]

    run(main())


def test_a_notice_that_waits_in_the_mailbox_already_still_comes(run, kind, watched, gate):
    seen = []

    class Late(kind):
        async def on_receive(self, message):
            if isinstance(message, ActorRef):
                self.watch(message)
                await gate.wait()
                self.unwatch(message)
            else:
                seen.append(message)

    async def main():
        async with ActorSystem() as system:
            ref, watching = system.spawn(watched), system.spawn(Late)
            watching.tell(ref)
            await gate.reached()
            await ref.stop()
            gate.open()
            await watching.stop(drain=True)
            assert seen == [Terminated(ref, Stopped())]

    run(main())


def test_what_was_not_watched_can_be_unwatched(run, watcher, watched):
    async def main():
        async with ActorSystem() as system:
            ref, watching = system.spawn(watched), system.spawn(watcher, seen := [])
            await watching.request((ref,))
            await ref.stop()
            await watching.request((ref,))
            assert seen == []

    run(main())


def test_a_watcher_that_ends_first_is_forgotten_and_its_notice_is_no_dead_letter(
    run, watcher, watched
):
    async def main():
        async with ActorSystem() as system:
            ref, watching = system.spawn(watched), system.spawn(watcher, seen := [])
            await watching.request(ref)
            await watching.stop()
            assert not ref._cell.watchers
            await ref.stop()
            assert system.stats().dead_letters == 0
        assert seen == []

    run(main())


def test_leaving_the_system_with_actors_that_watch_each_other_is_quiet(run, watcher, errors):
    async def main():
        async with ActorSystem() as system:
            refs = [system.spawn(watcher, []) for _ in range(5)]
            for one in refs:
                for other in refs:
                    await one.request(other)
            assert system.stats().dead_letters == 0
        assert system.stats().dead_letters == 0

    run(main())
    assert errors() == []


# --- restarts and failures ---


def test_a_restart_is_no_end_but_the_last_failure_is(run, watcher, watched):
    async def main():
        last = ValueError("last")
        async with ActorSystem() as system:
            ref, watching = (
                system.spawn(watched, supervision=AT_ONCE),
                system.spawn(watcher, seen := []),
            )
            await watching.request(ref)
            ref.tell(ValueError("first"))
            assert await ref.request("alive") == "alive"
            await watching.request("are you there?")
            assert seen == []
            ref.tell(last)
            await ref.wait_stopped()
            await watching.stop(drain=True)
            assert seen == [Terminated(ref, Failed(last))]

    run(main())


def test_a_watcher_that_is_restarted_goes_on_watching(run, watcher, watched):
    async def main():
        async with ActorSystem() as system:
            ref, watching = (
                system.spawn(watched),
                system.spawn(watcher, seen := [], supervision=AT_ONCE),
            )
            await watching.request(ref)
            watching.tell(ValueError())
            await watching.request("are you there?")
            assert system.stats().restarts == 1
            await ref.stop()
            await watching.stop(drain=True)
            assert seen == [Terminated(ref, Stopped())]

    run(main())


@pytest.mark.parametrize("hook", ["on_start", "on_stop"])
def test_a_hook_that_fails_is_the_reason(run, kind, hook):
    error, seen = ValueError(hook), []

    def fail(self):
        raise error

    class Watching(Actor):
        def on_start(self):
            self.child = self.spawn(type("Broken", (kind,), {hook: fail}), supervision=Stop())
            self.watch(self.child)

        def on_receive(self, message):
            if message != "stop":
                seen.append(message)
                return None
            return self.child.stop()

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Watching)
            if hook == "on_stop":
                await (await ref.request("stop"))
            while not seen:
                await asyncio.sleep(0)
        assert [notice.reason for notice in seen] == [Failed(error)]

    run(main())


def test_an_escalated_error_is_the_reason_of_both_and_no_reason_of_a_sibling(
    run, kind, watcher, watched
):
    class Parent(kind):
        def on_receive(self, message):
            return self.spawn(watched, supervision=Escalate())

    async def main():
        error = ValueError("x")
        async with ActorSystem() as system:
            parent, watching = system.spawn(Parent), system.spawn(watcher, seen := [])
            child, sibling = await parent.request("spawn"), await parent.request("spawn")
            for ref in (parent, child, sibling):
                await watching.request(ref)
            child.tell(error)
            await parent.wait_stopped()
            await watching.stop(drain=True)
            assert {notice.ref: notice.reason for notice in seen} == {
                child: Failed(error),
                sibling: Stopped(),
                parent: Failed(error),
            }
            assert seen[-1].ref == parent
            assert len(seen) == 3

    run(main())
