"""G5: after `async with ActorSystem()` no actor, task or thread of it is left, whatever its actors
were at. Memory: test_g05_memory.py. What hangs: test_g05_hung.py.
"""

import asyncio
import threading

import pykka
import pytest

from offbook.runtime import (
    Actor,
    ActorDeadError,
    ActorSystem,
    Backoff,
    Restart,
    Stop,
    ThreadActor,
    UsageError,
)
from offbook.runtime.actor import current as directory
from offbook.runtime.testing import ManualClock


class Busy:
    """Can be brought into any phase of its life."""

    def __init__(self, gate, phase):
        super().__init__()
        self.gate, self.phase = gate, phase
        if phase == "parent":
            for _ in range(3):
                self.spawn(type(self), gate, "idle")

    async def on_start(self):
        if self.phase == "starting":
            await self.gate.wait()

    async def on_receive(self, message):
        if self.phase == "running":
            await self.gate.wait()
        elif self.phase == "restarting":
            raise ValueError(message)
        elif self.phase == "suspended":
            self.spawn(type(self), self.gate, "restarting").tell("fail")
        elif self.phase == "watching":
            self.watch(self.spawn(type(self), self.gate, "idle"))
        elif self.phase == "stopped":
            self.stop()
        elif self.phase == "working":
            await self.actor_system.run_blocking(self.gate.block)
        return message

    async def on_child_failure(self, ref, error):
        await self.gate.wait()
        return Stop()


PHASES = ("idle", "parent", "starting", "running", "restarting", "suspended", "watching", "stopped")


@pytest.fixture(autouse=True)
def nobody_is_given_up(caplog):
    """Nothing here resists: leaving waits for nobody until its time is over."""
    yield
    texts = [record.getMessage() for record in caplog.get_records("call")]
    assert [text for text in texts if "does not stop" in text or "given up" in text] == []


def of(kind):
    return type("Busy", (Busy, kind), {})


def started(before):
    """The threads that are here now and were not before; those that are about to end are waited
    for.
    """
    new = [
        thread
        for thread in threading.enumerate()
        if thread not in before and thread.name != "default-loop"
    ]
    for thread in new:
        thread.join(5)
    return [thread for thread in new if thread.is_alive()]


async def assert_nothing_left(system, refs, before):
    assert not any(ref.is_alive() for ref in refs)
    assert system.stats().actors == 0
    assert system.tree().children == ()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert not set(pykka.ActorRegistry.get_all()) & set(refs)
    assert asyncio.get_running_loop() not in directory._by_loop
    assert started(before) == []


@pytest.mark.slow
@pytest.mark.parametrize("phase", PHASES)
def test_g05_nothing_is_left_of_an_actor_in_any_phase(run, kind, new_gate, until, phase):
    gate, clock = new_gate(), ManualClock()

    async def main():
        before = set(threading.enumerate())
        async with ActorSystem(clock=clock) as system:
            ref = system.spawn(
                of(kind), gate, phase, supervision=Restart(backoff=Backoff(initial=1))
            )
            if phase == "restarting":
                ref.tell("fail")
                await until(lambda: clock.pending)
                queued = ref.ask("queued", block=False)
            else:
                replies = [ref.ask(number, block=False) for number in range(3)]
                if phase in ("starting", "running", "suspended"):
                    await gate.reached()
                else:
                    await asyncio.wait([asyncio.ensure_future(ended(reply)) for reply in replies])
        await assert_nothing_left(system, [ref], before)
        assert clock.pending == ()
        for reply in [queued] if phase == "restarting" else replies:
            await asyncio.wait_for(ended(reply), 1)

    run(main())


async def ended(reply):
    """What an asker is told in the end, as a value."""
    try:
        return await reply
    except (ActorDeadError, ValueError) as error:
        return error


