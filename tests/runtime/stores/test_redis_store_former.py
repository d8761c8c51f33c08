"""Data of the version before this one, the processes that still use it, and prefixes that extend one another."""

import asyncio
import itertools
import time
from hashlib import sha1

import pytest
import redis
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from understudy.runtime import RedisStore, StoreError, UsageError
from understudy.runtime.errors import WriteRefused
from understudy.runtime.stores import Append, Put
from understudy.runtime.stores.redis.searches import AT_ONCE

# What a process of version 1 has the server do, as it was.
OLD_BATCH = """
local p = ARGV[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function forget(key)
  redis.call('DEL', p .. 'v:' .. key, p .. 'j:' .. key)
  redis.call('ZREM', p .. 'keys', key)
  redis.call('ZREM', p .. 'times', key)
  redis.call('ZREM', p .. 'expiry', key)
end

local function forget_until(index, score, most)
  local gone = redis.call('ZRANGEBYSCORE', p .. index, '-inf', score, 'LIMIT', 0, most)
  for _, key in ipairs(gone) do forget(key) end
  return #gone
end

local number, ttl = tonumber(ARGV[3]), tonumber(ARGV[4])
local done = redis.call('GET', p .. 'w:' .. ARGV[2])
if done then
  done = cmsgpack.unpack(done)
  if done[1] == number then return done[2] end
  if done[1] > number then return redis.error_reply('LATE this batch is over') end
end

-- What ends is ended here as well, a few with each batch: the server removes values by itself, but not what leads to them.
forget_until('expiry', now, 20)

local function written(key)
  redis.call('ZADD', p .. 'keys', 0, key)
  redis.call('ZADD', p .. 'times', now, key)
  local value, journal = p .. 'v:' .. key, p .. 'j:' .. key
  if ttl > 0 then
    redis.call('PEXPIRE', value, ttl)
    redis.call('PEXPIRE', journal, ttl)
    redis.call('ZADD', p .. 'expiry', now + ttl, key)
  elseif redis.call('ZREM', p .. 'expiry', key) == 1 then
    redis.call('PERSIST', value)
    redis.call('PERSIST', journal)
  end
end

-- In each, the first write is the one that the server may refuse for want of memory: afterwards it refuses none.
local operations = {}

function operations.set(at)
  redis.call('SET', p .. 'v:' .. ARGV[at], ARGV[at + 1], 'KEEPTTL')
  written(ARGV[at])
  return 1
end

function operations.create(at)
  if redis.call('EXISTS', p .. 'v:' .. ARGV[at], p .. 'j:' .. ARGV[at]) > 0 then return 0 end
  return operations.set(at)
end

function operations.delete(at)
  forget(ARGV[at])
  return 1
end

function operations.append(at, count)
  local journal, last, held = p .. 'j:' .. ARGV[at], at + count - 1, nil
  for first = at + 1, last, 1000 do
    held = redis.call('RPUSH', journal, unpack(ARGV, first, math.min(first + 999, last)))
  end
  if held == nil then return redis.call('LLEN', journal) end
  written(ARGV[at])
  return held
end

function operations.acquire(at)
  local lease = p .. 'l:' .. ARGV[at]
  local owner = redis.call('GET', lease)
  if owner and owner ~= ARGV[at + 1] then return 0 end
  redis.call('SET', lease, ARGV[at + 1], 'PX', ARGV[at + 2])
  return 1
end

function operations.renew(at, count)
  local own = {}
  for position = at + 2, at + count - 1 do
    local lease = p .. 'l:' .. ARGV[position]
    if redis.call('GET', lease) == ARGV[at] then
      redis.call('PEXPIRE', lease, ARGV[at + 1])
      own[#own + 1] = ARGV[position]
    end
  end
  return own
end

function operations.release(at)
  local lease = p .. 'l:' .. ARGV[at]
  if redis.call('GET', lease) == ARGV[at + 1] then redis.call('DEL', lease) end
  return 1
end

local answers, at = {}, 5
while at <= #ARGV do
  local count = tonumber(ARGV[at + 1])
  local well, answer = pcall(operations[ARGV[at]], at + 2, count)
  if not well then answer = type(answer) == 'table' and answer.err or tostring(answer) end
  answers[#answers + 1] = {well and 1 or 0, answer}
  at = at + 2 + count
end
redis.pcall('SET', p .. 'w:' .. ARGV[2], cmsgpack.pack({number, answers}), 'PX', 3600000)
return answers
"""


