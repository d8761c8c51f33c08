"""G3: control messages (cancel, stop) are not delayed by queued work, nor by the work of others."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from offbook.runtime import (
    Actor,
    ActorDeadError,
    ActorRef,
    ActorSystem,
    HandlerCancelled,
    MailboxSettings,
    ThreadActor,
)

WATCHDOG = 10.0
QUEUED = 2_000


def worker(kind: type[Actor]) -> type[Actor]:
    class Worker(kind):
        """Waits at a gate as a task, or blocks its thread at one; calls a function; else counts."""

        def __init__(self) -> None:
            super().__init__()
            self.handled: list[object] = []

        def on_receive(self, message: object) -> object:
            if isinstance(message, tuple):
                return message[0].block()
            if hasattr(message, "wait"):
                return message.wait()
            if callable(message):
                return message(self)
            self.handled.append(message)
            return message

    return Worker


async def from_the_loop(function: Callable[[], object]) -> None:
    function()


async def from_a_thread(function: Callable[[], object]) -> None:
    await asyncio.to_thread(function)


async def from_another_loop(function: Callable[[], object]) -> None:
    async def call() -> None:
        function()

    await asyncio.to_thread(lambda: asyncio.run(call()))


everywhere = pytest.mark.parametrize(
    "from_where", [from_the_loop, from_a_thread, from_another_loop]
)


async def under_way(ref: ActorRef, gate) -> asyncio.Task:
    """A request whose handler is under way, with much work queued behind it."""
    request = asyncio.create_task(ref.request(gate))
    await gate.reached()
    for number in range(QUEUED):
        ref.tell(number)
    assert len(ref.actor_inbox) == QUEUED
    return request


# --- behind queued work ---


@everywhere
def test_g03_stop_overtakes_a_full_work_lane(run, kind, gate, from_where):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind), mailbox=MailboxSettings(QUEUED))
            actor = ref._cell.actor
            request = await under_way(ref, gate)
            await from_where(lambda: ref.stop(block=False))
            gate.open()
            await ref.wait_stopped()
            assert await request is None
            assert actor.handled == []

    run(main())


@everywhere
def test_g03_cancel_overtakes_a_full_work_lane_and_leaves_it_as_it_is(run, kind, gate, from_where):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind), mailbox=MailboxSettings(QUEUED))
            actor = ref._cell.actor
            request = await under_way(ref, gate)
            await from_where(ref.cancel)
            with pytest.raises(HandlerCancelled, match="was cancelled"):
                await asyncio.wait_for(request, WATCHDOG)
            await ref.stop(drain=True)
            assert actor.handled == list(range(QUEUED))

    run(main())


@everywhere
def test_g03_stop_then_cancel_ends_an_actor_in_the_middle_of_a_handler(run, kind, gate, from_where):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind))
            request = await under_way(ref, gate)
            await from_where(lambda: (ref.stop(block=False), ref.cancel()))
            await asyncio.wait_for(ref.wait_stopped(), WATCHDOG)
            with pytest.raises(HandlerCancelled):
                await request

    run(main())


def test_g03_stop_comes_between_two_synchronous_handlers_that_are_queued(run):
    """Both are in one turn of the loop: nothing but the mailbox itself can bring the stop
    forward.
    """

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(Actor))
            actor = ref._cell.actor
            ref.tell("before")
            ref.tell(lambda _: ref.stop())
            asked = ref.ask("after", block=False)
            with pytest.raises(ActorDeadError):
                await asked
            await ref.wait_stopped()
            assert actor.handled == ["before"]

    run(main())


@pytest.mark.parametrize("kind", [Actor, ThreadActor])
def test_g03_a_stop_from_a_thread_waits_for_no_more_than_the_synchronous_handler_under_way(
    kind, new_gate
):
    """The handlers block, the loop's thread too: the stop arrives while the first one does."""
    gates = [new_gate() for _ in range(3)]
    with ActorSystem.in_thread(slow_handler=WATCHDOG) as system:
        ref = system.spawn(worker(kind))
        asked = [ref.ask((gate,), block=False) for gate in gates]
        while not gates[0].is_reached():
            threading.Event().wait(0.001)
        stopped = ref.stop(block=False)
        gates[0].open()
        assert stopped.get(timeout=WATCHDOG) is True
        assert asked[0].get(timeout=WATCHDOG) is None
        for refused in asked[1:]:
            with pytest.raises(ActorDeadError):
                refused.get(timeout=WATCHDOG)
        assert [gate.is_reached() for gate in gates] == [True, False, False]


# --- in the middle of handlers ---


