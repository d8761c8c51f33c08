"""G5: memory returns.

Instances die with their life, without the garbage collector; what systems have used is free when
they have been left.
"""

import asyncio
import gc
import tracemalloc
import weakref
from itertools import pairwise

import pytest

from offbook.runtime import (
    Actor,
    ActorDeadError,
    ActorSystem,
    Backoff,
    HandlerCancelled,
    Restart,
    Stop,
    Terminated,
    ThreadActor,
)
from offbook.runtime.actor.cell import Cell
from offbook.runtime.log import loggers

pytestmark = pytest.mark.slow

AT_ONCE = Restart(max_restarts=10**6, backoff=Backoff(initial=0))


class Tracked:
    """Leaves a weak reference of each instance in a list."""

    def __init__(self, instances):
        super().__init__()
        instances.append(weakref.ref(self))
        self.instances = instances

    def on_receive(self, message):
        if isinstance(message, type):
            raise message("x")
        if message == "spawn":
            self.spawn(type(self), self.instances)
        elif message == "watch":
            self.watch(self.spawn(type(self), self.instances))
        elif message == "stop":
            self.stop()
        return message

    def on_stop(self):
        pass

    def on_failure(self, *args):
        pass


class AsyncTracked(Tracked):
    async def on_start(self):
        await asyncio.sleep(0)

    async def on_receive(self, message):
        await asyncio.sleep(0)
        return super().on_receive(message)

    async def on_stop(self):
        await asyncio.sleep(0)

    async def on_failure(self, *args):
        await asyncio.sleep(0)


def of(kind, mixin):
    return type(mixin.__name__, (mixin, kind), {})


@pytest.fixture
def no_gc(monkeypatch):
    """Without the garbage collector; and without a log, which keeps errors, and with them the
    frames that they went through.
    """
    for logger in loggers:
        monkeypatch.setattr(logger, "disabled", True)
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def living(instances):
    return [instance() for instance in instances if instance() is not None]


async def living_soon(instances, kind, mixin):
    """After the last step of the task in which it ended.

    In a thread, the tracebacks of asynchronous handlers go through asyncio's own frames, in a
    circle.
    """
    await asyncio.sleep(0)
    if kind is ThreadActor and mixin is AsyncTracked:
        gc.collect()
    return living(instances)


USES = {
    "idle": [],
    "handled": ["m", "m"],
    "children": ["spawn", "spawn"],
    "watches": ["watch"],
    "stops itself": ["stop"],
    "fails and is restarted": [ValueError, "m", ValueError, "m"],
    "crashes and is restarted": [KeyboardInterrupt, "m"],
    "fails with children": ["spawn", ValueError, "m"],
}


@pytest.mark.parametrize("mixin", [Tracked, AsyncTracked], ids=lambda mixin: mixin.__name__)
@pytest.mark.parametrize("use", USES)
def test_g05_instances_die_with_their_life_without_the_garbage_collector(
    run, kind, mixin, use, no_gc
):
    async def main():
        instances = []
        async with ActorSystem() as system:
            ref = system.spawn(of(kind, mixin), instances, supervision=AT_ONCE)
            for message in USES[use]:
                if isinstance(message, type):
                    ref.tell(message)
                elif message == "stop":
                    await ref.request(message)
                    await ref.wait_stopped()
                else:
                    assert await ref.request(message) == message
            if "fails" in use or "crashes" in use:
                assert await living_soon(instances[:1], kind, mixin) == [], (
                    "the failed instance goes when the fresh one comes"
                )
            await ref.stop()
            assert living(instances) == [], (
                "all of them have gone while the system runs, although there is a ref to it"
            )

    run(main())


@pytest.mark.parametrize("mixin", [Tracked, AsyncTracked], ids=lambda mixin: mixin.__name__)
def test_g05_instances_die_when_the_system_is_left(run, kind, mixin, no_gc):
    async def main():
        instances = []
        async with ActorSystem() as system:
            refs = [system.spawn(of(kind, mixin), instances) for _ in range(10)]
            for ref in refs:
                assert await ref.request("spawn") == "spawn"
            assert len(living(instances)) == 20
        assert await living_soon(instances, kind, mixin) == []

    run(main())


@pytest.mark.parametrize("mixin", [Tracked, AsyncTracked], ids=lambda mixin: mixin.__name__)
@pytest.mark.parametrize("how", [ValueError, KeyboardInterrupt])
def test_g05_a_ref_does_not_keep_an_instance_that_has_failed(run, kind, mixin, how, no_gc):
    async def main():
        instances = []
        async with ActorSystem() as system:
            ref = system.spawn(of(kind, mixin), instances, supervision=Stop())
            ref.tell(how)
            await ref.wait_stopped()
            gc.collect()
            assert living(instances) == []
            assert not ref.is_alive()

    run(main())


def test_g05_an_exception_that_an_asker_keeps_is_all_that_keeps_an_instance(run, kind, no_gc):
    async def main():
        instances = []
        async with ActorSystem() as system:
            ref = system.spawn(of(kind, Tracked), instances)
            with pytest.raises(ValueError, match="x") as caught:
                await ref.request(ValueError)
            await ref.stop()
        del caught
        gc.collect()  # pytest's own record of it goes in circles
        assert living(instances) == []

    run(main())


