"""G2: every ask ends when its system does: left in good order, with what does not stop in it, or
with its loop closed under it.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator

import pykka
import pytest

from offbook.runtime import (
    Actor,
    ActorDeadError,
    ActorFuture,
    ActorRef,
    ActorSystem,
    MailboxSettings,
    ThreadActor,
    UsageError,
)
from offbook.runtime.actor import current as directory

WATCHDOG = 10.0


def held(kind: type[Actor]) -> type[Actor]:
    class Held(kind):
        """Waits at a gate as a task, blocks its thread at one, crashes; else returns the
        message.
        """

        def on_receive(self, message: object) -> object:
            if isinstance(message, tuple):
                message[0].block()
                return "released"
            if hasattr(message, "wait"):
                return message.wait()
            if message == "crash":
                raise SystemExit
            return message

    return Held


def error_of(future: ActorFuture) -> type[BaseException] | None:
    """What an ask ended with. `AskTimeout`: it did not end."""
    try:
        future.get(timeout=2)
    except Exception as error:
        return type(error)
    return None


# --- left in good order ---


def test_g02_leaving_the_system_answers_what_is_under_way_and_what_is_queued(run, kind, gate):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(held(kind))
            asked = [asyncio.create_task(ref.request(gate))]
            await gate.reached()
            asked += [asyncio.create_task(ref.request(number)) for number in range(3)]
            asked += [
                asyncio.create_task(asyncio.to_thread(ref.ask, number, timeout=WATCHDOG))
                for number in range(3)
            ]
            while len(ref.actor_inbox) < 6:
                await asyncio.sleep(0)
            # The gate is never opened.
        results = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), WATCHDOG)
        assert [type(result) for result in results] == [ActorDeadError] * 7

    run(main())


def test_g02_a_thread_that_is_at_its_work_when_the_system_is_left_gives_its_reply(run, gate):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(held(ThreadActor))
            under_way, queued = ref.ask((gate,), block=False), ref.ask("queued", block=False)
            await gate.reached()
            asyncio.get_running_loop().call_later(0.01, gate.open)
        assert await under_way == "released"
        with pytest.raises(ActorDeadError):
            await queued

    run(main())


# --- with what does not stop in it ---


def test_g02_whoever_asked_a_thread_that_does_not_come_back_is_answered_when_it_is_given_up(
    run, gate
):
    async def main() -> None:
        async with ActorSystem(stop_timeout=0.02) as system:
            ref = system.spawn(held(ThreadActor))
            asked = [ref.ask((gate,), block=False), ref.ask("queued", block=False)]
            request = asyncio.create_task(ref.request("queued, too"))
            await gate.reached()
        try:
            assert [await asyncio.to_thread(error_of, future) for future in asked] == [
                ActorDeadError
            ] * 2
            with pytest.raises(ActorDeadError):
                await asyncio.wait_for(request, WATCHDOG)
        finally:
            gate.open()

    run(main())


def test_g02_whoever_requested_of_a_thread_that_does_not_come_back_is_answered_when_it_is_given_up(
    run, gate
):
    async def main() -> None:
        async with ActorSystem(stop_timeout=0.02) as system:
            request = asyncio.create_task(system.spawn(held(ThreadActor)).request((gate,)))
            await gate.reached()
        try:
            with pytest.raises(ActorDeadError):
                await asyncio.wait_for(request, 10)
        finally:
            gate.open()

    run(main())


def test_g02_whoever_asked_a_handler_that_ignores_its_cancellation_is_answered_when_it_is_given_up(
    run, gate
):
    class Stubborn(Actor):
        async def on_receive(self, message: object) -> str:
            while True:
                try:
                    await gate.wait()
                except asyncio.CancelledError:
                    continue
                return "released"

    async def main() -> None:
        async with ActorSystem(stop_timeout=0.02) as system:
            ref = system.spawn(Stubborn)
            request = asyncio.create_task(ref.request("requested"))
            await gate.reached()
            handler = ref._cell.task
        try:
            with pytest.raises(ActorDeadError):
                await asyncio.wait_for(request, 10)
        finally:
            gate.open()
            await asyncio.wait([handler])

    run(main())


# --- with its loop closed under it ---


@pytest.fixture
def forgotten(
    caplog: pytest.LogCaptureFixture, new_gate
) -> Iterator[Callable[..., list[ActorRef]]]:
    """Starts a system on a loop, spawns, and leaves neither in good order: `use(loop, *refs)` is
    called when the loop stands still.
    """
    caplog.set_level(logging.CRITICAL, logger="offbook")
    caplog.set_level(logging.CRITICAL, logger="asyncio")
    system = ActorSystem("forgotten")
    loop = asyncio.new_event_loop()
    everybody: list[ActorRef] = []

    def forget(*actors: type[Actor], mailbox: MailboxSettings | None = None) -> list[ActorRef]:
        loop.run_until_complete(system.start())
        everybody.extend(system.spawn(actor, mailbox=mailbox) for actor in actors)
        for ref in everybody:
            loop.run_until_complete(ref.request("started"))
        return everybody

    forget.loop = loop
    yield forget
    directory.leave_loop(loop, system)
    for ref in everybody:
        pykka.ActorRegistry.unregister(ref)
        if ref._cell.owns_thread:  # nobody else can end the thread any more
            ref._cell.mailbox.close()
            ref._cell._jobs.put(None)


def from_a_thread(function: Callable[[], object]) -> object:
    """Call it in another thread, for which nothing here is its own loop's."""
    results: list[object] = []

    def call() -> None:
        try:
            results.append(function())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(daemon=True, target=call)
    thread.start()
    thread.join(WATCHDOG)
    assert not thread.is_alive(), "it never ended"
    return results[0]


