"""The store in a Redis that has lost something: all, its newest writes, its room, or an answer.

What cannot be right is refused, and nothing is half done.
"""

import asyncio
import time
import uuid

import pytest
import redis

from offbook.runtime import RedisStore, StoreError
from offbook.runtime.errors import WriteRefused
from offbook.runtime.stores import Append, Expect, Put, Remove
from offbook.runtime.stores.redis.searches import AT_ONCE
from tests.programs.lossy import LossyLine
from tests.programs.servers import PASSWORD


async def begun(store, owner="me", key="run"):
    await store.keep_alive(owner, 60, first=True)
    return await store.claim(key, owner, [Put(key, b"mark"), Append("journal", (b"1",), 0)])


async def refused(awaitable, reason):
    with pytest.raises(WriteRefused) as caught:
        await awaitable
    assert caught.value.reason == reason, caught.value
    return str(caught.value)


def test_a_refusal_says_what_is_so(run, store_of):
    store = store_of("redis")

    async def main():
        claim = await begun(store)
        assert "its journal holds 1 records, and not 7" in await refused(
            store.commit(claim, [Append("journal", (b"x",), 7)]), "position"
        )
        await store.keep_alive("other", 60, first=True)
        await store.revoke("me")
        assert "owner 'me' is not alive" in await refused(store.commit(claim, []), "owner")
        await store.claim("run", "other")
        assert "'run': its claim now belongs to owner 'other'" in await refused(
            store.commit(claim, []), "epoch"
        )

    run(main())


@pytest.mark.parametrize("how", ["flushed", "started anew and empty"])
def test_g13_a_server_that_was_emptied_takes_nothing_from_owners_of_before(run, own_redis, how):
    options = ("--appendonly", "no")
    server = own_redis(*options)

    async def main():
        async with RedisStore(server.url) as store:
            claim = await begun(store)
            if how == "flushed":
                with redis.Redis.from_url(server.url) as other:
                    other.flushall()
            else:
                server.stop()
                server.start()
            await refused(store.commit(claim, [Append("journal", (b"2",), 1)]), "epoch")
            assert not await store.keep_alive("me", 60)
            await refused(store.claim("run", "me"), "owner")
            await store.keep_alive("me", 60, first=True)
            await refused(store.commit(claim, [Append("journal", (b"2",), 1)]), "epoch")
            again = await store.claim("run", "me")
            assert again.epoch > claim.epoch
            await refused(store.commit(again, [Append("journal", (b"2",), 1)]), "position")
            assert await store.keys() == []

    run(main())


def test_g13_a_replica_that_lagged_and_was_promoted_is_not_written_on_a_gap(run, own_redis):
    primary = own_redis()
    replica = own_redis("--replicaof", f"127.0.0.1 {primary.port}", "--masterauth", PASSWORD)

    async def main():
        with redis.Redis.from_url(replica.url) as there:
            async with RedisStore(primary.url) as store:
                claim, other = await begun(store), await store.claim("other", "me")
                for _ in range(500):
                    if there.exists("offbook:\0c:other"):
                        break
                    await asyncio.sleep(0.02)
                # Which is what a failover does; what comes now it does not have.
                there.replicaof("no", "one")
                await store.commit(claim, [Append("journal", (b"2",), 1)])
                taken = await store.claim("other", "me")
                late = await store.claim("late", "me", [Put("late", b"v")])
            primary.kill()
        async with RedisStore(replica.url) as store:
            await refused(store.commit(claim, [Append("journal", (b"3",), 2)]), "position")
            await refused(store.commit(taken, [Put("v", b"x")]), "epoch")
            await refused(store.commit(late, [Put("late", b"x")]), "epoch")
            await store.commit(other, [Put("v", b"of the history that is left")])
            assert (await store.claim("new", "me")).epoch > late.epoch
            assert (await store.read("journal"), await store.keys()) == (
                [b"1"],
                ["journal", "run", "v"],
            )

    run(main())


