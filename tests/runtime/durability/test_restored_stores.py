"""A store that is restored from a backup: what its runs did since is done again, with the keys that
it had, and not before the store is released.
"""

import asyncio
import os
import shutil
import subprocess
import uuid

import psycopg
import pytest

from offbook.actors import ChatModelAgent, ToolContext, tool
from offbook.runtime import (
    ActorSystem,
    Message,
    PostgresStore,
    RedisStore,
    Runner,
    SQLiteStore,
    StoreError,
    ToolCall,
)
from offbook.runtime.durability.copies.store_marks import hold, release
from offbook.runtime.durability.store_access import StoreAccess
from tests.doubles.held_stores import soon
from tests.programs.servers import PASSWORD, RedisServer

RUNS, CALLS, BEFORE = 12, 4, 2


class SQLiteFile:
    """A file, restored as the page says: all files of the database are gone before the copy is put
    in its place.
    """

    def __init__(self, folder):
        self.path, self.copy = folder / "shop.db", folder / "copy.db"

    def store(self):
        return SQLiteStore(self.path)

    async def back_up(self, store):
        await store.backup(self.copy)

    def restore(self):
        for part in ("", "-wal", "-shm"):
            self.path.with_name(self.path.name + part).unlink(missing_ok=True)
        shutil.copyfile(self.copy, self.path)

    def end(self):
        pass


class RedisServerAlone:
    """A Redis: a snapshot of it is copied, and put in the place of its data while it is stopped."""

    def __init__(self, folder):
        self.server, self.copy = RedisServer().start(), folder / "dump.rdb"

    def store(self):
        return RedisStore(self.server.url)

    async def back_up(self, _store):
        command = [
            "redis-cli",
            "-p",
            self.server.port,
            "-a",
            PASSWORD,
            "--no-auth-warning",
            "--rdb",
            self.copy,
        ]
        await asyncio.to_thread(
            subprocess.run, list(map(str, command)), check=True, capture_output=True, timeout=30
        )

    def restore(self):
        self.server.stop()
        shutil.rmtree(self.server.folder / "appendonlydir")
        shutil.copyfile(self.copy, self.server.folder / "dump.rdb")
        self.server.options = (
            "--appendonly",
            "no",
        )  # with it, a Redis reads its log alone, and there is none
        self.server.start()
        assert self.server.call("CONFIG", "SET", "appendonly", "yes").startswith(b"+OK")

    def end(self):
        self.server.remove()


class PostgresSchema:
    """A schema of a PostgreSQL, dumped while it is used."""

    def __init__(self, folder, server):
        self.server, self.copy, self.schema = server, folder / "dump", f"s{uuid.uuid4().hex[:8]}"
        self._do(f"CREATE SCHEMA {self.schema}")

    def _do(self, statement):
        with psycopg.connect(self.server.dsn, autocommit=True) as connection:
            connection.execute(statement)

    def _tool(self, *words):
        where = ["-h", "127.0.0.1", "-p", str(self.server.port), "-U", self.server.USER]
        command = [self.server.tool(words[0]), *where, *map(str, words[1:])]
        subprocess.run(
            command,
            check=True,
            capture_output=True,
            timeout=60,
            env={**os.environ, "PGPASSWORD": PASSWORD},
        )

    def store(self):
        return PostgresStore(self.server.dsn, schema=self.schema)

    async def back_up(self, _store):
        await asyncio.to_thread(
            self._tool, "pg_dump", "-Fc", "-n", self.schema, "-f", self.copy, "postgres"
        )

    def restore(self):
        self._do(f"DROP SCHEMA {self.schema} CASCADE")
        self._tool("pg_restore", "-d", "postgres", self.copy)

    def end(self):
        self._do(f"DROP SCHEMA {self.schema} CASCADE")


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def place(request, tmp_path):
    match request.param:
        case "sqlite":
            made = SQLiteFile(tmp_path)
        case "redis":
            made = RedisServerAlone(tmp_path)
        case _:
            made = PostgresSchema(tmp_path, request.getfixturevalue("postgres_server"))
    yield made
    made.end()


