"""The store in a Redis: a server that goes and comes, an answer that is lost, and what else may be
wrong with it.
"""

import asyncio
import threading
import uuid

import pytest
import redis

from offbook.runtime import RedisStore, StoreError, UsageError
from tests.programs.lossy import LossyLine
from tests.programs.servers import PASSWORD


@pytest.fixture
def line(redis_server):
    line = LossyLine(redis_server.port)
    yield line
    line.close()


def fails(caught, *words):
    text = str(caught.value)
    assert PASSWORD not in text
    for word in words:
        assert word in text, f"{word!r} is not in: {text}"


def test_an_append_whose_answer_was_lost_is_not_done_twice(run, redis_server, line):
    async def main():
        async with RedisStore(
            redis_server.url.replace(str(redis_server.port), str(line.port)),
            prefix=f"{uuid.uuid4()}:",
        ) as store:
            assert await store.append("journal", [b"1"]) == 1
            line.lose_answer_to(b"append")
            assert await store.append("journal", [b"2", b"3"]) == 3
            line.lose_answer_to(b"create")
            assert await store.create("key", b"v") is True
            line.lose_answer_to(b"append", times=2)
            assert await asyncio.gather(
                store.append("journal", [b"4"]),
                store.create("other", b"w"),
                store.keep_alive("me", 60, first=True),
            ) == [4, True, True]
            assert line.lost == 4
            assert await store.read("journal") == [b"1", b"2", b"3", b"4"]

    run(main())


def test_it_waits_for_a_server_that_comes_back(run, own_redis):
    server = own_redis()

    async def main():
        async with RedisStore(server.url) as store:
            assert await store.append("journal", [b"1"]) == 1
            server.stop()
            appending = [
                asyncio.create_task(store.append("journal", [b"2"])),
                asyncio.create_task(store.get("key")),
            ]
            await asyncio.sleep(0.3)
            assert not appending[0].done()
            server.start()
            assert await asyncio.gather(*appending) == [2, None]
            server.kill()
            server.start()
            assert await store.read("journal") == [b"1", b"2"]

    run(main())


def test_a_server_that_hangs_for_a_moment_is_waited_for(run, own_redis):
    server = own_redis()

    async def main():
        async with RedisStore(server.url) as store:
            assert await store.append("journal", [b"1"]) == 1
            server.pause()
            asked = [asyncio.create_task(store.append("journal", [b"2"])) for _ in range(3)]
            await asyncio.sleep(0.2)
            assert not any(task.done() for task in asked)
            server.go_on()
            assert sorted(await asyncio.gather(*asked)) == [2, 3, 4]

    run(main())


def test_a_server_that_is_away_is_told(run, own_redis):
    server = own_redis()
    url = server.url
    server.stop()

    async def main():
        async with RedisStore(url) as store:
            store._worker()._backend.patience = 0.2
            for call, words in (
                (store.append("the journal", [b"r"]), "append of 'the journal'"),
                (store.keys(), ".keys"),
                (store.keep_alive("me", 1), "keep_alive of 'me'"),
            ):
                with pytest.raises(StoreError) as caught:
                    await call
                fails(
                    caught,
                    f"RedisStore('redis://127.0.0.1:{server.port}/0'",
                    words,
                    "cannot be reached",
                    "check that it runs",
                )
                assert isinstance(caught.value.__cause__, redis.ConnectionError)

    run(main())


def test_a_connection_that_was_ended_is_made_anew(run, redis_server, store_of):
    store = store_of("redis")
    with redis.Redis.from_url(redis_server.url) as other:

        async def main():
            for number in range(3):
                assert await store.append("journal", [b"r"]) == number + 1
                other.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            assert len(await store.read("journal")) == 3

        run(main())


def test_a_server_that_was_started_again_does_not_know_the_script_any_more(
    run, redis_server, store_of
):
    store = store_of("redis")
    with redis.Redis.from_url(redis_server.url) as other:

        async def main():
            assert await store.append("journal", [b"r"]) == 1
            other.script_flush()
            assert await asyncio.gather(
                store.append("journal", [b"s"]), store.get("key"), store.append("other", [b"s"])
            ) == [2, None, 1]

        run(main())


def test_a_wrong_password_is_told_at_once_and_not_shown(run, redis_server):
    async def main():
        async with (
            RedisStore(redis_server.url.replace(PASSWORD, "another-secret")) as store,
            asyncio.timeout(4),
        ):
            with pytest.raises(StoreError) as caught:
                await store.get("key")
            fails(caught, "rejects the user or the password")
            assert "another-secret" not in str(caught.value) + repr(store)

    run(main())


