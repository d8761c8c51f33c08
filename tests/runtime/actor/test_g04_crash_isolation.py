"""G4: a crash in one actor, `BaseException` included, ends no other actor; its parent learns of it
once. Hook by hook: test_failure_matrix.py.
"""

import asyncio
import logging
import threading
from collections import Counter

import pykka
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offbook.runtime import (
    Actor,
    ActorFailed,
    ActorSystem,
    Backoff,
    Restart,
    Resume,
    Stop,
    ThreadActor,
)
from tests.doubles.actors import Echo
from tests.doubles.failing_actors import RAISED, OwnBaseException

CRASHES = [error for error in RAISED if not issubclass(error, Exception)]
DIRECTIVES = {
    "restart": Restart(max_restarts=10**6, backoff=Backoff(initial=0)),
    "resume": Resume(),
    "stop": Stop(),
}


class Crasher:
    """Raises what it is sent; replies with the number of its instance."""

    def __init__(self, made):
        super().__init__()
        made.append(self)
        self.number = len(made)

    def on_receive(self, message):
        if isinstance(message, BaseException):
            raise message
        return self.number


class AsyncCrasher(Crasher):
    async def on_receive(self, message):
        await asyncio.sleep(0)
        return super().on_receive(message)


class Parent:
    def __init__(self, directive):
        super().__init__()
        self.directive, self.heard = directive, Counter()

    def on_receive(self, message):
        return self.spawn(*message) if isinstance(message, tuple) else self.heard

    def on_child_failure(self, ref, error):
        self.heard[ref] += 1
        return self.directive


def of(kind, mixin):
    return type(mixin.__name__, (mixin, kind), {})


@pytest.mark.parametrize("mixin", [Crasher, AsyncCrasher], ids=lambda mixin: mixin.__name__)
@pytest.mark.parametrize("error", CRASHES, ids=lambda error: error.__name__)
def test_g04_a_crash_reaches_neither_the_asker_nor_other_tasks_nor_the_loop(
    run, kind, mixin, error
):
    async def main():
        bystander = asyncio.ensure_future(asyncio.Event().wait())
        async with ActorSystem() as system:
            ref, other = system.spawn(of(kind, mixin), []), system.spawn(Echo)
            with pytest.raises(ActorFailed) as caught:
                await ref.request(error("x"))
            assert isinstance(caught.value, pykka.ActorDeadError)
            assert error.__name__ in str(caught.value)
            assert caught.value.actor == ref.path
            await ref.wait_stopped()
            assert asyncio.current_task().cancelling() == 0
            assert not bystander.done()
            assert await other.request("alive") == "alive"
        bystander.cancel()
        await asyncio.wait([bystander])

    run(main())


@pytest.mark.parametrize("error", CRASHES, ids=lambda error: error.__name__)
def test_g04_a_blocking_asker_in_a_thread_gets_an_ordinary_error(kind, error):
    with ActorSystem.in_thread() as system:
        ref, other = system.spawn(of(kind, Crasher), []), system.spawn(Echo)
        with pytest.raises(ActorFailed, match=error.__name__):
            ref.ask(error("x"))
        assert other.ask("alive") == "alive"


def test_g04_a_crash_does_not_stop_the_other_actors_of_the_process(run, kind):
    """pykka stops all actors there are when one raises a `BaseException`."""

    async def main():
        async with ActorSystem() as system:
            others = [system.spawn(Echo) for _ in range(50)]
            refs = [system.spawn(of(kind, Crasher), []) for _ in CRASHES]
            for ref, error in zip(refs, CRASHES, strict=True):
                ref.tell(error("x"))
            for ref in refs:
                await ref.wait_stopped()
            assert [await other.request(1) for other in others] == [1] * 50
            assert set(pykka.ActorRegistry.get_all()) == set(others)

    run(main())


def test_g04_a_handler_whose_future_is_cancelled_by_somebody_else_has_failed_by_itself(run, kind):
    class Waiter(kind):
        async def on_receive(self, message):
            future = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_soon(future.cancel)
            await future

    async def main():
        async with ActorSystem() as system:
            ref, other = system.spawn(Waiter), system.spawn(Echo)
            with pytest.raises(ActorFailed, match="CancelledError"):
                await ref.request("wait")
            await ref.wait_stopped()
            assert await other.request("alive") == "alive"

    run(main())


