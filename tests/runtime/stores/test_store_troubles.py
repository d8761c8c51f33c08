"""What becomes of each error of a server: troubles that pass are waited for, on a fresh connection;
others are told at once, with what to do.
"""

import asyncio
import contextlib
import time

import psycopg
import pytest
import redis

from offbook.runtime import PostgresStore, RedisStore, StoreError
from offbook.runtime.stores import RunEntry, RunQuery
from offbook.runtime.stores.postgres.errors import concerns
from offbook.runtime.stores.troubles import POSTGRES, REDIS, SQLITE, Trouble
from tests.programs.lossy import LossyLine
from tests.programs.servers import PASSWORD, PostgresServer

PASSES = 0.4  # seconds until a trouble is over


@pytest.fixture
def own_postgres():
    server = PostgresServer().start()
    yield server
    server.remove()


@pytest.fixture
def sql(postgres_server):
    def ask(text, dsn=None):
        with psycopg.connect(dsn or postgres_server.dsn, autocommit=True) as connection:
            cursor = connection.execute(text)
            return cursor.fetchall() if cursor.description else None

    return ask


async def waits_for(asked, end):
    """It is waited for the end of a trouble, and not told."""
    asked = asyncio.ensure_future(asked)
    started = time.monotonic()
    await asyncio.sleep(PASSES)
    assert not asked.done(), asked
    await asyncio.to_thread(end)
    answer = await asked
    assert time.monotonic() - started < 5
    return answer


# --- Redis ---


def test_a_primary_that_lives_on_as_a_replica_is_left_for_the_new_one(run, own_redis):
    """A fail-over behind one address, as a proxy, a service's name or a virtual address does it:
    connections to the old primary stay.
    """
    old = own_redis()
    new = own_redis("--replicaof", f"127.0.0.1 {old.port}", "--masterauth", PASSWORD)
    line = LossyLine(old.port)

    async def main():
        async with RedisStore(old.url.replace(str(old.port), str(line.port))) as store:
            await store.append("journal", [b"1"])
            with redis.Redis.from_url(old.url) as there, redis.Redis.from_url(new.url) as here:
                while not here.exists("offbook:\0j:journal"):
                    await asyncio.sleep(0.02)
                here.replicaof("no", "one")
                there.config_set("masterauth", PASSWORD)
                there.replicaof("127.0.0.1", new.port)
            asked = store.append("journal", [b"2"])
            assert await waits_for(asked, lambda: line.lead_to(new.port)) == 2
            assert await asyncio.gather(store.append("journal", [b"3"]), store.read("journal")) == [
                3,
                [b"1", b"2", b"3"],
            ]

    try:
        run(main())
    finally:
        line.close()


def test_a_redis_without_enough_replicas_is_waited_for(run, own_redis):
    server = own_redis()

    async def main():
        async with RedisStore(server.url) as store:
            await store.append("journal", [b"1"])
            with redis.Redis.from_url(server.url) as other:
                other.config_set("min-replicas-to-write", 1)
                assert (
                    await waits_for(
                        store.append("journal", [b"2"]),
                        lambda: other.config_set("min-replicas-to-write", 0),
                    )
                    == 2
                )
                other.config_set("min-replicas-to-write", 1)
                store._worker()._backend.patience = 0.1
                with pytest.raises(StoreError, match="too few replicas"):
                    await store.append("journal", [b"3"])
                other.config_set("min-replicas-to-write", 0)
                assert await store.read("journal") == [b"1", b"2"]

    run(main())


def test_a_replica_that_has_lost_its_primary_is_waited_for(run, own_redis):
    primary = own_redis()
    replica = own_redis(
        "--replicaof",
        f"127.0.0.1 {primary.port}",
        "--masterauth",
        PASSWORD,
        "--replica-serve-stale-data",
        "no",
    )
    primary.kill()

    async def main():
        async with RedisStore(replica.url) as store:
            with redis.Redis.from_url(replica.url) as other:
                assert (
                    await waits_for(
                        store.append("journal", [b"1"]), lambda: other.replicaof("no", "one")
                    )
                    == 1
                )

    run(main())


def test_a_redis_that_loads_its_data_is_waited_for(run, own_redis):
    server = own_redis()

    async def main():
        async with RedisStore(server.url) as store:
            await asyncio.gather(*(store.set(f"{number}", b"v") for number in range(300)))
            server.stop()
            server.options = (
                "--key-load-delay",
                "2000",
                "--loading-process-events-interval-bytes",
                "1024",
            )
            starting = asyncio.create_task(asyncio.to_thread(server.start))
            assert await store.get("1") == b"v"
            await starting

    run(main())


def test_a_redis_cluster_is_refused_at_once_in_those_words(run, own_redis):
    server = own_redis("--cluster-enabled", "yes", "--databases", "1")

    async def main():
        async with RedisStore(server.url) as store, asyncio.timeout(3):
            with pytest.raises(StoreError, match=r"Redis Cluster.*single server"):
                await store.get("key")

    run(main())


# --- PostgreSQL ---


