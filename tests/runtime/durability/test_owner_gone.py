"""A store that no longer knows an owner, or cannot be reached, while several runs start at once."""

import asyncio
import time

import psycopg
import pytest
import redis.asyncio as client

from offbook.actors import ChatModelAgent
from offbook.runtime import (
    ActorSystem,
    PostgresStore,
    RedisStore,
    Runner,
    ScriptedModel,
    StoreError,
)
from offbook.runtime.durability.leases import leases_of
from offbook.runtime.durability.store_access import StoreAccess
from offbook.runtime.durability.store_owner import StoreOwner
from offbook.runtime.errors import WriteRefused
from tests.doubles.agents import PlannedAgent
from tests.doubles.held_stores import HeldStore, beside, soon
from tests.doubles.left_runs import lose_all
from tests.programs.servers import PostgresServer, RedisServer

RUNS = 20
PATIENCE = 3.0  # seconds for which a store is waited for, in these tests


def talking(runs=1):
    return ChatModelAgent(name="A", model=ScriptedModel(["hello"] * runs))


def end_connection(server, store):
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(%s, 5000)",
            [store._worker()._backend._connection.info.backend_pid],
        )


@pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres"])
def test_a_system_whose_leaving_is_cut_short_leaves_no_owner_in_a_store_that_is_closed(
    run, store_of, monkeypatch, kind
):
    """As the second of two Ctrl-C does it, while the first one is being obeyed."""
    begun, leaving = asyncio.Event(), asyncio.Event()

    async def work(_context):
        begun.set()
        await asyncio.Event().wait()

    async def leave(_owner):
        leaving.set()
        await asyncio.Event().wait()

    async def main():
        monkeypatch.setattr(StoreOwner, "leave", leave)
        store = store_of(kind, "shared")
        system = ActorSystem()
        await system.start()
        runner = Runner(PlannedAgent("A", work), store=store, durability="step", system=system)
        runner.query("go", run_id="a")
        await begun.wait()
        stopping = asyncio.create_task(system.stop())
        await leaving.wait()
        stopping.cancel()
        await asyncio.wait((stopping,))
        await store.aclose()
        async with store_of(kind, "shared") as other:
            (key,) = await other.orphans("offbook:open:")
            assert await other.holder(key) is None

    run(main())


@pytest.mark.parametrize("session", [False, True], ids=["alone", "in sessions"])
@pytest.mark.parametrize("durability", ["step", "interrupt"])
@pytest.mark.parametrize("kind", ["memory", "sqlite", "redis", "postgres"])
def test_g13_runs_that_start_at_once_after_their_owner_was_revoked_all_begin(
    run, store_of, kind, durability, session
):
    async def main():
        store, system = HeldStore() if kind == "memory" else store_of(kind), beside()
        runner = Runner(
            talking(5 * RUNS), store=store, durability=durability, keep=60, system=system
        )

        def ask(number):
            return (runner.session(f"s{number}") if session else runner).query(
                "hi", run_id=f"r{number}"
            )

        assert (await soon(ask(0))).status == "completed"
        for turn in range(1, 4):
            await lose_all(system, store)
            results = await soon(
                asyncio.gather(*(ask(turn * RUNS + number) for number in range(RUNS)))
            )
            assert [(result.status, result.error) for result in results] == [
                ("completed", None)
            ] * RUNS
        await soon(system.stop())

    run(main())


def test_g13_runs_that_start_at_once_after_the_connection_of_their_owner_has_ended_all_begin(
    run, store_of, postgres_server
):
    here, there = store_of("postgres", "shared"), store_of("postgres", "shared")

    async def main():
        system = beside()
        runner = Runner(talking(5 * RUNS), store=here, durability="step", system=system)
        assert (await soon(runner.query("hi"))).status == "completed"
        name = leases_of(system)._by_store[StoreAccess(here)].name
        end_connection(postgres_server, here)
        await there.keep_alive("other", 60, first=True)
        await there.revoke(name)  # as another process does that finds the connection gone
        results = await soon(asyncio.gather(*(runner.query("hi") for _ in range(RUNS))))
        assert [result.status for result in results] == ["completed"] * RUNS
        await soon(system.stop())

    run(main())


def test_g13_runs_that_start_at_once_after_a_redis_was_emptied_all_begin(
    run, store_of, redis_server
):
    store = store_of("redis")

    async def main():
        system = beside()
        runner = Runner(talking(5 * RUNS), store=store, durability="step", system=system)
        assert (await soon(runner.query("hi"))).status == "completed"
        async with client.from_url(redis_server.url) as connection:
            await connection.flushdb()
        results = await soon(
            asyncio.gather(*(runner.query("hi", run_id=f"r{number}") for number in range(RUNS)))
        )
        assert [result.status for result in results] == ["completed"] * RUNS
        await soon(system.stop())

    run(main())


@pytest.mark.parametrize("reason", ["owner", "epoch", "position"])
def test_g13_only_a_value_says_that_a_run_was_begun_already(run, reason):
    class Refusing(HeldStore):
        async def claim(self, key, owner, writes=()):
            raise WriteRefused(f"refused for its {reason}.", reason=reason, key=key)

    async def main():
        async with ActorSystem() as system:
            running = Runner(talking(), store=Refusing(), durability="step", system=system).query(
                "hi", run_id="r"
            )
            with pytest.raises(StoreError, match=r"right after it registered them|refused for its"):
                await soon(running)

    run(main())


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_runs_that_wait_for_a_store_that_is_away_share_one_attempt_and_its_error(run, kind):
    server = (RedisServer if kind == "redis" else PostgresServer)().start()

    async def main():
        store = RedisStore(server.url) if kind == "redis" else PostgresStore(server.dsn)
        async with store:
            store._worker()._backend.patience = PATIENCE / 2
            system = beside()
            runner = Runner(talking(100), store=store, durability="step", system=system)
            server.stop()
            begun = time.monotonic()
            results = await asyncio.gather(
                *(runner.query("hi") for _ in range(RUNS)), return_exceptions=True
            )
            assert {type(result) for result in results} == {StoreError}
            assert len({id(result) for result in results}) == RUNS, (
                "each run has an error of its own"
            )
            assert time.monotonic() - begun < PATIENCE + 2, "as docs/guarantees.md says"
            server.start()
            results = await soon(asyncio.gather(*(runner.query("hi") for _ in range(RUNS))))
            assert [result.status for result in results] == ["completed"] * RUNS
            await soon(system.stop())

    try:
        run(main())
    finally:
        server.remove()


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_calls_that_come_while_a_store_is_away_do_not_wait_one_after_the_other(run, kind):
    server = (RedisServer if kind == "redis" else PostgresServer)().start()

    async def main():
        async with (
            RedisStore(server.url) if kind == "redis" else PostgresStore(server.dsn) as store
        ):
            store._worker()._backend.patience = PATIENCE
            await store.set("key", b"value")
            server.stop()
            begun = time.monotonic()
            calls = []
            for _ in range(10):
                calls.append(asyncio.ensure_future(store.get("key")))
                await asyncio.sleep(0.2)
            assert {
                type(answer) for answer in await asyncio.gather(*calls, return_exceptions=True)
            } == {StoreError}
            assert time.monotonic() - begun < PATIENCE + 1.5

    try:
        run(main())
    finally:
        server.remove()
