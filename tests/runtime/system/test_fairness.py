"""Fairness: an actor that is flooded, or that never stops telling itself, starves neither other
actors nor anything else on the loop.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator

import pytest

from offbook.runtime import Actor, ActorRef, ActorSystem, MailboxSettings
from tests.doubles.actors import Echo

WATCHDOG = 10.0


class Endless(Actor):
    """Tells itself, for ever."""

    def on_receive(self, message: object) -> None:
        self.actor_ref.tell(message)


class EndlessAsync(Actor):
    async def on_receive(self, message: object) -> None:
        self.actor_ref.tell(message)


class EndlessAwaiting(Actor):
    async def on_receive(self, message: object) -> None:
        await asyncio.sleep(0)
        self.actor_ref.tell(message)


class Pair(Actor):
    """Tells the other one, which tells this one, for ever."""

    def on_receive(self, other: ActorRef) -> None:
        other.tell(self.actor_ref)


class AsyncEcho(Actor):
    async def on_receive(self, message: object) -> object:
        await asyncio.sleep(0)
        return message


def tells_itself(actor: type[Actor]) -> Callable[[ActorSystem], list[asyncio.Task]]:
    def start(system: ActorSystem) -> list[asyncio.Task]:
        for _ in range(3):
            system.spawn(actor).tell("again")
        return []

    return start


def two_tell_each_other(system: ActorSystem) -> list[asyncio.Task]:
    system.spawn(Pair).tell(system.spawn(Pair))
    return []


def requests_without_end(
    actor: type[Actor], **options: object
) -> Callable[[ActorSystem], list[asyncio.Task]]:
    """Some of them are answered on the spot: then awaiting one gives nobody else a turn."""

    async def requests(ref: ActorRef) -> None:
        while True:
            await ref.request("again")

    return lambda system: [
        asyncio.create_task(requests(system.spawn(actor, **options))) for _ in range(3)
    ]


def sends_without_end(system: ActorSystem) -> list[asyncio.Task]:
    async def sends(ref: ActorRef) -> None:
        while True:
            await ref.send("again")

    return [asyncio.create_task(sends(system.spawn(Echo, mailbox=MailboxSettings(4, "block"))))]


FLOODS: dict[str, Callable[[ActorSystem], list[asyncio.Task]]] = {
    "an actor that tells itself": tells_itself(Endless),
    "an asynchronous actor that tells itself": tells_itself(EndlessAsync),
    "an actor that tells itself when it has waited": tells_itself(EndlessAwaiting),
    "two actors that tell each other": two_tell_each_other,
    "requests without end": requests_without_end(Echo),
    "requests without end to an asynchronous actor": requests_without_end(AsyncEcho),
    "requests without end to a bounded mailbox": requests_without_end(
        Echo, mailbox=MailboxSettings(1)
    ),
    "sends without end to a mailbox that blocks": sends_without_end,
}


@pytest.fixture(params=FLOODS)
def flooded(request: pytest.FixtureRequest, run) -> Callable:
    """Runs `story(system)` while the flood goes on, and fails if it does not come to its end."""

    def play(story: Callable) -> None:
        async def main() -> None:
            async with ActorSystem() as system:
                flood = FLOODS[request.param](system)
                await asyncio.sleep(0)
                before = system.stats().handled
                await asyncio.wait_for(story(system), WATCHDOG)
                assert system.stats().handled > before, "and the flood went on"
                for task in flood:
                    task.cancel()
                await asyncio.gather(*flood, return_exceptions=True)

        run(main())

    return play


def test_other_actors_have_their_turns(flooded):
    async def story(system: ActorSystem) -> None:
        refs = [system.spawn(actor) for actor in (Echo, AsyncEcho) for _ in range(5)]
        for number in range(20):
            assert await asyncio.gather(*(ref.request(number) for ref in refs)) == [number] * 10

    flooded(story)


def test_callbacks_timers_and_tasks_of_the_loop_have_their_turns(flooded):
    async def story(system: ActorSystem) -> None:
        called = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(called.set_result, "soon")
        assert await called == "soon"
        for _ in range(20):
            await asyncio.sleep(0)
        for _ in range(3):
            await asyncio.sleep(0.001)
        assert await asyncio.create_task(asyncio.sleep(0.001, "task")) == "task"

    flooded(story)


def test_input_and_output_have_their_turns(flooded):
    async def story(system: ActorSystem) -> None:
        here, there = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=here)
        echo_reader, echo_writer = await asyncio.open_connection(sock=there)
        for number in range(20):
            writer.write(b"%d\n" % number)
            line = await echo_reader.readline()
            echo_writer.write(line)
            assert await reader.readline() == b"%d\n" % number
        for end in (writer, echo_writer):
            end.close()
            await end.wait_closed()

    flooded(story)


async def releases_the_interpreter() -> None:
    """Let other threads have Python's interpreter lock once in each round of the loop.

    Python does not guarantee a thread its turn beside one that never waits: on a busy machine, a
    thread waited 11 s beside a loop of plain callbacks, without any actor. This leaves the
    dispatcher's turns as they are, and takes only that lottery out of the test.
    """
    while True:
        time.sleep(0.0005)
        await asyncio.sleep(0)


def test_threads_have_their_turns(flooded):
    async def story(system: ActorSystem) -> None:
        ref = system.spawn(Echo)
        releasing = asyncio.create_task(releases_the_interpreter())
        for number in range(5):
            assert await asyncio.to_thread(ref.ask, number, timeout=WATCHDOG) == number
        releasing.cancel()

    flooded(story)


def test_actors_begin_stop_and_restart_in_the_middle_of_it(flooded):
    class Child(Actor):
        async def on_start(self) -> None:
            await asyncio.sleep(0)

        async def on_stop(self) -> None:
            await asyncio.sleep(0)

    async def story(system: ActorSystem) -> None:
        for _ in range(20):
            assert await system.spawn(Child).stop() is True

    flooded(story)


# --- how long a turn is ---


@pytest.fixture
def rounds(run) -> Iterator[Callable]:
    """Runs `flood(system)`, then counts how many messages are handled in each of the next rounds of
    the loop.
    """

    def count(flood: Callable[[ActorSystem], object], number: int = 50) -> list[int]:
        handled: list[int] = []

        async def main() -> None:
            async with ActorSystem() as system:
                flood(system)
                for _ in range(number):
                    before = system.stats().handled
                    await asyncio.sleep(0)
                    handled.append(system.stats().handled - before)

        run(main())
        return handled

    return count


def test_a_flood_of_one_actor_is_handled_in_many_rounds_of_the_loop(rounds):
    total = 100_000

    def flood(system: ActorSystem) -> None:
        ref = system.spawn(Echo)
        for number in range(total):
            ref.tell(number)

    handled = rounds(flood)
    assert 0 < max(handled) < total / 2, (
        "no round takes all of them, and the rest is left for the next ones"
    )


def test_one_that_is_flooded_and_one_that_is_not_take_turns(run):
    """When the flooded one has handled a few, it is the other's turn; whatever the length of its
    queue.
    """
    order: list[str] = []

    class Named(Actor):
        def on_receive(self, message: str) -> None:
            order.append(message)

    async def main() -> None:
        async with ActorSystem() as system:
            flooded, quiet = system.spawn(Named), system.spawn(Named)
            for _ in range(5_000):
                flooded.tell("flooded")
            quiet.tell("quiet")
            await flooded.stop(drain=True)
            assert order.count("flooded") == 5_000
            assert order.index("quiet") < 100

    run(main())


def test_a_flood_from_threads_does_not_keep_the_loop_from_its_own(run):
    over = threading.Event()

    def flood(ref: ActorRef) -> None:
        while not over.is_set():
            ref.tell("from a thread")

    async def main() -> None:
        async with ActorSystem() as system:
            ref, other = (
                system.spawn(Echo, mailbox=MailboxSettings(1_000, "drop_oldest")),
                system.spawn(AsyncEcho),
            )
            flooding = [asyncio.create_task(asyncio.to_thread(flood, ref)) for _ in range(2)]
            try:
                for number in range(50):
                    assert await asyncio.wait_for(other.request(number), WATCHDOG) == number
                    await asyncio.sleep(0.0001)
            finally:
                over.set()
            await asyncio.gather(*flooding)

    run(main())
