"""`ActorSystem.in_thread()`, the default system, and `run_blocking`."""

import asyncio
import contextvars
import threading

import pykka
import pytest
import uvloop

from offbook.runtime import Actor, ActorDeadError, ActorSystem, UsageError
from offbook.runtime.system.system import SystemState
from tests.doubles.actors import Echo

who = contextvars.ContextVar("who", default="nobody")


class Where(Actor):
    def on_receive(self, message):
        return threading.current_thread()


class Loop(Actor):
    async def on_receive(self, message):
        return type(asyncio.get_running_loop())


class Noter(Actor):
    def __init__(self, ends, name):
        super().__init__()
        self.ends = ends
        self.name = name

    def on_stop(self):
        self.ends.append(self.name)


class Runner(Actor):
    """Runs the functions that it is sent in the system's worker threads."""

    async def on_receive(self, functions):
        return await asyncio.gather(
            *(self.actor_system.run_blocking(function) for function in functions),
            return_exceptions=True,
        )


def test_a_system_in_a_thread_has_one_daemon_thread_and_ends_with_its_block():
    ends = []
    before = set(threading.enumerate())
    with ActorSystem.in_thread("own") as system:
        (thread,) = set(threading.enumerate()) - before
        assert thread.daemon
        assert thread.name == "own-loop"
        assert system.spawn(Where).ask("?") is thread
        refs = [system.spawn(Noter, ends, number) for number in range(3)]
        refs[0].ask("let it start")
    assert sorted(ends) == [0, 1, 2]
    assert set(threading.enumerate()) == before
    assert system.state is SystemState.STOPPED
    with pytest.raises(ActorDeadError):
        refs[0].tell("anybody there?")
    with pytest.raises(UsageError):
        system.spawn(Echo)


def test_an_error_in_the_block_stops_everything_and_goes_on():
    ends = []
    with pytest.raises(ZeroDivisionError), ActorSystem.in_thread() as system:
        system.spawn(Noter, ends, "only")
        1 / 0  # noqa: B018
    assert ends == ["only"]


def test_a_system_in_a_thread_can_be_entered_again_but_not_twice():
    threaded = ActorSystem.in_thread()
    for _ in range(2):
        with threaded as system:
            assert system.spawn(Echo).ask("!") == "!"
            with pytest.raises(UsageError, match="entered already"):
                threaded.open()
    threaded.close()  # it is closed: nothing to do


def test_a_system_in_a_thread_can_have_another_loop():
    with ActorSystem.in_thread(loop_factory=uvloop.new_event_loop) as system:
        assert system.spawn(Loop).ask("?") is uvloop.Loop


def test_a_system_in_a_thread_is_not_left_by_one_of_its_own_actors():
    class Leaver(Actor):
        def on_receive(self, message):
            threaded.close()

    threaded = ActorSystem.in_thread()
    with threaded as system:
        with pytest.raises(UsageError, match="wait for itself"):
            system.spawn(Leaver).ask("go")
        assert system.spawn(Echo).ask("unharmed") == "unharmed"


def test_what_goes_wrong_on_entering_is_raised_where_it_is_entered(run):
    def no_loop():
        raise OSError("no file descriptors left")

    threaded = ActorSystem.in_thread(loop_factory=no_loop)
    with pytest.raises(OSError, match="no file descriptors left"):
        threaded.open()
    with ActorSystem.in_thread() as inner:
        pass

    async def main():
        async with inner:
            with pytest.raises(UsageError, match="already"):
                threading_twin(inner).open()

    run(main())


def threading_twin(system):
    from offbook.runtime.system.threaded import ThreadedSystem

    return ThreadedSystem(system)


def test_start_spawns_in_the_innermost_system_that_is_entered(run):
    class System(Actor):
        def on_receive(self, message):
            return self.actor_system

    with ActorSystem.in_thread("outer") as outer:
        assert System.start().ask("?") is outer
        with ActorSystem.in_thread("inner") as inner:
            assert System.start().ask("?") is inner

            async def main():
                async with ActorSystem("loop") as of_loop:
                    assert await System.start().request("?") is of_loop
                    # Another loop's: nobody is blocked but us.
                    assert outer.spawn(System).ask("?", block=True) is outer

            run(main())
        assert System.start().ask("?") is outer
    default = System.start()
    assert default.ask("?").name == "default"
    assert System.start().ask("?") is default.ask("?")
    pykka.ActorRegistry.stop_all()


def test_blocking_functions_run_in_worker_threads_with_the_context_of_the_caller():
    class Guest(Actor):
        async def on_receive(self, message):
            who.set(message)
            return await self.actor_system.run_blocking(
                lambda: (who.get(), threading.current_thread())
            )

    with ActorSystem.in_thread("own", worker_threads=2) as system:
        name, thread = system.spawn(Guest).ask("me")
        assert name == "me"
        assert thread.name.startswith("own-worker")
        assert thread not in (threading.current_thread(), system.spawn(Where).ask("?"))


def test_worker_threads_bounds_how_many_functions_run_at_once():
    both = threading.Barrier(2)

    def meet():
        both.wait(5)
        return threading.current_thread()

    with ActorSystem.in_thread(worker_threads=2) as system:
        threads = system.spawn(Runner).ask([meet] * 10)
        assert len(set(threads)) == 2


def test_what_a_blocking_function_raises_is_raised_where_it_is_awaited():
    def broken():
        raise ZeroDivisionError

    with ActorSystem.in_thread() as system:
        (error,) = system.spawn(Runner).ask([broken])
        assert type(error) is ZeroDivisionError


def test_leaving_does_not_wait_for_a_function_that_has_not_begun():
    begun, gate, later = threading.Event(), threading.Event(), []

    def hold():
        begun.set()
        gate.wait(10)

    with ActorSystem.in_thread(worker_threads=1, stop_timeout=0.05) as system:
        ref = system.spawn(Runner)
        future = ref.ask([hold, lambda: later.append("ran")], block=False)
        assert begun.wait(5)
    gate.set()
    with pytest.raises(ActorDeadError, match="was left"):
        future.get(timeout=5)
    assert later == []
