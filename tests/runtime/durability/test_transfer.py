"""`export_store` and `import_store`: runs and sessions move from one store to another of any
kind.
"""

import io
import itertools

import pytest

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import Message, Runner, ToolCall, UsageError
from offbook.runtime.durability.copies.store_marks import hold, release
from offbook.runtime.durability.copies.transfer import export_store, import_store
from offbook.runtime.durability.store_access import StoreAccess

KINDS = ("sqlite", "redis", "postgres")


class Clerk:
    async def generate(self, request):
        if request.messages[-1].role == "tool":
            return Message.assistant("answered " + request.messages[-1].text)
        return Message.assistant("", (ToolCall("c1", "pay", '{"text": "ü"}'),))


@tool(needs_approval=True)
def pay(text: str) -> str:
    """Pay it."""
    return f"paid {text}"


def runner_of(store):
    return Runner(
        ChatModelAgent(name="clerk", model=Clerk(), tools=[pay]),
        store=store,
        durability="step",
        keep="all",
    )


def nothing(_done, _of):
    pass


async def exported(store):
    runner = runner_of(store)
    for number in range(5):
        waiting = await runner.session(f"s{number % 2}").query(
            f"pay {number}", run_id=f"r{number}", labels={"n": str(number)}
        )
        if number % 2:
            assert str((await runner.approve(waiting.interrupts[0])).status) == "completed"
    await store.append("long", [bytes([number % 256]) * 100_000 for number in range(100)])
    await store.set("half \ud800", b"")
    await hold(StoreAccess(store))
    file = io.BytesIO()
    told = []
    keys, runs = await export_store(store, file, lambda done, of: told.append((done, of)))
    assert runs == 5
    assert told[-6][0] == told[-6][1] >= keys
    return file


async def content(store):
    keys = [key for key in await store.keys("") if not key.startswith("offbook:held")]
    return {key: (await store.get(key), await store.read(key)) for key in keys}


@pytest.mark.parametrize(
    ("source", "target"), [*itertools.permutations(KINDS, 2), ("sqlite", "sqlite")]
)
def test_runs_and_sessions_move_between_stores(run, store_of, source, target):
    async def main():
        first, second = store_of(source), store_of(target)
        file = await exported(first)
        keys, runs = await import_store(second, file, nothing)
        assert runs == 5
        assert await content(second) == await content(first)
        assert len(await second.keys("")) == keys
        before, after = runner_of(first), runner_of(second)
        assert await after.runs() == await before.runs()
        assert await after.runs(labels={"n": "3"}) == await before.runs(labels={"n": "3"})
        assert await after.session("s0").history() == await before.session("s0").history() != ()
        assert len(await after.pending()) == 3
        for info in await after.pending():
            assert (await after.approve(info.waiting[0])).text == "answered paid ü"

        assert await import_store(store_of(target), file, nothing) == (keys, runs), (
            "into as many as there are"
        )
        with pytest.raises(
            UsageError,
            match=r"nothing was written, because .* already has different data under \d+ of the keys: ",
        ):
            await import_store(second, file, nothing)

    run(main())


def test_an_import_that_was_cut_short_is_done_again_and_one_that_conflicts_writes_nothing(
    run, store_of
):
    async def main():
        first, second, third = store_of("sqlite"), store_of("sqlite"), store_of("sqlite")
        file = await exported(first)

        class Stop(Exception):
            pass

        def stop_at(number):
            calls = itertools.count()

            def told(_done, _of):
                if next(calls) == number:
                    raise Stop

            return told

        total = 2 * sum(await import_store(store_of("sqlite"), file, nothing))
        for number in range(1, total, 4):
            with pytest.raises(Stop):
                await import_store(second, file, stop_at(number))
        await import_store(second, file, nothing)
        assert await content(second) == await content(first)

        await third.set("long", b"mine")
        before = await content(third)
        with pytest.raises(
            UsageError, match="already has different data under 1 of the keys: 'long'"
        ):
            await import_store(third, file, nothing)
        assert await content(third) == before

    run(main())


def test_only_a_store_that_is_held_is_exported_and_only_a_whole_file_is_imported(run, store_of):
    async def main():
        store = store_of("sqlite")
        file = await exported(store)
        await release(StoreAccess(store))
        with pytest.raises(
            UsageError,
            match="must be held during an export, because its runs could change while they are read",
        ):
            await export_store(store, io.BytesIO(), nothing)
        data = file.getvalue()
        for broken, text in (
            (data[: len(data) // 2], "too early"),
            (data[:-1], "too early"),
            (b"", "not written by `offbook export`"),
            (b"SQLite format 3", "not written by `offbook export`"),
            (
                data.replace(b"offbook-export\x01", b"offbook-export\x02", 1),
                "has format 2, and this version of offbook reads 1",
            ),
            (data[:16] + b"\xc1" + data[17:], "damaged"),
        ):
            empty = store_of("sqlite")
            with pytest.raises(UsageError, match=text):
                await import_store(empty, io.BytesIO(broken), nothing)
            assert await empty.keys("") == []

    run(main())