def test_g05_nothing_is_left_of_very_many_in_all_phases(run, new_gate):
    async def main():
        before = set(threading.enumerate())
        async with ActorSystem() as system:
            refs = [
                system.spawn(of(kind), new_gate(), phase)
                for kind in (Actor,) * 20 + (ThreadActor,)
                for phase in PHASES
            ]
            replies = [ref.ask(number, block=False) for ref in refs for number in range(3)]
            for _ in range(10):
                await asyncio.sleep(0)
        await assert_nothing_left(system, refs, before)
        for reply in replies:
            await asyncio.wait_for(ended(reply), 1)

    run(main())


def test_g05_nothing_is_left_when_the_block_raises(run, kind, gate):
    async def main():
        before = set(threading.enumerate())
        with pytest.raises(ZeroDivisionError):
            async with ActorSystem() as system:
                refs = [system.spawn(of(kind), gate, phase) for phase in PHASES]
                1 / 0  # noqa: B018 -- raises
        await assert_nothing_left(system, refs, before)

    run(main())


def test_g05_nothing_is_left_when_the_block_is_cancelled(run, kind, gate):
    async def main():
        before, refs, systems = set(threading.enumerate()), [], []

        async def block():
            async with ActorSystem() as system:
                systems.append(system)
                refs.extend(system.spawn(of(kind), gate, phase) for phase in PHASES)
                await asyncio.Event().wait()

        task = asyncio.ensure_future(block())
        while not refs:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await assert_nothing_left(systems[0], refs, before)

    run(main())


def test_g05_a_system_can_be_entered_again_and_again(run, kind, gate):
    async def main():
        before, system = set(threading.enumerate()), ActorSystem()
        for _ in range(5):
            async with system:
                ref = system.spawn(of(kind), gate, "idle")
                assert await ref.request("m") == "m"
            await assert_nothing_left(system, [ref], before)

    run(main())


def test_g05_nothing_is_left_of_a_system_in_a_thread(kind, gate):
    before = set(threading.enumerate())
    for _ in range(5):
        with ActorSystem.in_thread() as system:
            refs = [system.spawn(of(kind), gate, phase) for phase in PHASES]
            assert refs[0].ask("m") == "m"
        assert not any(ref.is_alive() for ref in refs)
        assert started(before) == []


def test_g05_worker_threads_end_with_their_system(run, kind, gate):
    async def main():
        before = set(threading.enumerate())
        async with ActorSystem(worker_threads=2) as system:
            ref = system.spawn(of(kind), gate, "working")
            reply = ref.ask("m", block=False)
            await gate.reached()
            gate.open()
            assert await reply == "m"
        await assert_nothing_left(system, [ref], before)

    run(main())


# --- latecomers ---


def test_g05_what_is_spawned_by_other_threads_while_the_system_is_left_is_refused_or_stopped(
    run, kind, gate
):
    def spawn_until_refused(system, refs, refusals):
        while True:
            try:
                refs.append(system.spawn(of(kind), gate, "idle"))
            except UsageError as error:
                refusals.append(error)
                return

    async def main():
        before, refs, refusals = set(threading.enumerate()), [], []
        async with ActorSystem() as system:
            threads = [
                threading.Thread(target=spawn_until_refused, args=(system, refs, refusals))
                for _ in range(2)
            ]
            for thread in threads:
                thread.start()
            while len(refs) < 20:
                await asyncio.sleep(0)
        for thread in threads:
            thread.join(5)
        await assert_nothing_left(system, refs, before)
        assert len(refusals) == 2

    for _ in range(3):
        run(main())


def test_g05_an_actor_that_is_told_to_stop_before_its_spawn_has_returned_leaves_no_thread(
    run, kind, new_gate
):
    attached = new_gate()

    class Slow(kind):
        def _start_actor_loop(self):
            attached.block()
            super()._start_actor_loop()

    async def main():
        before, refs = set(threading.enumerate()), []
        async with ActorSystem() as system:
            spawning = threading.Thread(target=lambda: refs.append(system.spawn(Slow)))
            spawning.start()
            await attached.reached()
            (node,) = system.tree().children
            stopped = node.ref.stop()
            await asyncio.sleep(0)
            attached.open()
            await asyncio.wait_for(ended(stopped), 5)
            spawning.join(5)
        await assert_nothing_left(system, refs, before)

    run(main())
