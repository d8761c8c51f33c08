"""Many callers at once: from one loop, from several, from several threads; and callers that go
away.
"""

import asyncio
import threading

import pytest

from offbook.runtime import SQLiteStore
from offbook.runtime.stores import Append, Expect, Put

CALLERS = 1000
THREADS = 4
OF_EACH = 25
WITH_A_WORKER = pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres"])


def batches(store):
    """How many transactions the store has made so far."""
    return store._worker()._number


@WITH_A_WORKER
def test_a_thousand_appends_share_a_few_transactions(run, store_of, kind):
    store = store_of(kind)

    async def main():
        await store.get("first")
        before = batches(store)
        sizes = await asyncio.gather(
            *(store.append(f"run {number % 10}", [b"%d" % number]) for number in range(CALLERS))
        )
        assert batches(store) - before < CALLERS / 20
        assert sorted(sizes) == sorted(list(range(1, CALLERS // 10 + 1)) * 10)
        for journal in range(10):
            assert await store.read(f"run {journal}") == [
                b"%d" % number for number in range(journal, CALLERS, 10)
            ]

    run(main())


def test_all_kinds_of_calls_at_once(run, store):
    async def life(number):
        key = f"run {number}"
        claim = await store.claim(key, "me")
        assert await store.create(key, b"start")
        assert await store.append(key, [b"1", b"2"]) == 2
        assert await store.keep_alive("me", 60)
        await store.commit(
            claim, [Expect(key, b"start"), Append(key, (b"3",), 2), Put(key, b"later")]
        )
        assert (await store.get(key), await store.read(key, 1), await store.holder(key)) == (
            b"later",
            [b"2", b"3"],
            "me",
        )
        assert key in await store.keys(key)
        if number % 2:
            await store.delete(key)
        await store.commit(claim, [], then="forget")
        assert await store.holder(key) is None

    async def main():
        assert await store.keep_alive("me", 60, first=True)
        await asyncio.gather(*map(life, range(100)))
        assert await store.orphans() == await store.keys()
        assert await store.keys() == sorted(f"run {number}" for number in range(0, 100, 2))
        assert await store.prune() == 0

    run(main())


def test_it_serves_many_threads_each_with_a_loop_of_its_own(store):
    trouble = []

    async def use(name):
        for turn in range(OF_EACH):
            await asyncio.gather(
                store.append("shared", [f"{name} {turn}".encode()]),
                store.set(f"{name} {turn}", b"v"),
            )

    def work(name):
        try:
            asyncio.run(use(name))
        except BaseException as error:
            trouble.append(error)

    threads = [threading.Thread(target=work, args=(f"t{number}",)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not trouble

    async def look():
        return await store.read("shared"), await store.keys("t")

    records, keys = asyncio.run(look())
    assert len(records) == THREADS * OF_EACH == len(keys)
    for name in (f"t{number}" for number in range(THREADS)):
        assert [record for record in records if record.startswith(name.encode())] == [
            f"{name} {turn}".encode() for turn in range(OF_EACH)
        ]


def test_it_is_used_from_one_loop_after_the_other(store):
    for number in range(3):
        assert asyncio.run(store.append("journal", [b"%d" % number])) == number + 1
    assert asyncio.run(store.read("journal")) == [b"0", b"1", b"2"]


def test_a_caller_that_is_cancelled_leaves_the_store_as_it_was(run, store):
    async def main():
        tasks = [asyncio.create_task(store.append("journal", [b"x"])) for _ in range(50)]
        await asyncio.sleep(0)
        for task in tasks[::2]:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        journal = await store.read("journal")
        answered = [size for size in ended if isinstance(size, int)]
        assert len(answered) >= 25
        assert len(set(answered)) == len(answered)
        assert len(answered) <= len(journal) <= 50

    run(main())


@WITH_A_WORKER
def test_a_loop_that_ends_leaves_the_others_alone(store_of, kind):
    store = store_of(kind)

    async def leave():
        asyncio.get_running_loop().call_soon(asyncio.current_task().cancel)
        await asyncio.gather(*(store.set(f"key {number}", b"v") for number in range(50)))

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(leave())
    assert asyncio.run(store.append("journal", [b"r"])) == 1


@WITH_A_WORKER
def test_an_idle_store_has_no_thread(store_of, kind):
    before = threading.active_count()
    store = store_of(kind)
    assert threading.active_count() == before
    for number in range(2):
        assert asyncio.run(store.append("journal", [b"r"])) == number + 1
        (thread,) = (thread for thread in threading.enumerate() if "worker" in thread.name)
        assert thread.daemon
        thread.join(10)
        assert threading.active_count() == before


@WITH_A_WORKER
def test_closing_waits_for_what_was_asked(run, store_of, kind):
    store = store_of(kind, "again")

    async def main():
        appends = asyncio.gather(*(store.append("journal", [b"r"]) for _ in range(100)))
        await asyncio.sleep(0)
        await store.aclose()
        assert sorted(await appends) == list(range(1, 101))
        assert len(await store_of(kind, "again").read("journal")) == 100

    run(main())


@WITH_A_WORKER
def test_what_was_written_is_there_for_the_next_store(run, store_of, kind):
    async def main():
        async with store_of(kind, "again") as store:
            await store.set("key", b"v")
            await store.append("key", [b"r"])
            assert await store.keep_alive("me", 60, first=True)
            claim = await store.claim("key", "me")
        again = store_of(kind, "again")
        assert (await again.get("key"), await again.read("key")) == (b"v", [b"r"])
        # Where the connection that a store has closed is the proof that its owners are gone.
        if kind == "postgres":
            assert await again.holder("key") is None
            assert not await again.keep_alive("me", 60)
        else:
            assert await again.holder("key") == "me"
            await again.commit(claim, [Append("key", (b"s",), 1)])
            assert await again.append("key", [b"t"]) == 3

    run(main())


@WITH_A_WORKER
def test_namespaces_know_nothing_of_each_other(run, store_of, kind):
    async def main():
        one, two = store_of(kind, "one"), store_of(kind, "two")
        await one.set("key", b"v")
        assert await two.keys() == []
        assert await two.create("key", b"w")
        assert await one.get("key") == b"v"

    run(main())


def test_a_store_that_nobody_has_closed_lets_go_of_its_file(tmp_path):
    path = tmp_path / "left.db"
    store = SQLiteStore(path)
    asyncio.run(store.set("key", b"v"))
    (thread,) = (thread for thread in threading.enumerate() if "worker" in thread.name)
    assert path.with_name("left.db-wal").exists()
    del store
    thread.join(10)
    assert not path.with_name("left.db-wal").exists()
