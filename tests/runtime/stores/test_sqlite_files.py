"""The files of a store: for whom they are, and what becomes of a store whose files are taken
away.
"""

import asyncio
import os
import shutil
import sqlite3
import stat
import subprocess
import sys

import pytest

from offbook.runtime import SQLiteStore, StoreError, UsageError
from offbook.runtime.stores import Put


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.db"


@pytest.fixture
def mask():
    """A mask of the process that takes nothing away, or all from others."""
    before = os.umask(0)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize("taken", [0o000, 0o077])
@pytest.mark.parametrize("mode", [0o600, 0o660])
def test_files_are_for_those_that_the_mode_says(run, path, mask, mode, taken):
    mask(taken)

    async def main():
        async with SQLiteStore(path, **({} if mode == 0o600 else {"mode": mode})) as store:
            await store.keep_alive("me", 60, first=True)
            await store.set("key", b"v")
            files = {
                found.name: stat.S_IMODE(found.stat().st_mode) for found in path.parent.iterdir()
            }
            assert len(files) == 4
            assert set(files.values()) == {mode}, files

    run(main())


def test_a_file_that_is_there_keeps_its_mode(run, path):
    path.touch()
    path.chmod(0o640)
    with SQLiteStore(path) as store:
        asyncio.run(store.set("key", b"v"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.parametrize("mode", ["600", None, True, 0o400, 0o10600, -1, 0])
def test_a_mode_with_which_nothing_works_is_told(path, mode):
    with pytest.raises(UsageError, match=r"SQLiteStore: mode"):
        SQLiteStore(path, mode=mode)


@pytest.mark.parametrize("part", ["", "-wal", "-shm"])
@pytest.mark.parametrize("how", ["deleted", "replaced"])
def test_a_file_that_is_taken_away_is_noticed_by_the_next_operation(run, path, part, how):
    async def main():
        async with SQLiteStore(path) as store:
            await store.set("key", b"v")
            file = path.with_name(path.name + part)
            if how == "replaced":
                shutil.copy(file, path.with_name("copy"))
                path.with_name("copy").replace(file)
            else:
                file.unlink()
            calls = (
                lambda: store.set("key", b"w"),
                lambda: store.get("key"),
                lambda: store.commit(None, [Put("a", b"b")]),
                lambda: store.keep_alive("me", 9, first=True),
            )
            for call in calls:
                with pytest.raises(StoreError, match=rf"{file.name}' was {how}.*may be lost"):
                    await call()

    run(main())


def test_a_link_to_the_file_is_the_same_store(run, path):
    async def main():
        link = path.with_name("link.db")
        async with SQLiteStore(path) as store:
            await store.keep_alive("me", 60, first=True)
            await store.claim("run", "me")
            link.symlink_to(path)
            async with SQLiteStore(link) as same:
                assert await same.holder("run") == "me"
                await same.set("key", b"v")
            assert await store.get("key") == b"v"

    run(main())


@pytest.mark.parametrize("name", ["a b?mode=memory#x.db", "%41.db", "ä'.db", "file:x"])
def test_any_name_is_the_name_of_a_file(run, tmp_path, name):
    with SQLiteStore(tmp_path / name) as store:
        asyncio.run(store.set("key", b"v"))
    assert (tmp_path / name).is_file()


def test_a_newer_version_that_comes_while_it_is_open_is_told(run, path):
    async def main():
        async with SQLiteStore(path) as store:
            await store.set("key", b"v")
            other = sqlite3.connect(path, isolation_level=None)
            other.execute("PRAGMA user_version = 4")
            for call in (
                lambda: store.set("key", b"w"),
                lambda: store.get("key"),
                lambda: store.claim("k", "me"),
            ):
                with pytest.raises(
                    StoreError, match=r"newer version of offbook.*version 4.*Update"
                ):
                    await call()
            other.execute("PRAGMA user_version = 1")
            other.close()
            assert await store.get("key") == b"v"

    run(main())


def test_what_cannot_be_opened_is_closed_again(tmp_path):
    program = (
        "import asyncio, gc, sys\nfrom offbook.runtime import SQLiteStore, StoreError\n"
        "async def main():\n    async with SQLiteStore(sys.argv[1]) as store:\n        "
        "try:\n            await store.set('key', b'w')\n"
        "        except StoreError as error:\n            "
        "print('told')\nasyncio.run(main())\ngc.collect()\n"
    )
    for path in (tmp_path / "none" / "a.db", tmp_path):
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "error", "-c", program, str(path)],
            capture_output=True,
            text=True,
            check=True,
            timeout=50,
        )
        assert (done.stdout, done.stderr) == ("told\n", "")
