"""Who has answered, as each store keeps it."""

import asyncio

import pytest

from offbook.runtime.console.answer_log import AnswerLog
from offbook.runtime.durability.store_access import StoreAccess


@pytest.mark.parametrize("kind", ["memory", "sqlite", "redis", "postgres"])
def test_notes_that_are_written_at_once_are_all_kept_in_each_store(run, store_of, kind):
    async def main():
        async with store_of(kind) as store:
            log = AnswerLog(StoreAccess(store))
            await asyncio.gather(
                *(log.note("r", by=f"n{number}", answer="yes") for number in range(4))
            )
            return await log.of("r"), await log.of("another")

    notes, none = run(main())
    assert sorted(note["by"] for note in notes) == ["n0", "n1", "n2", "n3"]
    assert all(note["at"] > 1.7e9 for note in notes)
    assert none == []


def test_the_latest_two_hundred_notes_of_a_run_are_kept(run, store_of):
    async def main():
        log = AnswerLog(StoreAccess(store_of("memory")))
        for number in range(203):
            await log.note("r", by=str(number))
        return await log.of("r")

    notes = run(main())
    assert (len(notes), notes[0]["by"], notes[-1]["by"]) == (200, "3", "202")
