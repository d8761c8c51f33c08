"""A process that was stopped for longer than its lease, and goes on: it begins nothing of what
another process has taken meanwhile.
"""

import pytest

from offbook.runtime import ActorSystem, MemoryStore
from offbook.runtime.durability.lease import Lease
from offbook.runtime.durability.leases import leases_of
from offbook.runtime.durability.store_access import StoreAccess
from offbook.runtime.errors import RunLost
from offbook.runtime.stores.writes import Put
from offbook.runtime.testing import ManualClock


class Stopped:
    """A process that has a lease, and is stopped for longer than that lasts."""

    def __init__(self):
        self.clock = ManualClock()
        self.store = MemoryStore(time=self.clock.boottime)
        self.lost = []
        self.lease = Lease("key", "run 1", lambda: self.lost.append("lost"))

    async def take_and_stop(self, system):
        assert await leases_of(system).take(StoreAccess(self.store), self.lease)
        assert self.lease.is_sure()
        self.clock._now += 30  # and no timer is called: the process does not do anything

    async def another_takes_it(self):
        await self.store.keep_alive("another", 60, first=True)
        assert await self.store.claim("key", "another") is not None


@pytest.mark.parametrize("first", ["it looks", "it says that it is alive"])
def test_g13_what_another_process_has_taken_meanwhile_is_noticed_before_anything_begins(
    run, until, first
):
    async def main():
        stopped = Stopped()
        async with ActorSystem(clock=stopped.clock, lease_seconds=10) as system:
            await stopped.take_and_stop(system)
            await stopped.another_takes_it()
            if first == "it says that it is alive":
                stopped.clock.advance(0.1)
                await until(stopped.lease.owner.is_sure)
            with pytest.raises(RunLost):
                await stopped.lease.make_sure()
            assert (stopped.lost, stopped.lease.is_held) == (["lost"], False)

    run(main())


@pytest.mark.parametrize("first", ["it looks", "it says that it is alive"])
def test_g13_what_nobody_has_taken_goes_on(run, until, first):
    async def main():
        stopped = Stopped()
        async with ActorSystem(clock=stopped.clock, lease_seconds=10) as system:
            await stopped.take_and_stop(system)
            if first == "it says that it is alive":
                stopped.clock.advance(0.1)
                await until(stopped.lease.owner.is_sure)
            assert not stopped.lease.is_sure()
            await stopped.lease.make_sure()
            assert stopped.lease.is_sure()
            assert stopped.lost == []

    run(main())


def test_g13_a_write_of_a_process_that_was_held_up_is_written_if_nobody_has_taken_the_run(run):
    async def main():
        stopped = Stopped()
        async with ActorSystem(clock=stopped.clock, lease_seconds=10) as system:
            await stopped.take_and_stop(system)
            await stopped.lease.commit([Put("event", b"1")])
            assert await stopped.store.get("event") == b"1"
            assert (stopped.lost, stopped.lease.is_held) == ([], True)

    run(main())


@pytest.mark.parametrize("meanwhile", ["another takes it", "it is revoked"])
def test_g13_a_write_of_a_process_that_was_held_up_is_refused_if_it_is_not_its_own_any_more(
    run, meanwhile
):
    async def main():
        stopped = Stopped()
        async with ActorSystem(clock=stopped.clock, lease_seconds=10) as system:
            await stopped.take_and_stop(system)
            if meanwhile == "another takes it":
                await stopped.another_takes_it()
            else:
                await stopped.store.revoke(stopped.lease.owner.name)
            with pytest.raises(RunLost):
                await stopped.lease.commit([Put("event", b"1")])
            assert await stopped.store.get("event") is None
            assert (stopped.lost, stopped.lease.is_held) == (["lost"], False)

    run(main())
