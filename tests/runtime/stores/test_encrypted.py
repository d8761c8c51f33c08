"""`encrypted`: what is written in the store around which it is, and what is read with which
keys.
"""

import base64
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import (
    ActorSystem,
    MemoryStore,
    Message,
    Runner,
    StoreError,
    ToolCall,
    UsageError,
    encrypted,
)
from offbook.runtime.errors import WriteRefused
from offbook.runtime.stores.writes import Append, Expect, Put
from tests.doubles.held_stores import soon

OLD, NEW, OTHER = (bytes([number]) * 32 for number in (1, 2, 3))
SECRET = "marzipan"


class Clerk:
    async def generate(self, request):
        if request.messages[-1].role == "tool":
            return Message.assistant(f"{SECRET} answered")
        return Message.assistant("", (ToolCall("c1", "pay", f'{{"text": "{SECRET}"}}'),))


@tool(needs_approval=True)
def pay(text: str) -> str:
    """Pay it."""
    return f"paid {text}"


def runner_of(store, **options):
    agent = ChatModelAgent(name="clerk", model=Clerk(), tools=[pay])
    return Runner(agent, store=store, **{"durability": "step", "keep": "all", **options})


@pytest.mark.parametrize("kind", ["memory", "sqlite", "redis", "postgres"])
def test_runs_and_sessions_live_in_an_encrypted_store_and_the_one_behind_it_has_none_of_what_they_say(
    run, store_of, kind
):
    async def main():
        behind = store_of(kind)
        store = encrypted(behind, keys=[OLD])
        async with ActorSystem() as system:
            runner = runner_of(store, system=system)
            session = runner.session("s")
            waiting = await soon(
                session.run(SECRET, session_values={"secret": SECRET}, labels={"tenant": "acme"})
            )
            assert str(waiting.status) == "interrupted"
            (info,) = await runner.pending()
            assert SECRET in str(info.waiting[0].info)
            assert [one.id for one in await runner.runs(labels={"tenant": "acme"})] == [info.id]
            done = await soon(runner.approve(info.waiting[0]))
            assert done.text == f"{SECRET} answered"
            assert (await soon(runner.attach(info.id))).text == f"{SECRET} answered"
            assert len(await session.history()) == 4
            assert await session.values() == {"secret": SECRET}
        for key in await behind.keys(""):
            for data in ((await behind.get(key)) or b"", *await behind.read(key)):
                assert SECRET.encode() not in data
                assert data == b"" or data.startswith(b"\xc1ob1"), key
        assert SECRET.encode() not in (await behind.run_entry(info.id)).value

    run(main())


def test_no_byte_of_what_was_said_is_in_the_file(run, tmp_path, store_of, store_recipe):
    _, (path,), _ = store_recipe("sqlite", "one")

    async def main():
        async with encrypted(store_of("sqlite", "one"), keys=OLD) as store:
            await runner_of(store).session("s").query(SECRET)

    run(main())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert SECRET.encode() not in Path(path).read_bytes()


def test_keys_are_rotated(run, store_of):
    async def main():
        behind = store_of("sqlite")
        first = encrypted(behind, keys=[OLD])
        waiting = await runner_of(first).query("go", run_id="r")
        await first.set("value", b"before")
        await first.append("journal", [b"one"])

        both = encrypted(behind, keys=[NEW, OLD])
        assert await both.get("value") == b"before"
        await both.commit(None, [Expect("value", b"before"), Append("journal", (b"two",), 1)])
        assert await both.read("journal") == [b"one", b"two"]
        await both.commit(None, [Expect("value", b"before"), Put("value", b"after")])
        await both.commit(None, [Expect("value", b"after")])
        with pytest.raises(WriteRefused):
            await both.commit(None, [Expect("value", b"before"), Put("value", b"late")])
        assert (await runner_of(both).approve(waiting.interrupts[0])).text == f"{SECRET} answered"

        newest = encrypted(behind, keys=[NEW])
        assert await newest.get("value") == b"after"
        with pytest.raises(
            StoreError,
            match=(
                r"'journal' was encrypted with another key \(its name is [0-9a-f]{8}\). Add that "
                r"key"
            ),
        ):
            await newest.read("journal")

    run(main())


def test_what_is_damaged_moved_or_plain_is_not_read(run):
    async def main():
        behind = MemoryStore()
        store = encrypted(behind, keys=[OLD])
        await store.set("one", b"1")
        sealed = await behind.get("one")
        await behind.set("two", sealed)
        await behind.append("one", [sealed])
        await behind.set("three", sealed[:-1] + bytes([sealed[-1] ^ 1]))
        await behind.set("four", sealed[:10])
        await behind.set("plain", b"\x81\xa1a\x01")
        for key in ("two", "three", "four"):
            with pytest.raises(
                StoreError, match=f"'{key}' cannot be decrypted: it was damaged, or moved there"
            ):
                await store.get(key)
        with pytest.raises(StoreError, match="cannot be decrypted"):
            await store.read("one")
        with pytest.raises(StoreError, match=r"'plain' is not encrypted.*accept_plain=True"):
            await store.get("plain")
        accepting = encrypted(behind, keys=[OLD], accept_plain=True)
        assert await accepting.get("plain") == b"\x81\xa1a\x01"
        await accepting.commit(None, [Expect("plain", b"\x81\xa1a\x01"), Put("plain", b"new")])
        assert await store.get("plain") == b"new"
        assert await store.get("nothing") is None

    run(main())


def test_a_key_is_32_bytes_and_is_never_shown(monkeypatch):
    text = base64.urlsafe_b64encode(OTHER).decode()
    for keys in (OTHER, text, [text.rstrip("=")], [OLD, text]):
        assert "encrypted(" in repr(encrypted(MemoryStore(), keys=keys))
    for keys in ("short-secret", [b"x" * 31], [7], ["not base64 at all!" * 3]):
        with pytest.raises(UsageError, match="a key must be 32 random bytes") as caught:
            encrypted(MemoryStore(), keys=keys)
        assert "secret'" not in str(caught.value)
    with pytest.raises(UsageError, match="keys must not be empty"):
        encrypted(MemoryStore(), keys=[])
    with pytest.raises(UsageError, match="is already encrypted"):
        encrypted(encrypted(MemoryStore(), keys=OLD), keys=NEW)
    with pytest.raises(UsageError, match="store must be a JournalStore"):
        encrypted({}, keys=OLD)
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(UsageError, match=r"pip install 'offbook\[encryption\]'"):
        encrypted(MemoryStore(), keys=os.urandom(32))
