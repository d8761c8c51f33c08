"""What is under a prefix: its version, data of other programs, and prefixes that extend one another."""

import pytest
import redis
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from offbook.runtime import RedisStore, StoreError, UsageError
from offbook.runtime.stores import Append, Put


def test_a_newer_version_that_takes_over_beside_this_one_is_told(run, redis_server, store_of):
    store = store_of("redis")

    async def main():
        await store.set("key", b"v")
        with redis.Redis.from_url(redis_server.url) as other:
            other.set(f"{store._prefix}\0version", 2)
        with pytest.raises(StoreError, match=r"version 2.*newer version of offbook"):
            await store.set("key", b"w")
        assert await store.get("key") == b"v"

    run(main())


def test_some_other_programs_data_is_left_alone(run, redis_server, store_of):
    store = store_of("redis")
    with redis.Redis.from_url(redis_server.url) as other:
        other.set(f"{store._prefix}\0keys", "of somebody")
        with pytest.raises(StoreError, match="the key is in use for other data"):
            run(store.set("key", b"v"))
        assert other.get(f"{store._prefix}\0keys") == b"of somebody"


def test_a_prefix_has_no_nul():
    with pytest.raises(UsageError, match="NUL"):
        RedisStore(prefix="a\0b")


PARTS = st.lists(
    st.sampled_from(
        ["a", ":", "v:", "j:", "c:", "o:", "w:", "l:", "keys", "times", "version", "\\0", "*", "%"]
    ),
    max_size=4,
).map("".join)


@pytest.mark.slow
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    one=PARTS, more=PARTS, keys=st.lists(PARTS.filter(bool), min_size=1, max_size=3, unique=True)
)
@example(one="app:", more="v:", keys=["v:x", "x", "keys", "version", "\0v:x"])
@example(one="", more="keys", keys=["keys"])
@example(one="a", more="\ud800", keys=["\ud800"])
def test_stores_of_different_prefixes_know_nothing_of_each_other(
    run, redis_server, namespaces, one, more, keys
):
    fresh = f"x{next(namespaces)}:"
    prefixes = dict.fromkeys(
        [fresh + one, fresh + one + more, fresh + more, fresh + one + "v:", fresh + more + one]
    )

    async def main():
        stores = {prefix: RedisStore(redis_server.url, prefix=prefix) for prefix in prefixes}
        try:
            for prefix, store in stores.items():
                assert await store.keep_alive("me", 60, first=True)
                for key in keys:
                    assert (await store.claim(key, "me")).attempts == 1
                    await store.commit(
                        None,
                        [
                            Put(key, f"{prefix}|{key}".encode("utf-8", "surrogatepass")),
                            Append(key, (b"r",), 0),
                        ],
                    )
            for prefix, store in stores.items():
                assert await store.keys() == sorted(keys)
                for key in keys:
                    assert await store.get(key) == f"{prefix}|{key}".encode(
                        "utf-8", "surrogatepass"
                    )
                    assert await store.read(key) == [b"r"]
            for store in stores.values():
                await store.revoke("me")
                assert await store.orphans() == sorted(keys)
                for key in keys:
                    await store.delete(key)
                assert (await store.prune(), await store.keys()) == (len(keys), [])
        finally:
            for store in stores.values():
                await store.aclose()

    run(main())
