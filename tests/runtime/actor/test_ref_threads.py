"""The ref and the numbers of threads: a new thread may get the number of one that has ended, and is
not taken for it.
"""

import asyncio
import threading
from collections.abc import Callable

import pytest

from offbook.runtime import Actor, ActorDeadError, ActorRef, ActorSystem, ThreadActor

WATCHDOG = 10.0


def in_a_thread_numbered(ident: int, function: Callable[[], None]) -> None:
    """Call the function in a new thread that bears this number, which was an ended thread's."""
    problems: list[BaseException] = []
    called: list[bool] = []

    def run() -> None:
        if threading.get_ident() != ident:
            return
        called.append(True)
        try:
            function()
        except BaseException as error:
            problems.append(error)

    for _ in range(1_000):
        thread = threading.Thread(daemon=True, target=run)
        thread.start()
        thread.join(WATCHDOG)
        assert not thread.is_alive()
        if called:
            assert problems == []
            return
    pytest.skip("this platform does not reuse the numbers of threads")


def dead_as_for_everybody(ref: ActorRef) -> None:
    with pytest.raises(ActorDeadError, match="has stopped"):
        ref.ask("asked")
    with pytest.raises(ActorDeadError, match="has stopped"):
        asyncio.run(ref.request("requested"))
    assert ref.stop() is False
    assert ref.actor_stopped.wait(WATCHDOG)


class OnThread(ThreadActor):
    def on_receive(self, message: object) -> int:
        return threading.get_ident()


class OnLoop(Actor):
    def on_receive(self, message: object) -> int:
        return threading.get_ident()


def test_a_thread_with_the_number_of_an_ended_thread_actors_may_ask_it():
    with ActorSystem.in_thread() as system:
        ref = system.spawn(OnThread)
        ident = ref.ask("where")
        ref.stop()
        in_a_thread_numbered(ident, lambda: dead_as_for_everybody(ref))


def test_a_thread_with_the_number_of_an_ended_loops_may_ask_its_actors():
    with ActorSystem.in_thread() as system:
        ref = system.spawn(OnLoop)
        ident = ref.ask("where")
    in_a_thread_numbered(ident, lambda: dead_as_for_everybody(ref))


def test_a_thread_with_the_number_of_an_ended_loops_may_read_its_futures():
    with ActorSystem.in_thread() as system:
        ref = system.spawn(OnLoop)
        future = ref.ask("where", block=False)
        ident = future.get()
        derived = future.map(lambda number: number)
    in_a_thread_numbered(
        ident,
        lambda: [future.get(), derived.get()] == [ident, ident] or pytest.fail("another value"),
    )
