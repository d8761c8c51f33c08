"""Stopping through the ref: from everywhere, before or after what is queued, once or often, and
waiting for the end of it.
"""

import asyncio

import pytest

from offbook.runtime import (
    Actor,
    ActorDeadError,
    ActorRef,
    ActorSystem,
    AskTimeout,
    MailboxSettings,
    UsageError,
)

WATCHDOG = 10.0


def worker(kind: type[Actor]) -> type[Actor]:
    class Worker(kind):
        """Waits at a gate, raises an exception; returns anything else as it is.

        Notes what it handles and that it stops in a list of the test's.
        """

        def __init__(self, seen: list[object]) -> None:
            super().__init__()
            self.seen = seen

        def on_receive(self, message: object) -> object:
            if hasattr(message, "wait"):
                return message.wait()
            if isinstance(message, BaseException):
                raise message
            if isinstance(message, type):
                return self.spawn(message, self.seen)
            self.seen.append(message)
            return message

        def on_stop(self) -> None:
            self.seen.append(f"{self.actor_ref.name} stops")

    return Worker


async def held(
    system: ActorSystem, kind: type[Actor], gate, seen: list[object], *queued: object
) -> tuple[ActorRef, list[asyncio.Task]]:
    """An actor that is held at the gate, with that queued behind it, and the tasks that wait for
    the replies: the gate's first.
    """
    ref = system.spawn(worker(kind), seen, name="held")
    requests = [asyncio.create_task(ref.request(gate))]
    await gate.reached()
    for message in queued:
        requests.append(asyncio.create_task(ref.request(message)))
        await asyncio.sleep(0)
    assert len(ref.actor_inbox) == len(queued)
    return ref, requests


# --- from where ---


async def from_the_loop(ref: ActorRef) -> list[object]:
    return [await ref.stop(), await ref.stop()]


async def from_a_thread(ref: ActorRef) -> list[object]:
    return await asyncio.to_thread(lambda: [ref.stop(), ref.stop(timeout=WATCHDOG)])


async def from_another_loop(ref: ActorRef) -> list[object]:
    async def stop() -> list[object]:
        return [await ref.stop(block=False), await ref.stop(block=False)]

    return await asyncio.to_thread(lambda: asyncio.run(stop()))


@pytest.mark.parametrize("stop", [from_the_loop, from_a_thread, from_another_loop])
def test_stop_returns_true_when_it_has_stopped_and_false_if_it_was_dead_before(run, kind, stop):
    async def main() -> None:
        seen: list[object] = []
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind), seen, name="one")
            assert await stop(ref) == [True, False]
            assert seen == ["one stops"]
            assert not ref.is_alive()
            assert system.stats().actors == 0

    run(main())


def test_a_blocking_stop_on_the_loops_thread_is_a_usage_error(run, kind):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind), [])
            with pytest.raises(UsageError, match=r"await ref\.stop\(\)"):
                ref.stop(block=True)
            assert ref.is_alive()

    run(main())


def test_a_blocking_stop_can_time_out_and_the_actor_stops_all_the_same(run, kind, gate):
    async def main() -> None:
        async with ActorSystem() as system:
            ref, [request] = await held(system, kind, gate, [])

            def stop() -> None:
                with pytest.raises(AskTimeout):
                    ref.stop(timeout=0.001)
                assert not ref.actor_stopped.wait(0.001)

            await asyncio.to_thread(stop)
            gate.open()
            await ref.wait_stopped()
            assert await request is None

    run(main())


# --- what is queued ---


def test_stop_overtakes_what_is_queued_and_answers_it(run, kind, gate):
    async def main() -> None:
        seen: list[object] = []
        async with ActorSystem() as system:
            letters: list[object] = []
            system.subscribe_dead_letters(lambda letter: letters.append(letter.message))
            ref, [request, *queued] = await held(system, kind, gate, seen, 1, 2, 3)
            future = ref.ask(4, block=False)
            ref.tell(5)
            stopped = ref.stop()
            assert not ref.is_alive(), "as soon as it has been told"
            with pytest.raises(ActorDeadError, match="has stopped"):
                ref.tell("late")
            for waiting in (*queued, future):
                with pytest.raises(ActorDeadError, match="before it handled the message") as caught:
                    await waiting
                assert caught.value.actor == "held"
            assert not request.done(), "the handler under way is let be"
            gate.open()
            assert await stopped is True
            assert await request is None
            assert seen == ["held stops"]
            assert sorted(letters, key=str) == [1, 2, 3, 4, 5, "late"]

    run(main())


def test_a_draining_stop_does_first_what_is_queued(run, kind, gate):
    async def main() -> None:
        seen: list[object] = []
        async with ActorSystem() as system:
            ref, [request, *queued] = await held(system, kind, gate, seen, 1, 2, 3)
            stopped = ref.stop(drain=True)
            with pytest.raises(ActorDeadError):
                ref.tell("late")
            gate.open()
            assert await stopped is True
            assert await asyncio.gather(request, *queued) == [None, 1, 2, 3]
            assert seen == [1, 2, 3, "held stops"]

    run(main())


