"""`Runner.forget_session`: nothing is left of a session and its runs."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
import redis

from offbook.actors import ChatModelAgent, tool
from offbook.runtime import MemoryStore, Message, Runner, StoreError, ToolCall, UsageError
from offbook.runtime.durability.copies.store_marks import hold, release
from offbook.runtime.durability.store_access import StoreAccess
from tests.doubles.held_stores import beside, soon

SECRET = "marzipan"  # in each message, reply and value of the session, and in its id


class Clerk:
    """Answers with what it was asked, after a tool call; asks for approval of a payment, if that is
    wanted.
    """

    gate = None

    async def generate(self, request):
        if self.gate is not None:
            await self.gate.wait()
        last = request.messages[-1]
        if last.role == "tool":
            return Message.assistant(f"{last.text}, answered")
        name = "pay" if "pay" in last.text else "note"
        return Message.assistant(
            "", (ToolCall("c1", name, f'{{"text": "{last.text} {"x" * 3000}"}}'),)
        )


@tool
def note(text: str) -> str:
    """Note it."""
    return f"noted {text}"


@tool(needs_approval=True)
def pay(text: str) -> str:
    """Pay it."""
    return f"paid {text}"


def runner_of(store, clerk=None, **options):
    agent = ChatModelAgent(name="clerk", model=clerk or Clerk(), tools=[note, pay])
    return Runner(agent, store=store, **{"durability": "step", "keep": "all", **options})


async def talk(store, session_id, secret, **options):
    session = runner_of(store, **options).session(session_id)
    for number in range(3):
        result = await session.run(
            f"{secret} {number}",
            session_values={"secret": f"{secret} value"},
            labels={"who": secret},
        )
        assert str(result.status) == "completed"
    result = await session.query(f"pay {secret}")
    assert str(result.status) == "interrupted"


def found_in_sqlite(path, secret):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return [
        one.name
        for one in Path(path).parent.iterdir()
        if one.name.startswith(Path(path).name) and secret in one.read_bytes()
    ]


def found_in_postgres(dsn, prefix, secret):
    found = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        query = (
            "SELECT table_name, column_name FROM information_schema.columns WHERE table_name "
            "LIKE %s AND data_type = 'bytea'"
        )
        for table, column in connection.execute(query, [f"{prefix}%"]).fetchall():
            (count,) = connection.execute(
                f'SELECT count(*) FROM "{table}" WHERE position(%s::bytea in "{column}") > 0',
                [secret],
            ).fetchone()
            found += [f"{table}.{column}"] * count
    return found


def found_in_redis(url, prefix, secret):
    client, found = redis.Redis.from_url(url), []
    for key in client.scan_iter(f"{prefix}*", 1000):
        if secret in key or secret in (client.dump(key) or b""):
            found.append(key)
        read = {
            b"string": client.get,
            b"hash": client.hgetall,
            b"list": lambda k: client.lrange(k, 0, -1),
            b"zset": lambda k: client.zrange(k, 0, -1),
        }
        if secret in repr(read[client.type(key)](key)).encode():
            found.append(key)
    client.close()
    return found


@pytest.mark.parametrize("durability", ["step", "interrupt"])
@pytest.mark.parametrize("kind", ["sqlite", "redis", "postgres"])
def test_nothing_is_left_of_a_session_and_its_runs(run, store_recipe, store_of, kind, durability):
    _, args, options = store_recipe(kind, "one")

    def found(secret):
        match kind:
            case "sqlite":
                return found_in_sqlite(args[0], secret)
            case "redis":
                return found_in_redis(args[0], options["prefix"], secret)
        return found_in_postgres(args[0], options["prefix"], secret)

    async def main():
        store = store_of(kind, "one")
        await asyncio.gather(
            talk(store, f"s-{SECRET}", SECRET, durability=durability),
            talk(store, "s-other", "truffle", durability=durability),
        )
        assert found(SECRET.encode())
        assert await runner_of(store).forget_session(f"s-{SECRET}") == 4
        assert found(SECRET.encode()) == []
        assert found(b"truffle")
        assert len(await runner_of(store).runs()) == 4
        assert len(await runner_of(store).session("s-other").history()) == 3 * 4 + 2
        assert await runner_of(store).session(f"s-{SECRET}").history() == ()
        assert await runner_of(store).forget_session(f"s-{SECRET}") == 0

    run(main())


def test_of_many_sessions_that_are_forgotten_no_byte_is_left_in_the_file(
    run, store_of, store_recipe
):
    _, args, _ = store_recipe("sqlite", "one")

    async def main():
        store = store_of("sqlite", "one")
        for number in range(30):
            await talk(store, f"s{number}", f"{SECRET if number % 3 else 'truffle'} {number}")
        for number in range(30):
            if number % 3:
                await runner_of(store).forget_session(f"s{number}")
        assert found_in_sqlite(args[0], SECRET.encode()) == []
        assert found_in_sqlite(args[0], b"truffle")

    run(main())


def test_a_session_with_a_run_that_waits_for_its_turn_is_not_forgotten(run):
    async def main():
        clerk, store = Clerk(), MemoryStore()
        clerk.gate = asyncio.Event()
        runner = runner_of(store, clerk)
        session = runner.session("s")
        first, second = session.query("one", run_id="first"), session.query("two", run_id="second")
        forgetting = asyncio.create_task(runner.forget_session("s"))
        await asyncio.sleep(0)
        assert not forgetting.done()
        clerk.gate.set()
        await soon(asyncio.gather(first, second))
        assert await soon(forgetting) == 2, "it waited for its turn"
        assert await runner.runs() == []

    run(main())


def test_a_session_of_a_store_that_is_held_is_forgotten(run, store_of):
    async def main():
        store = store_of("sqlite")
        await talk(store, "s", SECRET)
        await hold(StoreAccess(store))
        with pytest.raises(StoreError, match="is held since"):
            (await runner_of(store, system=beside()).session("s").query("more")).raise_for_error()
        assert await runner_of(store).forget_session("s") == 4
        await release(StoreAccess(store))
        assert await runner_of(store).session("s").history() == ()

    run(main())


@pytest.mark.parametrize("session_id", ["", None, 7])
def test_a_session_has_an_id(run, session_id):
    async def main():
        with pytest.raises(UsageError, match="session_id must be a non-empty string"):
            await runner_of(MemoryStore()).forget_session(session_id)

    run(main())