def test_an_epoch_is_larger_than_all_before_also_by_a_clock_that_is_behind(
    run, redis_server, store_of
):
    store = store_of("redis")

    async def main():
        await store.keep_alive("me", 60, first=True)
        ahead = int((time.time() + 3600) * 1e6)
        with redis.Redis.from_url(redis_server.url) as other:
            other.set(f"{store._prefix}\0epoch", ahead)
            assert (await store.claim("a", "me")).epoch == ahead + 1
            other.delete(f"{store._prefix}\0epoch")  # as when it was lost
            assert [
                claim.epoch
                for claim in await asyncio.gather(*(store.claim(key, "me") for key in "bcd"))
            ] == [ahead + 2, ahead + 3, ahead + 4]
            assert other.get(f"{store._prefix}\0epoch") == b"%d" % (ahead + 4)

    run(main())


@pytest.mark.parametrize(
    "writes",
    [
        [Append("journal", (b"2",), 1), Put("value", b"new"), Append("other", (b"1",), 0)],
        [Put("value", b"new"), Append("journal", (b"2",) * 3000, 1)],
        [Put("value", b"new", 60)],
        [Expect("value", b"old"), Put("value", b"new"), Remove("journal")],
    ],
)
@pytest.mark.parametrize("how", ["commit", "claim", "unclaimed"])
def test_a_server_without_room_takes_all_of_an_operation_or_nothing(run, own_redis, writes, how):
    server = own_redis("--maxmemory-policy", "noeviction")

    async def main():
        async with RedisStore(server.url) as store:
            claim = await begun(store)
            await store.set("value", b"old")
            with redis.Redis.from_url(server.url) as other:
                other.config_set("maxmemory", 1)
                before = {
                    key: other.dump(key)
                    for key in other.scan_iter("*")
                    if b"\0w:" not in key and b"\0o:" not in key
                }
                calls = {
                    "commit": lambda: store.commit(claim, writes),
                    "claim": lambda: store.claim("free", "me", writes),
                }
                with pytest.raises(StoreError, match="no memory left") as caught:
                    await calls.get(how, lambda: store.commit(None, writes))()
                assert not isinstance(caught.value, WriteRefused)
                assert {
                    key: other.dump(key)
                    for key in other.scan_iter("*")
                    if b"\0w:" not in key and b"\0o:" not in key
                } == before
                assert await store.keep_alive("me", 60)  # who is alive goes on
                await store.commit(claim, [], then="release")
                await store.delete("value")
                other.config_set("maxmemory", 0)
            await store.commit(None, [Append("journal", (b"2",), 1)])
            assert await store.read("journal") == [b"1", b"2"]

    run(main())


def test_what_is_first_removed_and_then_written_is_done_as_a_whole_without_room(run, own_redis):
    server = own_redis("--maxmemory-policy", "noeviction")

    async def main():
        async with RedisStore(server.url) as store:
            claim = await begun(store)
            with redis.Redis.from_url(server.url) as other:
                other.config_set("maxmemory", 1)
            await store.commit(
                claim,
                [Remove("run"), Append("journal", (b"2",), 1), Put("outcome", b"v")],
                then="forget",
            )
            assert (await store.keys(), await store.read("journal")) == (
                ["journal", "outcome"],
                [b"1", b"2"],
            )

    run(main())


def test_something_else_in_the_place_of_a_journal_leaves_nothing_of_its_commit(
    run, redis_server, store_of
):
    store = store_of("redis")
    with redis.Redis.from_url(redis_server.url) as other:
        other.set(f"{store._prefix}\0j:journal", "no list")

    async def main():
        good, bad = (
            store.commit(None, [Put("good", b"v")]),
            store.commit(None, [Put("v", b"x"), Append("journal", (b"x",), 0)]),
        )
        answers = await asyncio.gather(bad, good, return_exceptions=True)
        assert "the key is in use for other data" in str(answers[0])
        assert (answers[1], await store.keys()) == (None, ["good"])

    run(main())


