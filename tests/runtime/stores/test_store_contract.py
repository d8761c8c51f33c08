"""What every store does, whatever is behind it."""

import asyncio

import pytest

from offbook.runtime import JournalStore, Store, UsageError
from offbook.runtime.errors import WriteRefused
from offbook.runtime.stores import Append, Expect, Put

AWKWARD = [
    "a",
    "A",
    "a%",
    "a_b",
    "axb",
    "a*",
    "a?",
    "a[b]",
    "a\\",
    "a'b",
    'a"b',
    "a\n",
    "a\0b",
    "ä",
    "é",
    "e\u0301",
    "😀",
    "\ud800",
    "\uffff",
    "\U0010ffff",
    " ",
    "run:1",
    "run:10",
    "run:2",
]
SEVERAL = 20


def test_it_is_a_store_of_both_protocols(store):
    assert isinstance(store, Store)
    assert isinstance(store, JournalStore)


def test_what_was_set_is_there_until_it_is_deleted(run, store):
    async def main():
        assert await store.get("key") is None
        await store.set("key", b"one")
        await store.set("key", b"two")
        assert await store.get("key") == b"two"
        await store.delete("key")
        assert await store.get("key") is None
        await store.delete("key")

    run(main())


@pytest.mark.parametrize(
    "value",
    [b"", b"\0", bytes(range(256)), b"\xff" * 3_000_000],
    ids=["empty", "nul", "all bytes", "3 MB"],
)
def test_bytes_come_back_as_they_were(run, store, value):
    async def main():
        await store.set("value", value)
        assert await store.append("journal", [value, b"x", value]) == 3
        assert await store.create("created", value)
        assert await store.get("value") == value
        assert await store.read("journal") == [value, b"x", value]
        assert await store.get("created") == value

    run(main())


def test_a_key_is_any_text_and_no_two_are_the_same(run, store):
    async def main():
        for index, key in enumerate(AWKWARD):
            await store.set(key, b"%d" % index)
            await store.append(key, [b"%d" % index])
            assert await store.keep_alive(f"owner of {key}", 30, first=True)
            assert await store.claim(key, f"owner of {key}")
        for index, key in enumerate(AWKWARD):
            assert await store.get(key) == b"%d" % index
            assert await store.read(key) == [b"%d" % index]
            assert await store.holder(key) == f"owner of {key}"
        assert await store.keys() == sorted(AWKWARD)
        for prefix in ("", *AWKWARD, "run:", "no such"):
            assert await store.keys(prefix) == sorted(
                key for key in AWKWARD if key.startswith(prefix)
            ), prefix

    run(main())


def test_a_long_key_is_a_key(run, store):
    async def main():
        key = "k" * 2048
        await store.set(key, b"v")
        await store.append(key, [b"r"])
        assert await store.keep_alive(key, 30, first=True)
        assert await store.claim(key, key)
        assert (await store.get(key), await store.read(key), await store.holder(key)) == (
            b"v",
            [b"r"],
            key,
        )
        assert await store.keys("k" * 2000) == [key]

    run(main())


def test_a_journal_grows_at_its_end_and_is_read_from_anywhere(run, store):
    async def main():
        assert await store.read("j") == []
        assert await store.append("j", [b"1", b"2"]) == 2
        assert await store.append("j", (b"3",)) == 3
        assert await store.append("other", [b"x"]) == 1
        assert await store.read("j") == [b"1", b"2", b"3"]
        assert await store.read("j", 2) == [b"3"]
        assert await store.read("j", after=3) == []
        assert await store.read("j", after=2**40) == []

    run(main())


def test_appending_nothing_writes_nothing(run, store):
    async def main():
        assert await store.append("j", []) == 0
        assert await store.keys() == []
        assert await store.create("j", b"v")
        await store.append("j", [b"1"])
        assert await store.append("j", []) == 1

    run(main())


def test_a_journal_of_many_records_comes_back_in_order(run, store):
    async def main():
        records = [b"%d" % number for number in range(10_000)]
        assert await store.append("j", records) == 10_000
        assert await store.append("j", [b"last"]) == 10_001
        assert await store.read("j") == [*records, b"last"]
        assert await store.read("j", 9_999) == [b"9999", b"last"]

    run(main())


