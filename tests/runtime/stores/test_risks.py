"""What can lose data in a store's server is told in the log when the store is opened."""

import pytest

from offbook.runtime import PostgresStore, RedisStore, SQLiteStore
from offbook.runtime.stores.sqlite import risks
from tests.programs.servers import RedisServer


def told(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "offbook.stores"]


@pytest.fixture
def redis_alone():
    server = RedisServer().start()
    yield server
    server.remove()


def test_a_redis_that_keeps_what_it_is_given_is_not_warned_of(run, redis_alone, caplog):
    async def main():
        async with RedisStore(redis_alone.url) as store:
            await store.set("key", b"v")
        # Without maxmemory it throws nothing away.
        redis_alone.call("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
        async with RedisStore(redis_alone.url) as store:
            await store.set("key", b"v")
        assert told(caplog) == []

    run(main())


def test_a_redis_that_throws_keys_away_or_keeps_nothing_on_disk_is_warned_of_once(
    run, redis_alone, caplog
):
    async def main():
        for setting in (
            ("maxmemory-policy", "allkeys-lru"),
            ("maxmemory", "100mb"),
            ("appendonly", "no"),
        ):
            assert redis_alone.call("CONFIG", "SET", *setting).startswith(b"+OK")
        async with RedisStore(redis_alone.url) as store:
            for _ in range(3):
                await store.set("key", b"v")
                redis_alone.call("CLIENT", "KILL", "TYPE", "normal")  # it connects again
        evicts, volatile = told(caplog)
        assert "can lose data: its maxmemory-policy is allkeys-lru: " in evicts
        assert "Set maxmemory-policy noeviction." in evicts
        assert (
            "it stores nothing on disk (appendonly no, and no save points): a restart loses all runs"
            in volatile
        )
        caplog.clear()
        redis_alone.call("CONFIG", "SET", "save", '"3600 1"')
        redis_alone.call("CONFIG", "SET", "maxmemory-policy", "noeviction")
        async with RedisStore(redis_alone.url) as store:
            await store.set("key", b"v")
        assert told(caplog) == []

    run(main())


def test_where_the_settings_may_not_be_asked_for_the_store_is_used_without_a_word(
    run, redis_alone, caplog
):
    async def main():
        redis_alone.call("CONFIG", "SET", "appendonly", "no")
        assert redis_alone.call(
            "ACL", "SETUSER", "rented", "on", ">pw", "~*", "&*", "+@all", "-config", "-info"
        ).startswith(b"+OK")
        async with RedisStore(
            redis_alone.url.replace("redis://:", "redis://rented:").replace("not-to-be-shown", "pw")
        ) as store:
            await store.set("key", b"v")
            assert await store.get("key") == b"v"
        assert told(caplog) == []

    run(main())


def test_a_postgresql_that_loses_commits_is_warned_of(run, postgres_server, store_recipe, caplog):
    _, (dsn,), options = store_recipe("postgres")

    async def main():
        async with PostgresStore(dsn, **options) as store:
            await store.set("key", b"v")
        fsync, commits = told(caplog)
        assert (
            "can lose data: its fsync is off: when its machine goes down, all of the "
            "database can be lost" in fsync
        )
        assert (
            "its synchronous_commit is off: when the server goes down, the last commits are lost"
            in commits
        )
        caplog.clear()
        async with PostgresStore(f"{dsn} options='-c synchronous_commit=on'", **options) as store:
            await store.set("key", b"v")
        assert len(told(caplog)) == 1

    run(main())


def test_an_sqlite_file_with_two_names_is_warned_of(run, tmp_path, caplog):
    async def main():
        path = tmp_path / "runs.db"
        async with SQLiteStore(path) as store:
            await store.set("key", b"v")
        assert told(caplog) == []
        (tmp_path / "other.db").hardlink_to(path)
        async with SQLiteStore(path) as store:
            assert await store.get("key") == b"v"
        (names,) = told(caplog)
        assert "can lose data: it has more than one name (hard links)" in names

    run(main())


def test_an_sqlite_file_that_is_mounted_by_itself_is_warned_of(run, tmp_path, caplog, monkeypatch):
    """As containers have it that are given the file and not its folder."""

    async def main():
        path = tmp_path / "my runs.db"
        mounts = tmp_path / "mountinfo"
        mounts.write_text(
            "22 1 0:21 / / rw - ext4 /dev/root rw\n36 22 98:0 /runs.db "
            f"{str(path).replace(' ', chr(92) + '040')} rw,noatime - ext4 /dev/root rw\n"
        )
        monkeypatch.setattr(risks, "_MOUNTS", mounts)
        async with SQLiteStore(path) as store:
            await store.set("key", b"v")
        (mounted,) = told(caplog)
        assert "can lose data: it is mounted as a single file" in mounted

    run(main())
