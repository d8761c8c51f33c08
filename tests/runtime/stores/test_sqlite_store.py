"""The store in a file: what may be wrong with a file, and what is in it."""

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
from pathlib import Path

import pytest

from offbook.runtime import CheckpointError, SQLiteStore, StoreError, UsageError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.db"


@pytest.fixture
def says(run, store_of):
    """What a store says when it is asked for that: each of these words has to be in it."""

    def check(path, *words, call=lambda store: store.set("the key", b"v"), **options):
        async def main():
            async with SQLiteStore(path, **options) as store:
                with pytest.raises(StoreError) as caught:
                    await call(store)
                assert isinstance(caught.value, CheckpointError)
                for word in (str(path), *words):
                    assert word in str(caught.value), f"{word!r} is not in: {caught.value}"
                return caught.value

        return run(main())

    return check


def test_a_folder_that_is_missing_is_told(says, tmp_path):
    path = tmp_path / "no such folder" / "runs.db"
    error = says(path, "SQLiteStore(", ".set of 'the key'", "does not exist: create it first")
    assert isinstance(error.__cause__, FileNotFoundError)
    path.parent.mkdir()
    with SQLiteStore(path) as store:
        asyncio.run(store.set("key", b"v"))


def test_a_folder_in_the_place_of_the_file_is_told(says, tmp_path):
    says(tmp_path, "cannot be opened")


def test_a_file_that_is_no_database_is_told_and_left_alone(says, path):
    path.write_bytes(b"some letter " * 1000)
    says(path, "is not an SQLite database", "another path")
    assert path.read_bytes() == b"some letter " * 1000


def test_a_database_of_some_other_program_is_told_and_left_alone(says, path):
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE entries (key TEXT)")
    other.close()
    says(path, "another program", "another path")
    with sqlite3.connect(path) as other:
        assert [name for (name,) in other.execute("SELECT name FROM sqlite_master")] == ["entries"]
    other.close()


def test_tables_of_a_newer_version_are_told_and_left_alone(run, says, path):
    with SQLiteStore(path) as store:
        asyncio.run(store.set("key", b"v"))
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 7")
    other.close()
    for call in (lambda store: store.set("key", b"w"), lambda store: store.get("key")):
        says(path, "newer version of offbook", "version 7", "Update", call=call)


def test_a_damaged_file_is_told(says, path):
    with SQLiteStore(path) as store:
        asyncio.run(store.append("journal", [b"r" * 1000] * 100))
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xaa" * (len(content) - 4096)
    path.write_bytes(content)
    says(path, "damaged", call=lambda store: store.read("journal"))


@pytest.mark.skipif(
    os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may write everywhere"
)
def test_a_file_that_cannot_be_written_is_told(path, tmp_path):
    with SQLiteStore(path) as store:
        asyncio.run(store.set("key", b"v"))
    program = (
        "import asyncio, sys\nfrom offbook.runtime import SQLiteStore, StoreError\n"
        "async def main():\n    async with SQLiteStore(sys.argv[1]) as store:\n        "
        "try:\n            await store.set('key', b'w')\n"
        "        except StoreError as error:\n            print(error)\nasyncio.run(main())\n"
    )
    path.chmod(stat.S_IRUSR | stat.S_IRGRP | stat.S_IROTH)
    folders = []
    try:
        if os.geteuid() == 0:  # everybody may get here, but nobody may write here
            for folder in (tmp_path, *tmp_path.parents):
                mode = folder.stat().st_mode
                if not mode & stat.S_IXOTH:
                    folders.append((folder, mode))
                    folder.chmod(mode | stat.S_IXOTH | stat.S_IROTH)
        said = in_another_account(program, str(path))
    finally:
        for folder, mode in folders:
            folder.chmod(mode)
    assert "is not writable" in said
    assert "check that" in said