def test_deleting_a_key_deletes_its_value_and_its_journal_and_no_claim(run, store):
    async def main():
        await store.set("key", b"v")
        await store.append("key", [b"r"])
        assert await store.keep_alive("me", 30, first=True)
        assert await store.claim("key", "me")
        await store.delete("key")
        assert (await store.get("key"), await store.read("key"), await store.keys()) == (
            None,
            [],
            [],
        )
        assert await store.holder("key") == "me"
        assert await store.append("key", [b"again"]) == 1
        assert await store.read("key") == [b"again"]

    run(main())


def test_keys_are_those_of_values_and_journals_each_once(run, store):
    async def main():
        await store.set("run:value", b"v")
        await store.append("run:journal", [b"r"])
        await store.set("run:both", b"v")
        await store.append("run:both", [b"r"])
        assert await store.keep_alive("run:owner", 30, first=True)
        assert await store.claim("run:claim", "run:owner")
        await store.set("other", b"v")
        assert await store.keys("run:") == ["run:both", "run:journal", "run:value"]
        assert await store.keys() == ["other", "run:both", "run:journal", "run:value"]

    run(main())


def test_create_writes_only_where_nothing_is(run, store):
    async def main():
        assert await store.create("key", b"one") is True
        assert await store.create("key", b"two") is False
        assert await store.get("key") == b"one"
        await store.append("journal", [b"r"])
        assert await store.create("journal", b"v") is False
        assert await store.get("journal") is None
        await store.delete("key")
        assert await store.create("key", b"") is True
        assert await store.create("key", b"two") is False

    run(main())


def test_one_of_several_creates_it(run, store):
    async def main():
        won = await asyncio.gather(
            *(store.create("key", b"%d" % number) for number in range(SEVERAL))
        )
        assert sum(won) == 1
        assert await store.get("key") == b"%d" % won.index(True)

    run(main())


async def owners(store, *names, seconds=30):
    for name in names:
        assert await store.keep_alive(name, seconds, first=True)


def test_a_key_is_had_by_one_until_it_is_released(run, store):
    async def main():
        await owners(store, "a", "b")
        assert await store.holder("run") is None
        first = await store.claim("run", "a")
        assert await store.claim("run", "b") is None
        second = await store.claim("run", "a")
        assert await store.holder("run") == "a"
        with pytest.raises(WriteRefused):
            await store.commit(first, [], then="release")
        assert await store.holder("run") == "a"
        await store.commit(second, [], then="release")
        with pytest.raises(WriteRefused):
            await store.commit(second, [], then="release")
        assert await store.holder("run") is None
        assert await store.claim("run", "b")

    run(main())


def test_one_of_several_claims_it(run, store):
    async def main():
        names = [f"owner {number}" for number in range(SEVERAL)]
        await owners(store, *names)
        won = [
            claim is not None
            for claim in await asyncio.gather(*(store.claim("run", name) for name in names))
        ]
        assert sum(won) == 1
        assert await store.holder("run") == names[won.index(True)]

    run(main())


def test_the_time_of_an_owner_is_over(run, store, wait_until):
    async def main():
        await owners(store, "a", seconds=0.05)
        await owners(store, "long", "b")
        assert await store.claim("run", "a")
        assert await store.claim("other", "long")
        await wait_until(lambda: store.claim("run", "b"))
        assert (await store.holder("run"), await store.holder("other")) == ("b", "long")

    run(main())


def test_an_owner_whose_time_is_over_has_nothing_and_is_prolonged_unless_it_was_pruned(
    run, store, wait_until
):
    async def main():
        await owners(store, "a", seconds=0.05)
        assert await store.claim("run", "a")

        async def is_free():
            return await store.holder("run") is None

        await wait_until(is_free)
        await store.prune()
        assert await store.keep_alive("a", 30) is False
        assert await store.holder("run") is None
        await owners(store, "a")
        assert await store.claim("run", "a")

    run(main())


def test_prolonging_one_owner_prolongs_no_other(run, store, wait_until):
    async def main():
        await owners(store, "me", "short", seconds=0.5)
        await owners(store, "you")
        for key, owner in (("x", "me"), ("y", "me"), ("z", "you"), ("short", "short")):
            assert await store.claim(key, owner)
        assert await store.keep_alive("me", 30) is True
        assert await store.keep_alive("nobody", 30) is False

        async def short_is_free():
            return await store.holder("short") is None

        await wait_until(short_is_free)
        assert [await store.holder(key) for key in ("x", "y", "z", "nobody's")] == [
            "me",
            "me",
            "you",
            None,
        ]

    run(main())


def test_a_claim_is_no_key_and_keys_are_no_claims(run, store):
    async def main():
        await owners(store, "me")
        assert await store.claim("run", "me")
        assert await store.get("run") is None
        assert await store.create("run", b"v")
        await store.delete("run")
        assert await store.holder("run") == "me"
        await store.commit(None, [Expect("run"), Expect("me")])

    run(main())


