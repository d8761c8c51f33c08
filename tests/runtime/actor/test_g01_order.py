"""G1: an actor handles one message at a time; messages from one sender arrive in the order sent."""

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from offbook.runtime import (
    Actor,
    ActorRef,
    ActorSystem,
    Backoff,
    MailboxSettings,
    Restart,
    Resume,
    ThreadActor,
)

WATCHDOG = 30.0
SENDERS = 8
MESSAGES = 200


@pytest.fixture
def threads_switch_often() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


class Recorder(Actor):
    """Remembers what it got in which order, and how many of its handlers were under way at once."""

    def __init__(self) -> None:
        super().__init__()
        self.got: list[object] = []
        self.inside = 0
        self.most_inside = 0

    def enter(self, message: object) -> object:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        self.got.append(message)
        return message

    def leave(self) -> None:
        self.inside -= 1


class Sync(Recorder):
    def on_receive(self, message: object) -> object:
        try:
            return self.enter(message)
        finally:
            self.leave()


class Async(Recorder):
    async def on_receive(self, message: object) -> object:
        self.enter(message)
        await asyncio.sleep(0)
        self.leave()
        return message


class Mixed(Recorder):
    """Every third message takes a while."""

    def on_receive(self, message: object) -> object:
        self.enter(message)
        if len(self.got) % 3 == 0:
            return self.later(message)
        self.leave()
        return message

    async def later(self, message: object) -> object:
        await asyncio.sleep(0)
        self.leave()
        return message


class SyncOnThread(Sync, ThreadActor):
    pass


class AsyncOnThread(Async, ThreadActor):
    pass


class MixedOnThread(Mixed, ThreadActor):
    pass


recorders = pytest.mark.parametrize(
    "recorder", [Sync, Async, Mixed, SyncOnThread, AsyncOnThread, MixedOnThread]
)


def by_sender(got: list[tuple[int, int]]) -> dict[int, list[int]]:
    numbers: dict[int, list[int]] = {}
    for sender, number in got:
        numbers.setdefault(sender, []).append(number)
    return numbers


def all_in_order(senders: int) -> dict[int, list[int]]:
    return {sender: list(range(MESSAGES)) for sender in range(senders)}


async def finished(ref: ActorRef) -> Recorder:
    """The actor itself, when everything that was sent has been handled."""
    actor = ref._cell.actor
    await ref.stop(drain=True)
    return actor


def send_from_thread(ref: ActorRef, sender: int) -> None:
    """In turns without and with a reply that nobody, or this thread, waits for."""
    futures = []
    for number in range(MESSAGES):
        if number % 7 == 0:
            assert ref.ask((sender, number), timeout=WATCHDOG) == (sender, number)
        elif number % 3 == 0:
            futures.append(ref.ask((sender, number), block=False))
        else:
            ref.tell((sender, number))
    for future in futures:
        future.get(timeout=WATCHDOG)


async def send_from_loop(ref: ActorRef, sender: int) -> None:
    futures = []
    for number in range(MESSAGES):
        if number % 7 == 0:
            assert await ref.request((sender, number)) == (sender, number)
        elif number % 5 == 0:
            await ref.send((sender, number))
        elif number % 3 == 0:
            futures.append(ref.ask((sender, number), block=False))
        else:
            ref.tell((sender, number))
    for future in futures:
        await future


@recorders
def test_g01_one_message_at_a_time_and_each_senders_in_order_from_many_threads(
    run, recorder, threads_switch_often
):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(recorder)
            threads = [
                threading.Thread(daemon=True, target=send_from_thread, args=(ref, sender))
                for sender in range(SENDERS)
            ]
            for thread in threads:
                thread.start()
            await asyncio.to_thread(lambda: [thread.join(WATCHDOG) for thread in threads])
            actor = await finished(ref)
            assert by_sender(actor.got) == all_in_order(SENDERS)
            assert actor.most_inside == 1

    run(main())


