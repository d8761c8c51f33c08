"""`SQLiteStore.backup`, and copies that are put over a file whose `-wal` was left."""

import asyncio
import os
import shutil
import sqlite3
import stat
from contextlib import closing

import pytest

from offbook.runtime import SQLiteStore, StoreError, UsageError


async def fill(store, start, count, size=2000):
    for number in range(start, start + count):
        await store.append(f"key {number:05}", [bytes([number % 256]) * size])


def test_a_backup_has_all_that_was_written_before_and_whole_operations_of_what_comes_after(
    run, tmp_path
):
    async def main():
        store, ended = SQLiteStore(tmp_path / "runs.db"), False
        await fill(store, 0, 200)

        async def go_on_writing():
            number = 200
            while not ended:
                await asyncio.gather(
                    store.append(f"key {number:05}", [b"x"] * 3),
                    store.set(f"value {number:05}", b"y"),
                )
                number += 1

        writing = asyncio.create_task(go_on_writing())
        await asyncio.gather(*(store.backup(tmp_path / f"copy-{number}.db") for number in range(5)))
        ended = True
        await writing
        await store.aclose()
        for number in range(5):
            path = tmp_path / f"copy-{number}.db"
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            with closing(sqlite3.connect(path)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            async with SQLiteStore(path) as copy:
                keys = await copy.keys("key ")
                assert keys[:200] == [f"key {index:05}" for index in range(200)]
                assert {len(await copy.read(key)) for key in keys[200:]} <= {3}
        assert not list(tmp_path.glob("*.part"))

    run(main())


def test_no_owner_is_alive_in_a_backup(run, tmp_path):
    async def main():
        async with SQLiteStore(tmp_path / "runs.db") as store:
            assert await store.keep_alive("me", 1000, first=True)
            await store.claim("key", "me")
            await store.backup(tmp_path / "copy.db")
            assert await store.holder("key") == "me"
        async with SQLiteStore(tmp_path / "copy.db") as copy:
            assert await copy.holder("key") is None
            assert not await copy.keep_alive("me", 10)

    run(main())


def test_a_backup_writes_over_nothing_and_says_why_it_cannot(run, tmp_path):
    async def main():
        (tmp_path / "there.db").write_text("mine")
        async with SQLiteStore(tmp_path / "runs.db") as store:
            for path in (tmp_path / "there.db", tmp_path / "runs.db"):
                with pytest.raises(UsageError, match="already exists and is not overwritten"):
                    await store.backup(path)
            with pytest.raises(StoreError, match="Check that the folder exists"):
                await store.backup(tmp_path / "nowhere" / "copy.db")
        assert (tmp_path / "there.db").read_text() == "mine"
        async with SQLiteStore(":memory:") as memory:
            with pytest.raises(UsageError, match="has no file to copy"):
                await memory.backup(tmp_path / "copy.db")

    run(main())


def carry_over(path):
    """What SQLite does now and then: the `-wal` begins anew."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()[0] == 0


async def crash(folder, left):
    """A store that is backed up, goes on, and is killed: its files as they are left, and the
    backup.
    """
    store = SQLiteStore(folder / "runs.db")
    await fill(store, 0, 150)
    await store.backup(folder / "copy.db")
    await fill(store, 0, 150)
    await fill(store, 150, 150)
    carry_over(folder / "runs.db")
    await fill(store, 300, 40)
    await store.set("last", b"1")
    left.mkdir()
    for part in ("", "-wal", "-shm"):
        shutil.copyfile(folder / f"runs.db{part}", left / f"runs.db{part}")
    await store.aclose()


@pytest.mark.parametrize("how", ["copied", "moved", "copied with its times"])
def test_a_copy_that_is_put_over_a_file_whose_wal_was_left_is_noticed_and_stays_whole(
    run, tmp_path, how
):
    async def main():
        left = tmp_path / "left"
        await crash(tmp_path, left)
        match how:
            case "copied":
                shutil.copyfile(tmp_path / "copy.db", left / "runs.db")
            case "moved":
                (tmp_path / "copy.db").rename(left / "runs.db")
            case _:
                shutil.copy2(tmp_path / "copy.db", left / "runs.db")
        for _ in range(2):
            async with SQLiteStore(left / "runs.db") as store:
                with pytest.raises(
                    StoreError,
                    match=(
                        r"a copy replaced it, but the .*runs\.db-wal of the former file, .*was "
                        r"left.*remove the files"
                    ),
                ):
                    await store.get("last")
        for part in ("-wal", "-shm"):
            (left / f"runs.db{part}").unlink(missing_ok=True)
        async with SQLiteStore(left / "runs.db") as store:
            assert len(await store.keys("key ")) == 150
            assert await store.get("last") is None
        with closing(sqlite3.connect(left / "runs.db")) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

    run(main())


@pytest.mark.parametrize("changed_last", ["the file", "its wal"])
def test_what_a_process_leaves_that_is_killed_is_opened_as_it_is(run, tmp_path, changed_last):
    async def main():
        left = tmp_path / "left"
        await crash(tmp_path, left)
        if changed_last == "the file":
            (left / "runs.db").chmod(0o600)
        else:
            os.utime(left / "runs.db-wal")
        async with SQLiteStore(left / "runs.db") as store:
            assert await store.get("last") == b"1"
            assert len(await store.keys("key ")) == 340

    run(main())