def test_g03_cancel_reaches_a_handler_wherever_it_waits(run, kind, new_gate):
    async def deep(level: int, gate) -> None:
        if level:
            await deep(level - 1, gate)
        else:
            await asyncio.gather(asyncio.Event().wait(), gate.wait())

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind))
            for level in range(20):
                gate = new_gate()
                request = asyncio.create_task(
                    ref.request(lambda _, level=level, gate=gate: deep(level, gate))
                )
                await gate.reached()
                ref.cancel()
                with pytest.raises(HandlerCancelled):
                    await asyncio.wait_for(request, WATCHDOG)
            assert await ref.request("alive") == "alive"

    run(main())


def test_g03_a_cancelled_handler_may_clean_up_and_even_reply(run, kind, new_gate):
    gate, cleaning = new_gate(), new_gate()

    async def tidy(_: Actor) -> str:
        try:
            await gate.wait()
        except asyncio.CancelledError:
            await cleaning.wait()
            return "tidied up"

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind))
            request = asyncio.create_task(ref.request(tidy))
            await gate.reached()
            ref.cancel()
            await asyncio.wait_for(cleaning.reached(), WATCHDOG)
            cleaning.open()
            assert await asyncio.wait_for(request, WATCHDOG) == "tidied up"

    run(main())


def test_g03_cancel_hits_the_handler_that_is_under_way_and_no_later_one(run, kind, new_gate):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind))
            for _ in range(50):
                ref.cancel()  # there is nothing to cancel
                assert await ref.request("next") == "next"
                first, second = new_gate(), new_gate()
                requests = [asyncio.create_task(ref.request(gate)) for gate in (first, second)]
                await first.reached()
                ref.cancel()
                if kind is Actor:
                    # There the first one is sure to be still under way: it is cancelled already.
                    ref.cancel()
                with pytest.raises(HandlerCancelled):
                    await requests[0]
                await asyncio.wait_for(second.reached(), WATCHDOG)
                second.open()
                assert await asyncio.wait_for(requests[1], WATCHDOG) is None

    run(main())


def test_g03_a_cancel_that_comes_as_the_handler_ends_leaves_the_next_one_to_be_cancelled(
    run, kind, new_gate
):
    """However the two race: the next handler is not hit by the old cancel, and is hit by its
    own.
    """

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind))
            for _ in range(100):
                gate, held = new_gate(), new_gate()
                first = asyncio.create_task(ref.request(gate))
                await gate.reached()
                gate.open()
                ref.cancel()
                assert isinstance(
                    (await asyncio.gather(first, return_exceptions=True))[0],
                    HandlerCancelled | None,
                )
                second = asyncio.create_task(ref.request(held))
                await asyncio.wait_for(held.reached(), WATCHDOG)
                await asyncio.sleep(0)
                assert not second.done()
                ref.cancel()
                with pytest.raises(HandlerCancelled):
                    await asyncio.wait_for(second, WATCHDOG)

    run(main())


# --- behind the work of others ---


def test_g03_stop_and_cancel_do_not_wait_for_the_work_of_other_actors(run, gate):
    """All the others always have something to do.

    Counted in rounds of the loop, of which the cancellation of a task alone takes two.
    """

    class Busy(Actor):
        def on_receive(self, message: object) -> None:
            self.actor_ref.tell(message)

    rounds = 0

    def count() -> None:
        nonlocal rounds
        rounds += 1
        asyncio.get_running_loop().call_soon(count)

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(Actor))
            request = await under_way(ref, gate)
            for _ in range(100):
                system.spawn(Busy).tell("again")
            await asyncio.sleep(0)
            count()
            stopped = ref.stop()
            ref.cancel()
            assert await stopped is True
            assert rounds <= 10
            with pytest.raises(HandlerCancelled):
                await request

    run(main())


def test_g03_stopping_a_parent_overtakes_the_work_of_its_children(run, kind, new_gate):
    async def main() -> None:
        async with ActorSystem() as system:
            parent = system.spawn(worker(kind))
            gates = [new_gate() for _ in range(3)]
            children = [
                await parent.request(lambda actor: actor.spawn(worker(kind))) for _ in gates
            ]
            actors = [child._cell.actor for child in children]
            requests = [
                await under_way(child, gate) for child, gate in zip(children, gates, strict=True)
            ]
            stopped = parent.stop()
            while any(child.is_alive() for child in children):
                await asyncio.sleep(0)
            for gate in gates:
                gate.open()
            assert await stopped is True
            assert await asyncio.gather(*requests) == [None] * 3
            assert [actor.handled for actor in actors] == [[], [], []]

    run(main())