class Bank:
    """What was paid, by its keys. From the third payment of a run on, it waits until it is open."""

    def __init__(self):
        self.paid, self.fences, self.waiting, self.opened = {}, {}, 0, asyncio.Event()

    def agent(self):
        @tool
        async def pay(context: ToolContext, order: str, number: int) -> str:
            """Pay."""
            if number == BEFORE and not self.opened.is_set():
                self.waiting += 1
                await self.opened.wait()
            self.paid.setdefault(context.idempotency_key, []).append((order, number))
            self.fences[context.run_id] = max(context.fence, self.fences.get(context.run_id, 0))
            return "paid"

        async def answer(request):
            done = sum(message.role == "tool" for message in request.messages)
            if done == CALLS:
                return Message.assistant("done")
            text = f'{{"order": "{request.messages[0].text}", "number": {done}}}'
            # A provider gives other ids each time.
            return Message.assistant("", (ToolCall(uuid.uuid4().hex, "pay", text),))

        return ChatModelAgent(
            name="clerk", model=type("Model", (), {"generate": staticmethod(answer)})(), tools=[pay]
        )


async def until(what):
    async with asyncio.timeout(20):
        while not what():
            await asyncio.sleep(0.01)


def test_calls_that_are_made_again_after_a_restore_have_the_keys_that_they_had(run, place):
    async def main():
        bank = Bank()
        async with place.store() as store, ActorSystem(lease_seconds=2) as system:
            runner = Runner(bank.agent(), store=store, durability="step", system=system)
            runs = [
                runner.query(f"order {number}", run_id=f"order-{number}") for number in range(RUNS)
            ]
            await until(lambda: bank.waiting == RUNS)
            await place.back_up(store)
            bank.opened.set()
            assert {str((await soon(one)).status) for one in runs} == {"completed"}
            late = await soon(runner.query("order late", run_id="late"))
            assert late.status == "completed"
        assert len(bank.paid) == (RUNS + 1) * CALLS
        fences, before = dict(bank.fences), set(bank.paid)

        place.restore()
        async with place.store() as store, ActorSystem(lease_seconds=2) as system:
            access = StoreAccess(store)
            assert await hold(access)
            runner = Runner(bank.agent(), store=store, durability="step", system=system)
            with pytest.raises(StoreError, match="is held since"):
                await runner.recover()
            assert sorted(info.id for info in await runner.runs()) == sorted(
                f"order-{number}" for number in range(RUNS)
            )
            await _forgotten(runner, "order-0")
            assert set(bank.paid) == before
            assert len([key for key, made in bank.paid.items() if len(made) > 1]) == 0

            assert await release(access)
            found = []
            # The owners of before are alive in the copy until their time is over.
            async with asyncio.timeout(60):
                while len(found) < RUNS - 1:
                    found += await runner.recover()
                    await asyncio.sleep(0.1)
            for one in found:
                assert (await soon(one)).status == "completed"
            assert (await soon(runner.query("order late", run_id="late"))).status == "completed", (
                "its caller asks again: the store has lost it"
            )

        assert set(bank.paid) == before, "no call has a key that it did not have before"
        assert all(len(set(made)) == 1 for made in bank.paid.values())
        again = {order for made in bank.paid.values() if len(made) > 1 for order, _ in made}
        assert again == {f"order {number}" for number in range(1, RUNS)} | {"order late"}
        assert all(
            bank.fences[f"order-{number}"] > fences[f"order-{number}"] for number in range(1, RUNS)
        )
        assert bank.fences["late"] > fences["late"]

    run(main())


async def _forgotten(runner, run_id):
    async with asyncio.timeout(60):
        while True:
            try:
                await runner.forget(run_id)
            except Exception as error:
                if "has not noticed yet" not in str(error):
                    raise
                await asyncio.sleep(0.1)
            else:
                return