@recorders
def test_g01_one_message_at_a_time_and_each_senders_in_order_from_many_tasks(run, recorder):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(recorder)
            await asyncio.gather(*(send_from_loop(ref, sender) for sender in range(SENDERS)))
            actor = await finished(ref)
            assert by_sender(actor.got) == all_in_order(SENDERS)
            assert actor.most_inside == 1

    run(main())


@recorders
def test_g01_from_tasks_threads_and_other_loops_at_once(run, recorder, threads_switch_often):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(recorder)
            await asyncio.gather(
                send_from_loop(ref, 0),
                send_from_loop(ref, 1),
                asyncio.to_thread(send_from_thread, ref, 2),
                asyncio.to_thread(send_from_thread, ref, 3),
                asyncio.to_thread(lambda: asyncio.run(send_from_loop(ref, 4))),
            )
            actor = await finished(ref)
            assert by_sender(actor.got) == all_in_order(5)
            assert actor.most_inside == 1

    run(main())


@recorders
@pytest.mark.parametrize("overflow", ["reject", "block"])
def test_g01_the_order_holds_where_senders_wait_for_room(run, recorder, overflow):
    async def send(ref: ActorRef, sender: int) -> None:
        for number in range(MESSAGES):
            await ref.send((sender, number))

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(recorder, mailbox=MailboxSettings(3, overflow))
            await asyncio.gather(
                send(ref, 0), send(ref, 1), asyncio.to_thread(lambda: asyncio.run(send(ref, 2)))
            )
            actor = await finished(ref)
            assert by_sender(actor.got) == all_in_order(3)
            assert actor.most_inside == 1

    run(main())


@recorders
def test_g01_a_request_does_not_overtake_what_was_told_before_it(run, recorder):
    """Though a request to an idle actor may be answered on the spot."""

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(recorder)
            sent = 0
            for told in range(40):
                for _ in range(told % 4):
                    ref.tell(sent)
                    sent += 1
                assert await ref.request(sent) == sent
                sent += 1
            assert (await finished(ref)).got == list(range(sent))

    run(main())


@recorders
def test_g01_requests_made_while_a_handler_waits_do_not_get_between(run, recorder, gate):
    class Held(recorder):
        def on_receive(self, message: object) -> object:
            return self.hold(message) if hasattr(message, "wait") else super().on_receive(message)

        async def hold(self, message: object) -> None:
            self.enter("held")
            await message.wait()
            self.got.append("released")
            self.leave()

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(Held)
            held = asyncio.create_task(ref.request(gate))
            await gate.reached()
            requests = [asyncio.create_task(ref.request(number)) for number in range(3)]
            await asyncio.sleep(0)
            gate.open()
            await asyncio.gather(held, *requests)
            actor = await finished(ref)
            assert actor.got == ["held", "released", 0, 1, 2]
            assert actor.most_inside == 1

    run(main())


@pytest.mark.parametrize("sender", [Actor, ThreadActor])
@recorders
def test_g01_what_one_actor_tells_another_arrives_in_order(run, recorder, sender):
    class Sender(sender):
        def on_receive(self, to: ActorRef) -> None:
            for number in range(MESSAGES):
                to.tell(number)

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(recorder)
            await system.spawn(Sender).request(ref)
            assert (await finished(ref)).got == list(range(MESSAGES))

    run(main())


@pytest.mark.parametrize(
    "directive",
    [Restart(max_restarts=100, backoff=Backoff(initial=0)), Resume()],
    ids=["Restart", "Resume"],
)
@pytest.mark.parametrize("style", ["sync", "async"])
def test_g01_the_order_holds_across_failures(run, kind, style, directive):
    got: list[int] = []

    def receive(number: int) -> None:
        got.append(number)
        if number % 10 == 9:
            raise SystemExit

    async def receive_later(number: int) -> None:
        await asyncio.sleep(0)
        receive(number)

    handle: Callable[[int], object] = receive if style == "sync" else receive_later

    class Fragile(kind):
        def on_receive(self, number: int) -> object:
            return handle(number)

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(Fragile, supervision=directive)
            for number in range(100):
                ref.tell(number)
            await ref.stop(drain=True)
            assert got == list(range(100))

    run(main())
