"""Where a store is, and as whom it is used: sentinels, credentials that change, roles that may not
make tables; what is too large for it.
"""

import asyncio
import time

import psycopg
import pytest
import redis

from offbook.runtime import (
    PostgresStore,
    RedisStore,
    SQLiteStore,
    StoreError,
    UsageError,
    ValueRefused,
)
from offbook.runtime.stores import Append, Put
from offbook.runtime.stores.threaded_store import DrivenStore
from tests.programs.servers import PASSWORD, RedisServer, Server, free_port, program
from tests.runtime.stores.test_store_troubles import does_everything


class SentinelServer(Server):
    """A sentinel that watches one primary, and takes it for gone after a second."""

    orderly = 15

    def __init__(self, primary):
        super().__init__()
        self.primary = primary

    def command(self):
        settings = self.folder / "sentinel.conf"
        settings.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {self.folder}\n"
            f"sentinel monitor main 127.0.0.1 {self.primary} 1\nsentinel auth-pass main "
            f"{PASSWORD}\n"
            "sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 2000\n"
        )
        return [program("redis-server"), str(settings), "--sentinel"]

    def answers(self):
        try:
            with redis.Redis(port=self.port, socket_timeout=1) as client:
                return client.ping()
        except redis.RedisError:
            return False


@pytest.fixture
def servers():
    made = []

    def start(server):
        made.append(server)
        return server.start()

    yield start
    for server in reversed(made):
        server.remove()


def test_sentinels_name_the_primary_also_after_a_fail_over(run, servers):
    login = ("--masterauth", PASSWORD)
    primary = servers(RedisServer(*login))
    replica = servers(RedisServer("--replicaof", f"127.0.0.1 {primary.port}", *login))
    sentinel = servers(SentinelServer(primary.port))
    url = f"redis+sentinel://:{PASSWORD}@127.0.0.1:{free_port()},127.0.0.1:{sentinel.port}/main/0"

    async def main():
        async with RedisStore(url) as store:
            assert PASSWORD not in repr(store)
            await store.append("journal", [b"1"])
            with (
                redis.Redis.from_url(replica.url) as there,
                redis.Redis(port=sentinel.port) as asked,
            ):
                while not there.exists("offbook:\0j:journal") or not asked.execute_command(
                    "SENTINEL", "REPLICAS", "main"
                ):
                    await asyncio.sleep(0.05)
            primary.kill()
            deadline = time.monotonic() + 30
            while True:  # the sentinel takes its time, and each call waits for some seconds
                try:
                    size = await store.append("journal", [b"2"])
                    break
                except StoreError:
                    assert time.monotonic() < deadline
            assert size == 2

    run(main())


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://localhost:26379",
        "redis+sentinel://localhost:x/main",
        "redis+sentinel://localhost/main?wrong=1",
    ],
)
def test_an_address_of_sentinels_that_cannot_be_read(url):
    with pytest.raises(UsageError, match="url must have the form redis://"):
        RedisStore(url)


def test_a_url_must_not_set_decode_responses():
    with pytest.raises(UsageError, match="must not set decode_responses"):
        RedisStore("redis://localhost:6379/0?decode_responses=True")


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_credentials_are_asked_for_at_each_connection(run, request, kind, namespaces):
    server = request.getfixturevalue(f"{kind}_server")
    asked = []

    def address():
        asked.append(1)
        return server.url if kind == "redis" else server.dsn

    async def main():
        own = f"c{next(namespaces)}_"
        store = (
            RedisStore(address, prefix=own)
            if kind == "redis"
            else PostgresStore(address, prefix=own)
        )
        async with store:
            assert "address" in repr(store)
            assert asked == []
            await store.append("journal", [b"1"])
            assert len(asked) == 1
            store._worker()._backend.close()  # as when it was lost
            await store.append("journal", [b"2"])
            assert len(asked) == 2

    run(main())


@pytest.mark.parametrize("store", [RedisStore, PostgresStore])
def test_a_function_that_must_be_awaited_gives_no_credentials(store):
    async def address():
        return ""

    with pytest.raises(UsageError, match="a function"):
        store(address)


@pytest.mark.parametrize("schema", [None, "own"])
def test_a_role_that_may_not_make_tables_uses_those_that_the_script_has_made(
    run, postgres_server, namespaces, schema
):
    role = f"plain{next(namespaces)}"
    dsn = postgres_server.dsn.replace("user=tester", f"user={role}")

    def sql(text):
        with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
            connection.execute(text)

    sql(f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'")
    if schema is not None:
        schema = f"own{role}"
        sql(f"CREATE SCHEMA {schema}")

    async def main():
        async with PostgresStore(dsn, prefix=f"{role}%_", schema=schema) as store:
            with pytest.raises(StoreError, match="offbook schema"):
                await store.get("key")
            sql(store.schema_sql(role))
            await does_everything(store)

    run(main())


def test_a_value_over_the_limit_of_its_store_is_told_as_that(run, store_of, monkeypatch):
    monkeypatch.setattr(DrivenStore, "_largest", 1000)
    monkeypatch.setattr(RedisStore, "_largest", 1000)
    large = b"x" * 1001

    async def main():
        for kind in ("sqlite", "redis", "postgres"):
            store = store_of(kind)
            assert await store.append("journal", [b"x" * 900] * 5) == 5
            calls = (
                (store.set, "key", large),
                (store.append, "key", [b"", large]),
                (store.create, "key", large),
            )
            for method, *arguments in (
                *calls,
                (store.commit, None, [Put("key", large)]),
                (store.commit, None, [Append("key", (large,), 0)]),
            ):
                with pytest.raises(
                    ValueRefused,
                    match=r"a value must have at most 1,000 bytes, got 1,001. Store it elsewhere",
                ):
                    await method(*arguments)
            assert await store.keys() == ["journal"]

    run(main())


def test_a_value_that_sqlite_does_not_take_is_told_as_that(run, tmp_path):
    async def main():
        async with SQLiteStore(tmp_path / "runs.db") as store:
            await store.set("key", b"v")
            store._worker()._backend._opened.connection.setlimit(0, 1000)
            answers = await asyncio.gather(
                store.set("large", b"x" * 2000), store.set("small", b"v"), return_exceptions=True
            )
            assert isinstance(answers[0], ValueRefused)
            assert answers[1] is None

    run(main())