@pytest.mark.parametrize(
    "url",
    [
        "localhost:6379",
        "http://:secret@localhost",
        "redis://user:sec/ret@localhost:x/0",
        "redis://:secret@localhost:port",
        "",
    ],
)
def test_a_url_that_is_none_is_told_at_once_and_not_shown(url):
    with pytest.raises(UsageError, match=r"url must have the form redis://") as caught:
        RedisStore(url)
    assert "sec" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_other_arguments_are_told_at_once():
    with pytest.raises(UsageError, match=r"url must be a string .*got a NoneType"):
        RedisStore(None)
    with pytest.raises(UsageError, match="prefix"):
        RedisStore(prefix=1)


def test_something_else_under_a_key_fails_that_operation_only(run, redis_server, store_of):
    store = store_of("redis")
    root = f"{store._prefix}\0"
    with redis.Redis.from_url(redis_server.url) as other:
        other.set(f"{root}j:journal", "no list")
        other.rpush(f"{root}v:value", "no text")

        async def main():
            calls = (
                store.append("journal", [b"r"]),
                store.get("value"),
                store.append("good", [b"r"]),
                store.get("other"),
            )
            appended, got, good, none = await asyncio.gather(*calls, return_exceptions=True)
            for error, words in ((appended, "append of 'journal'"), (got, "get of 'value'")):
                assert isinstance(error, StoreError)
                assert words in str(error)
                assert "the key is in use for other data" in str(error)
            assert (good, none) == (1, None)
            await store.set("value", b"v")
            assert await store.get("value") == b"v"

        run(main())


def test_a_server_without_memory_is_told(run, own_redis):
    server = own_redis("--maxmemory", "3mb", "--maxmemory-policy", "noeviction")

    async def main():
        async with RedisStore(server.url) as store:
            await store.append("journal", [b"r"])
            with redis.Redis.from_url(server.url) as other:
                other.config_set("maxmemory", 1)
            with pytest.raises(
                StoreError,
                match=r"append of 'journal'.*no memory left.*nothing of this operation was written",
            ):
                await store.append("journal", [b"s"])
            assert await store.read("journal") == [b"r"]
            await store.delete("journal")
            assert await store.keys() == []

    run(main())


def test_data_of_a_newer_version_is_told(run, redis_server, store_of):
    store = store_of("redis")
    with redis.Redis.from_url(redis_server.url) as other:
        other.set(f"{store._prefix}\0version", 7)

    async def main():
        for call in (store.get("key"), store.set("key", b"v")):
            with pytest.raises(StoreError, match=r"version 7.*newer version of offbook"):
                await call

    run(main())


def test_what_has_expired_leaves_nothing_behind(run, redis_server, store_of):
    store = store_of("redis", ttl=0.05)
    with redis.Redis.from_url(redis_server.url) as other:

        async def main():
            for number in range(10):
                await store.set(f"key {number}", b"v")
                await store.append(f"key {number}", [b"r"])
            await asyncio.sleep(0.1)
            await store.delete("something")
            left = {
                key.decode().removeprefix(store._prefix)
                for key in other.scan_iter(f"{store._prefix}*")
            }
            assert {key for key in left if not key.startswith("\0w:")} == {"\0version"}

        run(main())


def test_a_great_number_is_pruned_in_steps(run, store_of):
    store = store_of("redis")

    async def main():
        await asyncio.gather(*(store.set(f"key {number}", b"v") for number in range(4500)))
        await asyncio.sleep(0.002)
        assert await store.prune(older_than=0) == 4500
        assert await store.keys() == []

    run(main())


def test_no_thread_of_the_client_is_left(run, store_of):
    store = store_of("redis")
    run(store.set("key", b"v"))
    store.close()
    assert [thread for thread in threading.enumerate() if "redis" in thread.name.lower()] == []


def test_the_environment_says_where_the_server_is(run, redis_server, monkeypatch, tmp_path):
    async def main():
        monkeypatch.setenv("REDIS_ADDR", redis_server.url)
        async with RedisStore.from_env(prefix=f"{uuid.uuid4()}:") as store:
            await store.set("key", b"v")
            assert await store.get("key") == b"v"

    monkeypatch.chdir(tmp_path)
    run(main())


@pytest.mark.parametrize(
    ("address", "url"),
    [
        (None, "redis://localhost:6379/0"),
        ("", "redis://localhost:6379/0"),
        ("redis.example:7000", "redis://redis.example:7000/0"),
        (":7000", "redis://localhost:7000/0"),
        ("rediss://redis.example/2", "rediss://redis.example/2"),
    ],
)
def test_an_address_may_be_a_host_with_its_port_or_a_url_and_stand_in_a_file(
    address, url, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REDIS_ADDR", raising=False)
    if address is not None:
        (tmp_path / ".env").write_text(f"REDIS_ADDR={address}\n")
    assert repr(RedisStore.from_env(prefix="p")) == f"RedisStore({url!r}, prefix='p')"
