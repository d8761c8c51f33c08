"""G2: every ask ends: whatever becomes of the handler, the actor or its supervisor, and whoever
asked from wherever. Races: test_g02_races.py.
"""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from offbook.runtime import (
    Actor,
    ActorDeadError,
    ActorFailed,
    ActorRef,
    ActorSystem,
    Backoff,
    Directive,
    Escalate,
    HandlerCancelled,
    Restart,
    Resume,
    Stop,
    Supervision,
)
from offbook.runtime.testing import ManualClock

WATCHDOG = 10.0

RESTART = Restart(backoff=Backoff(initial=0))


class OfMyOwn(BaseException):
    pass


CRASHES = [SystemExit, KeyboardInterrupt, asyncio.CancelledError, GeneratorExit, OfMyOwn]


def fragile(kind: type[Actor]) -> type[Actor]:
    class Fragile(kind):
        """Waits at a gate; raises what is to be raised, at once or later; spawns what is to be
        spawned; else returns the message.
        """

        def on_receive(self, message: object) -> object:
            if hasattr(message, "wait"):
                return message.wait()
            if isinstance(message, list):
                return self.raise_later(message[0])
            if isinstance(message, type) and issubclass(message, BaseException):
                raise message
            if isinstance(message, type):
                return self.spawn(message, supervision=Escalate())
            return message

        async def raise_later(self, error: type[BaseException]) -> None:
            await asyncio.sleep(0)
            raise error

    return Fragile


def ask_in_thread(ref: ActorRef, message: object) -> object:
    try:
        return ref.ask(message, timeout=WATCHDOG)
    except StopIteration as error:  # it gets here, but asyncio cannot bring it out of the thread
        raise RuntimeError from error


# The ways to ask; each gives something to await.
WAYS: dict[str, Callable[[ActorRef, object], Awaitable[object]]] = {
    "request": lambda ref, message: ref.request(message),
    "future": lambda ref, message: ref.ask(message, block=False)._wait(),
    "thread": lambda ref, message: asyncio.to_thread(ask_in_thread, ref, message),
    "other loop": lambda ref, message: asyncio.to_thread(
        lambda: asyncio.run(ref.request(message, timeout=WATCHDOG))
    ),
}


async def ask_all(ref: ActorRef, message: object) -> dict[str, asyncio.Task]:
    """Ask in every way. Returns when all of them are in the mailbox, which nobody takes from."""
    before = len(ref.actor_inbox)
    asked = {name: asyncio.create_task(ask(ref, message)) for name, ask in WAYS.items()}
    while len(ref.actor_inbox) < before + len(asked):
        await asyncio.sleep(0)
    return asked


async def endings(asked: dict[str, asyncio.Task]) -> dict[str, object]:
    """The replies, and of errors their types."""
    results = await asyncio.wait_for(
        asyncio.gather(*asked.values(), return_exceptions=True), WATCHDOG
    )
    return {
        name: type(result) if isinstance(result, BaseException) else result
        for name, result in zip(asked, results, strict=True)
    }


def all_of(result: object) -> dict[str, object]:
    return dict.fromkeys(WAYS, result)


# --- crashes ---


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("style", ["at once", "later"])
@pytest.mark.parametrize("crash", CRASHES)
def test_g02_who_asked_for_the_crash_hears_that_the_actor_failed(run, kind, crash, style, way):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(fragile(kind))
            with pytest.raises(ActorFailed, match=f"crashed with {crash.__name__}"):
                await asyncio.wait_for(
                    WAYS[way](ref, crash if style == "at once" else [crash]), WATCHDOG
                )
            await ref.wait_stopped()

    run(main())


@pytest.mark.parametrize(
    "directive", [Stop(), RESTART, Resume()], ids=["Stop", "Restart", "Resume"]
)
@pytest.mark.parametrize("style", ["at once", "later"])
def test_g02_what_is_queued_behind_a_crash_is_handled_or_answered(
    run, kind, gate, style, directive
):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(fragile(kind), supervision=directive)
            ref.tell(gate)
            await gate.reached()
            ref.tell(OfMyOwn if style == "at once" else [OfMyOwn])
            asked = await ask_all(ref, "asked")
            gate.open()
            assert await endings(asked) == all_of(
                ActorDeadError if isinstance(directive, Stop) else "asked"
            )

    run(main())


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "error", [StopIteration, StopAsyncIteration, TimeoutError, ActorDeadError, LookupError]
)
def test_g02_an_exception_that_means_something_to_python_is_a_reply_too(run, kind, error, way):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(fragile(kind))
            for message in (error, [error]):
                # No coroutine can raise StopIteration: there it is the cause of a RuntimeError.
                with pytest.raises((error, RuntimeError)):
                    await asyncio.wait_for(asyncio.create_task(WAYS[way](ref, message)), WATCHDOG)
            assert await ref.request("alive") == "alive"

    run(main())


