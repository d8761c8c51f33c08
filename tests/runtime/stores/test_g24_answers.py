"""G24: each caller has an answer within the documented time, whatever the server does: it is
stopped, its pooler is paused, a commit waits for a standby.
"""

import asyncio
import inspect
import threading
import time
from pathlib import Path

import psycopg
import pytest

from offbook.runtime import ActorSystem, PostgresStore, RedisStore, SQLiteStore, StoreError
from offbook.runtime.stores import store_thread
from offbook.runtime.stores.postgres import client, tables
from offbook.runtime.stores.postgres import store as postgres_store
from offbook.runtime.stores.postgres.store import _Database
from offbook.runtime.stores.redis import store as redis_store
from offbook.runtime.stores.store_thread import Operation, Worker
from tests.programs.lossy import LossyLine
from tests.programs.servers import PostgresServer, RedisServer

SILENCE = 0.4  # seconds that a server may say nothing, in these tests


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    """The same with shorter times."""
    monkeypatch.setattr(_Database, "answer_seconds", SILENCE)
    monkeypatch.setattr(redis_store, "_TIMEOUT", SILENCE)
    monkeypatch.setattr(client, "CANCEL_SECONDS", SILENCE)
    monkeypatch.setattr(postgres_store, "_CLOSING_SECONDS", SILENCE)


@pytest.fixture(params=["redis", "postgres"])
def kind(request):
    return request.param


@pytest.fixture
def own_server(kind):
    server = (RedisServer() if kind == "redis" else PostgresServer()).start()
    yield server
    server.remove()


@pytest.fixture
def line(own_server):
    line = LossyLine(own_server.port)
    yield line
    line.close()


def store_at(kind, server, port):
    """A store that is as impatient as the tests. libpq waits for a connection for at least two
    seconds.
    """
    if kind == "redis":
        store = RedisStore(server.url.replace(str(server.port), str(port)))
    else:
        store = PostgresStore(
            server.dsn.replace(str(server.port), str(port))
            + " connect_timeout=2 sslmode=disable gssencmode=disable"
        )
    store._worker()._backend.patience = 0.2
    return store


# Two attempts, each with connecting and the answer; two cancellations; a slow machine.
ENOUGH = 2 * (2 + SILENCE) + 2 * SILENCE + 2


async def all_answered(*calls):
    started = time.monotonic()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert time.monotonic() - started < ENOUGH
    return answers


@pytest.mark.parametrize("how", ["stopped", "paused"])
def test_g24_a_server_that_hangs_is_told_to_all_callers_and_used_again_when_it_goes_on(
    run, kind, own_server, line, how
):
    async def main():
        async with store_at(kind, own_server, line.port) as store:
            await store.append("journal", [b"1"])
            hang, go_on = (
                (own_server.pause, own_server.go_on)
                if how == "stopped"
                else (line.hang, line.go_on)
            )
            hang()
            try:
                calls = (
                    store.append("journal", [b"2"]),
                    store.get("key"),
                    store.keys(),
                    store.prune(),
                    store.keep_alive("me", 60, first=True),
                )
                answers = await all_answered(*calls)
                assert [type(answer) for answer in answers] == [StoreError] * len(calls)
                assert all(
                    word in str(answers[0]) for word in ("append of 'journal'", "check that it")
                )
            finally:
                go_on()
            assert await store.append("other", [b"1"]) == 1
            assert await store.read("journal") in ([b"1"], [b"1", b"2"])

    run(main())


def test_g24_closing_does_not_wait_for_a_server_that_hangs(run, kind, own_server, line):
    async def main():
        store = store_at(kind, own_server, line.port)
        told = asyncio.Event()
        watch = store.watch(["key"], asyncio.get_running_loop().create_future)
        await store.append("journal", [b"1"])
        line.hang()
        asked = asyncio.create_task(store.append("journal", [b"2"]))
        await asyncio.sleep(0)
        _, answer = await all_answered(store.aclose(), asked)
        assert isinstance(answer, StoreError)
        watch.close()
        assert not told.is_set()

    run(main())


def test_g24_a_server_behind_the_same_address_that_is_well_is_used_at_once(
    run, kind, own_server, line, store_of, request
):
    """As after a fail-over: the connection to the server that hangs is given up, and the next one
    leads to another server.
    """
    other = request.getfixturevalue(f"{kind}_server")

    async def main():
        async with store_at(kind, own_server, line.port) as store:
            await store.get("key")
            own_server.pause()
            line.lead_to(other.port)
            try:
                (answer,) = await all_answered(store.get("key"))
                assert answer is None
            finally:
                own_server.go_on()

    run(main())


