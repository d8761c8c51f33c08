"""`spawn_pool`: several actors that share the work behind one thing that is used as a ref; for both
kinds of actor.
"""

import asyncio
import threading

import pytest

from offbook.runtime import (
    Actor,
    ActorDeadError,
    ActorPool,
    ActorSystem,
    MailboxSettings,
    Restart,
    Stop,
    ThreadActor,
    UsageError,
)

STRATEGIES = ["round_robin", "least_busy"]


class Worker:
    """Says who it is; waits at a gate, or fails."""

    def __init__(self, gate=None):
        super().__init__()
        self.gate = gate

    def who(self):
        return self.actor_ref.name

    async def on_receive(self, message):
        if message == "wait":
            await self.gate.wait()
        if message == "fail":
            raise ValueError(message)
        return self.who()


def of(kind):
    return type("Worker", (Worker, kind), {})


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_work_is_shared(run, kind, strategy):
    async def main():
        async with ActorSystem() as system:
            pool = system.spawn_pool(of(kind), 3, strategy=strategy)
            assert isinstance(pool, ActorPool)
            assert sorted([await pool.request("?") for _ in range(6)]) == [
                "1",
                "1",
                "2",
                "2",
                "3",
                "3",
            ]
            assert len(pool) == 3

    run(main())


def test_in_turn_means_in_order(run, kind):
    async def main():
        async with ActorSystem() as system:
            pool = system.spawn_pool(of(kind), 3)
            assert [await pool.request("?") for _ in range(4)] == ["1", "2", "3", "1"]

    run(main())


def test_who_has_least_to_do_is_given_the_next_one(run, kind, new_gate):
    gate = new_gate()

    async def main():
        async with ActorSystem() as system:
            pool = system.spawn_pool(of(kind), 3, gate, strategy="least_busy")
            busy = asyncio.ensure_future(pool.members[0].request("wait"))
            await gate.reached()
            assert {await pool.request("?") for _ in range(6)} == {"2", "3"}
            gate.open()
            assert await busy == "1"

    run(main())


def test_all_ways_of_sending(run, kind):
    seen = []
    done = threading.Semaphore(0)

    class Notes(kind):
        def on_receive(self, message):
            seen.append(message)
            done.release()
            return message

    async def main():
        async with ActorSystem() as system:
            pool = system.spawn_pool(Notes, 2)
            pool.tell("told")
            await pool.send("sent")
            assert await pool.request("requested", timeout=20) == "requested"
            assert await pool.ask("asked", block=False) == "asked"
            assert await asyncio.to_thread(pool.ask, "blocked for", timeout=20) == "blocked for"
            for _ in range(5):
                await asyncio.to_thread(done.acquire)
            assert sorted(seen) == ["asked", "blocked for", "requested", "sent", "told"]

    run(main())


def test_one_that_fails_is_replaced(run, kind):
    async def main():
        async with ActorSystem() as system:
            pool = system.spawn_pool(of(kind), 2)
            pool.members[0].tell("fail")
            assert await pool.members[0].request("?", timeout=20) == "1"
            assert pool.members[0].is_alive()

    run(main())


def test_one_that_is_not_replaced_is_given_nothing_more(run, kind):
    async def main():
        async with ActorSystem() as system:
            pool = system.spawn_pool(of(kind), 2, supervision=Stop())
            pool.members[0].tell("fail")
            await pool.members[0].wait_stopped()
            assert {await pool.request("?") for _ in range(4)} == {"2"}
            pool.members[1].tell("fail")
            await pool.members[1].wait_stopped()
            assert not pool.is_alive()
            with pytest.raises(ActorDeadError, match="all its actors have ended"):
                await pool.request("?")

    run(main())


@pytest.mark.parametrize("drain", [False, True])
def test_they_all_end_with_it(run, kind, drain):
    async def main():
        async with ActorSystem() as system:
            pool = system.spawn_pool(of(kind), 3)
            assert await pool.stop(drain=drain) is True
            assert (pool.is_alive(), system.stats().actors) == (False, 0)
            assert await pool.stop(drain=drain) is False
            await pool.wait_stopped()

    run(main())


def test_with_a_drain_they_handle_first_what_they_were_given(run, kind, new_gate):
    gate = new_gate()

    async def main():
        async with ActorSystem() as system:
            pool = system.spawn_pool(of(kind), 1, gate)
            asked = [asyncio.ensure_future(pool.request(message)) for message in ("wait", "?", "?")]
            await gate.reached()
            stopping = pool.stop(drain=True)
            gate.open()
            assert await asyncio.gather(*asked) == ["1"] * 3
            assert await stopping is True

    run(main())


def test_they_are_children_of_who_has_spawned_it(run, kind):
    class Boss(Actor):
        def on_start(self):
            self.pool = self.spawn_pool(of(kind), 2, name="hands")

        async def on_receive(self, message):
            return await self.pool.request(message)

    async def main():
        async with ActorSystem() as system:
            boss = system.spawn(Boss, name="boss")
            assert await boss.request("?") == "1"
            assert system.actor_of("boss/hands/2").path == "boss/hands/2"
            await boss.stop()
            assert system.stats().actors == 0

    run(main())


def test_each_has_the_arguments_and_a_mailbox_of_its_own(run):
    class Given(Actor):
        def __init__(self, one, *, two):
            super().__init__()
            self.given = (one, two, self.actor_inbox.capacity)

        def on_receive(self, message):
            return self.given

    async def main():
        async with ActorSystem() as system:
            pool = system.spawn_pool(
                Given, 2, "a", two="b", mailbox=MailboxSettings(capacity=7), supervision=Restart()
            )
            assert [await pool.request("?") for _ in range(2)] == [("a", "b", 7)] * 2

    run(main())


def test_if_one_cannot_be_made_there_is_none(run):
    made = []

    class Picky(Actor):
        def __init__(self):
            super().__init__()
            made.append(self)
            if len(made) == 2:
                raise ValueError("no more")

    async def main():
        async with ActorSystem() as system:
            with pytest.raises(ValueError, match="no more"):
                system.spawn_pool(Picky, 3, name="pool")
            while system.stats().actors:
                await asyncio.sleep(0)
            made.clear()
            assert system.spawn_pool(Picky, 1, name="pool").name == "pool"

    run(main())


@pytest.mark.parametrize(("size", "options"), [(0, {}), ("two", {}), (1, {"strategy": "random"})])
def test_what_makes_no_pool_is_refused(run, size, options):
    async def main():
        async with ActorSystem() as system:
            with pytest.raises(UsageError, match="spawn_pool"):
                system.spawn_pool(of(Actor), size, **options)
            assert system.stats().actors == 0

    run(main())


def test_it_stops_in_a_thread_too():
    with ActorSystem.in_thread() as system:
        pool = system.spawn_pool(of(ThreadActor), 2)
        assert {pool.ask("?") for _ in range(2)} == {"1", "2"}
        assert pool.stop() is True
        assert pool.stop(drain=True) is False
