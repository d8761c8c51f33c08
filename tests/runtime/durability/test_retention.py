"""What a store holds of runs that have ended, whichever way: it goes when its time is over, and
`forget` leaves no row of it.
"""

import asyncio
import sqlite3
from contextlib import closing

import psycopg
import pytest
import redis

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import MemoryStore, Message, Runner, ScriptedModel, ToolCalls
from offbook.runtime.stores import DropEntry
from tests.doubles.held_stores import soon

KINDS = pytest.mark.parametrize("kind", ["memory", "sqlite", "redis", "postgres"])
DURABILITY = pytest.mark.parametrize("durability", ["step", "interrupt"])
TOLD = "xylophone"
DAY = 86_400


def paying(times=2, *, fails=False):
    """An agent that pays so often, each time with approval, and then completes or fails."""

    @tool(needs_approval=True)
    async def pay(euros: int) -> str:
        """Pay it."""
        return f"paid for the {TOLD}"

    def reply(request):
        paid = sum(message.role == "tool" for message in request.messages)
        if paid < times:
            return ToolCalls(pay={"euros": paid})
        return OSError("it is broken") if fails else f"{TOLD} bought"

    return ChatModelAgent(name="A", model=ScriptedModel([reply] * 30), tools=[pay])


async def approved(runner, running):
    result = await soon(running)
    while result.status == "interrupted":
        result = await soon(runner.approve(result.interrupts[0]))
    return result


def everything(kind, store, server_of):
    """All that is in a store, as texts."""
    if kind == "memory":
        values = {key: (entry.value, entry.records) for key, entry in store._entries.items()}
        return [
            repr(values),
            repr(store._claims),
            repr(store._short),
            repr(store._runs._entries),
            repr(store._runs._ending),
        ]
    if kind == "sqlite":
        with closing(sqlite3.connect(store._path)) as connection:
            tables = [
                name
                for (name,) in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table'"
                )
            ]
            return [
                repr(row) for name in tables for row in connection.execute(f"SELECT * FROM {name}")
            ]
    if kind == "redis":
        with redis.Redis.from_url(server_of("redis_server").url) as client:
            return [
                repr((key, _of_redis(client, key))) for key in client.scan_iter(f"{store._prefix}*")
            ]
    with psycopg.connect(server_of("postgres_server").dsn) as connection:
        found = connection.execute(
            "SELECT tablename FROM pg_tables WHERE tablename LIKE %s", [f"{store._prefix}%"]
        ).fetchall()
        return [
            repr(row)
            for (name,) in found
            for row in connection.execute(f'SELECT * FROM "{name}"').fetchall()
        ]


def _of_redis(client, key):
    match client.type(key):
        case b"hash":
            return client.hgetall(key)
        case b"list":
            return client.lrange(key, 0, -1)
        case b"zset":
            return client.zrange(key, 0, -1, withscores=True)
        case _:
            return client.get(key)


@pytest.mark.parametrize("end", ["waits", "completed", "failed"])
@DURABILITY
@KINDS
def test_forget_leaves_no_row_of_a_run(run, store_of, request, kind, durability, end):
    async def main():
        store = store_of(kind)
        runner = Runner(paying(fails=end == "failed"), store=store, durability=durability)
        asked = [
            Message.user(f"buy a {TOLD}") for _ in range(80)
        ]  # a history that is long enough to be kept apart
        running = runner.run(
            asked, checkpoint_id="my-checkpoint", labels={"what": TOLD}, run_id="my-run"
        )
        result = await (soon(running) if end == "waits" else approved(runner, running))
        assert result.status == ("interrupted" if end == "waits" else end)
        before = everything(kind, store, request.getfixturevalue)
        assert all(
            any(word in text for text in before) for word in (TOLD, "my-run", "my-checkpoint")
        )
        await runner.forget("my-run")
        after = everything(kind, store, request.getfixturevalue)
        assert [
            text for text in after for word in (TOLD, "my-run", "my-checkpoint") if word in text
        ] == []
        assert await runner.runs() == []
        assert await store.keys() == []

    run(main())