class Former:
    """A process of version 1 that is connected: it does not look at the version any more."""

    def __init__(self, server, prefix):
        self.client = redis.Redis.from_url(server.url)
        self.prefix = prefix.encode()
        self.numbers = itertools.count(1)

    def connect(self):
        self.client.setnx(self.prefix + b"version", 1)
        return int(self.client.get(self.prefix + b"version"))

    def do(self, name, *arguments, ttl=0):
        words = [name, len(arguments), *arguments]
        (((well, answer),)) = self.client.eval(OLD_BATCH, 0, self.prefix, "writer", next(self.numbers), ttl, *words)
        assert well, answer
        return answer

    def get(self, key):
        return self.client.get(self.prefix + b"v:" + key.encode())


@pytest.fixture
def former(redis_server, store_of):
    """One of version 1, beside the stores that `store_of("redis", "shared")` makes."""
    probe = store_of("redis", "shared")
    former = Former(redis_server, probe._prefix)
    assert former.connect() == 1
    yield former
    former.client.close()


def test_the_old_script_is_the_one_that_it_was():
    assert sha1(OLD_BATCH.encode()).hexdigest() == "a6bd697ded1c2ec50390ec43d0fd7c90aadab8cd"


def test_what_version_1_has_left_is_there(run, former, store_of):
    for key in ("both", "a\0b", "v:x", "ä"):
        former.do("set", key, f"value of {key}")
        former.do("append", key, "1", "2")
    former.do("append", "journal", "r")
    former.do("set", "ends", "v", ttl=300)
    former.do("set", "gone", "v", ttl=1)
    time.sleep(0.01)

    async def main():
        store = store_of("redis", "shared")
        assert await store.keys() == sorted(["both", "a\0b", "v:x", "ä", "journal", "ends"])
        for key in ("both", "a\0b", "v:x", "ä"):
            assert (await store.get(key), await store.read(key)) == (f"value of {key}".encode(), [b"1", b"2"])
        assert await store.prune(older_than=60) == 0
        await asyncio.sleep(0.35)
        assert "ends" not in await store.keys()
        await store.commit(None, [Append("both", (b"3",), 2)])
        assert await store.prune(older_than=0.3) == 4
        assert await store.keys() == ["both"]
        assert list(former.client.scan_iter(f"{store._prefix}[vj]:*")) == []

    run(main())


def test_a_great_number_is_moved_in_steps_also_by_several_at_once(run, former, store_of):
    pipeline = former.client.pipeline()
    count = 2 * AT_ONCE + 300
    for number in range(count):
        key = b"%05d" % number
        pipeline.set(former.prefix + b"v:" + key, key)
        pipeline.zadd(former.prefix + b"keys", {key: 0})
        pipeline.zadd(former.prefix + b"times", {key: 1000})
    pipeline.execute()

    async def main():
        found = await asyncio.gather(*(store_of("redis", "shared").keys() for _ in range(4)))
        assert found == [[f"{number:05}" for number in range(count)]] * 4
        assert await store_of("redis", "shared").get("00007") == b"00007"

    run(main())


@pytest.mark.parametrize("used", [True, False], ids=["with data", "without data"])
def test_a_lease_of_version_1_is_respected_while_it_lasts(run, former, store_of, wait_until, used):
    former.do("acquire", "lease:run", "an old process", 700)
    if used:
        former.do("set", "run", "mark")

    async def main():
        store = store_of("redis", "shared")
        await store.keep_alive("me", 60, first=True)
        assert await store.claim("run", "me", former="lease:run") is None
        assert await store.claim("other", "me", former="lease:other") is not None

        async def taken():
            return await store.claim("run", "me", former="lease:run") is not None

        await wait_until(taken)
        assert await store.holder("run") == "me"

    run(main())