def test_g05_arguments_die_with_the_actor(run, kind, no_gc):
    class Treasure:
        pass

    class Keeper(kind):
        def __init__(self, treasure):
            super().__init__()

    async def main():
        async with ActorSystem() as system:
            treasure = Treasure()
            kept = weakref.ref(treasure)
            ref = system.spawn(Keeper, treasure)
            del treasure
            assert kept() is not None, "a restart would need it"
            await ref.stop()
            assert kept() is None

    run(main())


def test_g05_a_message_and_its_reply_die_when_it_has_been_handled(run, kind, no_gc):
    class Message:
        pass

    class Replier(kind):
        def on_receive(self, message):
            reply = Message()
            if isinstance(message, Message):
                seen.extend([weakref.ref(message), weakref.ref(reply)])
            return reply

    seen = []

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Replier)
            await ref.request(Message())
            ref.tell(Message())
            await ref.request("one more")  # the actor is waiting for a message again, or about to
            assert living(seen) == []

    run(main())


def test_g05_messages_that_nobody_will_handle_die_with_the_actor(run, kind, gate, no_gc):
    class Message:
        pass

    class Slow(kind):
        async def on_receive(self, message):
            await gate.wait()

    async def main():
        async with ActorSystem() as system:
            ref = system.spawn(Slow)
            ref.tell("hold")
            await gate.reached()
            message = Message()
            sent = weakref.ref(message)
            ref.tell(message)
            del message
            stopped = ref.stop()
            gate.open()
            await stopped
            assert sent() is None

    run(main())


# --- flat over many rounds ---


async def round_of_everything(system, kind, size):
    """Some of everything that can happen to an actor."""
    instances = []
    refs = [
        system.spawn(of(kind, mixin), instances, supervision=AT_ONCE)
        for _ in range(size)
        for mixin in (Tracked, AsyncTracked)
    ]
    for ref in refs:
        ref.tell("spawn")
        ref.tell("watch")
        ref.tell(ValueError)
        assert await ref.request("m", timeout=60) == "m"
        with pytest.raises(ValueError, match="x"):
            await ref.request(ValueError)
    late = [ref.ask("m", block=False) for ref in refs]
    for ref in refs:
        await ref.stop()
        with pytest.raises(ActorDeadError):
            ref.tell("too late")
    for reply in late:
        try:
            await reply
        except (ActorDeadError, HandlerCancelled):
            pass
    assert len(instances) == 8 * size


def growth(rounds, play):
    """By how many bytes the memory in use grows from one round to the next, in the median, after
    some to warm up; and what one round uses at its peak.
    """
    sizes = []
    tracemalloc.start()
    try:
        for number in range(rounds + 3):
            if number == 3:
                tracemalloc.reset_peak()
            play()
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
        peak = tracemalloc.get_traced_memory()[1] - min(sizes)
    finally:
        tracemalloc.stop()
    steps = sorted(later - earlier for earlier, later in pairwise(sizes[3:]))
    return steps[len(steps) // 2], peak


def cells():
    gc.collect()
    return sum(isinstance(each, Cell) for each in gc.get_objects())


def test_g05_memory_is_flat_over_many_systems(kind, no_gc):
    async def one_system():
        async with ActorSystem() as system:
            await round_of_everything(system, kind, 10)

    before = cells()
    step, peak = growth(9, lambda: asyncio.run(one_system()))
    assert cells() == before
    assert step < peak / 50, f"{step} bytes more in each round of {peak}"


def test_g05_memory_is_flat_in_a_system_that_runs_for_long(kind, no_gc):
    with asyncio.Runner() as runner:
        system = ActorSystem()
        runner.run(system.start())
        before = cells()
        step, peak = growth(9, lambda: runner.run(round_of_everything(system, kind, 10)))
        assert cells() == before
        runner.run(system.stop())
    assert step < peak / 50, f"{step} bytes more in each round of {peak}"


def test_g05_a_watcher_that_lives_for_long_does_not_remember_what_it_has_watched(run, kind):
    class Watcher(kind):
        def __init__(self):
            super().__init__()
            self.gone = 0

        def on_receive(self, message):
            if isinstance(message, Terminated):
                self.gone += 1
            elif message != "gone?":
                self.watch(message)
            return self.gone

    async def main():
        async with ActorSystem() as system:
            watcher, counts = system.spawn(Watcher), []
            for number in range(1, 51):
                ref = system.spawn(Actor)
                await watcher.request(ref)
                await ref.stop()
                assert await watcher.request("gone?") == number
                counts.append(cells() if number in (10, 50) else 0)
            assert counts[9] == counts[49]

    run(main())


def test_g05_a_parent_that_lives_for_long_does_not_remember_its_children(run, kind):
    class Parent(kind):
        def on_receive(self, message):
            return self.spawn(Actor, supervision=Stop())

    async def main():
        async with ActorSystem() as system:
            parent, counts = system.spawn(Parent), []
            for number in range(1, 51):
                await (await parent.request("spawn")).stop()
                counts.append(cells() if number in (10, 50) else 0)
            assert counts[9] == counts[49]

    run(main())
