"""Owners in a PostgreSQL: proof that one is dead, processes that are stopped, tables of the version
before, and rows that are lost.
"""

import asyncio
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg
import pytest

from offbook.runtime import PostgresStore, StoreError
from offbook.runtime.errors import WriteRefused
from offbook.runtime.stores import Append, Put
from tests.programs.servers import PostgresServer

ROOT = Path(__file__).parents[3]

OWNER = """
import asyncio, sys
from offbook.runtime import PostgresStore
from offbook.runtime.stores import Append

async def main():
    store = PostgresStore(sys.argv[1], prefix=sys.argv[2])
    assert await store.keep_alive("child", 600, first=True)
    claims = [await store.claim(f"child {number}", "child") for number in range(20)]
    print("ready", flush=True)
    for turn in range(100_000):
        await asyncio.gather(*(store.commit(claim, [Append(claim.key, (b"r" * 20_000,), turn)]) for claim in claims))

asyncio.run(main())
"""


@pytest.fixture
def sql(postgres_server):
    """Ask the server something past the store."""

    def ask(text, *values):
        with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
            cursor = connection.execute(text, values)
            return cursor.fetchall() if cursor.description else None

    return ask


@pytest.fixture
def child(postgres_server):
    """Start a process that is an owner, and writes without end."""
    started = []

    def start(prefix):
        process = subprocess.Popen(
            [sys.executable, "-c", OWNER, postgres_server.dsn, prefix],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        started.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def end_session(sql, store):
    sql(
        "SELECT pg_terminate_backend(%s, 5000)",
        store._worker()._backend._connection.info.backend_pid,
    )


async def refused(awaitable, reason):
    with pytest.raises(WriteRefused) as caught:
        await awaitable
    assert caught.value.reason == reason


def test_g13_an_owner_whose_process_was_killed_is_dead_at_once(run, store_of, child, wait_until):
    store = store_of("postgres", "shared")

    async def main():
        process = child(store._prefix)
        await store.keep_alive("b", 60, first=True)
        await store.set("child 0", b"mark")
        assert await store.claim("child 0", "b") is None
        assert await store.orphans() == []
        process.kill()
        process.wait()

        async def taken():
            return await store.claim("child 0", "b")

        await wait_until(taken, seconds=5)
        assert await store.holder("child 1") is None
        await store.set("child 2", b"mark")
        assert await store.orphans() == ["child 2"]

    run(main())


def test_g13_a_process_that_is_stopped_is_alive_and_holds_up_none(run, store_of, child, sql):
    store = store_of("postgres", "shared")

    async def main():
        process = child(store._prefix)
        await store.keep_alive("b", 60, first=True)
        claims = [await store.claim(f"mine {number}", "b") for number in range(20)]
        for turn in range(10):
            process.send_signal(signal.SIGSTOP)
            begun = time.monotonic()
            assert await store.claim("child 3", "b") is None
            await asyncio.gather(
                *(store.commit(claim, [Append(claim.key, (b"r",), turn)]) for claim in claims)
            )
            # What it writes itself is free as well.
            await asyncio.gather(
                *(store.commit(None, [Put(f"child {number}", b"v")]) for number in range(20))
            )
            assert time.monotonic() - begun < 2
            process.send_signal(signal.SIGCONT)
            await asyncio.sleep(0.013 * turn)
        process.send_signal(signal.SIGSTOP)
        await store.revoke("child")
        assert await store.claim("child 3", "b") is not None
        process.send_signal(signal.SIGCONT)
        assert await asyncio.to_thread(process.wait, 10) != 0

    run(main())


def test_g13_what_one_process_holds_fails_what_needs_it_and_nothing_else(
    run, postgres_server, store_of
):
    store = store_of("postgres")

    async def main():
        await store.keep_alive("b", 60, first=True)
        claims = [
            await store.claim(f"run {number}", "b", [Put(f"run {number}", b"v")])
            for number in range(60)
        ]
        with psycopg.connect(postgres_server.dsn) as other:
            other.execute(
                f"SELECT 1 FROM {store._prefix}entries WHERE key IN ('run 7', 'run 9', 'run "
                "11') FOR UPDATE"
            )
            for turn in range(2):
                begun = time.monotonic()
                calls = (
                    store.commit(claim, [Append(claim.key, (b"r",), turn)]) for claim in claims
                )
                ended = await asyncio.gather(*calls, return_exceptions=True)
                assert [index for index, error in enumerate(ended) if error is not None] == [
                    7,
                    9,
                    11,
                ]
                assert all(
                    isinstance(error, StoreError) and "lock_timeout" in str(error)
                    for error in ended
                    if error is not None
                )
                assert time.monotonic() - begun < (6 if turn == 0 else 2)

    run(main())


def test_g13_a_session_that_is_stopped_in_a_transaction_is_ended(run, store_of):
    one, two = store_of("postgres", "shared"), store_of("postgres", "shared")

    async def main():
        await one.set("key", b"v")
        connection = one._worker()._backend._connection
        connection.autocommit = False
        connection.execute(f"UPDATE {one._prefix}entries SET value = 'x'")  # and never a COMMIT
        await two.set("key", b"w")
        assert await two.get("key") == b"w"
        await one.set("key", b"y")
        assert await two.get("key") == b"y"

    run(main())


def test_g13_an_owner_that_lost_its_connection_and_was_ended_is_refused(run, store_of, sql):
    one, two = store_of("postgres", "shared"), store_of("postgres", "shared")

    async def main():
        await two.keep_alive("b", 60, first=True)
        await one.keep_alive("a", 60, first=True)
        claim = await one.claim("key", "a", [Append("j", (b"1",), 0)])
        end_session(sql, one)
        await one.commit(claim, [Append("j", (b"2",), 1)])  # it was back before another one looked
        assert await two.claim("key", "b") is None
        end_session(sql, one)
        assert await two.holder("key") is None
        await refused(one.commit(claim, [Append("j", (b"3",), 2)]), "owner")
        assert await one.keep_alive("a", 60) is False
        assert (await two.claim("key", "b")).attempts == 2
        assert await two.read("j") == [b"1", b"2"]

    run(main())


def test_g13_a_server_that_was_started_anew_proves_nothing(run):
    server = PostgresServer().start()

    async def main():
        async with PostgresStore(server.dsn) as one, PostgresStore(server.dsn) as two:
            await two.keep_alive("b", 60, first=True)
            await one.keep_alive("a", 60, first=True)
            claim = await one.claim("key", "a")
            server.stop()
            server.start()
            assert await two.claim("key", "b") is None
            await one.commit(claim, [Put("v", b"1")])

    try:
        run(main())
    finally:
        server.remove()


def test_without_proof_only_time_tells(run, store_of, sql):
    one, two = store_of("postgres", "shared", death_proof=False), store_of("postgres", "shared")

    async def main():
        await two.keep_alive("b", 60, first=True)
        await one.keep_alive("a", 60, first=True)
        claim = await one.claim("key", "a")
        end_session(sql, one)
        assert await two.claim("key", "b") is None
        await one.commit(claim, [])
        await one.revoke("a")
        assert await two.claim("key", "b") is not None

    run(main())


def test_locks_are_let_go_with_their_owners(run, store_of, sql):
    store = store_of("postgres")

    async def main():
        for number in range(5):
            await store.keep_alive(f"owner {number}", 60, first=True)
        pid = store._worker()._backend._connection.info.backend_pid
        held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = %s"
        assert sql(held, pid) == [(5,)]
        for number in range(5):
            await store.revoke(f"owner {number}")
        assert sql(held, pid) == [(0,)]

    run(main())


def test_g13_writes_that_a_failover_has_lost_are_noticed(run, store_of, sql):
    store = store_of("postgres")

    async def main():
        await store.keep_alive("a", 60, first=True)
        claim = await store.claim("run", "a", [Append("run", (b"1", b"2", b"3"), 0)])
        sql(f"DELETE FROM {store._prefix}records WHERE number > 1")
        sql(f"UPDATE {store._prefix}entries SET records = 1")
        await refused(store.commit(claim, [Append("run", (b"4",), 3)]), "position")
        sql(f"DELETE FROM {store._prefix}claims")
        await refused(store.commit(claim, [Append("run", (b"4",), 1)]), "epoch")

    run(main())


def test_g13_epochs_that_a_failover_has_lost_are_not_given_again(run, store_of, sql):
    store = store_of("postgres")

    async def main():
        await store.keep_alive("a", 60, first=True)
        lost = [await store.claim("run", "a") for _ in range(80)][-1]
        sql(f"SELECT setval('{store._prefix}epochs', 2)")
        sql(f"DELETE FROM {store._prefix}claims")
        assert (await store.claim("run", "a")).epoch > lost.epoch
        ahead = lost.epoch + 10**9
        sql(f"SELECT setval('{store._prefix}epochs', {ahead})")  # the clock of the server is behind
        assert (await store.claim("run", "a")).epoch == ahead + 1

    run(main())


def test_what_is_not_there_is_made_by_one_of_several(run, store_of):
    stores = [store_of("postgres", "shared") for _ in range(4)]

    async def main():
        for turn in range(20):
            calls = (
                store.commit(None, [Append(f"j {turn}", (b"%d" % index,), 0)])
                for index, store in enumerate(stores)
            )
            ended = await asyncio.gather(*calls, return_exceptions=True)
            assert sum(answer is None for answer in ended) == 1
            assert len(await stores[0].read(f"j {turn}")) == 1

    run(main())