@pytest.mark.parametrize("used", [True, False], ids=["with data", "without data"])
def test_a_process_of_version_1_beside_a_new_one_fails_loudly(run, former, store_of, used):
    if used:
        former.do("set", "run", "mark")
        former.do("acquire", "lease", "old", 60_000)
    run(store_of("redis", "shared").set("new", b"v"))
    for call in (
        ("set", "run", "x"),
        ("append", "j", "x"),
        ("create", "c", "x"),
        ("delete", "run"),
        ("acquire", "l", "o", 1000),
        ("renew", "old", 1000, "lease"),
    ):
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            former.do(*call)
    assert former.connect() == 2  # which it refuses when it connects
    assert former.get("run") is None  # what it cannot be kept from: to read, and to find nothing


def test_what_an_old_process_writes_after_the_server_was_emptied_is_taken_over_or_refused(run, former, store_of):
    async def main():
        store = store_of("redis", "shared")
        await store.keep_alive("me", 60, first=True)
        claim = await store.claim("run", "me")
        for key in former.client.scan_iter(former.prefix + b"*"):
            former.client.delete(key)
        former.do("set", "of the old one", "v")
        with pytest.raises(WriteRefused):
            await store.commit(claim, [Put("run", b"v")])
        assert await store.get("of the old one") == b"v"
        with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
            former.do("set", "of the old one", "w")

    run(main())


def test_a_newer_version_that_takes_over_beside_this_one_is_told(run, redis_server, store_of):
    store = store_of("redis")

    async def main():
        await store.set("key", b"v")
        with redis.Redis.from_url(redis_server.url) as other:
            other.mset({f"{store._prefix}version": 3, f"{store._prefix}\0version": 3})
        with pytest.raises(StoreError, match=r"version 3.*newer version of understudy"):
            await store.set("key", b"w")
        assert await store.get("key") == b"v"

    run(main())


def test_some_other_programs_data_is_left_alone(run, redis_server, store_of):
    store = store_of("redis")
    with redis.Redis.from_url(redis_server.url) as other:
        other.set(f"{store._prefix}keys", "of somebody")
        with pytest.raises(StoreError, match="something else is there"):
            run(store.set("key", b"v"))
        assert other.get(f"{store._prefix}keys") == b"of somebody"


def test_a_prefix_has_no_nul():
    with pytest.raises(UsageError, match="NUL"):
        RedisStore(prefix="a\0b")


PARTS = st.lists(st.sampled_from(["a", ":", "v:", "j:", "c:", "o:", "w:", "l:", "keys", "times", "version", "\\0", "*", "%"]), max_size=4).map("".join)


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(one=PARTS, more=PARTS, keys=st.lists(PARTS.filter(bool), min_size=1, max_size=3, unique=True))
@example(one="app:", more="v:", keys=["v:x", "x", "keys", "version", "\0v:x"])
@example(one="", more="keys", keys=["keys"])
@example(one="a", more="\ud800", keys=["\ud800"])
def test_stores_of_different_prefixes_know_nothing_of_each_other(run, redis_server, namespaces, one, more, keys):
    fresh = f"x{next(namespaces)}:"
    prefixes = dict.fromkeys([fresh + one, fresh + one + more, fresh + more, fresh + one + "v:", fresh + more + one])

    async def main():
        stores = {prefix: RedisStore(redis_server.url, prefix=prefix) for prefix in prefixes}
        try:
            for prefix, store in stores.items():
                assert await store.keep_alive("me", 60, first=True)
                for key in keys:
                    assert (await store.claim(key, "me")).attempts == 1
                    await store.commit(None, [Put(key, f"{prefix}|{key}".encode("utf-8", "surrogatepass")), Append(key, (b"r",), 0)])
            for prefix, store in stores.items():
                assert await store.keys() == sorted(keys)
                for key in keys:
                    assert await store.get(key) == f"{prefix}|{key}".encode("utf-8", "surrogatepass")
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
