"""The ref: telling and asking from the system's loop, from other threads and from other event
loops, alive or dead.
"""

import asyncio
from collections.abc import Callable

import pykka
import pytest

from offbook.runtime import (
    Actor,
    ActorDeadError,
    ActorFuture,
    ActorRef,
    ActorSystem,
    Directive,
    Resume,
    ThreadActor,
    UsageError,
)

WATCHDOG = 10.0


class Oops(Exception):
    pass


def worker(kind: type[Actor]) -> type[Actor]:
    class Worker(kind):
        """Raises an exception, calls a function; returns anything else as it is, and remembers
        it.
        """

        def __init__(self) -> None:
            super().__init__()
            self.seen: list[object] = []

        def on_receive(self, message: object) -> object:
            if isinstance(message, Exception):
                raise message
            if callable(message):
                return message(self)
            self.seen.append(message)
            return message

    return Worker


def seen(actor: Actor) -> list[object]:
    """A message: what has been seen so far?"""
    return list(actor.seen)


# --- where it may be used from ---


async def on_the_loop(ref: ActorRef) -> list[object]:
    ref.tell("told")
    await ref.send("sent")
    return [await ref.request("requested"), await ref.ask("asked", block=False)]


def in_a_thread(ref: ActorRef) -> list[object]:
    ref.tell("told")
    ref.tell("sent")
    return [ref.ask("requested"), ref.ask("asked", block=False).get(timeout=WATCHDOG)]


async def from_the_loop(ref: ActorRef) -> list[object]:
    return await on_the_loop(ref)


async def from_a_thread(ref: ActorRef) -> list[object]:
    return await asyncio.to_thread(in_a_thread, ref)


async def from_another_loop(ref: ActorRef) -> list[object]:
    return await asyncio.to_thread(lambda: asyncio.run(on_the_loop(ref)))


everywhere = pytest.mark.parametrize("use", [from_the_loop, from_a_thread, from_another_loop])


@everywhere
def test_it_can_be_used_from_everywhere(run, kind, use):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind))
            assert await use(ref) == ["requested", "asked"]
            assert await ref.request(seen) == ["told", "sent", "requested", "asked"]

    run(main())


@everywhere
def test_what_the_handler_raises_comes_to_whoever_asked_and_the_actor_lives(run, kind, use):
    async def on_loop(ref: ActorRef) -> None:
        with pytest.raises(Oops):
            await ref.request(Oops())
        with pytest.raises(Oops):
            await ref.ask(Oops(), block=False)

    def in_thread(ref: ActorRef) -> None:
        with pytest.raises(Oops):
            ref.ask(Oops())
        with pytest.raises(Oops):
            ref.ask(Oops(), block=False).get()

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind))
            await ELSEWHERE[use](on_loop, in_thread, ref)
            assert await ref.request("alive") == "alive"

    run(main())


@everywhere
def test_a_dead_actor_refuses_everybody_and_each_message_is_a_dead_letter(run, kind, use):
    async def on_loop(ref: ActorRef) -> None:
        for call in (ref.send("sent"), ref.request("requested")):
            with pytest.raises(ActorDeadError, match="has stopped"):
                await call
        in_both(ref)
        assert await ref.stop(block=False) is False
        await ref.wait_stopped()

    def in_thread(ref: ActorRef) -> None:
        with pytest.raises(ActorDeadError, match="has stopped"):
            ref.ask("asked")
        with pytest.raises(ActorDeadError, match="has stopped"):
            ref.ask("asked", block=False).get()
        in_both(ref)
        assert ref.stop() is False
        assert ref.actor_stopped.wait(0)

    def in_both(ref: ActorRef) -> None:
        with pytest.raises(ActorDeadError) as caught:
            ref.tell("told")
        assert (caught.value.actor, caught.value.message) == (ref.path, "told")
        assert not ref.is_alive()
        assert ref.actor_stopped.is_set()
        ref.cancel()
        with pytest.raises(pykka.ActorDeadError):
            ref.proxy()

    async def main() -> None:
        async with ActorSystem() as system:
            letters: list[object] = []
            system.subscribe_dead_letters(
                lambda letter: letters.append((letter.message, letter.ref))
            )
            ref = system.spawn(worker(kind))
            assert await ref.stop() is True
            await ELSEWHERE[use](on_loop, in_thread, ref)
            assert [message for message, _ in letters] == (
                ["asked", "asked", "told"]
                if use is from_a_thread
                else ["sent", "requested", "told"]
            )
            assert {letter_ref for _, letter_ref in letters} == {ref}
            assert system.stats().dead_letters == 3

    run(main())