def test_g04_an_asker_that_is_cancelled_takes_nobody_along(run, kind, gate):
    class Slow(kind):
        async def on_receive(self, message):
            if message == "slow":
                await gate.wait()
            return message

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Slow)
            asker = asyncio.ensure_future(ref.request("slow"))
            await gate.reached()
            asker.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asker
            gate.open()
            assert await ref.request("next") == "next"

    run(main())


def test_g04_a_group_with_an_interrupt_in_it_is_a_crash(run, kind):
    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(kind, Crasher), [])
            with pytest.raises(ActorFailed, match="BaseExceptionGroup"):
                await ref.request(
                    BaseExceptionGroup("several", [ValueError(), KeyboardInterrupt()])
                )
            await ref.wait_stopped()

    run(main())


def test_g04_a_crash_in_a_thread_does_not_reach_the_hook_for_lost_exceptions(run, monkeypatch):
    lost = []
    monkeypatch.setattr(threading, "excepthook", lost.append)

    async def main():
        async with ActorSystem() as system:
            made = []
            ref = system.spawn(
                of(ThreadActor, AsyncCrasher), made, supervision=DIRECTIVES["restart"]
            )
            for number, error in enumerate(CRASHES, start=1):
                assert await ref.request("number") == number
                ref.tell(error("x"))
            assert await ref.request("number") == len(CRASHES) + 1

    run(main())
    assert lost == []


def test_g04_an_error_that_cannot_be_printed_is_supervised_like_any_other(run, kind, monkeypatch):
    class Unprintable(Exception):
        def __str__(self):
            raise RuntimeError("not even that")

        __repr__ = __str__

    # pytest's own handlers would raise; an ordinary one says that it could not, and goes on.
    monkeypatch.setattr(logging.getLogger("offbook"), "propagate", False)
    monkeypatch.setattr(logging, "raiseExceptions", False)

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(of(kind, Crasher), [], supervision=DIRECTIVES["restart"])
            ref.tell(Unprintable())
            assert await ref.request("number") == 2

    run(main())


# --- any number of crashes in any order ---


@pytest.mark.slow
@pytest.mark.parametrize("mixin", [Crasher, AsyncCrasher], ids=lambda mixin: mixin.__name__)
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    directives=st.lists(st.sampled_from(sorted(DIRECTIVES)), min_size=1, max_size=4),
    crashes=st.lists(
        st.tuples(
            st.integers(0, 11),
            st.sampled_from([*CRASHES, ValueError, OwnBaseException]),
            st.booleans(),
        ),
        max_size=30,
    ),
)
def test_g04_every_crash_is_heard_once_and_touches_its_actor_only(
    run, kind, mixin, directives, crashes
):
    async def main():
        async with ActorSystem() as system:
            parents = [system.spawn(of(kind, Parent), DIRECTIVES[name]) for name in directives]
            victims = [
                (parent, name, await parent.request((of(kind, mixin), made)), made)
                for parent, name in zip(parents, directives, strict=True)
                for made in ([], [], [])
            ]
            heard, ended, instances = Counter(), set(), Counter()
            for index, error, asks in crashes:
                _, name, ref, _ = victims[index % len(victims)]
                if ref in ended:
                    continue
                if asks and not issubclass(error, Exception):
                    with pytest.raises(ActorFailed):
                        await ref.request(error("x"))
                else:
                    ref.tell(error("x"))
                heard[ref] += 1
                instances[ref] += name == "restart"
                if name == "stop":
                    ended.add(ref)
                    await ref.wait_stopped()
            for parent, _, ref, made in victims:
                if ref in ended:
                    assert not ref.is_alive()
                else:
                    assert await ref.request("number") == instances[ref] + 1 == len(made)
                assert (await parent.request("heard"))[ref] == heard[ref]
            assert system.stats().restarts == instances.total()
            assert system.stats().actors == len(parents) + len(victims) - len(ended)

    run(main())


def test_g04_a_thousand_crashes_leave_a_thousand_others_alone(run):
    async def main():
        async with ActorSystem() as system:
            others = [system.spawn(Echo) for _ in range(1000)]
            victims = [system.spawn(of(Actor, Crasher), []) for _ in range(1000)]
            for index, ref in enumerate(victims):
                ref.tell(CRASHES[index % len(CRASHES)]("x"))
            for ref in victims:
                await ref.wait_stopped()
            assert [await ref.request(index) for index, ref in enumerate(others)] == list(
                range(1000)
            )
            assert system.stats().actors == 1000

    run(main())