def test_a_draining_stop_from_a_thread_blocks_until_all_is_done(run, kind, gate):
    async def main() -> None:
        seen: list[object] = []
        async with ActorSystem() as system:
            ref, requests = await held(system, kind, gate, seen, 1, 2)
            stopping = asyncio.create_task(asyncio.to_thread(ref.stop, drain=True))
            while ref.is_alive():
                await asyncio.sleep(0)
            gate.open()
            assert await stopping is True
            assert await asyncio.gather(*requests) == [None, 1, 2]
            assert ref.stop(drain=True).get() is False

    run(main())


def test_a_plain_stop_overtakes_a_draining_one_and_both_are_answered(run, kind, gate):
    async def main() -> None:
        seen: list[object] = []
        async with ActorSystem() as system:
            ref, [_, queued] = await held(system, kind, gate, seen, 1)
            draining, also_draining, plain = ref.stop(drain=True), ref.stop(drain=True), ref.stop()
            gate.open()
            assert [await draining, await also_draining, await plain] == [True, True, True]
            with pytest.raises(ActorDeadError):
                await queued
            assert seen == ["held stops"]

    run(main())


def test_an_actor_that_fails_while_it_drains_still_answers_everybody(run, kind, gate):
    async def main() -> None:
        async with ActorSystem() as system:
            ref, [_, crash, after] = await held(system, kind, gate, [], SystemExit(), "after")
            stopped = ref.stop(drain=True)
            gate.open()
            assert await stopped is True
            for request in (crash, after):
                with pytest.raises(ActorDeadError):
                    await request

    run(main())


@pytest.mark.parametrize("drain", [False, True])
def test_whoever_waits_for_room_is_told_at_once_that_it_stops(run, kind, gate, drain):
    async def main() -> None:
        seen: list[object] = []
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind), seen, mailbox=MailboxSettings(1, "block"), name="held")
            ref.tell(gate)
            await gate.reached()
            ref.tell("fills it")
            waiting = [
                asyncio.create_task(call)
                for call in (
                    ref.send("sent"),
                    ref.request("requested"),
                    asyncio.to_thread(ref.ask, "asked"),
                )
            ]
            while len(ref.actor_inbox._bound.waiting) < 3:
                await asyncio.sleep(0)
            stopped = ref.stop(drain=drain)
            for refused in waiting:
                with pytest.raises(ActorDeadError):
                    await refused
            gate.open()
            assert await stopped is True
            assert seen == (["fills it"] if drain else []) + ["held stops"]

    run(main())


# --- the end ---


def test_stop_returns_when_the_children_have_stopped_before_it(run, kind):
    async def main() -> None:
        seen: list[object] = []
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind), seen, name="parent")
            child = await ref.request(worker(kind))
            assert await ref.stop() is True
            assert seen == [f"{child.name} stops", "parent stops"]
            assert not child.is_alive()

    run(main())


def test_the_end_can_be_waited_for_from_everywhere_whoever_stops_it(run, kind, gate):
    async def main() -> None:
        async with ActorSystem() as system:
            ref, _ = await held(system, kind, gate, [])
            waiting = [
                asyncio.create_task(ref.wait_stopped()),
                asyncio.create_task(asyncio.to_thread(ref.actor_stopped.wait)),
                asyncio.create_task(asyncio.to_thread(lambda: asyncio.run(ref.wait_stopped()))),
            ]
            await asyncio.to_thread(lambda: None)
            assert not any(task.done() for task in waiting)
            assert not ref.actor_stopped.is_set()
            gate.open()
            ref.stop()
            assert await asyncio.gather(*waiting) == [None, True, None]
            assert ref.actor_stopped.is_set()
            await ref.wait_stopped()

    run(main())


def test_actor_stopped_is_set_only_when_the_actor_has_ended(run, kind, gate):
    """`is_set()` says what `wait()` waits for, as with any event; that it takes no messages any
    more is `is_alive()`.
    """

    async def main() -> None:
        async with ActorSystem() as system:
            ref, _ = await held(system, kind, gate, [])
            stopped = ref.stop()
            alive, is_set = ref.is_alive(), ref.actor_stopped.is_set()
            gate.open()
            await stopped
            assert (alive, is_set, ref.actor_stopped.is_set()) == (False, False, True)

    run(main())


def test_an_actor_that_stops_itself_finishes_its_handler_first(run, kind):
    class Finisher(kind):
        async def on_receive(self, message: object) -> str:
            if message == "through self":
                self.stop()
            else:
                self.actor_ref.stop()
            await asyncio.sleep(0)
            return "finished"

    async def main() -> None:
        async with ActorSystem() as system:
            for way in ("through self", "through the ref"):
                ref = system.spawn(Finisher)
                assert await ref.request(way) == "finished"
                await ref.wait_stopped()

    run(main())
