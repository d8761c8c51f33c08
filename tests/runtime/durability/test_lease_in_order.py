"""A run whose beginning is under way in a file, and which is given up meanwhile: what was taken for
it is given back.
"""

import asyncio
import sqlite3
from contextlib import closing

import pytest

from offbook.actors import ChatModelAgent
from offbook.runtime import ActorSystem, Message, Runner, SQLiteStore, StoreError
from tests.doubles.held_stores import PATIENCE


class Instant:
    async def generate(self, request):
        return Message("assistant", "It is three.")


@pytest.mark.parametrize("is_under_way", [True, False], ids=["in the transaction", "in the queue"])
def test_what_a_file_grants_to_a_run_that_is_given_up_meanwhile_is_given_back(
    run, tmp_path, monkeypatch, is_under_way
):
    path, asked, claim = tmp_path / "runs.db", asyncio.Event(), SQLiteStore.claim

    async def told(self, *arguments, **options):
        asked.set()
        return await claim(self, *arguments, **options)

    async def main():
        async with SQLiteStore(path) as store, ActorSystem() as system:
            runner = Runner(
                ChatModelAgent(name="a", model=Instant()),
                store=store,
                durability="step",
                keep="unfinished",
                system=system,
            )
            await runner.query("What is one and two?")
            monkeypatch.setattr(SQLiteStore, "claim", told)
            with closing(sqlite3.connect(path, isolation_level=None)) as other:
                other.execute("BEGIN IMMEDIATE")
                before = None if is_under_way else asyncio.ensure_future(store.set("before", b""))
                run = runner.run("And now?")
                await asked.wait()
                run.cancel()
                other.execute("ROLLBACK")
            await run
            if before is not None:
                await before
                await store.delete("before")
            async with asyncio.timeout(PATIENCE):
                while await store.keys() or await store.orphans():
                    pass  # each of them is behind what the store was asked for before
            assert (await runner.query("And once more?")).final_output == "It is three."

    run(main())


def test_what_was_never_granted_leaves_nothing_to_be_claimed(run, tmp_path, monkeypatch):
    path, claim = tmp_path / "runs.db", SQLiteStore.claim

    async def broken(self, *arguments, **options):
        monkeypatch.setattr(SQLiteStore, "claim", claim)
        raise ConnectionError("the line is broken")

    async def main():
        async with SQLiteStore(path) as store, ActorSystem() as system:
            runner = Runner(
                ChatModelAgent(name="a", model=Instant()),
                store=store,
                durability="step",
                keep="unfinished",
                system=system,
            )
            monkeypatch.setattr(SQLiteStore, "claim", broken)
            with pytest.raises(StoreError, match="the line is broken"):
                await runner.query("What is one and two?")
            assert await store.keys() == []

    run(main())
    with closing(sqlite3.connect(path)) as file:
        assert file.execute("SELECT key FROM claims").fetchall() == []