def test_g02_an_ask_after_the_loop_was_closed_is_refused(forgotten):
    [ref] = forgotten(held(Actor))
    forgotten.loop.close()
    first = from_a_thread(lambda: ref.ask("asked", timeout=2))
    assert isinstance(first, ActorDeadError | UsageError), first
    assert isinstance(from_a_thread(lambda: ref.ask("again", timeout=2)), UsageError)


def test_g02_an_ask_before_the_loop_was_closed_is_answered_by_the_next_one(forgotten):
    first, second = forgotten(held(Actor), held(Actor))
    asked = from_a_thread(
        lambda: [ref.ask(number, block=False) for number in range(3) for ref in (first, second)]
    )
    forgotten.loop.close()
    from_a_thread(lambda: first.ask("another", timeout=2))
    assert [from_a_thread(lambda future=future: error_of(future)) for future in asked] == [
        ActorDeadError
    ] * 6


def test_g02_an_ask_before_the_loop_was_closed_is_answered_even_if_nobody_asks_again(forgotten):
    [ref] = forgotten(held(Actor))
    asked = from_a_thread(lambda: ref.ask("asked", block=False))
    forgotten.loop.close()
    assert from_a_thread(lambda: error_of(asked)) is ActorDeadError


def test_g02_a_thread_that_waits_for_a_reply_is_released_when_the_loop_is_closed(forgotten):
    [ref] = forgotten(held(Actor))
    ended: list[type[BaseException] | None] = []
    asked = from_a_thread(lambda: ref.ask("asked", block=False))
    waiting = threading.Thread(daemon=True, target=lambda: ended.append(error_of(asked)))
    waiting.start()
    forgotten.loop.close()
    waiting.join(WATCHDOG)
    assert ended == [ActorDeadError]


def test_g02_a_thread_actor_answers_or_refuses_after_the_loop_was_closed(forgotten):
    [ref] = forgotten(held(ThreadActor))
    forgotten.loop.close()
    result = from_a_thread(lambda: ref.ask("asked", timeout=2))
    assert result == "asked" or isinstance(result, ActorDeadError | UsageError), result


def test_g02_a_thread_actor_that_fails_after_the_loop_was_closed_answers_everybody(forgotten):
    [ref] = forgotten(held(ThreadActor))
    forgotten.loop.close()
    asked = from_a_thread(
        lambda: [ref.ask(message, block=False) for message in ("crash", "after", "after that")]
    )
    errors = [from_a_thread(lambda future=future: error_of(future)) for future in asked]
    assert all(issubclass(error, ActorDeadError | UsageError) for error in errors), errors


def test_g02_a_stop_after_the_loop_was_closed_ends(forgotten, kind):
    [ref] = forgotten(held(kind))
    forgotten.loop.close()
    ended = from_a_thread(lambda: ref.stop(timeout=2))
    assert isinstance(ended, bool | ActorDeadError | UsageError), ended


def test_g02_a_task_on_another_loop_that_waits_for_a_reply_is_released_when_the_loop_is_closed(
    forgotten,
):
    [ref] = forgotten(held(Actor))

    async def main() -> object:
        request = asyncio.create_task(ref.request("requested"))
        await asyncio.sleep(0)
        forgotten.loop.close()
        return (await asyncio.gather(asyncio.wait_for(request, 10), return_exceptions=True))[0]

    result = from_a_thread(lambda: asyncio.run(main()))
    assert isinstance(result, ActorDeadError | UsageError), repr(result)


def test_g02_a_request_on_another_loop_after_the_loop_was_closed_ends(forgotten):
    [ref] = forgotten(held(Actor))
    from_a_thread(lambda: ref.tell("before"))
    forgotten.loop.close()
    result = from_a_thread(lambda: asyncio.run(asyncio.wait_for(ref.request("after"), 10)))
    assert isinstance(result, ActorDeadError | UsageError), repr(result)


@pytest.mark.parametrize("where", ["a thread", "another loop"])
def test_g02_who_waits_for_room_is_released_when_the_loop_is_closed(forgotten, where):
    [ref] = forgotten(held(Actor), mailbox=MailboxSettings(1, "block"))
    ref.tell("fills it")
    ended: list[BaseException] = []

    def ask() -> None:
        try:
            if where == "a thread":
                ref.ask("in line", timeout=2)
            else:
                asyncio.run(asyncio.wait_for(ref.request("in line"), 2))
        except Exception as error:
            ended.append(error)

    waiting = threading.Thread(daemon=True, target=ask)
    waiting.start()
    while not ref.actor_inbox._bound.waiting:
        threading.Event().wait(0.001)
    forgotten.loop.close()
    waiting.join(WATCHDOG)
    [error] = ended
    assert isinstance(error, ActorDeadError | UsageError), repr(error)