def test_what_has_not_been_written_for_long_is_pruned(run, store, wait_until):
    async def main():
        await store.set("old value", b"v")
        await store.append("old journal", [b"r"])
        await store.append("old both", [b"r"])
        await store.set("old both", b"v")
        await store.set("kept", b"v")
        await owners(store, "me")
        assert await store.claim("claim", "me")
        assert await store.prune() == 0
        assert await store.prune(older_than=60) == 0
        assert await store.keys() == ["kept", "old both", "old journal", "old value"]
        await asyncio.sleep(0.5)
        await store.append("kept", [b"r"])
        assert await store.prune(older_than=0.45) == 3
        assert await store.keys() == ["kept"]
        assert await store.get("kept") == b"v"
        assert await store.read("old journal") == []
        assert await store.append("old journal", [b"new"]) == 1
        assert await store.holder("claim") == "me"
        await asyncio.sleep(0.002)
        assert await store.prune(older_than=0) == 2
        assert await store.keys() == []

    run(main())


def test_claims_of_owners_that_are_gone_can_be_pruned_but_not_those_of_keys_that_are_there(
    run, store, wait_until
):
    async def main():
        await owners(store, "a", seconds=0.3)
        await owners(store, "b")
        assert await store.claim("run", "a")
        assert await store.claim("there", "a", [Put("there", b"v")])
        assert await store.claim("other", "b")

        async def is_free():
            return await store.holder("run") is None

        await wait_until(is_free)
        assert await store.prune() == 1
        assert await store.holder("other") == "b"
        assert (await store.claim("run", "b")).attempts == 1
        assert (await store.claim("there", "b")).attempts == 2

    run(main())


def test_it_lives_as_long_as_it_is_open(run, store):
    async def main():
        async with store as same:
            assert same is store
            await store.set("key", b"v")
        await store.aclose()
        store.close()
        for call in (
            store.get("key"),
            store.set("key", b"v"),
            store.prune(),
            store.keep_alive("me", 1),
            store.claim("key", "me"),
            store.orphans(),
        ):
            with pytest.raises(UsageError, match="closed"):
                await call

    run(main())


def test_it_can_be_closed_before_anything_was_asked_and_without_a_loop(store):
    with store as same:
        assert same is store
    store.close()


WRONG = {
    "get": [(1,), (b"k",), ("",), (None,), ("k" * 2049,), ("ä" * 1025,)],
    "set": [(1, b""), ("", b""), ("k", "text"), ("k", None), ("k", bytearray(b"x"))],
    "delete": [(1,), ("",)],
    "append": [
        ("", []),
        ("k", b"bytes"),
        ("k", "text"),
        ("k", ["text"]),
        ("k", [b"x", None]),
        ("k", None),
        ("k", {b"x"}),
    ],
    "read": [("",), ("k", -1), ("k", 1.0), ("k", True), ("k", "1"), ("k", 2**63)],
    "keys": [(None,), (b"p",)],
    "create": [("", b""), ("k", "text")],
    "keep_alive": [
        ("", 1),
        (None, 1),
        ("me" * 2000, 1),
        ("me", 0),
        ("me", -1),
        ("me", float("nan")),
        ("me", float("inf")),
        ("me", "1"),
        ("me", True),
    ],
    "revoke": [("",), (1,), ("k" * 2049,)],
    "claim": [("", "me"), ("k", ""), ("k", None), ("k", "me", ["write"])],
    "commit": [(None, [Put("", b"")]), (None, [None]), (None, [Append("k", (None,), 0)])],
    "orphans": [(None,), (b"p",), ("", 0), ("", True), ("", "1")],
    "holder": [("",), (1,)],
    "prune": [(-1,), ("1",), (float("nan"),)],
}


@pytest.mark.parametrize("method", WRONG)
def test_wrong_arguments_are_told_at_once(run, store, method):
    async def main():
        for arguments in WRONG[method]:
            with pytest.raises(UsageError, match=rf"{method}\b.*(must|give|keep)"):
                await getattr(store, method)(*arguments)
        assert await store.keys() == []

    run(main())


@pytest.mark.parametrize("ttl", [0, -1, "1", float("nan"), True])
def test_a_time_to_live_is_a_span(store_of, store_kind, ttl):
    with pytest.raises(UsageError, match="ttl"):
        store_of(store_kind, ttl=ttl)