def test_claims_and_commits_whose_answer_was_lost_are_not_done_twice(run, redis_server):
    line = LossyLine(redis_server.port)

    async def main():
        async with RedisStore(
            redis_server.url.replace(str(redis_server.port), str(line.port)),
            prefix=f"{uuid.uuid4()}:",
        ) as store:
            await store.keep_alive("me", 60, first=True)
            line.lose_answer_to(b"claim", times=2)
            claim = await store.claim("run", "me", [Append("journal", (b"1",), 0)])
            assert claim.attempts == 1
            line.lose_answer_to(b"commit")
            commits = [
                store.commit(claim, [Append("journal", (b"2",), 1)]),
                store.commit(claim, [Append("journal", (b"x",), 0)]),
            ]
            answers = await asyncio.gather(*commits, return_exceptions=True)
            assert [type(answer) for answer in answers] == [type(None), WriteRefused]
            assert (line.lost, await store.read("journal")) == (3, [b"1", b"2"])

    try:
        run(main())
    finally:
        line.close()


def test_orphans_are_looked_for_in_steps(run, store_of):
    store = store_of("redis")
    count = 2 * AT_ONCE + 300

    async def main():
        await asyncio.gather(*(store.keep_alive(owner, 60, first=True) for owner in ("a", "b")))
        await asyncio.gather(
            *(store.set(f"r:{number:05}", b"m") for number in range(count)),
            store.set("s", b"m"),
            store.append("r:journal", [b"r"]),
        )
        await asyncio.gather(
            *(store.claim(f"r:{number:05}", "ab"[number % 2]) for number in range(count - 20))
        )
        left = [f"r:{number:05}" for number in range(count - 20, count)]
        assert await store.orphans("r:") == left
        await store.revoke("b")
        tried = [f"r:{number:05}" for number in range(1, count - 20, 2)]
        assert await store.orphans("r:") == left + tried
        assert await store.orphans("r:", 22) == left + tried[:2]
        assert await store.orphans("r:", 3) == left[:3]
        assert await store.orphans("s") == ["s"]

    run(main())


def test_claims_of_nothing_are_pruned_in_steps_and_those_of_the_living_stay(
    run, redis_server, store_of
):
    store = store_of("redis")

    async def main():
        await asyncio.gather(*(store.keep_alive(owner, 60, first=True) for owner in ("a", "b")))
        await asyncio.gather(
            *(store.claim(f"{number:05}", "a") for number in range(AT_ONCE + 300)),
            store.claim("kept", "b"),
            store.claim("both", "a"),
        )
        await store.set("both", b"v")
        assert await store.prune() == 0
        await store.revoke("a")
        assert await store.prune() == AT_ONCE + 300
        assert (await store.holder("kept"), (await store.claim("both", "b")).attempts) == ("b", 2)
        with redis.Redis.from_url(redis_server.url) as other:
            assert other.zrange(f"{store._prefix}\0claims", 0, -1) == [b"both", b"kept"]

    run(main())


def test_owners_that_are_over_are_forgotten_by_a_prune_and_the_living_stay(
    run, redis_server, store_of
):
    store = store_of("redis")

    async def main():
        await asyncio.gather(
            *(
                store.keep_alive(f"{number}", 0.001 if number % 2 else 60, first=True)
                for number in range(2 * AT_ONCE + 300)
            )
        )
        await asyncio.sleep(0.01)
        assert await store.keep_alive("1", 0.001)  # late, and alive again
        await asyncio.sleep(0.01)
        await store.prune()
        assert [await store.keep_alive(name, 60) for name in ("0", "1", "2298", "2299")] == [
            True,
            False,
            True,
            False,
        ]
        await store.revoke("0")
        with redis.Redis.from_url(redis_server.url) as other:
            assert other.zcard(f"{store._prefix}\0owners") == AT_ONCE + 149

    run(main())
