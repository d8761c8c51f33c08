"""The store in a PostgreSQL: a server that goes and comes, an answer that is lost, and what else
may be wrong with it.
"""

import asyncio

import psycopg
import pytest

from offbook.runtime import PostgresStore, StoreError, UsageError
from offbook.runtime.errors import WriteRefused
from offbook.runtime.stores import Append, Put
from tests.programs.lossy import LossyLine
from tests.programs.servers import PASSWORD, PostgresServer


@pytest.fixture
def line(postgres_server):
    line = LossyLine(postgres_server.port)
    yield line
    line.close()


@pytest.fixture
def sql(postgres_server):
    """Ask the server something past the store."""

    def ask(text, *values):
        with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
            cursor = connection.execute(text, values)
            return cursor.fetchall() if cursor.description else None

    return ask


def end_all(sql):
    """End all connections but this one's."""
    sql(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE pid <> "
        "pg_backend_pid() AND backend_type = 'client backend'"
    )


def fails(caught, *words):
    text = str(caught.value)
    assert PASSWORD not in text
    for word in words:
        assert word in text, f"{word!r} is not in: {text}"


def test_an_append_whose_answer_was_lost_is_not_done_twice(run, postgres_server, line, namespaces):
    dsn = (
        postgres_server.dsn.replace(str(postgres_server.port), str(line.port))
        + " sslmode=disable gssencmode=disable"
    )

    async def main():
        async with PostgresStore(dsn, prefix=f"lost{next(namespaces)}_") as store:
            assert await store.append("journal", [b"1"]) == 1
            line.lose_answer_to(b"second")
            assert await store.append("journal", [b"second", b"3"]) == 3
            line.lose_answer_to(b"value")
            assert await store.create("key", b"value") is True
            assert await store.keep_alive("me", 60, first=True)
            line.lose_answer_to(b"fourth")
            calls = (
                store.append("journal", [b"fourth"]),
                store.create("other", b"w"),
                store.claim("run", "me", [Append("new", (b"n",), 0)]),
            )
            size, created, claim = await asyncio.gather(*calls)
            assert (size, created, claim.attempts) == (4, True, 1)
            await store.commit(claim, [Append("new", (b"o",), 1)])
            assert line.lost == 3
            assert await store.read("journal") == [b"1", b"second", b"3", b"fourth"]
            assert await store.read("new") == [b"n", b"o"]

    run(main())


def test_it_waits_for_a_server_that_comes_back(run, namespaces):
    server = PostgresServer().start()

    async def main():
        async with PostgresStore(server.dsn) as store:
            assert await store.append("journal", [b"1"]) == 1
            server.stop()
            asked = [
                asyncio.create_task(store.append("journal", [b"2"])),
                asyncio.create_task(store.get("key")),
            ]
            await asyncio.sleep(0.3)
            assert not asked[0].done()
            server.start()
            assert await asyncio.gather(*asked) == [2, None]
            assert await store.read("journal") == [b"1", b"2"]
            server.stop()
            store._worker()._backend.patience = 0.2
            with pytest.raises(StoreError) as caught:
                await store.append("the journal", [b"r"])
            fails(
                caught,
                f"PostgresStore('host=127.0.0.1 port={server.port} dbname=postgres'",
                "append of 'the journal'",
                "check that it runs",
            )
            assert isinstance(caught.value.__cause__, psycopg.OperationalError)

    try:
        run(main())
    finally:
        server.remove()


def test_a_connection_that_was_ended_is_made_anew(run, sql, store_of):
    store = store_of("postgres")

    async def main():
        for number in range(3):
            assert await store.append("journal", [b"r"]) == number + 1
            end_all(sql)
            assert len(await store.read("journal")) == number + 1
            end_all(sql)

    run(main())


def test_a_wrong_password_is_told_at_once_and_not_shown(run, postgres_server):
    async def main():
        async with (
            PostgresStore(postgres_server.dsn.replace(PASSWORD, "another-secret")) as store,
            asyncio.timeout(4),
        ):
            with pytest.raises(StoreError, match="password authentication failed") as caught:
                await store.get("key")
            assert "another-secret" not in str(caught.value) + repr(store)

    run(main())


def test_a_database_that_is_not_there_is_told_at_once(run, postgres_server):
    async def main():
        async with (
            PostgresStore(
                postgres_server.dsn.replace("dbname=postgres", "dbname=nowhere")
            ) as store,
            asyncio.timeout(4),
        ):
            with pytest.raises(StoreError, match=r"nowhere.*does not exist.*correct the dsn"):
                await store.get("key")

    run(main())


@pytest.mark.parametrize(
    "dsn", ["no dsn secret", "postgresql://u:secret@[h/d", "mysql://u:secret@h"]
)
def test_a_dsn_that_is_none_is_told_at_once_and_not_shown(dsn):
    with pytest.raises(UsageError, match=r"dsn must have the form postgresql://") as caught:
        PostgresStore(dsn)
    assert "sec" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_other_arguments_are_told_at_once():
    with pytest.raises(UsageError, match=r"dsn must be a string .*got a NoneType"):
        PostgresStore(None)
    for options in (
        {"prefix": ""},
        {"prefix": 1},
        {"prefix": "p" * 49},
        {"schema": ""},
        {"schema": "a\0"},
    ):
        with pytest.raises(UsageError, match="must be a name of at most"):
            PostgresStore("host=h", **options)


