"""A store tells of changes: what another store object, and so another process, writes, and when
that may have been missed.
"""

import asyncio
import threading

import pytest

from offbook.runtime import MemoryStore, SQLiteStore
from offbook.runtime.stores import Append, Put, Remove, Watches

KINDS = pytest.mark.parametrize("kind", ["memory", "sqlite", "redis", "postgres"])


class Told:
    """What a watch has said, on a loop."""

    def __init__(self, store, *keys):
        self.count = 0
        self._loop, self._news = asyncio.get_running_loop(), asyncio.Event()
        self.watch = store.watch(keys, self._changed)

    def _changed(self):
        self._loop.call_soon_threadsafe(self._count)

    def _count(self):
        self.count += 1
        self._news.set()

    async def live(self, *, is_live=True):
        async with asyncio.timeout(30):
            while self.watch.is_live is not is_live:
                await self._news.wait()
                self._news.clear()

    async def more_than(self, count):
        async with asyncio.timeout(30):
            while self.count <= count:
                await self._news.wait()
                self._news.clear()


def pair(store_of, kind):
    """The store that is watched, and one that writes there."""
    watched = store_of(kind, "shared")
    return watched, watched if kind == "memory" else store_of(kind, "shared")


async def quiet(told, other):
    """A change was told, and all that came before it, too."""
    before = told.count
    await other("after")
    await told.more_than(before)


@KINDS
def test_a_change_of_each_sort_is_told(run, store_of, kind):
    async def main():
        watched, writes = pair(store_of, kind)
        await writes.keep_alive("o", 60, first=True)
        told = Told(watched, "a", "\udc80\0ü")
        await told.live()
        claim = None

        async def take():
            nonlocal claim
            claim = await writes.claim("run", "o", [Put("a", b"claimed")])

        for change in (
            lambda: writes.set("a", b"1"),
            lambda: writes.append("a", [b"x", b"y"]),
            lambda: writes.set("\udc80\0ü", b"1"),
            lambda: writes.delete("a"),
            lambda: writes.create("a", b"2"),
            take,
            lambda: writes.commit(claim, [Append("a", (b"x",), 0)]),
            lambda: writes.commit(None, [Remove("a")]),
        ):
            before = told.count
            await change()
            await told.more_than(before)
        told.watch.close()
        told.watch.close()

    run(main())


@KINDS
def test_what_is_not_watched_is_not_told(run, store_of, kind):
    async def main():
        watched, writes = pair(store_of, kind)
        await writes.set("b", b"0")
        a, b = Told(watched, "a"), Told(watched, "b")
        await a.live()
        await b.live()
        await quiet(a, lambda word: writes.set("a", word.encode()))
        before = a.count
        for number in range(20):
            await writes.append("b", [b"%d" % number])
        await b.more_than(1)
        assert a.count == before
        b.watch.close()
        # What was on its way has come.
        await quiet(a, lambda word: writes.append("a", [word.encode()]))
        before = b.count
        await writes.set("b", b"closed")
        await quiet(a, lambda word: writes.append("a", [word.encode()]))
        # For SQLite: two looks later.
        await quiet(a, lambda word: writes.append("a", [word.encode()]))
        assert b.count == before
        a.watch.close()

    run(main())


@KINDS
def test_a_watch_that_comes_later_is_told_too(run, store_of, kind):
    async def main():
        watched, writes = pair(store_of, kind)
        await writes.set("b", b"0")
        first = Told(watched, "a")
        await first.live()
        many = [Told(watched, f"key {number}") for number in range(700)]
        for told in many:
            await told.live()
        for number in (0, 350, 699):
            before = many[number].count
            await writes.set(f"key {number}", b"x")
            await many[number].more_than(before)
        for told in many:
            told.watch.close()
        again = Told(watched, "key 1", "a")
        await again.live()
        before = first.count, again.count
        await writes.set("a", b"x")
        await again.more_than(before[1])
        await first.more_than(before[0])
        first.watch.close()
        again.watch.close()

    run(main())


def test_closing_the_store_ends_the_listening(run, store_of):
    async def main():
        for kind in ("sqlite", "redis", "postgres"):
            store = store_of(kind)
            await store.set("a", b"")
            told = Told(store, "a")
            await told.live()
            threads = [thread for thread in threading.enumerate() if "listener" in thread.name]
            assert len(threads) == 1
            await store.aclose()
            threads[0].join(5)  # it has said that it ends, as its last word
            assert not threads[0].is_alive()
            assert not told.watch.is_live
            told.watch.close()

    run(main())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_a_server_that_was_killed_and_started_again_is_heard_again(run, store_of, request, kind):
    server = request.getfixturevalue(f"{kind}_server")

    async def main():
        watched, writes = pair(store_of, kind)
        await writes.set("a", b"0")
        told = Told(watched, "a")
        await told.live()
        await asyncio.to_thread(server.kill)
        await told.live(is_live=False)
        await asyncio.to_thread(server.start)
        await told.live()
        before = told.count
        await writes.set("a", b"1")
        await told.more_than(before)
        told.watch.close()

    try:
        run(main())
    finally:
        server.start()


