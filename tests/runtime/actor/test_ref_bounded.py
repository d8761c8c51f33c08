"""Bounded mailboxes through the ref: what happens to one message too many, by policy, and by where
it comes from.
"""

import asyncio
from collections.abc import Callable

import pytest

from offbook.runtime import Actor, ActorRef, ActorSystem, AskTimeout, MailboxFull, MailboxSettings
from offbook.runtime.testing import ManualClock

WATCHDOG = 10.0


def keeper(kind: type[Actor]) -> type[Actor]:
    class Keeper(kind):
        """Waits at a gate, and else remembers and returns what it gets."""

        def __init__(self) -> None:
            super().__init__()
            self.seen: list[object] = []

        def on_receive(self, message: object) -> object:
            if hasattr(message, "wait"):
                return message.wait()
            if message == "seen":
                return list(self.seen)
            self.seen.append(message)
            return message

    return Keeper


async def full(
    system: ActorSystem, kind: type[Actor], gate, overflow: str, capacity: int = 1
) -> ActorRef:
    """An actor that is held at the gate, with a mailbox that is full: of 0, 1, 2, ..."""
    ref = system.spawn(keeper(kind), mailbox=MailboxSettings(capacity, overflow), name="keeper")
    ref.tell(gate)
    await gate.reached()
    for number in range(capacity):
        ref.tell(number)
    return ref


async def in_line(ref: ActorRef, count: int) -> None:
    """Until so many stand in the line."""
    while len(ref.actor_inbox._bound.waiting) != count:
        await asyncio.sleep(0)


async def seen(ref: ActorRef) -> list[object]:
    """What it has seen, when it has come to everything that is there and in the line."""
    while len(ref.actor_inbox):
        await asyncio.sleep(0)
    while True:
        try:
            return await ref.request("seen")
        except MailboxFull:
            await asyncio.sleep(0)


def elsewhere(call: Callable[[], object]) -> Callable[[], object]:
    return lambda: asyncio.to_thread(call)


def other_loop(call: Callable[[], object]) -> Callable[[], object]:
    async def make() -> object:
        return await call()

    return lambda: asyncio.to_thread(lambda: asyncio.run(make()))


async def call(function: Callable[[], object]) -> object:
    """Call it; if it gives something to await, await that."""
    result = function()
    return await result if hasattr(result, "__await__") else result


# Every way of sending: all of them, and those that can wait for room in a mailbox that blocks.
def senders(ref: ActorRef, message: object) -> dict[str, Callable[[], object]]:
    return {
        "tell on the loop": lambda: ref.tell(message),
        "ask on the loop": lambda: ref.ask(message, block=False),
        "request on the loop": lambda: ref.request(message),
        "send on the loop": lambda: ref.send(message),
        "tell in a thread": elsewhere(lambda: ref.tell(message)),
        "ask in a thread": elsewhere(lambda: ref.ask(message)),
        "ask without blocking in a thread": elsewhere(lambda: ref.ask(message, block=False).get()),
        "tell on another loop": other_loop(lambda: asyncio.to_thread(ref.tell, message)),
        "request on another loop": other_loop(lambda: ref.request(message)),
        "send on another loop": other_loop(lambda: ref.send(message)),
    }


ALL = list(senders(None, None))
SENDS = [name for name in ALL if name.startswith("send")]
WAITS = [
    *SENDS,
    "request on the loop",
    "tell in a thread",
    "ask in a thread",
    "tell on another loop",
    "request on another loop",
]


@pytest.mark.parametrize("name", [name for name in ALL if name not in SENDS])
def test_a_full_mailbox_that_rejects_says_so_at_once(run, kind, gate, name):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = await full(system, kind, gate, "reject", capacity=2)
            with pytest.raises(MailboxFull, match=r"capacity=2.*send") as caught:
                await call(senders(ref, "too many")[name])
            assert (caught.value.actor, caught.value.message) == ("keeper", "too many")
            assert len(ref.actor_inbox) == 2
            gate.open()
            assert await seen(ref) == [0, 1]

    run(main())


@pytest.mark.parametrize("name", [name for name in ALL if name not in WAITS])
def test_who_cannot_wait_is_rejected_by_a_mailbox_that_blocks(run, kind, gate, name):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = await full(system, kind, gate, "block")
            with pytest.raises(MailboxFull):
                await call(senders(ref, "too many")[name])
            gate.open()
            assert await seen(ref) == [0]

    run(main())


@pytest.mark.parametrize(
    ("overflow", "name"),
    [*(("block", name) for name in WAITS), *(("reject", name) for name in SENDS)],
)
def test_who_can_wait_waits_for_room(run, kind, gate, overflow, name):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = await full(system, kind, gate, overflow)
            waiting = asyncio.create_task(call(senders(ref, "patient")[name]))
            await in_line(ref, 1)
            assert len(ref.actor_inbox) == 1
            gate.open()
            assert await waiting in (None, "patient")
            assert await seen(ref) == [0, "patient"]

    run(main())