def test_a_slow_line_is_no_trouble(run, kind, own_server, line):
    async def main():
        async with store_at(kind, own_server, line.port) as store:
            line.delay(SILENCE / 20)
            assert await store.append("journal", [b"1"]) == 1
            line.cut()
            assert await store.append("journal", [b"2"]) == 2

    run(main())


@pytest.mark.parametrize("kind", ["postgres"])
def test_g24_a_commit_that_waits_for_a_standby_which_is_not_there(run, kind, own_server, line):
    def sql(text):
        with psycopg.connect(own_server.dsn, autocommit=True) as connection:
            return connection.execute(text)

    async def main():
        dsn = own_server.dsn + " connect_timeout=2 options='-c synchronous_commit=on'"
        async with PostgresStore(dsn) as store:
            store._worker()._backend.patience = 0.2
            await store.append("journal", [b"1"])
            sql("ALTER SYSTEM SET synchronous_standby_names = 'x'")
            sql("SELECT pg_reload_conf()")
            while True:
                answer, _size = await all_answered(
                    store.append("journal", [b"2"]), store.get("key")
                )
                if isinstance(answer, StoreError):
                    break
                await asyncio.sleep(0.05)  # the server has yet to read its configuration
            assert "sent no answer" in str(answer)
            held = await store.read("journal")  # what is read needs no standby
            sql("ALTER SYSTEM RESET synchronous_standby_names")
            sql("SELECT pg_reload_conf()")
            assert await store.read("journal") == held
            assert await store.append("journal", [b"3"]) == len(held) + 1

    run(main())


def test_g24_closing_leaves_behind_what_never_ends(run, monkeypatch, caplog):
    """As a file on a disk that hangs."""
    monkeypatch.setattr(store_thread, "CLOSE_SECONDS", 0.05)
    go = threading.Event()

    class Hangs:
        patience = 0.0

        def perform(self, batch, number):
            go.wait()

        def close(self):
            pass

    async def main():
        worker = Worker("Disk", Hangs())
        asked = asyncio.create_task(worker.do(Operation("get", b"key")))
        await asyncio.sleep(0)
        await worker.aclose()
        assert "Its thread is abandoned" in caplog.text
        go.set()
        await asked

    run(main())


def row(page, trouble, place=0):
    """What the table of troubles says of one, in the column of the answer."""
    found = [line for line in page.splitlines() if line.startswith(f"| {trouble}")]
    return found[place].split(" | ")[2]


def test_g24_the_documented_times_are_those_of_the_code():
    page = (Path(__file__).parents[3] / "docs/guarantees.md").read_text()
    assert row(page, "is gone, is restarted") == f"{tables.PATIENCE_SECONDS:g} s, and then an error"
    assert (
        row(page, "is gone, is restarted", 1)
        == f"{redis_store._Server.patience:g} s, and then an error"
    )
    assert row(page, "says nothing: stopped").startswith(
        f"{tables.ANSWERED_SECONDS:g} s, and 2 s more for each 10 MB"
    )
    assert row(page, "says nothing", 1) == f"{redis_store.ANSWERED_SECONDS:g} s"
    assert f"after {tables.ANSWER_SECONDS:g} s the statement is cancelled" in page
    assert (
        row(page, "has no connection left")
        == row(page, "answers READONLY")
        == row(page, "is gone, is restarted")
    )
    assert (
        row(page, "a row is locked")
        == f"{postgres_store._LIMITS['lock_timeout'] / 1000:g} s (`lock_timeout`)"
    )
    busy_timeout = inspect.signature(SQLiteStore).parameters["busy_timeout"].default
    assert (
        row(page, "another process holds the file's lock") == f"{busy_timeout:g} s (`busy_timeout`)"
    )
    assert row(page, "the disk hangs") == (
        "`lease_seconds` "
        f"({inspect.signature(ActorSystem).parameters['lease_seconds'].default:g} s) for a "
        "run"
    )
    assert row(page, "a prune or a search runs") == f"{store_thread.STEP_SECONDS:g} s for a step"
    assert f"abandoned after {store_thread.CLOSE_SECONDS:g} s" in page
    assert postgres_store._SLOWEST == 10_000_000
