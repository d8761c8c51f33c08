"""The list of runs that every store keeps: written in the step in which anything is, found by what
may be asked, the newest first, page by page.
"""

import asyncio
import itertools

import pytest

from offbook.runtime import UsageError
from offbook.runtime.errors import WriteRefused
from offbook.runtime.stores import Append, DropEntry, ExpectEntry, Put, Remove, RunEntry, RunQuery

ALL = ("running", "interrupted", "completed", "failed")


def entry(
    number,
    *,
    agent="A",
    session="",
    status="running",
    labels=(),
    value=b"v",
    seconds=None,
    started=None,
):
    return RunEntry(
        f"r{number:04}",
        agent,
        session,
        status,
        1_000_000 + number if started is None else started,
        labels,
        value,
        seconds,
    )


async def listed(store, *statuses, **wanted):
    return [found.key for found in await store.run_entries(RunQuery(statuses or ALL, **wanted))]


def test_an_entry_is_read_as_it_was_written(run, store):
    async def main():
        written = entry(
            1, agent="Ä", session="s \udc80", labels=("tenant\0acme", "\0"), value=b"\0\xff" * 100
        )
        await store.commit(None, [written])
        assert await store.run_entry("r0001") == written
        assert await store.run_entries(RunQuery(("running",))) == [written]
        assert await store.run_entry("r0002") is None
        assert await listed(store, "completed") == []

    run(main())


def test_what_is_written_again_keeps_its_beginning(run, store):
    async def main():
        await store.commit(None, [entry(1, labels=("a\0b",))])
        await store.commit(
            None,
            [
                entry(
                    1,
                    agent="other",
                    status="completed",
                    started=5,
                    labels=("c\0d",),
                    value=b"w",
                    session="s",
                )
            ],
        )
        assert await store.run_entry("r0001") == entry(
            1, status="completed", labels=("a\0b",), value=b"w", session="s"
        )
        assert (
            await listed(store, "running")
            == await listed(store, labels=("c\0d",))
            == await listed(store, agent="other")
            == []
        )
        for found in ({"labels": ("a\0b",)}, {"agent": "A"}, {"session": "s"}, {}):
            assert await listed(store, "completed", **found) == ["r0001"], found

    run(main())


def test_an_entry_is_written_with_the_rest_or_not_at_all(run, store):
    async def main():
        await store.keep_alive("o", 30, first=True)
        claim = await store.claim("run", "o", [Put("run", b"mark"), entry(1)])
        with pytest.raises(WriteRefused):
            await store.commit(
                claim, [entry(1, status="failed"), entry(2), Append("j", (b"x",), 7)]
            )
        assert await listed(store) == ["r0001"]
        assert (await store.run_entry("r0001")).status == "running"
        await store.commit(claim, [entry(1, status="completed"), Remove("run")], then="forget")
        assert await listed(store, "completed") == ["r0001"]
        with pytest.raises(WriteRefused):
            await store.commit(claim, [DropEntry("r0001")])
        await store.commit(None, [DropEntry("r0001"), DropEntry("nothing")])
        assert await listed(store) == []
        assert await store.run_entry("r0001") is None

    run(main())


def test_keys_are_not_entries(run, store):
    async def main():
        await store.commit(None, [Put("r0001", b"a value of that name"), entry(1)])
        assert await store.keys() == ["r0001"]
        await store.delete("r0001")
        assert await listed(store) == ["r0001"]
        await store.commit(None, [Put("r0001", b"x"), DropEntry("r0001")])
        assert await store.get("r0001") == b"x"

    run(main())


