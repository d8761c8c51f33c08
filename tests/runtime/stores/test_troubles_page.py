"""docs/guarantees.md, "Troubles of stores": each row has a test that brings that trouble about.

Those that no other file brings about are here: a disk that is really full, a Redis that cannot save.
"""

import ast
import asyncio
import contextlib
import os
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest
import redis

from offbook.runtime import PostgresStore, RedisStore, SQLiteStore, StoreError
from tests.programs.servers import PostgresServer

FOLDER = Path(__file__).parent
ROOT = Path(__file__).parents[3]

# By the row's store and the beginning of its trouble: file, and the beginnings of its tests' names.
PRODUCED = {
    ("PostgreSQL", "is gone"): {
        "test_postgres_store.py": ["it_waits_for_a_server", "a_connection_that_was_ended"],
        "test_store_troubles.py": ["a_host_that_may_be_written_again"],
    },
    ("PostgreSQL", "says nothing"): {
        "test_g24_answers.py": ["g24_a_server_that_hangs", "g24_a_commit_that_waits"],
    },
    ("PostgreSQL", "has no connection left"): {
        "test_store_troubles.py": ["a_postgres_without_a_connection", "a_hot_standby"],
    },
    ("PostgreSQL", "a row is locked"): {"test_postgres_pooler.py": ["a_row_that_is_locked"]},
    ("PostgreSQL", "refuses the password"): {
        "test_postgres_store.py": [
            "a_wrong_password",
            "a_database_that_is_not_there",
            "a_schema_is_used_if_it_is_there",
        ],
        "test_troubles_page.py": ["a_postgresql_whose_disk_is_full"],
    },
    ("Redis", "is gone"): {
        "test_redis_store.py": ["it_waits_for_a_server", "a_connection_that_was_ended"],
        "test_store_addresses.py": ["sentinels_name_the_primary"],
    },
    ("Redis", "says nothing"): {"test_g24_answers.py": ["g24_a_server_that_hangs"]},
    ("Redis", "answers READONLY"): {
        "test_store_troubles.py": [
            "a_primary_that_lives_on",
            "a_redis_without_enough_replicas",
            "a_replica_that_has_lost_its_primary",
            "a_redis_that_loads",
        ],
    },
    ("Redis", "has no memory left"): {
        "test_redis_store.py": ["a_server_without_memory"],
        "test_troubles_page.py": ["a_redis_that_cannot_save"],
    },
    ("Redis", "is a Redis Cluster"): {"test_store_troubles.py": ["a_redis_cluster"]},
    ("SQLite", "another process holds"): {
        "test_sqlite_store.py": ["a_lock_that_another_holds", "a_lock_that_is_held_too_long"],
    },
    ("SQLite", "no room is left"): {
        "test_sqlite_store.py": ["a_full_disk"],
        "test_troubles_page.py": ["an_sqlite_file_on_a_disk_that_is_full"],
    },
    ("SQLite", "the disk hangs"): {
        "../durability/test_g24_lost_leases.py": ["g24_a_run_whose_lease_is_over"],
        "test_g24_answers.py": ["g24_closing_leaves_behind"],
    },
    ("SQLite", "the file is damaged"): {
        "test_sqlite_store.py": [
            "a_damaged_file",
            "a_file_that_cannot_be_written",
            "a_database_of_some_other_program",
        ],
        "test_sqlite_files.py": ["a_file_that_is_taken_away"],
        "test_sqlite_copies.py": ["a_copy_that_is_put_over"],
    },
    ("SQLite", "the file has several names"): {
        "test_risks.py": ["an_sqlite_file_with_two_names", "an_sqlite_file_that_is_mounted"],
    },
    ("each", "the process can start no thread"): {
        "test_store_worker.py": ["g24_a_process_that_may_start_no_thread"],
    },
    ("each", "a value is larger"): {
        "test_store_addresses.py": ["a_value_over_the_limit", "a_value_that_sqlite_does_not_take"],
    },
    ("each", "a prune or a search runs"): {
        "test_store_pruning.py": ["others_are_answered_between_the_steps"],
    },
}


def rows():
    """Of the page's table: the store, and the trouble."""
    page = (ROOT / "docs" / "guarantees.md").read_text()
    of = None
    for line in page.partition("## Troubles of stores")[2].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if cells[0].startswith("**"):
            of = cells[0].split("**")[1]
        elif of is not None and line.startswith("| "):
            yield of, cells[0]


