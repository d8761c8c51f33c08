"""Databases of version 2, which had no list of runs: they are taken over as they are, and list from then on."""

import sqlite3
from contextlib import closing

import psycopg
import pytest

from understudy.runtime import SQLiteStore, StoreError
from understudy.runtime.stores import Append, Put, RunEntry, RunQuery
from understudy.runtime.stores.postgres.tables import _FROM_1_TO_2, _OF_VERSION_1
from understudy.runtime.stores.sqlite import schema
from understudy.runtime.stores.sqlite.state import MachineTime, State

ENTRY = RunEntry("r", "A", "", "running", 5, ("a\0b",), b"v")


def made_by_version_2(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for statement in (*schema._KEPT, *schema._ADDED, f"PRAGMA application_id = {schema._APPLICATION}", "PRAGMA user_version = 2"):
            connection.execute(statement)
        State(connection, MachineTime()).make()
        connection.execute("UPDATE state SET epoch = 41")
        connection.execute("INSERT INTO items VALUES (1, 'run', 1, 0, NULL)".replace("'run'", "x'72756e'"))
        connection.execute("INSERT INTO contents VALUES (1, x'6d61726b')")
        connection.execute("INSERT INTO records VALUES (1, 1, x'6669727374')")


async def lists_and_has_what_was_there(store):
    assert (await store.get("run"), await store.read("run")) == (b"mark", [b"first"])
    assert await store.run_entries(RunQuery(("running",))) == []
    assert await store.keep_alive("o", 30, first=True)
    claim = await store.claim("run", "o", [Append("run", (b"second",), 1), ENTRY])
    await store.commit(claim, [Put("run", b"new")])
    assert await store.run_entries(RunQuery(("running",), labels=("a\0b",))) == [ENTRY]
    assert (await store.get("run"), await store.read("run")) == (b"new", [b"first", b"second"])
    return claim


def test_a_file_of_version_2_is_taken_over(run, tmp_path):
    path = tmp_path / "runs.db"
    made_by_version_2(path)

    async def main():
        async with SQLiteStore(path) as store:
            claim = await lists_and_has_what_was_there(store)
            assert claim.epoch > 41
        with closing(sqlite3.connect(path)) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (3,)
            assert connection.execute("SELECT count(*) FROM state").fetchone() == (1,)

    run(main())


def test_a_newer_file_is_not_touched(run, tmp_path):
    path = tmp_path / "runs.db"
    made_by_version_2(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 4")

    async def main():
        async with SQLiteStore(path) as store:
            with pytest.raises(StoreError, match="newer version"):
                await store.get("run")

    run(main())


def test_tables_of_version_2_are_taken_over(run, store_of, postgres_server):
    store = store_of("postgres")
    statements = store._make_backend()._statements
    parts = [text.decode() for text in (*statements.schema, *statements.upgrades[0])]
    assert (len(_OF_VERSION_1), len(_FROM_1_TO_2)) == (len(statements.schema), len(statements.upgrades[0]))
    write = next(text for text in statements.upgrades[1] if b"FUNCTION" in text and b'write"(' in text and text.startswith(b"CREATE")).decode()
    old = write.replace("w_afters bigint[], w_spans", "w_spans", 1)  # what took one list less
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        for statement in (*parts, old):
            connection.execute(statement.encode(), ())
        prefix = store._prefix
        connection.execute(f"UPDATE {prefix}version SET version = 2".encode())
        connection.execute(f"INSERT INTO {prefix}entries (key, value, records, written) VALUES ('run', 'mark', 1, now())".encode())
        connection.execute(f"INSERT INTO {prefix}records VALUES (1, 1, 'first')".encode())

    async def main():
        await lists_and_has_what_was_there(store)
        with psycopg.connect(postgres_server.dsn) as connection:
            assert connection.execute(f"SELECT version FROM {store._prefix}version".encode()).fetchone() == (3,)
            named = connection.execute("SELECT count(*) FROM pg_proc WHERE proname = %s", (f"{store._prefix}write",)).fetchone()
            assert named == (1,)  # the one before is gone

    run(main())
