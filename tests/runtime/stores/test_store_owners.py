"""Who may write: owners that are alive, claims of keys, and what is refused.

What every store does, by itself, at each write.
"""

import asyncio
import time

import pytest

from offbook.runtime import UsageError
from offbook.runtime.errors import WriteRefused
from offbook.runtime.stores import Append, Claim, Expect, Put, Remove

SOON = 0.05  # seconds for which an owner is alive that is to end in a moment


async def owners(store, *names, seconds=30):
    for name in names:
        assert await store.keep_alive(name, seconds, first=True)


async def refused(awaitable, reason):
    with pytest.raises(WriteRefused) as caught:
        await awaitable
    assert caught.value.reason == reason, caught.value


def test_g13_one_owner_has_a_key_and_another_one_does_not_get_it(run, store):
    async def main():
        await owners(store, "a", "b")
        claim = await store.claim("key", "a")
        assert (claim.key, claim.owner, claim.attempts) == ("key", "a", 1)
        assert await store.claim("key", "b") is None
        assert await store.holder("key") == "a"
        assert await store.claim("other", "b") is not None

    run(main())


def test_a_claim_needs_an_owner_that_is_alive(run, store):
    async def main():
        await refused(store.claim("key", "nowhere", [Put("v", b"1")]), "owner")
        assert await store.get("v") is None
        assert await store.holder("key") is None

    run(main())


def test_a_claim_writes_in_the_same_step_or_not_at_all(run, store):
    async def main():
        await owners(store, "a", "b")
        await store.claim("key", "a", [Put("mark", b"m"), Append("j", (b"1", b"2"), 0)])
        assert (await store.get("mark"), await store.read("j")) == (b"m", [b"1", b"2"])
        assert await store.claim("key", "b", [Put("mark", b"other")]) is None
        await refused(
            store.claim("free", "b", [Put("mark", b"other"), Append("j", (b"x",), 0)]), "position"
        )
        await refused(store.claim("free", "b", [Put("mark", b"other"), Expect("mark")]), "value")
        assert (await store.get("mark"), await store.holder("free")) == (b"m", None)

    run(main())


def test_g13_an_epoch_is_no_smaller_than_the_clock(run, store):
    """So a store that has lost its last epochs, in a failover or by a copy that was restored, gives
    none of them again.
    """

    async def main():
        await owners(store, "a")
        before = time.time_ns() // 1000
        claims = [await store.claim(f"key {number}", "a") for number in range(20)]
        assert before - 1_000_000 <= claims[0].epoch <= time.time_ns() // 1000 + 1_000_000

    run(main())


def test_g13_each_taking_has_a_larger_epoch_also_of_a_key_that_was_gone(run, store):
    async def main():
        await owners(store, "a", "b")
        epochs = []
        for _ in range(3):
            claim = await store.claim("key", "a", [Put("key", b"v")])
            epochs.append(claim.epoch)
            await store.commit(claim, [Remove("key")], then="forget")
        claim = await store.claim("key", "b")
        await store.revoke("b")
        await store.prune()
        epochs += [
            claim.epoch,
            (await store.claim("key", "a")).epoch,
            (await store.claim("key", "a")).epoch,
        ]
        assert epochs == sorted(set(epochs))

    run(main())


def test_g13_a_claim_of_before_writes_nothing(run, store):
    async def main():
        await owners(store, "a", "b")
        first = await store.claim("key", "a", [Append("j", (b"1",), 0)])
        second = await store.claim("key", "a")
        for writes in ([Append("j", (b"x",), 1)], [Put("v", b"x")], [Remove("j")], []):
            await refused(store.commit(first, writes), "epoch")
        await store.commit(second, [Append("j", (b"2",), 1)])
        assert (await store.read("j"), await store.get("v")) == ([b"1", b"2"], None)

    run(main())


def test_g13_an_owner_that_was_revoked_writes_nothing_and_all_that_it_had_is_free(run, store):
    async def main():
        await owners(store, "a", "b")
        claims = [await store.claim(f"key {index}", "a") for index in range(3)]
        await store.revoke("a")
        for claim in claims:
            await refused(store.commit(claim, [Put("v", b"x")]), "owner")
            assert await store.holder(claim.key) is None
            assert await store.claim(claim.key, "b") is not None
        assert not await store.keep_alive("a", 30)
        await refused(store.claim("new", "a"), "owner")
        assert await store.get("v") is None

    run(main())


def test_g13_an_owner_whose_time_is_over_writes_nothing(run, store, wait_until):
    async def main():
        await owners(store, "b")
        await owners(store, "a", seconds=SOON)
        claim = await store.claim("key", "a")

        async def over():
            return await store.holder("key") is None

        await wait_until(over)
        await refused(store.commit(claim, [Put("v", b"x")]), "owner")
        taken = await store.claim("key", "b")
        assert taken.epoch > claim.epoch
        assert taken.attempts == 2

    run(main())


