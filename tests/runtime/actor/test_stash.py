"""`self.stash()`, `self.unstash_all()`: messages that are put aside until the actor can handle
them; for both kinds of actor.
"""

import asyncio

import pytest

from offbook.runtime import (
    Actor,
    ActorDeadError,
    ActorSystem,
    Backoff,
    MailboxFull,
    MailboxSettings,
    Restart,
    ThreadActor,
    UsageError,
)

AT_ONCE = Restart(backoff=Backoff(initial=0))


class Door:
    """Puts aside what comes while it is shut."""

    stash_capacity = 3

    def __init__(self, seen):
        super().__init__()
        self.seen, self.is_open = seen, False

    def handle(self, message):
        if message == "open":
            self.is_open = True
            self.unstash_all()
        elif message == "fail":
            raise ValueError(message)
        elif message == "fail and put aside":
            self.stash()
            raise ValueError(message)
        elif message != "seen?" and not self.is_open:
            self.stash()
            return "of no use"
        elif message != "seen?":
            self.seen.append(message)
            return f"done {message}"
        return list(self.seen)


class SynchronousDoor(Door):
    def on_receive(self, message):
        return self.handle(message)

    def knock(self, who):
        return self.handle(who)


class AsynchronousDoor(Door):
    async def on_receive(self, message):
        await asyncio.sleep(0)
        return self.handle(message)

    async def knock(self, who):
        return self.handle(who)


@pytest.fixture(params=[SynchronousDoor, AsynchronousDoor], ids=["def", "async def"])
def door(request, kind):
    return type("TheDoor", (request.param, kind), {})


def acting(run, door, story, **options):
    async def main():
        async with ActorSystem() as system:
            await story(system.spawn(door, [], **options))
            await asyncio.sleep(0)
        assert system.extras == {}

    run(main())


def test_what_was_put_aside_is_handled_next_and_in_its_order(run, door):
    async def story(ref):
        for message in "abc":
            ref.tell(message)
        ref.tell("open")
        ref.tell("d")
        assert await ref.request("seen?") == ["a", "b", "c", "d"]

    acting(run, door, story)


def test_who_asked_has_the_reply_when_it_is_handled(run, door):
    async def story(ref):
        asked = [ref.ask(message, block=False) for message in "ab"]
        assert await ref.request("seen?") == []
        assert not any(one.done() for one in asked)
        await ref.request("open")
        assert await asyncio.gather(*asked) == ["done a", "done b"]

    acting(run, door, story)


def test_a_call_through_a_proxy_can_be_put_aside(run, door):
    async def story(ref):
        knocking = ref.proxy().knock("Ada")
        await ref.request("open")
        assert await knocking == "done Ada"

    acting(run, door, story)


def test_it_comes_before_what_waits_and_needs_no_room(run, door):
    async def story(ref):
        await ref.send("a")
        await ref.request("seen?")
        await ref.send("open")
        await ref.send("b")
        await ref.send("c")
        while (seen := await ref.request("seen?")) != ["a", "b", "c"]:
            assert seen == ["a", "b", "c"][: len(seen)]

    acting(run, door, story, mailbox=MailboxSettings(capacity=1, overflow="block"))


def test_there_is_a_bound_and_one_too_many_is_an_error(run, door):
    async def story(ref):
        waiting = [ref.ask(message, block=False) for message in "abc"]
        with pytest.raises(MailboxFull, match=r"stashed 3 messages.*stash_capacity"):
            await ref.request("d")
        await ref.request("open")
        assert await asyncio.gather(*waiting) == ["done a", "done b", "done c"]

    acting(run, door, story)


def test_a_message_whose_handler_raises_is_not_put_aside(run, door):
    async def story(ref):
        with pytest.raises(ValueError):
            await ref.request("fail and put aside")
        await ref.request("open")
        assert await ref.request("seen?") == []
        assert await ref.request("x") == "done x"

    acting(run, door, story)


def test_g02_what_is_aside_when_the_actor_ends_is_answered(run, door):
    async def story(ref):
        asked = ref.ask("a", block=False)
        await ref.request("seen?")
        await ref.stop()
        with pytest.raises(ActorDeadError):
            await asked

    acting(run, door, story)


def test_g02_what_is_aside_is_a_dead_letter_if_nothing_asked(run, door):
    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(door, [])
            ref.tell("a")
            await ref.request("seen?")
            await ref.stop()
            assert system.stats().dead_letters == 1

    run(main())


def test_a_fresh_instance_handles_what_was_put_aside(run, door):
    async def story(ref):
        asked = [ref.ask(message, block=False) for message in "ab"]
        await ref.request("seen?")
        ref.tell("fail")
        await ref.request("seen?")  # the fresh one has put them aside again
        assert not any(one.done() for one in asked)
        await ref.request("open")
        assert await asyncio.gather(*asked) == ["done a", "done b"]

    acting(run, door, story, supervision=AT_ONCE)


def test_with_a_drain_what_is_aside_is_answered_unless_it_comes_back(run, door):
    async def story(ref):
        asked = ref.ask("a", block=False)
        await ref.request("seen?")
        ref.tell("open")
        await ref.stop(drain=True)
        assert await asked == "done a"

    acting(run, door, story)


def test_it_is_of_no_use_outside_of_a_handler(run, kind):
    class Early(kind):
        def on_start(self):
            self.stash()

    async def main():
        async with ActorSystem() as system:
            reason = asyncio.get_running_loop().create_future()

            class Watching(Actor):
                def on_start(self):
                    self.watch(self.spawn(Early))

                def on_receive(self, message):
                    reason.set_result(message.reason)

            system.spawn(Watching)
            error = (await reason).error
            assert isinstance(error, UsageError)
            assert "Call it in a handler" in str(error)

    run(main())


def test_to_bring_nothing_back_is_nothing(run, door):
    async def story(ref):
        assert await ref.request("open") == []

    acting(run, door, story)


def test_a_thread_that_waits_is_woken_by_what_comes_back(run):
    class Later(ThreadActor):
        """A child's message opens it, when nothing else is in its mailbox."""

        def __init__(self):
            super().__init__()
            self.first = True

        def on_receive(self, message):
            if message == "a" and self.first:
                self.first = False
                self.stash()
            elif message == "open":
                self.unstash_all()
            return message

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Later)
            asked = ref.ask("a", block=False)
            await asyncio.sleep(0)
            ref.tell("open")
            assert await asked == "a"

    run(main())
