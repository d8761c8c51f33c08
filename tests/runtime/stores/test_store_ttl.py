"""The time to live: what has expired is not there for anybody, and value and journal of a key live
together.
"""

import asyncio

import pytest

from offbook.runtime import MemoryStore
from offbook.runtime.stores import Expect, Put

SHORT = 0.4
WITH_A_WORKER = pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres"])


class Time:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def test_an_expired_key_is_not_there_for_anybody(run, store_of, store_kind):
    store = store_of(store_kind, ttl=SHORT)

    async def main():
        await store.set("value", b"v")
        await store.append("journal", [b"r"])
        assert await store.keys() == ["journal", "value"]
        await asyncio.sleep(SHORT + 0.05)
        assert await store.get("value") is None
        assert await store.read("journal") == []
        assert await store.keys() == []
        assert await store.append("journal", []) == 0
        assert await store.append("journal", [b"new"]) == 1
        assert await store.read("journal") == [b"new"]
        assert await store.create("value", b"w") is True
        assert await store.get("value") == b"w"
        await store.delete("nothing")

    run(main())


def test_each_write_lets_the_whole_key_live_anew(run, store_of, store_kind):
    store = store_of(store_kind, ttl=0.8)

    async def main():
        await store.set("run", b"v")
        for number in range(3):
            await asyncio.sleep(0.3)
            assert await store.append("run", [b"r"]) == number + 1
        assert await store.get("run") == b"v"
        assert len(await store.read("run")) == 3
        await asyncio.sleep(0.85)
        assert (await store.get("run"), await store.read("run")) == (None, [])

    run(main())


def test_what_has_expired_is_pruned(run, store_of, store_kind):
    store = store_of(store_kind, ttl=SHORT)

    async def main():
        for number in range(5):
            await store.set(f"value {number}", b"v")
        await asyncio.sleep(SHORT + 0.05)
        assert await store.prune() == 5
        assert await store.prune() == 0

    run(main())


@WITH_A_WORKER
def test_each_key_lives_as_long_as_its_writer_has_said(run, store_of, kind):
    async def main():
        short, for_ever = store_of(kind, "shared", ttl=SHORT), store_of(kind, "shared")
        await short.set("short", b"v")
        await short.set("prolonged", b"v")
        await short.append("prolonged", [b"r"])
        await for_ever.set("for ever", b"v")
        await for_ever.append("prolonged", [b"s"])
        await asyncio.sleep(SHORT + 0.05)
        for store in (short, for_ever):
            assert await store.keys() == ["for ever", "prolonged"]
            assert (await store.get("prolonged"), await store.read("prolonged")) == (
                b"v",
                [b"r", b"s"],
            )

    run(main())


def test_owners_and_claims_have_their_own_time(run, store_of, store_kind):
    store = store_of(store_kind, ttl=0.05)

    async def main():
        assert await store.keep_alive("me", 60, first=True)
        claim = await store.claim("run", "me", [Put("run", b"v")])
        await asyncio.sleep(0.1)
        assert (await store.holder("run"), await store.get("run")) == ("me", None)
        await store.commit(claim, [Expect("run"), Put("run", b"w", 60)])
        await asyncio.sleep(0.1)
        assert await store.get("run") == b"w"

    run(main())


def test_in_memory_time_is_what_it_is_told(run):
    time = Time()
    store = MemoryStore(ttl=10, time=time)

    async def main():
        await store.set("key", b"v")
        assert await store.keep_alive("a", 5, first=True)
        assert await store.claim("run", "a")
        time.now += 5
        assert await store.holder("run") is None
        assert await store.keep_alive("b", 5, first=True)
        assert await store.claim("run", "b")
        assert await store.keep_alive("a", 60)
        time.now += 4.9
        assert await store.get("key") == b"v"
        assert await store.claim("run", "a") is None
        time.now += 0.1
        assert await store.get("key") is None
        assert await store.keys() == []
        assert await store.prune() == 1

    run(main())


def test_in_memory_what_has_expired_takes_no_room(run):
    time = Time()
    store = MemoryStore(ttl=10, time=time)

    async def main():
        for number in range(1000):
            await store.set(f"key {number}", b"v")
            time.now += 1
        assert len(store._entries) <= 11
        time.now -= 5000  # a clock that is put back
        await store.set("early", b"v")
        time.now += 20
        assert "early" not in await store.keys()

    run(main())