def connected(dsn):
    """A connection, once the server has ended the session of one that was closed: that takes it a
    moment.
    """
    end = time.monotonic() + 10
    while True:
        try:
            return psycopg.connect(dsn)
        except psycopg.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def test_a_postgres_without_a_connection_left_is_waited_for(run, postgres_server, sql, namespaces):
    name = f"app{next(namespaces)}"
    sql(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}' CONNECTION LIMIT 1")
    sql(f"GRANT CREATE ON SCHEMA public TO {name}")
    dsn = postgres_server.dsn.replace("user=tester", f"user={name}")

    async def main():
        with contextlib.closing(psycopg.connect(dsn)) as other:
            async with PostgresStore(dsn, prefix=f"{name}_") as store:
                assert await waits_for(store.append("journal", [b"1"]), other.close) == 1
        with contextlib.closing(connected(dsn)):
            async with PostgresStore(dsn, prefix=f"{name}_") as store:
                store._worker()._backend.patience = 0.1
                with pytest.raises(
                    StoreError,
                    match=r"too many connections for role.*raise max_connections or the limit",
                ):
                    await store.get("key")

    run(main())


def test_a_host_that_may_be_written_again_in_a_moment_is_waited_for(run, own_postgres, sql):
    """Of two hosts one is gone, and the other one is not the primary yet."""
    gone = PostgresServer()
    hosts = own_postgres.dsn.replace("host=127.0.0.1", "host=127.0.0.1,127.0.0.1").replace(
        f"port={own_postgres.port}", f"port={gone.port},{own_postgres.port}"
    )
    sql("ALTER ROLE tester SET default_transaction_read_only = on", own_postgres.dsn)

    def promote():
        with psycopg.connect(own_postgres.dsn, autocommit=True) as connection:
            connection.execute("SET default_transaction_read_only = off")
            connection.execute("ALTER ROLE tester SET default_transaction_read_only = off")

    async def main():
        async with PostgresStore(hosts) as store:
            assert await waits_for(store.append("journal", [b"1"]), promote) == 1

    try:
        run(main())
    finally:
        gone.remove()


def test_a_hot_standby_is_told_as_such_and_used_when_it_is_promoted(run, own_postgres, sql):
    own_postgres.stop()
    (own_postgres.data / "standby.signal").touch()
    own_postgres.start()

    async def main():
        async with PostgresStore(own_postgres.dsn) as store:
            store._worker()._backend.patience = 0.1
            with pytest.raises(StoreError, match=r"hot standby.*pass the dsn of the primary"):
                await store.get("key")
            store._worker()._backend.patience = 5.0
            assert (
                await waits_for(
                    store.append("journal", [b"1"]),
                    lambda: sql("SELECT pg_promote()", own_postgres.dsn),
                )
                == 1
            )

    run(main())


async def does_everything(store):
    await store.keep_alive("me", 60, first=True)
    claim = await store.claim("run", "me")
    await store.commit(
        claim, [RunEntry("run", "agent", "session", "running", 5, ("a=b",), b"\xff\x00'\\")]
    )
    assert await store.create("key", b"\\x00'\xe9") is True
    assert await store.append("journal", [b"\\", b"\xff"]) == 2
    assert await store.get("key") == b"\\x00'\xe9"
    assert await store.read("journal") == [b"\\", b"\xff"]
    assert [
        entry.key
        for entry in await store.run_entries(
            RunQuery(
                statuses=("running",), agent="agent", session="session", labels=("a=b",), limit=5
            )
        )
    ] == ["run"]
    assert await store.keys() == ["journal", "key"]
    assert await store.orphans() == ["key"]
    assert await store.prune() == 0


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "UTF8"])
@pytest.mark.parametrize("client", ["SQL_ASCII", "LATIN1", None])
def test_any_encoding_of_the_database_and_of_the_environment(
    run, postgres_server, sql, namespaces, monkeypatch, encoding, client
):
    name = f"db{next(namespaces)}"
    sql(
        f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE "
        "template0"
    )
    if client is not None:
        monkeypatch.setenv("PGCLIENTENCODING", client)

    async def main():
        async with PostgresStore(
            postgres_server.dsn.replace("dbname=postgres", f"dbname={name}")
        ) as store:
            await does_everything(store)

    run(main())


@pytest.mark.parametrize(
    "setting",
    [
        "standard_conforming_strings=off",
        "bytea_output=escape",
        "client_encoding=LATIN1",
        "backslash_quote=off",
        "array_nulls=off",
    ],
)
def test_any_setting_of_the_session(run, postgres_server, namespaces, setting):
    async def main():
        async with PostgresStore(
            f"{postgres_server.dsn} options='-c {setting}'", prefix=f"s{next(namespaces)}_"
        ) as store:
            await does_everything(store)

    run(main())


def test_what_fails_here_and_not_in_the_server_says_nothing_of_what_was_done():
    """An answer that cannot be read: the same batch comes again under its number, and is not
    split.
    """
    assert concerns(psycopg.DataError("no such byte")) is Trouble.WAITED_FOR
    assert concerns(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "no")) is Trouble.WAITED_FOR


# --- the table ---


@pytest.mark.parametrize("table", [POSTGRES, REDIS, SQLITE])
def test_each_row_of_the_table_says_what_to_do(table):
    codes = [entry.code for entry in table]
    assert len(codes) == len(set(codes))
    for entry in table:
        assert entry.advice
        assert not entry.advice.endswith(".")
        assert not entry.is_content or entry.trouble is Trouble.OPERATION