def test_g02_who_asked_a_handler_that_was_cancelled_hears_that_and_the_next_are_handled(
    run, kind, new_gate
):
    async def main() -> None:
        async with ActorSystem() as system:
            for way, ask in WAYS.items():
                ref, never_opened = system.spawn(fragile(kind)), new_gate()
                held = asyncio.create_task(ask(ref, never_opened))
                await never_opened.reached()
                asked = await ask_all(ref, "next")
                ref.cancel()
                assert await endings({way: held}) == {way: HandlerCancelled}
                assert await endings(asked) == all_of("next")

    run(main())


# --- the life of the actor ---


@pytest.mark.parametrize("style", ["sync", "async"])
def test_g02_asks_of_an_actor_that_cannot_start_are_answered(run, kind, gate, style):
    class Unable(fragile(kind)):
        if style == "async":

            async def on_start(self) -> None:
                await gate.wait()
                raise LookupError
        else:

            def on_start(self) -> None:
                raise LookupError

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(Unable)
            if style == "async":
                asked = await ask_all(ref, "asked")
                gate.open()
            else:
                asked = {
                    "request": asyncio.create_task(ref.request("asked")),
                    "future": asyncio.create_task(WAYS["future"](ref, "asked")),
                }
            assert set((await endings(asked)).values()) == {ActorDeadError}

    run(main())


def test_g02_asks_of_an_actor_that_is_stopped_before_it_has_begun_are_answered(run, kind):
    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(fragile(kind))
            asked, stopped = ref.ask("never", block=False), ref.stop()
            assert await stopped is True
            with pytest.raises(ActorDeadError):
                await asked

    run(main())


@pytest.mark.parametrize("hook", ["on_start", "on_stop"])
def test_g02_a_hook_that_hangs_keeps_nobody_waiting_for_a_reply(run, kind, new_gate, hook):
    at_hook, at_work = new_gate(), new_gate()

    async def hang(self: Actor) -> None:
        await at_hook.wait()

    hanging = type("Hanging", (fragile(kind),), {hook: hang})

    async def main() -> None:
        async with ActorSystem() as system:
            ref = system.spawn(hanging)
            if hook == "on_stop":
                ref.tell(at_work)
                await at_work.reached()
            asked = await ask_all(ref, "asked")
            stopped = ref.stop()
            assert await endings(asked) == all_of(ActorDeadError)
            at_work.open()
            await at_hook.reached()
            late = {name: asyncio.create_task(ask(ref, "late")) for name, ask in WAYS.items()}
            assert await endings(late) == all_of(ActorDeadError)
            assert not stopped.done()
            at_hook.open()
            assert await stopped is True

    run(main())


@pytest.mark.parametrize("end", ["restart", "stop"])
def test_g02_asks_during_the_wait_before_a_restart_are_handled_after_it_or_answered(run, kind, end):
    async def main() -> None:
        clock = ManualClock()
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(
                fragile(kind), supervision=Restart(backoff=Backoff(initial=5, jitter=0))
            )
            ref.tell(OfMyOwn)
            while not clock.pending:
                await asyncio.sleep(0)
            asked = await ask_all(ref, "asked")
            if end == "restart":
                clock.advance(5)
                assert await endings(asked) == all_of("asked")
            else:
                ref.stop()
                assert await endings(asked) == all_of(ActorDeadError)

    run(main())


@pytest.mark.parametrize(
    ("decision", "result"),
    [
        (Stop(), ActorDeadError),
        (Resume(), "asked"),
        (RESTART, "asked"),
        ("stopped meanwhile", ActorDeadError),
    ],
)
def test_g02_asks_of_an_actor_whose_parent_makes_up_its_mind_end(run, kind, gate, decision, result):
    class Ponderer(kind):
        def on_receive(self, child: type[Actor]) -> ActorRef:
            return self.spawn(child)

        async def on_child_failure(self, ref: ActorRef, error: BaseException) -> Directive:
            await gate.wait()
            return decision if isinstance(decision, Supervision) else Resume()

    async def main() -> None:
        async with ActorSystem() as system:
            child = await system.spawn(Ponderer).request(fragile(kind))
            child.tell(OfMyOwn)
            await gate.reached()
            asked = await ask_all(child, "asked")
            if decision == "stopped meanwhile":
                child.stop()
                assert await endings(asked) == all_of(result)
            gate.open()
            assert await endings(asked) == all_of(result)

    run(main())


def test_g02_asks_of_a_parent_that_fails_with_its_child_are_answered(run, kind, gate):
    async def main() -> None:
        async with ActorSystem() as system:
            parent = system.spawn(fragile(kind))
            child = await parent.request(fragile(kind))
            parent.tell(gate)
            await gate.reached()
            asked = await ask_all(parent, "asked")
            child.tell(OfMyOwn)
            await child.wait_stopped()
            gate.open()
            assert await endings(asked) == all_of(ActorDeadError)
            await parent.wait_stopped()

    run(main())
