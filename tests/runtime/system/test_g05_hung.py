"""G5 with what hangs: leaving costs nobody else their end, and what is given up does no harm when
it comes back. Hook by hook: test_failure_matrix_hangs.py.
"""

import asyncio
import threading

import pytest

from offbook.runtime import Actor, ActorDeadError, ActorSystem, ThreadActor


class Stubborn:
    """Hangs at a gate in the hook or handler that it is told, and swallows cancellations, until the
    gate is opened.
    """

    def __init__(self, gate, where="handler"):
        super().__init__()
        self.gate, self.where = gate, where

    async def hang(self):
        while not self.gate.is_open():
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                pass

    async def on_start(self):
        if self.where == "on_start":
            await self.hang()

    async def on_receive(self, message):
        await self.hang()
        return message

    async def on_stop(self):
        if self.where == "on_stop":
            await self.hang()


class Family:
    """Has a stubborn child, and says when it is stopped."""

    def __init__(self, gate, log, depth, kind):
        super().__init__()
        self.log, self.depth = log, depth
        self.child = (
            self.spawn(of(kind, Family), gate, log, depth - 1, kind)
            if depth
            else self.spawn(of(kind, Stubborn), gate, "on_stop")
        )

    async def on_receive(self, message):
        return await self.child.request(message) if self.depth else self.child

    async def on_stop(self):
        await asyncio.sleep(0)
        self.log.append(self.depth)


def of(kind, mixin):
    return type(mixin.__name__, (mixin, kind), {})


@pytest.fixture(autouse=True)
def no_exception_reaches_the_end_of_a_thread(monkeypatch):
    caught = []
    monkeypatch.setattr(threading, "excepthook", caught.append)
    yield
    assert caught == []


async def leave(system, gate):
    """Leave within some seconds; afterwards let what hangs come back, and end."""
    try:
        await asyncio.wait_for(system.stop(), 10)
    finally:
        gate.open()
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        if tasks:
            await asyncio.wait(tasks, timeout=5)


def test_g05_a_child_that_hangs_costs_its_parents_nothing(run, kind, gate, errors):
    log = []

    async def main():
        system = ActorSystem(stop_timeout=0.05)
        await system.start()
        top = system.spawn(of(kind, Family), gate, log, 3, kind, name="top")
        child = await top.request("the stubborn one")
        path = child.path
        await leave(system, gate)
        assert log == [0, 1, 2, 3], "children before parents, also when one of them hangs"
        blamed = [text for text in errors() if path not in text]
        assert blamed == []
        assert any("on_stop" in text for text in errors())

    run(main())


def test_g05_what_hangs_next_to_others_costs_them_nothing(run, kind, gate, errors):
    log = []

    class Careful(kind):
        def on_receive(self, message):
            return message

        async def on_stop(self):
            await asyncio.sleep(0)
            log.append("stopped")

    async def main():
        system = ActorSystem(stop_timeout=0.05)
        await system.start()
        others = [system.spawn(Careful) for _ in range(5)]
        reply = system.spawn(of(kind, Stubborn), gate, name="hung").ask("m", block=False)
        others += [system.spawn(Careful) for _ in range(5)]
        await gate.reached()
        await leave(system, gate)
        assert log == ["stopped"] * 10
        with pytest.raises(ActorDeadError, match="hung"):
            await asyncio.wait_for(ended(reply), 1)

    run(main())
    assert all(text.startswith("hung ") for text in errors())
    assert any("on_receive" in text for text in errors())


async def ended(reply):
    return await reply


def test_g05_leaving_that_is_cancelled_gives_up_at_once(run, kind, gate, errors, until):
    async def main():
        system = ActorSystem(stop_timeout=1000)
        await system.start()
        ref = system.spawn(of(kind, Stubborn), gate, "on_stop", name="hung")
        # One that has not started is not asked to clean up.
        await until(lambda: system.stats().by_state == {"open": 1})
        leaving = asyncio.ensure_future(system.stop())
        await gate.reached()
        waiting = asyncio.ensure_future(ref.wait_stopped())
        await asyncio.sleep(0)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        await asyncio.wait_for(waiting, 1)
        assert not ref.is_alive()
        assert not system.is_running
        gate.open()
        await leave(system, gate)

    run(main())
    assert any("hung" in text and "on_stop" in text for text in errors())


def test_g05_two_who_leave_at_once_both_get_out(run, kind, gate):
    async def main():
        system = ActorSystem(stop_timeout=0.05)
        await system.start()
        system.spawn(of(kind, Stubborn), gate, "on_stop")
        await asyncio.wait_for(asyncio.gather(system.stop(), system.stop(), system.stop()), 10)
        await leave(system, gate)
        await system.stop()

    run(main())


@pytest.mark.parametrize("where", ["handler", "on_start", "on_stop"])
def test_g05_what_was_given_up_comes_back_quietly(run, kind, gate, errors, where):
    async def main():
        system = ActorSystem(stop_timeout=0.05)
        await system.start()
        ref = system.spawn(of(kind, Stubborn), gate, where, name="hung")
        reply = ref.ask("m", block=False) if where != "on_stop" else None
        if where != "on_stop":
            await gate.reached()
        await asyncio.wait_for(system.stop(), 10)
        logged = errors()
        await leave(system, gate)
        for thread in threading.enumerate():
            if thread.name == "hung":
                thread.join(5)
                assert not thread.is_alive()
        assert errors() == logged, "nothing more to say"
        if reply is not None:
            with pytest.raises(ActorDeadError):
                await asyncio.wait_for(ended(reply), 1)

    run(main())


def test_g05_a_thread_that_blocks_in_a_handler_is_given_up_and_ends_when_it_can(run, gate, errors):
    class Blocking(ThreadActor):
        def on_receive(self, message):
            gate.block()
            return message

    async def main():
        system = ActorSystem(stop_timeout=0.05)
        await system.start()
        ref = system.spawn(Blocking, name="hung")
        replies = [ref.ask(number, block=False) for number in range(3)]
        await gate.reached()
        await asyncio.wait_for(system.stop(), 10)
        (thread,) = [each for each in threading.enumerate() if each.name == "hung"]
        for reply in replies:
            with pytest.raises(ActorDeadError, match="hung"):
                await asyncio.wait_for(ended(reply), 1)
        gate.open()
        thread.join(5)
        assert not thread.is_alive()

    run(main())
    assert any("hung" in text and "on_receive" in text for text in errors())


def test_g05_a_worker_that_blocks_does_not_hold_its_system(run, gate):
    class Working(Actor):
        async def on_receive(self, message):
            await self.actor_system.run_blocking(gate.block)

    async def main():
        before = set(threading.enumerate())
        system = ActorSystem(stop_timeout=0.05)
        await system.start()
        reply = system.spawn(Working).ask("m", block=False)
        await gate.reached()
        await asyncio.wait_for(system.stop(), 10)
        with pytest.raises(ActorDeadError, match="left"):
            await asyncio.wait_for(ended(reply), 1)
        gate.open()
        for thread in set(threading.enumerate()) - before:
            thread.join(5)
            assert not thread.is_alive()

    run(main())
