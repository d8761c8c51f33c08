"""A loop that is closed while a system still runs on it, and threads that have ended: said clearly,
and nobody is left waiting.
"""

import asyncio
import concurrent.futures
import threading

import pykka
import pytest

from offbook.runtime import Actor, ActorDeadError, ActorSystem, UsageError
from offbook.runtime.actor import current as directory
from tests.doubles.actors import Echo, ThreadEcho


def bury(system):
    """So that what nobody left does not outlive the test."""
    directory.leave_loop(system.loop, system)
    for ref in pykka.ActorRegistry.get_all():
        if ref._cell.system is system:
            pykka.ActorRegistry.unregister(ref)


@pytest.fixture
def forgotten():
    """A system whose loop was closed before anybody left it, and two of its actors; and that they
    do not outlive the test.
    """

    async def main():
        await system.start()
        refs.extend([system.spawn(Echo), system.spawn(Echo)])
        assert [await ref.request("!") for ref in refs] == ["!", "!"]

    refs = []
    system = ActorSystem("forgotten")
    in_new_thread(lambda: asyncio.run(main()))
    yield system, refs
    bury(system)


def in_new_thread(function):
    """Returns what it returns, or raises what it raises."""
    outcome = concurrent.futures.Future()

    def run_it():
        try:
            outcome.set_result(function())
        except BaseException as error:
            outcome.set_exception(error)

    thread = threading.Thread(target=run_it)
    thread.start()
    thread.join()
    return outcome.result()


def test_a_loop_that_is_closed_under_its_system_is_said_and_leaves_nobody_waiting(
    forgotten, caplog
):
    system, (first, second) = forgotten
    with pytest.raises((UsageError, ActorDeadError)):
        first.ask("anybody there?", timeout=5)
    assert any(
        "was closed while the system was running" in record.getMessage()
        for record in caplog.records
    )
    for call in (
        lambda: second.tell("?"),
        lambda: second.ask("?"),
        lambda: first.ask("?"),
        lambda: system.spawn(Echo),
    ):
        with pytest.raises(UsageError, match=r"loop of .*forgotten.* was closed"):
            call()
    assert len(system.tree().children) == system.stats().actors == 2  # looking at it still works


def test_a_loop_that_is_closed_under_its_system_does_not_keep_pykka_from_stopping_the_others(
    forgotten,
):
    _system, (first, _second) = forgotten
    with ActorSystem.in_thread() as other:
        alive = other.spawn(Echo)
        with pytest.raises((UsageError, ActorDeadError)):
            first.ask("anybody there?", timeout=5)
        pykka.ActorRegistry.stop_all()
        assert not alive.is_alive()


def test_a_dead_actor_is_dead_for_a_thread_that_happens_to_get_the_number_of_its_own():
    """The system gives a thread that has ended its number to the next one."""
    seen = set()
    for _ in range(20):
        with ActorSystem.in_thread() as system:
            ref, threaded = system.spawn(Echo), system.spawn(ThreadEcho)
            assert ref.ask("!") == threaded.ask("!") == "!"
        for dead in (ref, threaded):
            try:
                in_new_thread(lambda dead=dead: dead.ask("?"))
            except Exception as error:
                seen.add(type(error))
    assert seen == {ActorDeadError}


def test_a_loop_that_is_closed_is_said_in_the_thread_that_it_had_too():
    """Nobody is told there to await instead: there is nothing left to wait for."""

    async def main():
        await system.start()
        refs.append(system.spawn(Echo))

    system, refs = ActorSystem("forgotten"), []
    asyncio.run(main())
    try:
        with pytest.raises((UsageError, ActorDeadError), match=r"closed|stopped"):
            refs[0].ask("anybody there?", timeout=5)
        assert refs[0].stop(block=False).get(timeout=5) is False
    finally:
        bury(system)


def test_a_message_that_waits_when_its_loop_is_closed_is_answered():
    """As after `asyncio.run(main())` with a `start()` in it and no `stop()`."""

    class Waiter(Actor):
        async def on_receive(self, message):
            started.set()
            await asyncio.get_running_loop().create_future()

    async def main():
        await system.start()
        ref = system.spawn(Waiter)
        futures.extend(ref.ask(number, block=False) for number in range(3))
        await started.wait()

    started, futures = asyncio.Event(), []
    system = ActorSystem("forgotten")
    asyncio.run(main())
    for future in futures:
        with pytest.raises(ActorDeadError):
            future.get(timeout=5)
    bury(system)
