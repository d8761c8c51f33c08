"""Waiting for a reply that does not come: timeouts of whoever asks, by whose clock, and
cancellation.
"""

import asyncio

import pytest

from offbook.runtime import Actor, ActorRef, ActorSystem, AskTimeout, MailboxSettings
from offbook.runtime.testing import ManualClock

WATCHDOG = 10.0


def worker(kind: type[Actor]) -> type[Actor]:
    class Worker(kind):
        """Waits at a gate, raises an exception; returns anything else as it is, and remembers
        it.
        """

        def __init__(self) -> None:
            super().__init__()
            self.seen: list[object] = []

        def on_receive(self, message: object) -> object:
            if hasattr(message, "wait"):
                return message.wait()
            if isinstance(message, Exception):
                raise message
            if message == "seen":
                return list(self.seen)
            self.seen.append(message)
            return message

    return Worker


async def from_a_thread(on_loop, in_thread, ref: ActorRef) -> None:
    await asyncio.to_thread(in_thread, ref)


async def from_another_loop(on_loop, in_thread, ref: ActorRef) -> None:
    await asyncio.to_thread(lambda: asyncio.run(on_loop(ref)))


async def from_the_loop(on_loop, in_thread, ref: ActorRef) -> None:
    await on_loop(ref)


def test_a_request_times_out_by_the_systems_clock(run, kind, gate):
    async def main() -> None:
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(worker(kind))
            ref.tell(gate)
            request = asyncio.create_task(ref.request("late", timeout=30))
            await gate.reached()
            clock.advance(29)
            await asyncio.sleep(0)
            assert not request.done()
            clock.advance(1)
            with pytest.raises(AskTimeout, match="30 seconds") as caught:
                await request
            assert (caught.value.actor, caught.value.message) == (ref.path, "late")
            gate.open()
            assert await ref.request("seen") == ["late"], "it was sent, and is handled all the same"
            assert await ref.request("in time", timeout=30) == "in time"
            assert clock.pending == ()

    run(main())


@pytest.mark.parametrize("use", [from_a_thread, from_another_loop])
def test_who_asks_elsewhere_times_out_too(run, kind, gate, use):
    def in_thread(ref: ActorRef) -> None:
        with pytest.raises(AskTimeout, match=r"0\.01 seconds"):
            ref.ask("late", timeout=0.01)
        with pytest.raises(AskTimeout):
            ref.ask("later", block=False).get(timeout=0.01)

    async def on_loop(ref: ActorRef) -> None:
        with pytest.raises(AskTimeout, match=r"0\.01 seconds"):
            await ref.request("late", timeout=0.01)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(ref.request("later"), 0.01)

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind))
            ref.tell(gate)
            await use(on_loop, in_thread, ref)
            gate.open()
            assert await ref.request("seen") == ["late", "later"]

    run(main())


@pytest.mark.parametrize("use", [from_the_loop, from_a_thread, from_another_loop])
def test_a_timeout_that_the_handler_raises_is_not_taken_for_the_askers(run, kind, use):
    error = AskTimeout("the handler's own")

    async def on_loop(ref: ActorRef) -> None:
        with pytest.raises(AskTimeout, match="the handler's own"):
            await ref.request(error, timeout=WATCHDOG)

    def in_thread(ref: ActorRef) -> None:
        with pytest.raises(AskTimeout, match="the handler's own"):
            ref.ask(error, timeout=WATCHDOG)

    async def main() -> None:
        async with ActorSystem() as system:
            await use(on_loop, in_thread, system.spawn(worker(kind)))

    run(main())


def test_a_requester_that_is_cancelled_leaves_the_actor_at_its_work(run, kind, gate):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind))
            request = asyncio.create_task(ref.request(gate))
            await gate.reached()
            request.cancel()
            with pytest.raises(asyncio.CancelledError):
                await request
            after = asyncio.create_task(ref.request("after"))
            await asyncio.sleep(0)
            assert not after.done(), "the handler is still at the gate"
            gate.open()
            assert await after == "after"

    run(main())


@pytest.mark.parametrize("use", [from_a_thread, from_another_loop])
def test_the_time_in_the_line_and_the_time_until_the_reply_count_together(run, kind, gate, use):
    async def on_loop(ref: ActorRef) -> None:
        with pytest.raises(AskTimeout, match=r"0\.01 seconds"):
            await ref.request("late", timeout=0.01)

    def in_thread(ref: ActorRef) -> None:
        with pytest.raises(AskTimeout, match=r"0\.01 seconds"):
            ref.ask("late", timeout=0.01)

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(worker(kind), mailbox=MailboxSettings(1, "block"))
            ref.tell(gate)
            await gate.reached()
            ref.tell("fills it")
            await use(on_loop, in_thread, ref)
            gate.open()
            assert await ref.request("seen") == ["fills it"], (
                "it was still in the line, and so has not been sent"
            )

    run(main())


def test_the_time_in_the_line_and_the_time_until_the_reply_count_together_by_the_systems_clock(
    run, kind, new_gate
):
    under_way, next_one = new_gate(), new_gate()

    async def main() -> None:
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(worker(kind), mailbox=MailboxSettings(1, "block"))
            ref.tell(under_way)
            await under_way.reached()
            ref.tell(next_one)
            request = asyncio.create_task(ref.request("late", timeout=30))
            while not clock.pending:
                await asyncio.sleep(0)
            clock.advance(10)
            under_way.open()
            await next_one.reached()
            while len(ref.actor_inbox) < 1 or request.done():
                await asyncio.sleep(0)
            await asyncio.sleep(0)
            clock.advance(19)
            await asyncio.sleep(0)
            assert not request.done()
            clock.advance(1)
            with pytest.raises(AskTimeout, match="30 seconds"):
                await request
            next_one.open()
            assert await ref.request("seen") == ["late"], "it had been sent by then"

    run(main())