def test_a_schema_is_used_if_it_is_there(run, sql, store_of, namespaces):
    name = f'Odd "name" 100% {{x}} {next(namespaces)}'
    quoted = name.replace('"', '""').replace("%", "%%")

    async def main():
        with pytest.raises(StoreError, match=r"schema.*does not exist.*create it"):
            await store_of("postgres", schema=name).get("key")
        sql(f'CREATE SCHEMA "{quoted}"')
        store = store_of("postgres", schema=name, prefix='p%s"{y}_')
        await store.set("key", b"v")
        assert await store.get("key") == b"v"
        assert {
            table for (table,) in sql("SELECT tablename FROM pg_tables WHERE schemaname = %s", name)
        } == {
            f'p%s"{{y}}_{table}'
            for table in (
                "entries",
                "watched",
                "records",
                "owners",
                "claims",
                "writers",
                "version",
                "runs",
                "run_labels",
            )
        }

    run(main())


def test_tables_of_a_newer_version_are_told(run, sql, store_of):
    first = store_of("postgres", "newer")

    async def main():
        await first.set("key", b"v")
        sql(f"UPDATE {first._prefix}version SET version = 7")
        for call in (
            store_of("postgres", "newer").get("key"),
            store_of("postgres", "newer").set("key", b"w"),
        ):
            with pytest.raises(StoreError, match=r"version 7.*newer version of offbook"):
                await call

    run(main())


def test_a_user_without_rights_is_told(run, sql, postgres_server, store_of):
    store = store_of("postgres")
    sql("DROP ROLE IF EXISTS guest")
    sql(f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'")

    async def main():
        await store.set("key", b"v")
        async with PostgresStore(
            postgres_server.dsn.replace("user=tester", "user=guest"), prefix=store._prefix
        ) as guest:
            with pytest.raises(StoreError, match=r"permission denied.*grant it"):
                await guest.get("key")

    run(main())


def test_tables_that_were_taken_away_are_told(run, sql, store_of):
    store = store_of("postgres")

    async def main():
        await store.set("key", b"v")
        sql(f"DROP TABLE {store._prefix}claims CASCADE")
        ended = await asyncio.gather(
            *(store.claim("run", "me") for _ in range(3)), return_exceptions=True
        )
        assert all(
            isinstance(error, StoreError) and "does not exist" in str(error) for error in ended
        )
        assert await store.get("key") == b"v"

    run(main())


def test_what_one_operation_cannot_do_fails_that_one_only(run, sql, store_of):
    store = store_of("postgres")

    async def main():
        await store.set("key", b"v")
        sql(f"ALTER TABLE {store._prefix}entries ADD CONSTRAINT small CHECK (length(value) < 100)")
        ended = await asyncio.gather(
            *(
                store.set(f"key {number}", b"x" * (200 if number == 7 else 1))
                for number in range(20)
            ),
            return_exceptions=True,
        )
        assert [index for index, error in enumerate(ended) if error is not None] == [7]
        assert "'key 7'" in str(ended[7])
        assert len(await store.keys("key ")) == 19

    run(main())


def test_two_that_lock_the_same_rows_come_to_an_end(run, store_of):
    async def main():
        one, two = store_of("postgres", "shared"), store_of("postgres", "shared")
        keys = [f"key {number}" for number in range(20)]
        for turn in range(5):
            await one.keep_alive("one", 60, first=True)
            await two.keep_alive("two", 60, first=True)
            both = ((one, "one", keys), (two, "two", keys[::-1]))
            calls = [store.set(key, b"v") for store, _, order in both for key in order]
            calls += [
                store.claim(key, name, [Put(f"new {turn} {other}", b"v") for other in order[:3]])
                for store, name, order in both
                for key in order
            ]
            calls += [
                two.revoke("one"),
                one.revoke("two"),
                one.keep_alive("one", 5),
                two.keep_alive("two", 5),
            ]
            for ended in await asyncio.gather(*calls, return_exceptions=True):
                assert not isinstance(ended, Exception) or isinstance(ended, WriteRefused), ended

    run(main())


def test_a_store_that_is_closed_leaves_no_trace_of_itself(run, sql, store_of):
    store = store_of("postgres")
    run(store.set("key", b"v"))
    assert sql(f"SELECT count(*) FROM {store._prefix}writers") == [(1,)]
    store.close()
    assert sql(f"SELECT count(*) FROM {store._prefix}writers") == [(0,)]


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_stores_that_start_together_make_their_tables_once_whatever_the_default_isolation_is(
    run, postgres_server, namespaces, isolation
):
    dsn = psycopg.conninfo.make_conninfo(
        postgres_server.dsn,
        options="-c default_transaction_isolation=" + isolation.replace(" ", "\\ "),
    )

    async def main():
        for _ in range(5):
            prefix = f"isolated_{next(namespaces)}_"
            stores = [PostgresStore(dsn, prefix=prefix) for _ in range(8)]
            try:
                assert sorted(
                    await asyncio.gather(*(store.append("journal", [b"r"]) for store in stores))
                ) == list(range(1, 9))
                for number, store in enumerate(stores):
                    await store.keep_alive(f"owner {number}", 60, first=True)
                for turn in range(10):
                    taken = await asyncio.gather(
                        *(
                            store.claim(f"key {turn}", f"owner {number}")
                            for number, store in enumerate(stores)
                        )
                    )
                    assert sum(claim is not None for claim in taken) == 1
                    await asyncio.gather(
                        *(store.commit(None, [Put("shared", b"%d" % turn)]) for store in stores)
                    )
            finally:
                for store in stores:
                    store.close()

    run(main())
