"""What the stores need beside the standard library, and when."""

import subprocess
import sys

import pytest

from offbook.runtime import JournalStore, PostgresStore, RedisStore, Store, StoreError, UsageError
from offbook.runtime.codec.packing import pack, unpack


@pytest.mark.parametrize(
    ("cls", "package", "extra"),
    [(RedisStore, "redis", "redis"), (PostgresStore, "psycopg", "postgres")],
)
def test_a_package_that_is_missing_is_told_with_what_to_install(monkeypatch, cls, package, extra):
    for name in (package, "psycopg.conninfo"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(
        UsageError,
        match=rf"{cls.__name__} needs the package {package}: pip install 'offbook\[{extra}\]'",
    ):
        cls("redis://localhost:1/0" if cls is RedisStore else "host=localhost")


def test_nothing_is_imported_before_it_is_used():
    program = (
        "import asyncio, sys\nfrom offbook.runtime import MemoryStore, PostgresStore, "
        "RedisStore, SQLiteStore\n"
        "async def main():\n    async with MemoryStore() as store:\n        await "
        "store.set('key', b'v')\n"
        "asyncio.run(main())\nSQLiteStore('no such folder/x.db').close()\n"
        "assert not {'redis', 'psycopg', 'sqlite3', 'hashlib', 'ctypes'} & set(sys.modules), "
        "set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True, timeout=50)


def test_a_process_ends_though_its_store_was_not_closed(tmp_path):
    program = (
        "import asyncio, sys\nfrom offbook.runtime import SQLiteStore\nstore = "
        "SQLiteStore(sys.argv[1])\n"
        "async def main():\n    await asyncio.gather(*(store.append('journal', [b'r']) for _ "
        "in range(100)))\n"
        "asyncio.run(main())\n"
    )
    path = tmp_path / "left.db"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    )
    assert done.stderr == ""
    program = (
        "import asyncio, sys\nfrom offbook.runtime import "
        "SQLiteStore\nprint(len(asyncio.run(SQLiteStore(sys.argv[1]).read('journal'))))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, str(path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=50,
    )
    assert (done.stdout, done.stderr) == ("100\n", "")


def test_any_object_with_the_three_methods_is_a_store():
    class Plain:
        def get(self, key):
            return None

        async def set(self, key, value):
            pass

        def delete(self, key):
            pass

    assert isinstance(Plain(), Store)
    assert not isinstance(Plain(), JournalStore)
    assert not isinstance({}, Store)


def test_a_store_error_can_be_recorded():
    error = unpack(pack(StoreError("the store is away", run="r1")))
    assert (type(error), str(error), error.run) == (StoreError, "the store is away", "r1")