def test_an_owner_that_was_late_is_alive_again_and_what_was_taken_from_it_is_not_its_own(
    run, store, wait_until
):
    async def main():
        await owners(store, "b")
        await owners(store, "a", seconds=SOON)
        kept, taken = await store.claim("kept", "a"), await store.claim("taken", "a")

        async def over():
            return await store.holder("kept") is None

        await wait_until(over)
        await store.claim("taken", "b")
        if await store.keep_alive("a", 30):
            await store.commit(kept, [Put("v", b"1")])
        await refused(store.commit(taken, [Put("w", b"1")]), "epoch")
        assert await store.get("w") is None

    run(main())


def test_an_owner_prolongs_all_that_it_has_by_one_call(run, store):
    async def main():
        await owners(store, "a", seconds=2)
        claims = [await store.claim(f"key {index}", "a") for index in range(20)]
        for _ in range(5):
            assert await store.keep_alive("a", 2)
        for claim in claims:
            await store.commit(claim, [Put(claim.key, b"v")])
        assert not await store.keep_alive("never made", 2)

    run(main())


def test_a_commit_writes_everything_in_its_order(run, store):
    async def main():
        await owners(store, "a")
        claim = await store.claim("key", "a", [Append("j", (b"1",), 0), Put("gone", b"v")])
        writes = [
            Expect("head"),
            Append("j", (b"2", b"3"), 1),
            Put("head", b"1"),
            Put("head", b"2"),
            Remove("gone"),
            Remove("never"),
            Put("again", b"v"),
            Remove("again"),
        ]
        await store.commit(claim, writes)
        assert await store.read("j") == [b"1", b"2", b"3"]
        assert [await store.get(key) for key in ("head", "gone", "again")] == [b"2", None, None]
        assert await store.keys() == ["head", "j"]

    run(main())


@pytest.mark.parametrize(
    ("write", "reason"),
    [
        (Append("j", (b"x",), 0), "position"),
        (Append("j", (b"x",), 2), "position"),
        (Append("new", (b"x",), 1), "position"),
        (Expect("j"), "value"),
        (Expect("v"), "value"),
        (Expect("v", b"w"), "value"),
        (Expect("new", b"v"), "value"),
        (Expect("j", b""), "value"),
    ],
)
@pytest.mark.parametrize("claimed", [True, False], ids=["claimed", "unclaimed"])
def test_what_is_refused_leaves_nothing_of_its_batch(run, store, write, reason, claimed):
    async def main():
        await owners(store, "a")
        claim = await store.claim("key", "a", [Append("j", (b"1",), 0), Put("v", b"v")])
        for writes in ([Put("before", b"x"), write], [write, Put("after", b"x")]):
            await refused(store.commit(claim if claimed else None, writes, then="forget"), reason)
        assert (await store.keys(), await store.read("j"), await store.holder("key")) == (
            ["j", "v"],
            [b"1"],
            "a",
        )

    run(main())


def test_what_there_is_counts_as_of_before_the_first_write(run, store):
    async def main():
        await store.commit(None, [Expect("v"), Put("v", b"1"), Append("j", (b"1",), 0)])
        await refused(store.commit(None, [Put("v", b"2"), Expect("v", b"2")]), "value")
        await store.commit(None, [Put("v", b"2"), Expect("v", b"1"), Remove("j")])
        assert (await store.get("v"), await store.read("j")) == (b"2", [])

    run(main())


def test_a_claim_that_is_released_is_free_with_no_attempts_and_one_that_is_forgotten_is_gone(
    run, store
):
    async def main():
        await owners(store, "a", "b")
        for then in ("release", "forget"):
            claim = await store.claim("key", "a", [Put("key", b"v")])
            assert (await store.claim("key", "a")).attempts == claim.attempts + 1
            claim = await store.claim("key", "a")
            await store.commit(claim, [], then=then)
            await refused(store.commit(claim, []), "epoch")
            taken = await store.claim("key", "b")
            assert taken.attempts == 1
            await store.commit(taken, [Remove("key")], then="forget")

    run(main())


def test_orphans_are_values_that_no_living_owner_has_the_least_tried_first(run, store):
    async def main():
        await owners(store, "a", "b")
        for name in ("r:1", "r:2", "r:3", "r:4", "r:5", "s:1"):
            await store.set(name, b"mark")
        await store.claim("r:1", "a")
        await store.claim("r:2", "b")
        for _ in range(3):
            await store.claim("r:3", "b")
        await store.commit(await store.claim("r:4", "a"), [], then="release")
        assert await store.orphans("r:") == ["r:4", "r:5"]
        assert await store.orphans("r:", 1) == ["r:4"]
        await store.revoke("b")
        assert await store.orphans("r:") == ["r:4", "r:5", "r:2", "r:3"]
        assert await store.orphans("r:", 3) == ["r:4", "r:5", "r:2"]
        assert await store.orphans("") == ["r:4", "r:5", "s:1", "r:2", "r:3"]
        assert await store.orphans("t:") == []
        await store.commit(await store.claim("r:2", "a"), [Remove("r:2")], then="forget")
        assert await store.orphans("r:") == ["r:4", "r:5", "r:3"]

    run(main())


