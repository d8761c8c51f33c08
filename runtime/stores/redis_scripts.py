"""What runs inside of Redis for a `RedisStore`: a batch of operations as one step, and what is found by its key's beginning or its age.

Of each key there is `v:` with its value and `j:` with its journal; `l:` has a lease. `keys` has all keys, sorted as texts; `times` when each was written, and
`expiry` when it ends, in milliseconds of the server's clock. `w:` has what each writer's last batch was answered, so that a batch whose answer was lost is not
done twice.

Owns: the scripts. It knows nothing of the client.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BATCH", "KEYS", "PRUNE", "PRUNED_AT_ONCE"]

PRUNED_AT_ONCE: Final = 2000
"""Of how many keys one call of `PRUNE` removes what there is: for so long the server does nothing else."""

_COMMON: Final = """
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
"""

# prefix, writer, number of the batch, time to live in ms or 0; then of each operation its name, how many arguments it has, and these.
BATCH: Final = (
    _COMMON
    + """
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
)

# prefix; the first text that is wanted, and the first behind it, as ZRANGEBYLEX has them
KEYS: Final = (
    _COMMON
    + """
while forget_until('expiry', now, 1000) == 1000 do end
return redis.call('ZRANGEBYLEX', p .. 'keys', ARGV[2], ARGV[3])
"""
)

# prefix; the age in ms from which on a key goes, or -1; how many at most
PRUNE: Final = (
    _COMMON
    + """
local most = tonumber(ARGV[3])
local gone = forget_until('expiry', now, most)
if gone < most and tonumber(ARGV[2]) >= 0 then
  gone = gone + forget_until('times', now - ARGV[2], most - gone)
end
return gone
"""
)