def test_all_that_is_asked_for_holds_and_pages_follow_one_another(run, store):
    """Against the same questions, asked of a list."""
    labels = [(), ("a\0x",), ("a\0y", "b\0x"), ("a\0x", "b\0x")]
    entries = [
        entry(
            number,
            agent="AB"[number % 2],
            session=["", "s", "t"][number % 3],
            status=ALL[number % 4],
            labels=labels[number // 2 % 4],
            started=1_000 + number // 3,
        )
        for number in range(120)
    ]
    questions = [
        dict(zip(("agent", "session", "labels", "since", "until"), values, strict=True))
        for values in itertools.product(
            (None, "B"),
            (None, "s"),
            ((), ("a\0x",), ("b\0x", "a\0x")),
            (None, 1_010),
            (None, 1_030),
        )
    ]

    def fits(one, asked):
        return (
            asked["agent"] in (None, one.agent)
            and asked["session"] in (None, one.session)
            and set(asked["labels"]) <= set(one.labels)
            and (asked["since"] is None or one.started >= asked["since"])
            and (asked["until"] is None or one.started < asked["until"])
        )

    async def main():
        await store.commit(None, entries[:60])
        await store.commit(None, entries[60:])
        for asked, statuses in itertools.product(
            questions, (ALL, ("failed",), ("completed", "running"))
        ):
            wanted = {one.key for one in entries if one.status in statuses and fits(one, asked)}
            found, after = [], None
            while True:
                page = await store.run_entries(RunQuery(statuses, **asked, limit=7, after=after))
                found += page
                if len(page) < 7:
                    break
                after = page[-1].key
            assert len(found) == len(wanted), (asked, statuses)
            assert {one.key for one in found} == wanted, (asked, statuses)
            assert [one.started for one in found] == sorted(
                (one.started for one in found), reverse=True
            )
        assert await listed(store, after="nothing") == []

    run(main())


def test_more_than_are_looked_at_together_are_found(run, store):
    async def main():
        for first in range(0, 3000, 500):
            await store.commit(
                None,
                [
                    entry(
                        number,
                        agent="B" if number == 3 else "A",
                        labels=("odd\0yes",) if number % 2 else (),
                    )
                    for number in range(first, first + 500)
                ],
            )
        assert await listed(store, agent="A", labels=("odd\0yes",), limit=2000) == [
            f"r{number:04}" for number in range(2999, 0, -2) if number != 3
        ]
        assert await listed(store, agent="B", labels=("odd\0yes",)) == ["r0003"]
        assert await listed(store, limit=3) == ["r2999", "r2998", "r2997"]

    run(main())


def test_an_entry_with_a_time_of_its_own_ends_by_itself(run, store, wait_until):
    async def main():
        await store.commit(None, [entry(1, seconds=0.05, labels=("a\0b",)), entry(2)])

        async def gone():
            return await store.run_entry("r0001") is None

        await wait_until(gone)
        assert await listed(store) == await listed(store, agent="A") == ["r0002"]
        assert await listed(store, labels=("a\0b",)) == []
        # It is another one.
        await store.commit(None, [entry(1, agent="new", labels=("c\0d",), started=7)])
        assert await store.run_entry("r0001") == entry(1, agent="new", labels=("c\0d",), started=7)
        await store.commit(None, [entry(1, seconds=0.01)])
        await store.commit(None, [entry(1)])  # it is to stay, after all
        await store.commit(None, [entry(3, seconds=0.02)])

        async def third_gone():
            await store.prune()
            return await store.run_entry("r0003") is None

        await wait_until(third_gone)
        assert await listed(store) == ["r0002", "r0001"]

    run(main())


def test_pruning_removes_what_has_not_been_written_for_long(run, store, wait_until):
    async def main():
        await store.commit(None, [entry(1, labels=("a\0b",))])

        async def pruned():
            await store.prune(0.05)
            return await store.run_entry("r0001") is None

        assert await listed(store, labels=("a\0b",)) == ["r0001"]
        await wait_until(pruned)
        assert await listed(store) == []

    run(main())


def test_a_time_to_live_holds_for_entries(run, store_kind, store_of, wait_until):
    store = store_of(store_kind, ttl=0.05)

    async def main():
        await store.commit(None, [entry(1)])

        async def gone():
            return await store.run_entry("r0001") is None

        await wait_until(gone)
        assert await listed(store) == []

    run(main())


@pytest.mark.parametrize(
    "wrong",
    [
        entry(1, agent="x" * 2000),
        entry(1, labels=("ä" * 1000,)),
        entry(1, value="text"),
        entry(1, started=1.5),
        entry(1, seconds=-1),
        entry(1, agent=None),
    ],
)
def test_what_is_no_entry_is_refused(run, store, wrong):
    async def main():
        with pytest.raises(UsageError):
            await store.commit(None, [wrong])
        assert await listed(store) == []

    run(main())


@pytest.mark.parametrize(
    "query", ["all", RunQuery(ALL, limit=0), RunQuery(ALL, limit=10**6), RunQuery(ALL, limit=True)]
)
def test_what_cannot_be_asked_is_refused(run, store, query):
    async def main():
        with pytest.raises(UsageError):
            await store.run_entries(query)

    run(main())


# --- runs that a process has to continue ---

CLAIM = "offbook:open:1:A:"


def unfinished(number, **columns):
    return entry(number).replace(claim=f"{CLAIM}r{number:04}", **columns)


def test_all_columns_are_read_as_they_were_written(run, store):
    async def main():
        written = unfinished(
            1,
            checkpoint="c \udc80",
            last_agent="B",
            error="ValueError: ü",
            updated=2**50,
            ended=3,
            attempts=4,
            steps=5,
            input_tokens=6,
            output_tokens=7,
            cached_tokens=8,
            requests=9,
        )
        await store.commit(None, [written])
        assert await store.run_entry("r0001") == written
        assert await store.run_entries(RunQuery(("running",))) == [written]
        changed = written.replace(claim="", status="failed", error="", ended=10, steps=11)
        await store.commit(None, [changed])
        assert await store.run_entry("r0001") == changed

    run(main())


def test_the_claims_of_unfinished_runs_without_an_owner_are_orphans(run, store):
    async def main():
        await store.keep_alive("one", 60, first=True)
        await store.keep_alive("two", 60, first=True)
        await store.commit(None, [unfinished(number) for number in range(4)])
        await store.commit(None, [entry(9), Put(f"{CLAIM}value", b"v")])
        names = [f"{CLAIM}r000{number}" for number in range(4)]
        assert await store.orphans(CLAIM) == [*names, f"{CLAIM}value"]
        assert await store.orphans("offbook:open:1:B:") == []
        mine = await store.claim(names[0], "one")
        assert await store.claim(names[1], "two") is not None
        await store.revoke("two")
        # The one that was tried comes last.
        assert await store.orphans(CLAIM) == [*names[2:], f"{CLAIM}value", names[1]]
        assert await store.orphans(CLAIM, 2) == names[2:]
        await store.commit(mine, [entry(0, status="completed")], then="forget")
        await store.commit(None, [DropEntry("r0002"), unfinished(1).replace(claim="")])
        assert await store.orphans(CLAIM) == [names[3], f"{CLAIM}value"]

    run(main())


def test_pruning_leaves_the_attempts_of_an_unfinished_run(run, store):
    async def main():
        for attempt in (1, 2):
            await store.keep_alive("one", 60, first=True)
            claim = await store.claim(f"{CLAIM}r0001", "one", [unfinished(1)])
            assert claim.attempts == attempt
            await store.revoke("one")
            await store.prune()
        await store.commit(None, [entry(1, status="completed")])
        assert await store.prune() == 1
        await store.keep_alive("one", 60, first=True)
        assert (await store.claim(f"{CLAIM}r0001", "one")).attempts == 1

    run(main())


def test_what_expects_a_row_is_refused_if_there_is_another_one(run, store):
    key = f"{CLAIM}r0001"

    async def tried(expected, claim=None):
        try:
            await store.commit(claim, [ExpectEntry("r0001", key, expected), Put("k", b"v")])
        except WriteRefused as refused:
            assert (refused.reason, refused.key, await store.get("k")) == ("value", "r0001", None)
            return False
        await store.delete("k")
        return True

    async def main():
        first, second = unfinished(1), unfinished(1).replace(value=b"other")
        assert await tried(None)
        assert not await tried(first)
        await store.commit(None, [first])
        assert not await tried(None)
        assert await tried(first)
        assert not await tried(second)
        await store.keep_alive("one", 60, first=True)
        with pytest.raises(WriteRefused):
            await store.claim(key, "one", [ExpectEntry("r0001", key), Put("k", b"v")])
        claim = await store.claim(key, "one", [ExpectEntry("r0001", key, first), second])
        assert await tried(second, claim)
        await store.commit(claim, [second.replace(claim="")], then="forget")
        assert await tried(None)  # no process has to continue it
        assert await tried(second)
        await store.commit(None, [DropEntry("r0001"), entry(2, seconds=0.05)])
        assert await tried(None)

    run(main())


def test_who_watches_a_run_is_told_of_each_change_of_its_row(run, store):
    async def main():
        await store.commit(None, [entry(2)])
        changed = asyncio.Event()
        loop = asyncio.get_running_loop()
        watch = store.watch(["r0001"], lambda: loop.call_soon_threadsafe(changed.set))
        try:
            async with asyncio.timeout(20):
                while not watch.is_live:
                    await asyncio.sleep(0.01)
                for write in (unfinished(1), entry(1, status="completed"), DropEntry("r0001")):
                    await asyncio.sleep(0.05)
                    changed.clear()
                    await store.commit(None, [write])
                    await changed.wait()
        finally:
            watch.close()

    run(main())