def test_a_redis_that_hangs_is_noticed(run, store_of, redis_server, monkeypatch):
    monkeypatch.setattr("offbook.runtime.stores.listening._LINGER", 0.2)

    async def main():
        told = Told(store_of("redis"), "a")
        await told.live()
        redis_server.pause()
        try:
            await told.live(is_live=False)
        finally:
            redis_server.go_on()
        await told.live()
        told.watch.close()

    run(main())


@pytest.fixture
def tables(store_recipe):
    """Two connections to the PostgreSQL of the tests, and how the names of the tables of a store in
    it begin.
    """
    import psycopg

    _, (dsn,), options = store_recipe("postgres", "shared")
    with (
        psycopg.connect(dsn, autocommit=True) as first,
        psycopg.connect(dsn, autocommit=True) as second,
    ):
        yield first, second, options["prefix"]


def test_a_key_is_not_live_while_a_write_of_it_is_under_way_that_began_before(
    run, store_of, tables, wait_until
):
    holds, looks, prefix = tables

    async def found(query):
        return looks.execute(query).fetchone()

    async def main():
        watched, writes = pair(store_of, "postgres")
        await writes.set("a", b"0")
        holds.execute("BEGIN")
        holds.execute(f'SELECT FROM "{prefix}entries" FOR UPDATE')
        writing = asyncio.create_task(writes.set("a", b"1"))
        # It has looked who watches.
        await wait_until(lambda: found("SELECT 1 FROM pg_locks WHERE NOT granted"))
        told = Told(watched, "a")
        await wait_until(lambda: found(f'SELECT 1 FROM "{prefix}watched"'))
        other = Told(watched, "b")  # one that comes later waits for that write, too
        await wait_until(lambda: found(f"SELECT 1 FROM \"{prefix}watched\" WHERE key = 'b'"))
        assert not told.watch.is_live
        before = told.count
        holds.execute("COMMIT")
        await writing
        await told.more_than(before)
        await other.live()
        assert told.watch.is_live
        for one in (told, other):
            one.watch.close()

    run(main())


def test_a_server_that_has_forgotten_what_is_watched_is_asked_anew(
    run, store_of, tables, monkeypatch
):
    monkeypatch.setattr("offbook.runtime.stores.listening._LINGER", 0.05)
    monkeypatch.setattr("offbook.runtime.stores.postgres.listening._LASTS", 0.3)
    connection, _, prefix = tables

    async def main():
        watched, writes = pair(store_of, "postgres")
        await writes.set("a", b"0")
        told = Told(watched, "a")
        await told.live()
        before = told.count
        connection.execute(f'DELETE FROM "{prefix}watched"')
        await told.more_than(before)  # those who watch look for themselves
        await told.live()
        before = told.count
        await writes.set("a", b"1")
        await told.more_than(before)
        told.watch.close()

    run(main())


@pytest.mark.parametrize("lacks", ["threads", "descriptors"])
def test_a_process_without_a_thread_or_descriptor_left_is_not_told_and_looks_for_itself(
    run, store_of, monkeypatch, lacks
):
    def start(thread, really=threading.Thread.start):
        if "listener" in thread.name:
            raise RuntimeError("can't start new thread")
        really(thread)

    def socketpair():
        raise OSError(24, "Too many open files")

    async def main():
        store = store_of("sqlite")
        await store.set("a", b"0")
        with monkeypatch.context() as patch:
            patch.setattr(
                threading.Thread, "start", start
            ) if lacks == "threads" else patch.setattr("socket.socketpair", socketpair)
            told = Told(store, "a")
            assert not told.watch.is_live
        other = Told(store, "b")  # the next one tries it again
        await other.live()
        await told.live()
        for one in (told, other):
            one.watch.close()
        await store.aclose()

    run(main())


def test_a_file_that_is_not_there_yet_is_watched_when_it_is(run, tmp_path):
    async def main():
        async with (
            SQLiteStore(tmp_path / "runs.db") as watched,
            SQLiteStore(tmp_path / "runs.db") as writes,
        ):
            told = Told(watched, "a")
            assert not told.watch.is_live
            await writes.set("b", b"")
            await told.live()
            told.watch.close()

    run(main())


def test_a_user_of_postgres_that_may_make_no_table_writes_none_the_less(
    run, store_of, store_recipe, postgres_server
):
    import psycopg

    async def main():
        owner = store_of("postgres", "shared")
        await owner.set("a", b"1")
        _, (dsn,), options = store_recipe("postgres", "shared")
        prefix = options["prefix"]
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(f'DROP TABLE "{prefix}watched"')
            connection.execute("DROP ROLE IF EXISTS limited")
            connection.execute("CREATE ROLE limited LOGIN PASSWORD 'not-to-be-shown'")
            connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
            connection.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO limited")
            connection.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO limited")
        try:
            from offbook.runtime import PostgresStore

            async with PostgresStore(
                dsn.replace("user=tester", "user=limited"), prefix=prefix
            ) as limited:
                await limited.set("a", b"2")
                told = Told(limited, "a")
                assert not told.watch.is_live
                told.watch.close()
            assert await owner.get("a") == b"2"
        finally:
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute("DROP OWNED BY limited")
                connection.execute("DROP ROLE limited")

    run(main())


def test_what_a_store_has_that_tells_is_a_protocol():
    store: Watches = MemoryStore()
    assert store.watch(["a"], lambda: None).is_live
    with SQLiteStore(":memory:") as alone:
        assert not alone.watch(["a"], lambda: None).is_live  # who follows looks for himself