def in_another_account(program, *arguments):
    """What a program prints that may not write everywhere."""
    import sys

    command = [sys.executable, "-c", program, *arguments]
    if os.geteuid() == 0:
        # It keeps the right to read what root may read, so that it finds the packages, but not that
        # to write.
        command = [
            "setpriv",
            "--bounding-set",
            "-all,+dac_read_search",
            "--inh-caps",
            "-all",
            *command,
        ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_full_disk_fails_those_that_need_room_and_nobody_else(run, path):
    async def main():
        async with SQLiteStore(path) as store:
            await store.set("small", b"v")
            await store.append("journal", [b"r"])
            store._worker()._backend._opened.connection.execute("PRAGMA max_page_count = 40")
            calls = [
                store.set("large", b"x" * 1_000_000),
                store.set("other", b"w"),
                store.append("journal", [b"x" * 1_000_000, b"s"]),
                store.append("journal", [b"t"]),
            ]
            large, other, long, short = await asyncio.gather(*calls, return_exceptions=True)
            for error in (large, long):
                assert isinstance(error, StoreError)
                assert "disk is full" in str(error)
                assert "nothing of this operation was written" in str(error)
            assert (other, short) == (None, 2)
            assert await store.get("large") is None
            assert (await store.get("other"), await store.read("journal")) == (b"w", [b"r", b"t"])

    run(main())


def test_a_lock_that_another_holds_is_waited_for(run, path):
    async def main():
        async with SQLiteStore(path) as store:
            await store.set("key", b"v")
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            writing = asyncio.create_task(store.set("key", b"w"))
            async with SQLiteStore(path) as reader:
                assert await reader.get("key") == b"v"  # readers do not wait
            assert not writing.done()
            other.execute("COMMIT")
            other.close()
            await writing
            assert await store.get("key") == b"w"

    run(main())


def test_a_lock_that_is_held_too_long_is_told(says, path):
    with SQLiteStore(path) as store:
        asyncio.run(store.set("key", b"v"))
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    says(path, "another process holds its lock", "busy_timeout", busy_timeout=0.05)
    other.execute("COMMIT")
    other.close()


def test_a_thousand_that_wait_for_a_lock_wait_once(run, path):
    async def main():
        async with SQLiteStore(path, busy_timeout=0.1) as store:
            await store.set("key", b"v")
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("BEGIN IMMEDIATE")
            async with asyncio.timeout(10):
                ended = await asyncio.gather(
                    *(store.set(f"key {number}", b"v") for number in range(1000)),
                    return_exceptions=True,
                )
            assert all(isinstance(error, StoreError) for error in ended)
            assert len({str(error) for error in ended}) == 1000  # each says its own key
            other.execute("COMMIT")
            other.close()
            await store.set("key", b"w")

    run(main())


def test_what_one_operation_cannot_do_fails_that_one_only(run, path):
    async def main():
        async with SQLiteStore(path) as store:
            await store.set("key", b"v")
            limit = sqlite3.SQLITE_LIMIT_LENGTH
            store._worker()._backend._opened.connection.setlimit(limit, 100_000)
            ended = await asyncio.gather(
                *(
                    store.set(f"key {number}", b"x" * (200_000 if number == 7 else 1))
                    for number in range(20)
                ),
                return_exceptions=True,
            )
            assert [index for index, error in enumerate(ended) if error is not None] == [7]
            assert "'key 7'" in str(ended[7])
            assert len(await store.keys("key ")) == 19

    run(main())


def test_a_relative_path_stays_where_it_was(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()

    async def main():
        async with SQLiteStore() as store:
            os.chdir(tmp_path / "elsewhere")
            await store.set("key", b"v")
            assert "offbook.db" in repr(store)

    run(main())
    assert (tmp_path / "offbook.db").is_file()


def test_a_database_in_memory_is_as_long_there_as_the_store(run):
    async def main():
        async with SQLiteStore(":memory:") as store, SQLiteStore(":memory:") as other:
            await store.set("key", b"v")
            worker = store._worker()._thread
            worker.join(10)
            assert await store.get("key") == b"v"
            assert await other.get("key") is None

    run(main())
    assert not Path(":memory:").exists()


@pytest.mark.parametrize("path", ["", 1, None, b"bytes.db", "nul\0.db"])
def test_a_path_that_is_none_is_told_at_once(path):
    with pytest.raises(UsageError, match=r"SQLiteStore: path"):
        SQLiteStore(path)


def test_making_one_touches_nothing(path):
    SQLiteStore(path).close()
    assert not path.exists()


def test_the_file_is_in_order_after_everything(run, path):
    async def main():
        async with SQLiteStore(path) as store:
            for number in range(50):
                await store.append(f"run {number % 7}", [b"r"] * (number % 3 + 1))
                await store.set(f"run {number % 5}", b"v")
                await store.delete(f"run {number % 4}")
                await store.keep_alive("me", 0.05, first=True)
                await store.claim(f"run {number % 4}", "me")
            await asyncio.sleep(0.1)
            await store.claim("only a claim", "me") if await store.keep_alive("me", 30) else None
            await store.revoke("me")
            left = [*await store.keys(), "only a claim"]
            assert left
            assert await store.prune(older_than=0) == len(
                {*left, *(f"run {number}" for number in range(4))}
            )

    run(main())
    file = sqlite3.connect(path)
    assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert [
        file.execute(f"SELECT count(*) FROM {table}").fetchone()
        for table in ("items", "contents", "records", "owners", "claims")
    ] == [(0,)] * 5
    file.close()
