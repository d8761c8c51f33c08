"""What a connection of a `SQLiteStore` remembers is never older than what another one has
written.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from offbook.runtime import SQLiteStore
from offbook.runtime.errors import StoreError, WriteRefused
from offbook.runtime.stores import Append, Put, Remove
from offbook.runtime.stores.sqlite import known
from offbook.runtime.stores.writes import Expect

MANY = 100


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def test_what_another_connection_writes_is_seen_by_the_next_operation(path: Path) -> None:
    async def main() -> None:
        async with SQLiteStore(path) as one, SQLiteStore(path) as two:
            for number in range(20):
                mine, other = (one, two) if number % 2 else (two, one)
                await mine.commit(None, [Append("journal", (b"%d" % number,), number)])
                with pytest.raises(WriteRefused):
                    await other.commit(None, [Append("journal", (b"again",), number)])
            assert (
                await one.read("journal")
                == await two.read("journal")
                == [b"%d" % number for number in range(20)]
            )
            await one.delete("journal")
            await two.commit(None, [Expect("journal"), Append("journal", (b"new",), 0)])
            assert await one.read("journal") == [b"new"]

    asyncio.run(main())


def test_a_claim_that_another_connection_has_taken_refuses_the_writes_of_the_former_one(
    path: Path,
) -> None:
    async def main() -> None:
        async with SQLiteStore(path) as one, SQLiteStore(path) as two:
            await one.keep_alive("first", 60, first=True)
            await two.keep_alive("second", 60, first=True)
            mine = await one.claim("run", "first", [Append("journal", (b"0",), 0)])
            assert mine is not None
            await one.commit(mine, [Append("journal", (b"1",), 1)])
            assert await two.claim("run", "second") is None
            await two.revoke("first")
            theirs = await two.claim("run", "second")
            assert theirs is not None
            with pytest.raises(WriteRefused):
                await one.commit(mine, [Append("journal", (b"2",), 2)])
            await two.commit(theirs, [Append("journal", (b"3",), 2)])
            assert await one.read("journal") == [b"0", b"1", b"3"]

    asyncio.run(main())


def test_keys_that_two_connections_make_at_once_stay_apart(path: Path) -> None:
    async def main() -> None:
        async with SQLiteStore(path) as one, SQLiteStore(path) as two:
            for turn in range(5):
                await asyncio.gather(
                    *(
                        store.commit(
                            None,
                            [Expect(key), Put(key, key.encode()), Append(key, (key.encode(),), 0)],
                        )
                        for name, store in (("one", one), ("two", two))
                        for key in (f"{name} {turn} {number}" for number in range(MANY))
                    )
                )
            keys = await two.keys()
            assert len(keys) == 10 * MANY
            assert [await one.get(key) for key in keys] == [key.encode() for key in keys]
            assert [await two.read(key) for key in keys] == [[key.encode()] for key in keys]

    asyncio.run(main())


def test_operations_of_one_key_in_one_transaction_are_done_in_their_order(path: Path) -> None:
    async def main() -> None:
        async with SQLiteStore(path) as store:
            await store.keep_alive("me", 60, first=True)
            claims = await asyncio.gather(
                *(store.claim(f"run {number}", "me") for number in range(MANY))
            )
            await asyncio.gather(
                *(
                    write
                    for number, claim in enumerate(claims)
                    for write in (
                        store.commit(
                            claim, [Put("value", b"%d" % number), Append("journal", (b"old",), 0)]
                        ),
                        store.commit(
                            claim,
                            [Append("journal", (b"older",), 1), Remove("value"), Remove("journal")],
                        ),
                        store.commit(
                            claim, [Append("journal", (b"%d" % number,), 0), Put("value", b"last")]
                        ),
                        store.commit(
                            claim, [Remove("journal")], then="forget" if number % 2 else "release"
                        ),
                    )
                )
            )
            assert await store.get("value") == b"last"
            assert await store.read("journal") == []
            assert await store.keys() == ["value"]
            again = await asyncio.gather(
                *(store.claim(f"run {number}", "me") for number in range(MANY))
            )
            assert [claim.attempts for claim in again if claim is not None] == [1] * MANY

    asyncio.run(main())


def test_what_a_transaction_has_not_done_is_not_remembered(path: Path) -> None:
    async def main() -> None:
        async with SQLiteStore(path) as store:
            await store.commit(None, [Append("journal", (b"0",), 0)])
            with closing(sqlite3.connect(path)) as beside:
                beside.execute(
                    "CREATE TRIGGER refuse BEFORE INSERT ON contents WHEN NEW.value = x'00' "
                    "BEGIN SELECT RAISE(ABORT, 'no'); END"
                )
            with pytest.raises(StoreError):
                await store.commit(
                    None, [Append("journal", (b"1",), 1), Put("other", b"1"), Put("refused", b"\0")]
                )
            await store.commit(None, [Expect("other"), Append("journal", (b"1",), 1)])
            assert await store.read("journal") == [b"0", b"1"]

    asyncio.run(main())


def test_a_value_that_has_expired_is_made_anew(path: Path) -> None:
    async def main() -> None:
        async with SQLiteStore(path) as store:
            await store.commit(None, [Put("short", b"1", seconds=1e-6)])
            await store.commit(None, [Expect("short"), Put("short", b"2")])
            assert await store.get("short") == b"2"

    asyncio.run(main())


def test_what_is_remembered_has_a_bound(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(known, "_MOST", 10)

    async def main() -> None:
        async with SQLiteStore(path) as store:
            for turn in range(5):
                await asyncio.gather(
                    *(
                        store.commit(None, [Append(f"journal {number}", (b"%d" % turn,), turn)])
                        for number in range(MANY)
                    )
                )
            assert [len(await store.read(f"journal {number}")) for number in range(MANY)] == [
                5
            ] * MANY

    asyncio.run(main())
