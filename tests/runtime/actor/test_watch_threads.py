"""Watching across threads and systems: a watch that races the end is told of it exactly once,
wherever it slips in.
"""

import asyncio
import sys
import threading

import pytest

from offbook.runtime import Actor, ActorSystem, Stopped, Terminated, ThreadActor


class Target(Actor):
    """Has something to do at its end, so that there are more places to slip in."""

    def on_stop(self):
        pass


class Racer(ThreadActor):
    """Watches, in a thread of its own, all the refs that it is sent in a list; sets the events in
    it; and keeps everything else.
    """

    def __init__(self, seen):
        super().__init__()
        self.seen = seen

    def on_receive(self, message):
        if isinstance(message, list):
            for each in message:
                if isinstance(each, threading.Event):
                    each.set()
                else:
                    self.watch(each)
        else:
            self.seen.append(message)


class Turnstile:
    """A lock which lets somebody else in whenever one thread has released it."""

    def __init__(self, lock):
        self._lock, self._thread, self._depth = lock, threading.get_ident(), 0
        self.let_in = None

    def __getattr__(self, name):
        return getattr(self._lock, name)

    def __enter__(self):
        self._lock.acquire()
        if threading.get_ident() == self._thread:
            self._depth += 1

    def __exit__(self, *args):
        own = threading.get_ident() == self._thread
        if own:
            self._depth -= 1
        self._lock.release()
        if own and self._depth == 0 and self.let_in is not None:
            let_in, self.let_in = self.let_in, None
            self.let_in = let_in()


@pytest.mark.parametrize(
    "target", [Target, type("Plain", (Actor,), {})], ids=lambda target: target.__name__
)
def test_a_watch_that_slips_in_anywhere_while_an_actor_ends_is_told_exactly_once(run, target):
    seen = [[] for _ in range(40)]
    used = 0

    async def main():
        nonlocal used
        system = ActorSystem()
        system.lock = lock = Turnstile(system.lock)
        async with system:
            racers = [system.spawn(Racer, each) for each in seen]
            for racer in racers:
                await racer.request([])
            ref = system.spawn(target)
            await asyncio.sleep(0)

            def slip_in():
                nonlocal used
                if used == len(racers):
                    return None
                watched = threading.Event()
                racers[used].tell([ref, watched])
                assert watched.wait(5)
                used += 1
                return slip_in

            lock.let_in = slip_in
            await ref.stop()
            lock.let_in = None
            for racer in racers:
                await racer.stop(drain=True)

    run(main())
    assert used > 3
    notices = [[type(notice) for notice in each] for each in seen[:used]]
    assert notices == [[Terminated]] * used


def test_a_watch_from_a_thread_that_races_the_end_is_told_exactly_once(run):
    rounds = 400

    async def main():
        async with ActorSystem() as system:
            racer = system.spawn(Racer, seen := [])
            refs = [system.spawn(Target) for _ in range(rounds)]
            done = racer.ask(refs, block=False)
            await asyncio.gather(*[ref.stop() for ref in refs])
            await done
            await racer.stop(drain=True)
            assert len(seen) == rounds
            assert {notice.ref for notice in seen} == set(refs)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(10):
            run(main())
    finally:
        sys.setswitchinterval(interval)


def test_an_actor_of_another_system_can_be_watched(run, kind):
    class Watcher(kind):
        def on_receive(self, message):
            if isinstance(message, Terminated):
                seen.append(message)
            else:
                self.watch(message)

    seen = []

    async def main():
        async with ActorSystem() as system:
            watching = system.spawn(Watcher)
            with ActorSystem.in_thread("other") as other:
                ref = other.spawn(Target)
                await watching.request(ref)
            while not seen:
                await asyncio.sleep(0)
            await watching.stop(drain=True)
            assert seen == [Terminated(ref, Stopped())]

    run(main())
