"""A prune is done in short steps: others are answered between them, and what is half removed is
nowhere.
"""

import asyncio
import sqlite3
import time
from contextlib import closing

import pytest

from offbook.runtime import SQLiteStore
from offbook.runtime.stores.store_thread import STEP_SECONDS

KINDS = ("sqlite", "redis", "postgres")
RECORDS = 40_000


def timed(store):
    """How long each step of a prune takes, in the list that is returned."""
    backend, steps = store._worker()._backend, []
    perform = backend.perform

    def performed(batch, number):
        started = time.monotonic()
        perform(batch, number)
        if batch[0].name == "prune":
            steps.append(time.monotonic() - started)

    backend.perform = performed
    return steps


async def filled(store, keys=600, records=RECORDS):
    """Keys, and a journal that is too long to go in one step."""
    for start in range(0, keys, 200):
        await asyncio.gather(
            *(store.set(f"old:{number:05}", b"v" * 4000) for number in range(start, start + 200))
        )
    await store.append("old:journal", [b"record"] * records)
    await store.append("old:journal 2", [b"record"] * 10)


@pytest.mark.parametrize("kind", KINDS)
def test_others_are_answered_between_the_steps_of_a_prune(run, store_of, kind):
    store = store_of(kind)

    async def main():
        await filled(store, records=300_000 if kind == "sqlite" else RECORDS)
        steps = timed(store)
        pruning = asyncio.create_task(store.prune(older_than=0))
        answered = 0
        while not pruning.done():
            await asyncio.wait_for(store.keep_alive("me", 60, first=True), 5)
            await store.read("old:journal 2")
            answered += 1
        assert await pruning == 602
        assert len(steps) >= 2
        assert answered >= len(steps) // 2 - 2
        assert sorted(steps)[len(steps) // 2] < STEP_SECONDS + 0.1
        assert await store.keys() == []

    run(main())


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_long_journal_that_is_half_removed_is_nowhere_and_may_be_written_anew(
    run, store_of, kind
):
    store = store_of(kind)

    async def main():
        await filled(store, 0)
        steps = timed(store)
        pruning = asyncio.create_task(store.prune(older_than=0))
        seen = set()
        while not pruning.done():
            records = await store.read("old:journal")
            seen.add(len(records))
            if not records and not pruning.done():
                assert await store.append("old:journal", [b"new"]) == 1
                break
        gone = await pruning
        assert seen <= {0, RECORDS}
        assert gone in (1, 2, 3)  # the two journals, and the one that was written anew meanwhile
        assert await store.read("old:journal") in ([b"new"], [])
        assert steps

    run(main())


def test_a_prune_that_was_ended_in_a_long_journal_is_completed_by_the_next_one(run, tmp_path):
    path = tmp_path / "runs.db"

    def rows(table):
        with closing(sqlite3.connect(path)) as connection:
            return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]

    async def main():
        async with SQLiteStore(path) as store:
            await store.append("old:journal", [b"record" * 20] * 200_000)
            pruning = asyncio.create_task(store.prune(older_than=0))
            while await store.read("old:journal", 199_999):
                pass
        await pruning  # which the end of the store has cut short
        assert (rows("items"), rows("records") > 0) == (1, True)
        async with SQLiteStore(path) as store:
            assert await store.keys() == []
            assert await store.prune() == 0
        assert (rows("items"), rows("records")) == (0, 0)

    run(main())


def test_a_file_is_smaller_after_a_prune_and_the_log_beside_it_is_bounded(run, tmp_path):
    path = tmp_path / "runs.db"

    async def main():
        async with SQLiteStore(path) as store:
            for number in range(12):
                await store.set(f"{number}", bytes(4 << 20))
            await store.set("kept", b"v")
            log = path.with_name("runs.db-wal")
            for number in range(50):
                await store.set("kept", b"%d" % number)
            assert log.stat().st_size <= 17 << 20
            assert await store.prune(older_than=0) == 13
        assert path.stat().st_size < 1 << 20

    run(main())