@pytest.mark.parametrize("keep", [None, "unfinished", 60, 3 * DAY], ids=str)
@pytest.mark.parametrize(
    "end", ["completed", "failed", "completed after answers", "failed after answers", "branched"]
)
@DURABILITY
def test_what_has_ended_goes_when_its_time_is_over(run, durability, end, keep):
    async def main():
        now = [1000.0]
        store = MemoryStore(time=lambda: now[0])
        answers = "answers" in end or end == "branched"
        runner = Runner(
            paying(2 if answers else 0, fails="failed" in end),
            store=store,
            durability=durability,
            keep=keep,
        )
        running = runner.query(f"buy a {TOLD}", checkpoint_id="c")
        run_id = running.id
        result = await approved(runner, running)
        assert result.status == end.split()[0].replace("branched", "completed")
        if end == "branched":
            assert (await approved(runner, runner.resume("c@1", data=True))).status == "completed"
        if answers:
            assert run_id in [info.id for info in await runner.runs()], "what is there is listed"
            now[0] += 0.9 * (keep if isinstance(keep, int) else DAY)
            await store.prune()
            assert run_id in [info.id for info in await runner.runs()]
            assert await store.get("c") is not None
        now[0] += 4 * DAY
        await store.prune()
        assert (await store.keys(), await runner.runs(), dict(store._claims)) == ([], [], {})

    run(main())


@DURABILITY
@KINDS
def test_every_store_lets_go_of_runs_that_have_waited(run, store_of, kind, durability):
    async def main():
        store = store_of(kind)
        runner = Runner(paying(), store=store, durability=durability, keep=0.2)
        assert (await approved(runner, runner.query("go"))).status == "completed"
        async with asyncio.timeout(10):
            while await store.keys() or await runner.runs():
                await store.prune()
                await asyncio.sleep(0.02)

    run(main())


@DURABILITY
def test_what_waits_and_what_is_kept_for_ever_stays(run, durability):
    async def main():
        now = [1000.0]
        store = MemoryStore(time=lambda: now[0])
        runner = Runner(paying(), store=store, durability=durability)
        waiting = await soon(runner.query("go"))
        for_ever = Runner(paying(), store=store, durability=durability, keep="all")
        kept = for_ever.query("go", checkpoint_id="kept")
        await approved(for_ever, kept)
        now[0] += 1000 * DAY
        await store.prune()
        assert {info.id for info in await runner.runs()} == {waiting.events[0].run_id, kept.id}
        assert (await approved(runner, runner.approve(waiting.interrupts[0]))).status == "completed"
        assert (
            await approved(for_ever, for_ever.resume("kept@1", data=True))
        ).status == "completed"

    run(main())


@DURABILITY
def test_the_saves_of_another_run_under_the_same_name_stay_its_own(run, durability):
    async def main():
        now = [1000.0]
        store = MemoryStore(time=lambda: now[0])
        runner = Runner(paying(1), store=store, durability=durability)
        assert (await approved(runner, runner.query("go", checkpoint_id="c"))).status == "completed"
        waiting = await soon(runner.query("go", checkpoint_id="c"))
        now[0] += 4 * DAY
        await store.prune()
        assert sorted(key for key in await store.keys() if not key.startswith("offbook:")) == ["c"]
        assert (await approved(runner, runner.approve(waiting.interrupts[0]))).status == "completed"
        now[0] += 4 * DAY
        await store.prune()
        assert await store.keys() == []

    run(main())


@DURABILITY
@KINDS
def test_prune_finds_what_nothing_leads_to_and_leaves_the_rest(run, store_of, kind, durability):
    async def main():
        store = store_of(kind)
        runner = Runner(paying(), store=store, durability=durability)
        lost = runner.query("go", checkpoint_id="lost")
        await approved(runner, lost)
        waiting = await soon(runner.query("go", checkpoint_id="waiting"))
        half = await soon(runner.query("go", checkpoint_id="half"))
        half = await soon(runner.approve(half.interrupts[0]))
        listed = runner.query("go", checkpoint_id="listed")
        await approved(runner, listed)
        await store.set("the user's own", b"value")
        await runner.session("s").query("go")
        # As an earlier version has left it: for ever, and in no list.
        for key in await store.keys():
            if lost.id in key or key.startswith("lost"):
                await store.set(key, await store.get(key) or b"")
        await store.commit(None, [DropEntry(lost.id)])
        kept = [
            key for key in await store.keys() if lost.id not in key and not key.startswith("lost")
        ]
        assert await store.prune() == 0
        before = len(await store.keys())
        assert await runner.prune() == before - len(kept) > 0
        assert await store.keys() == kept
        for result in (waiting, half):
            assert (
                await approved(runner, runner.approve(result.interrupts[0]))
            ).status == "completed"
        assert (await approved(runner, runner.resume("listed@1", data=True))).status == "completed"

    run(main())
