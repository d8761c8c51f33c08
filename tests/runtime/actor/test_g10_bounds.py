"""G10, for mailboxes: nothing in a bounded one grows beyond its bound, however fast its senders and
however slow its actor.
"""

import asyncio
import gc
import sys
import tracemalloc
from collections.abc import Callable, Iterator

import pytest

from offbook.runtime import Actor, ActorRef, ActorSystem, MailboxFull, MailboxSettings, ThreadActor

WATCHDOG = 30.0
CAPACITY = 8
MESSAGES = 400


@pytest.fixture(autouse=True)
def threads_switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Watched(Actor):
    """Notes the length of its mailbox at each message, before and after it has been handled."""

    def __init__(self) -> None:
        super().__init__()
        self.lengths: list[int] = []
        self.got: list[object] = []

    def look(self) -> None:
        self.lengths.append(len(self.actor_inbox))


class Sync(Watched):
    def on_receive(self, message: object) -> object:
        self.look()
        self.got.append(message)
        return message


class Slow(Watched):
    async def on_receive(self, message: object) -> object:
        self.look()
        self.got.append(message)
        await asyncio.sleep(0)
        self.look()
        return message


class SyncOnThread(Sync, ThreadActor):
    pass


class SlowOnThread(Slow, ThreadActor):
    pass


everybody = pytest.mark.parametrize("actor", [Sync, Slow, SyncOnThread, SlowOnThread])


async def finished(ref: ActorRef) -> Watched:
    actor = ref._cell.actor
    while len(ref.actor_inbox):
        await asyncio.sleep(0)
    await ref.stop(drain=True)
    assert max(actor.lengths) <= CAPACITY
    return actor


async def send(ref: ActorRef, sender: int) -> None:
    for number in range(MESSAGES):
        await ref.send((sender, number))
        assert len(ref.actor_inbox) <= CAPACITY


async def request(ref: ActorRef, sender: int) -> None:
    for number in range(MESSAGES):
        assert await ref.request((sender, number)) == (sender, number)
        assert len(ref.actor_inbox) <= CAPACITY


def tell(ref: ActorRef, sender: int) -> None:
    for number in range(MESSAGES):
        ref.tell((sender, number))
        assert len(ref.actor_inbox) <= CAPACITY


def ask(ref: ActorRef, sender: int) -> None:
    for number in range(MESSAGES):
        assert ref.ask((sender, number), timeout=WATCHDOG) == (sender, number)
        assert len(ref.actor_inbox) <= CAPACITY


def elsewhere(function: Callable[[ActorRef, int], object]) -> Callable:
    return lambda ref, sender: asyncio.to_thread(function, ref, sender)


def other_loop(function: Callable) -> Callable:
    return lambda ref, sender: asyncio.to_thread(lambda: asyncio.run(function(ref, sender)))


@everybody
@pytest.mark.parametrize("overflow", ["reject", "block"])
def test_g10_producers_that_send_never_get_ahead_of_the_bound(run, actor, overflow):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(actor, mailbox=MailboxSettings(CAPACITY, overflow))
            await asyncio.gather(
                *(send(ref, sender) for sender in range(3)), other_loop(send)(ref, 3)
            )
            assert len((await finished(ref)).got) == 4 * MESSAGES

    run(main())


@everybody
def test_g10_producers_of_every_kind_never_get_ahead_of_a_mailbox_that_blocks(run, actor):
    kinds = [
        send,
        request,
        elsewhere(tell),
        elsewhere(tell),
        elsewhere(ask),
        other_loop(request),
        other_loop(send),
    ]

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(actor, mailbox=MailboxSettings(CAPACITY, "block"))
            await asyncio.gather(*(produce(ref, sender) for sender, produce in enumerate(kinds)))
            got = (await finished(ref)).got
            assert {
                sender: [number for who, number in got if who == sender]
                for sender in range(len(kinds))
            } == {sender: list(range(MESSAGES)) for sender in range(len(kinds))}

    run(main())