def test_a_value_may_have_a_time_of_its_own(run, store, wait_until):
    async def main():
        await store.commit(
            None, [Put("short", b"1", 0.05), Put("long", b"2", 60), Put("ever", b"3")]
        )

        async def over():
            return await store.get("short") is None

        await wait_until(over)
        assert await store.keys() == ["ever", "long"]
        await store.commit(
            None, [Expect("short"), Put("short", b"again", 60), Put("long", b"3", 0.05)]
        )
        await store.set("long", b"4")  # which lasts again
        await asyncio.sleep(0.1)  # real time has to pass: the store's own clock decides
        assert (await store.get("short"), await store.get("long")) == (b"again", b"4")

    run(main())


def test_g13_of_many_that_claim_at_once_one_has_it(run, store):
    async def main():
        names = [f"owner {index}" for index in range(20)]
        await owners(store, *names)
        for key in ("one", "two", "three"):
            claims = await asyncio.gather(
                *(store.claim(key, name, [Put(f"by {key} {name}", b"x")]) for name in names)
            )
            won = [claim for claim in claims if claim is not None]
            assert len(won) == 1
            assert await store.keys(f"by {key}") == [f"by {key} {won[0].owner}"]

    run(main())


def test_g13_what_is_refused_in_a_batch_is_refused_alone(run, store):
    async def main():
        await owners(store, "a", "b")
        good = [await store.claim(f"good {index}", "a") for index in range(30)]
        bad = [await store.claim(f"bad {index}", "b") for index in range(30)]
        await store.revoke("b")
        claims = [claim for pair in zip(good, bad, strict=True) for claim in pair]
        answers = await asyncio.gather(
            *(store.commit(claim, [Put(f"v:{claim.key}", b"x")]) for claim in claims),
            return_exceptions=True,
        )
        assert [answer is None for answer in answers] == [True, False] * 30
        assert {answer.reason for answer in answers if answer is not None} == {"owner"}
        assert await store.keys("v:") == sorted(f"v:{claim.key}" for claim in good)

    run(main())


AWKWARD = ["a'b", "a\0b", "ä😀", "\ud800", "%s", "k" * 2048]


@pytest.mark.parametrize("name", AWKWARD, ids=range(len(AWKWARD)))
def test_keys_and_owners_are_any_texts(run, store, name):
    async def main():
        await owners(store, name)
        claim = await store.claim(name, name, [Put(name, b"\0\xff"), Append(name, (b"\0",), 0)])
        await store.commit(claim, [Append(name, (b"\xff",), 1), Expect(name, b"\0\xff")])
        assert (await store.holder(name), await store.get(name), await store.read(name)) == (
            name,
            b"\0\xff",
            [b"\0", b"\xff"],
        )
        await store.revoke(name)
        assert await store.orphans(name[:1]) == [name]

    run(main())


def test_a_large_commit_is_one_step(run, store):
    async def main():
        await owners(store, "a")
        claim = await store.claim("key", "a")
        records = tuple(b"%d" % index * 20 for index in range(5_000))
        await store.commit(
            claim,
            [
                Append("j", records, 0),
                Put("v", b"x" * 1_000_000),
                *(Put(f"k{index}", b"v") for index in range(500)),
            ],
        )
        assert (await store.read("j"), len(await store.get("v")), len(await store.keys("k"))) == (
            list(records),
            1_000_000,
            500,
        )

    run(main())


def test_a_limit_may_be_as_large_as_one_likes(run, store):
    async def main():
        await store.set("k", b"v")
        assert await store.orphans("", 10**400) == ["k"]

    run(main())


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.keep_alive("", 1),
        lambda store: store.keep_alive("a", 0),
        lambda store: store.keep_alive("a", float("nan")),
        lambda store: store.revoke(7),
        lambda store: store.claim("", "a"),
        lambda store: store.claim("k", "a", [("k", b"v")]),
        lambda store: store.claim("k", "a", [Put("k", "text")]),
        lambda store: store.commit(None, [Put("", b"v")]),
        lambda store: store.commit(None, [Append("k", (b"v",), -1)]),
        lambda store: store.commit(None, [Append("k", (b"v",), 2**63)]),
        lambda store: store.read("k", 2**63),
        lambda store: store.commit(None, [Append("k", ("v",), 0)]),
        lambda store: store.commit(None, [Put("k", b"v", 0)]),
        lambda store: store.commit(Claim("k", "a", 1), [Expect("k" * 3000)]),
        lambda store: store.orphans(b"k"),
        lambda store: store.orphans("", 0),
    ],
)
def test_what_cannot_be_is_said_before_anything_happens(run, store, call):
    async def main():
        await owners(store, "a")
        with pytest.raises(UsageError):
            await call(store)
        assert await store.keys() == []

    run(main())