def test_each_row_of_the_page_is_brought_about_by_a_test_that_exists():
    found = list(rows())
    for of, trouble in found:
        tests = [
            one
            for (kind, begin), one in PRODUCED.items()
            if kind == of and trouble.startswith(begin)
        ]
        assert len(tests) == 1, f"no test brings about {of}: {trouble}"
        for file, names in tests[0].items():
            tree = ast.parse((FOLDER / file).read_text())
            there = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
            for name in names:
                assert any(one.startswith(f"test_{name}") for one in there), (file, name)
    assert len(found) == len(PRODUCED)


def test_the_guarantees_are_one_table():
    page = (ROOT / "docs" / "guarantees.md").read_text().splitlines()
    numbered = [number for number, line in enumerate(page) if line.startswith("| G")]
    assert numbered == list(range(numbered[0], numbered[0] + len(numbered)))


@pytest.fixture
def small_disk():
    """A file system of two megabytes, where this machine lets the tests mount one."""
    folder = Path(tempfile.mkdtemp(prefix="offbook-disk-"))
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=777", "none", str(folder)]
    try:
        folder.chmod(0o755)  # a PostgreSQL is another user
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            pytest.skip("a file system may not be mounted here")
        yield folder
        subprocess.run(["umount", "--lazy", str(folder)], check=True)
    finally:
        folder.rmdir()


def fill(folder):
    """Leave no room. Returns what makes room again."""
    path = folder / "filler"
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return path.unlink


def test_an_sqlite_file_on_a_disk_that_is_full_takes_nothing_until_there_is_room(run, small_disk):
    async def main():
        async with SQLiteStore(small_disk / "a.db") as store:
            await store.set("key", b"v")
            await store.append("journal", [b"r"])
            make_room = fill(small_disk)
            for call in (
                lambda: store.set("large", bytes(100_000)),
                lambda: store.append("journal", [bytes(100_000)]),
            ):
                with pytest.raises(StoreError, match="disk is full"):
                    await call()
            assert (await store.get("key"), await store.read("journal")) == (b"v", [b"r"])
            make_room()
            assert await store.append("journal", [bytes(100_000)]) == 2
            assert await store.get("large") is None

    run(main())


def test_an_sqlite_file_that_is_first_opened_on_a_disk_that_is_full_is_used_when_there_is_room(
    run, small_disk
):
    async def main():
        make_room = fill(small_disk)
        async with SQLiteStore(small_disk / "a.db") as store:
            with pytest.raises(StoreError, match="disk is full"):
                await store.set("key", b"v")
            make_room()
            await store.set("key", b"v")
            assert await store.get("key") == b"v"

    run(main())


def test_a_postgresql_whose_disk_is_full_says_so_and_goes_on_when_there_is_room(run, small_disk):
    server = PostgresServer().start()
    place = small_disk / "place"
    place.mkdir(mode=0o777)
    if server.account is not None:
        os.chown(place, server.account.pw_uid, server.account.pw_gid)

    async def main():
        with psycopg.connect(server.dsn, autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{place}'")
            connection.execute("ALTER DATABASE postgres SET default_tablespace = small")
        async with PostgresStore(server.dsn) as store:
            await store.set("key", b"v")
            make_room = fill(small_disk)
            started = asyncio.get_running_loop().time()
            with pytest.raises(StoreError, match=r"disk is full.*free some space"):
                for number in range(100):
                    await store.append(f"journal {number}", [bytes(range(256)) * 100])
            assert asyncio.get_running_loop().time() - started < 5
            assert await store.get("key") == b"v"
            make_room()
            assert await store.append("other", [b"r"]) == 1

    try:
        run(main())
    finally:
        server.remove()


def test_a_redis_that_cannot_save_says_so_and_goes_on_when_it_can(run, own_redis):
    server = own_redis("--save", "1", "1")

    async def main():
        with redis.Redis.from_url(server.url) as other:
            other.config_set("appendonly", "no")
            in_the_way = server.folder / "dump.rdb"
            in_the_way.mkdir()
            async with RedisStore(server.url) as store:
                await store.append("journal", [b"r"])
                other.bgsave()
                while other.info("persistence")["rdb_last_bgsave_status"] == "ok":
                    await asyncio.sleep(0)
                with pytest.raises(StoreError, match="cannot save its data"):
                    await store.append("journal", [b"s"])
                assert await store.read("journal") == [b"r"]
                in_the_way.rmdir()
                other.save()
                assert await store.append("journal", [b"s"]) == 2

    run(main())