@everybody
@pytest.mark.parametrize("overflow", ["reject", "drop_oldest"])
def test_g10_producers_that_do_not_wait_never_get_ahead_of_the_bound_either(run, actor, overflow):
    lost: list[object] = []

    def flood(ref: ActorRef, sender: int) -> None:
        for number in range(MESSAGES):
            try:
                ref.tell((sender, number))
            except MailboxFull:
                lost.append((sender, number))
            assert len(ref.actor_inbox) <= CAPACITY

    async def flood_here(ref: ActorRef, sender: int) -> None:
        flood(ref, sender)

    async def main() -> None:
        async with ActorSystem() as system:
            system.subscribe_dead_letters(lambda letter: lost.append(letter.message))
            ref = system.spawn(actor, mailbox=MailboxSettings(CAPACITY, overflow))
            await asyncio.gather(
                flood_here(ref, 0), elsewhere(flood)(ref, 1), elsewhere(flood)(ref, 2)
            )
            got = (await finished(ref)).got
            assert sorted([*got, *lost]) == [
                (sender, number) for sender in range(3) for number in range(MESSAGES)
            ]
            assert len(lost) > 0 or issubclass(actor, ThreadActor), (
                "nobody takes while the loop's own thread floods"
            )

    run(main())


@pytest.mark.parametrize("overflow", ["reject", "block", "drop_oldest"])
def test_g10_a_mailbox_that_nobody_takes_from_holds_no_more_than_its_capacity(
    run, kind, gate, overflow
):
    class Held(kind):
        def on_receive(self, message: object) -> object:
            return message.wait() if hasattr(message, "wait") else None

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(Held, mailbox=MailboxSettings(CAPACITY, overflow))
            ref.tell(gate)
            await gate.reached()
            refused = 0
            for number in range(10 * CAPACITY):
                try:
                    ref.tell(number)
                except MailboxFull:
                    refused += 1
            assert len(ref.actor_inbox) == CAPACITY
            assert refused == (0 if overflow == "drop_oldest" else 9 * CAPACITY)
            gate.open()

    run(main())


def test_g10_the_capacity_of_the_system_bounds_every_mailbox_that_says_nothing_else(run, kind):
    class Parent(kind):
        def on_receive(self, message: type[Actor]) -> ActorRef:
            return self.spawn(message)

    async def main() -> None:
        async with ActorSystem(mailbox_capacity=CAPACITY) as system:
            parent = system.spawn(Parent)
            refs = [
                parent,
                await parent.request(Parent),
                system.spawn(Parent, mailbox=MailboxSettings(3)),
                system.spawn(Parent, mailbox=MailboxSettings()),
            ]
            assert [ref.actor_inbox.capacity for ref in refs] == [CAPACITY, CAPACITY, 3, None]

    run(main())


def test_g10_control_is_exempt_but_one_for_each_request(run, gate):
    """Whoever stops it or waits for its end is never refused, and is seen to in the middle of a
    handler.
    """

    class Held(Actor):
        def on_receive(self, message: object) -> object:
            return message.wait() if hasattr(message, "wait") else None

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(Held, mailbox=MailboxSettings(1))
            ref.tell(gate)
            await gate.reached()
            ref.tell("fills it")
            waits = [asyncio.create_task(ref.wait_stopped()) for _ in range(1_000)]
            await asyncio.sleep(0)
            for _ in range(2):
                await asyncio.sleep(0)
            assert len(ref.actor_inbox) == 1
            gate.open()
            await ref.stop()
            await asyncio.gather(*waits)

    run(main())


def test_g10_memory_does_not_grow_with_the_number_of_messages(run):
    """Each message is a kilobyte: a tenth of them would be too much."""

    class Sink(Actor):
        async def on_receive(self, message: object) -> None:
            await asyncio.sleep(0)

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(Sink, mailbox=MailboxSettings(CAPACITY, "block"))

            async def flood(count: int) -> None:
                for _ in range(count):
                    await ref.send(bytearray(1_000))

            await flood(200)  # warms up what is made once
            gc.collect()
            tracemalloc.start()
            try:
                before, _ = tracemalloc.get_traced_memory()
                await asyncio.gather(flood(2_000), flood(2_000))
                gc.collect()
                _, peak = tracemalloc.get_traced_memory()
            finally:
                tracemalloc.stop()
            assert peak - before < 4_000 * 1_000 / 10

    run(main())