ELSEWHERE: dict[Callable, Callable] = {
    from_the_loop: lambda on_loop, in_thread, ref: on_loop(ref),
    from_a_thread: lambda on_loop, in_thread, ref: asyncio.to_thread(in_thread, ref),
    from_another_loop: lambda on_loop, in_thread, ref: asyncio.to_thread(
        lambda: asyncio.run(on_loop(ref))
    ),
}


# --- what would block the loop ---


def test_a_blocking_ask_on_the_loops_thread_is_a_usage_error_that_names_request(run, kind):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind))
            with pytest.raises(UsageError, match="request"):
                ref.ask("asked")
            future = ref.ask("later", block=False)
            if not future.done():
                with pytest.raises(UsageError, match="await"):
                    future.get()
            assert await future == "later"
            assert await ref.request(seen) == ["later"], "what was refused has not been sent"

    run(main())


def test_a_future_made_on_the_loop_can_be_read_in_a_thread_and_the_other_way_round(run, kind):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind))
            assert (
                await asyncio.to_thread(ref.ask("from the loop", block=False).get)
                == "from the loop"
            )
            assert (
                await (await asyncio.to_thread(lambda: ref.ask("from the thread", block=False)))
                == "from the thread"
            )

    run(main())


def test_an_actor_that_asks_itself_gets_a_usage_error_instead_of_waiting_for_ever(run, kind):
    async def ask_itself(actor: Actor) -> str:
        with pytest.raises(UsageError, match="wait forever") as caught:
            await actor.actor_ref.request("to myself")
        return caught.value.actor

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind))
            assert await ref.request(ask_itself) == ref.path
            assert await ref.request(seen) == []

    run(main())


def test_a_thread_actor_that_asks_itself_blocking_gets_a_usage_error(run):
    def ask_itself(actor: Actor) -> None:
        with pytest.raises(UsageError, match="own thread"):
            actor.actor_ref.ask("to myself")

    async def main() -> None:
        async with ActorSystem() as system:
            await system.spawn(worker(ThreadActor)).request(ask_itself)

    run(main())


def test_an_actor_that_asks_itself_while_it_decides_about_a_child_gets_a_reply_or_a_usage_error(
    run,
):
    outcomes: list[object] = []

    class Parent(worker(Actor)):
        async def on_child_failure(self, ref: ActorRef, error: BaseException) -> Directive:
            try:
                outcomes.append(await self.actor_ref.request("to myself"))
            except Exception as problem:
                outcomes.append(problem)
            return Resume()

    async def main() -> None:
        async with ActorSystem() as system:
            child = await system.spawn(Parent).request(lambda actor: actor.spawn(worker(Actor)))
            child.tell(Oops())
            assert await child.request("alive") == "alive"
            [outcome] = outcomes
            assert outcome == "to myself" or isinstance(outcome, UsageError), outcome

    run(main())


def test_an_actor_may_tell_itself_and_ask_others(run, kind):
    async def talk(actor: Actor, other: ActorRef) -> object:
        actor.actor_ref.tell("to myself")
        return await other.request("to another")

    async def main() -> None:
        async with ActorSystem() as system:
            ref, other = system.spawn(worker(kind)), system.spawn(worker(kind))
            assert await ref.request(lambda actor: talk(actor, other)) == "to another"
            assert await ref.request(seen) == ["to myself"]

    run(main())


def test_a_future_is_one_of_ours_and_of_pykkas(run):
    async def main() -> None:
        async with ActorSystem() as system:
            future = system.spawn(worker(Actor)).ask("asked", block=False)
            assert isinstance(future, ActorFuture)
            assert isinstance(future, pykka.Future)
            assert await future.map(str.upper) == "ASKED"

    run(main())