@pytest.mark.parametrize("name", ALL)
def test_drop_oldest_takes_everybody_and_answers_the_one_it_dropped(run, kind, gate, name):
    async def main() -> None:
        async with ActorSystem() as system:
            letters: list[tuple[object, str]] = []
            system.subscribe_dead_letters(
                lambda letter: letters.append((letter.message, letter.reason))
            )
            ref = system.spawn(
                keeper(kind), mailbox=MailboxSettings(1, "drop_oldest"), name="keeper"
            )
            ref.tell(gate)
            await gate.reached()
            asked = ref.ask("oldest", block=False)
            newest = asyncio.create_task(call(senders(ref, "newest")[name]))
            with pytest.raises(MailboxFull, match="dropped this message for a newer one") as caught:
                await asked
            assert (caught.value.actor, caught.value.message) == ("keeper", "oldest")
            gate.open()
            assert await newest in (None, "newest")
            assert letters == [("oldest", "the mailbox dropped it for a newer one")]
            assert await seen(ref) == ["newest"]

    run(main())


def test_drop_oldest_answers_every_kind_of_asker(run, kind, gate):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(
                keeper(kind), mailbox=MailboxSettings(1, "drop_oldest"), name="keeper"
            )
            ref.tell(gate)
            await gate.reached()
            for name in ("request on the loop", "ask in a thread", "request on another loop"):
                asked = asyncio.create_task(call(senders(ref, name)[name]))
                while not len(ref.actor_inbox) or ref.actor_inbox._work[0].message != name:
                    await asyncio.sleep(0)
                ref.tell("newer")
                with pytest.raises(MailboxFull, match="dropped"):
                    await asked
            gate.open()
            assert await seen(ref) == ["newer"]

    run(main())


# --- in the line ---


def test_the_line_is_served_in_its_order_whoever_stands_in_it(run, kind, gate):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = await full(system, kind, gate, "block")
            waiting = []
            for place, name in enumerate(WAITS, start=1):
                waiting.append(asyncio.create_task(call(senders(ref, name)[name])))
                await in_line(ref, place)
            gate.open()
            await asyncio.gather(*waiting)
            assert await seen(ref) == [0, *WAITS]

    run(main())


@pytest.mark.parametrize("name", ["send on the loop", "request on the loop"])
def test_who_is_cancelled_in_the_line_has_not_sent_and_blocks_nobody(run, kind, gate, name):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = await full(system, kind, gate, "block")
            first = asyncio.create_task(call(senders(ref, "first")[name]))
            await in_line(ref, 1)
            second = asyncio.create_task(ref.send("second"))
            await in_line(ref, 2)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            await in_line(ref, 1)
            gate.open()
            await second
            assert await seen(ref) == [0, "second"]

    run(main())


def test_a_request_that_times_out_in_the_line_has_not_sent(run, kind, gate):
    async def main() -> None:
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            ref = await full(system, kind, gate, "block")
            request = asyncio.create_task(ref.request("late", timeout=5))
            await in_line(ref, 1)
            clock.advance(5)
            with pytest.raises(AskTimeout, match="5 seconds") as caught:
                await request
            assert "may still be handled" not in str(caught.value)
            await in_line(ref, 0)
            gate.open()
            assert await seen(ref) == [0]

    run(main())


def test_a_request_whose_time_is_over_when_the_actor_stops_leaves_no_error_behind(run, kind, gate):
    """The `run` fixture fails it for an exception that nobody retrieved."""

    async def main() -> None:
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            ref = await full(system, kind, gate, "block")
            request = asyncio.create_task(ref.request("late", timeout=5))
            await in_line(ref, 1)
            clock.advance(5)
            stopped = ref.stop()
            outcome = (await asyncio.gather(request, return_exceptions=True))[0]
            gate.open()
            await stopped
            assert type(outcome).__name__ in ("AskTimeout", "ActorDeadError")

    run(main())


@pytest.mark.parametrize("name", ["ask in a thread", "request on another loop"])
def test_who_times_out_in_the_line_elsewhere_has_not_sent(run, kind, gate, name):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = await full(system, kind, gate, "block")

            def ask() -> None:
                with pytest.raises(AskTimeout, match=r"0\.01 seconds") as caught:
                    if name == "ask in a thread":
                        ref.ask("late", timeout=0.01)
                    else:
                        asyncio.run(ref.request("late", timeout=0.01))
                assert (caught.value.actor, caught.value.message) == ("keeper", "late")
                assert "may still be handled" not in str(caught.value)

            await asyncio.to_thread(ask)
            gate.open()
            assert await seen(ref) == [0]

    run(main())
