"""The scripts that run inside Redis for a `RedisStore`: a batch of operations as one step.

All of a store's keys start with its root, which is its prefix and a NUL: no prefix contains one, so
no root is a prefix of another. Each key has `v:` with its value and `j:` with its journal. `keys`
has all keys, sorted as texts; `times` has the time of each last write, and `expiry` that of its
expiry, in milliseconds of the server's clock.

`o:` exists as long as an owner is alive, and for `GRACE` longer; `owners` has all of them, the
oldest first. `c:` is a claim: its owner, its epoch, the number of times it was taken; `claims` has
the keys of all. `epoch` is the last epoch. Keys that start with `r` are the rows of runs, which
`entries.py` describes. `w:` has the answers to each writer's last batch, so that a batch whose
answer was lost is not done twice. `n:` is the channel on which written keys are published.
"""

from __future__ import annotations

from typing import Final

__all__ = ["BATCH", "COMMON", "GRACE", "LAYOUT"]

LAYOUT: Final = 1
"""The version of this layout."""

GRACE: Final = 3_600_000
"""The milliseconds for which an expired owner is remembered.

It is not alive then, but can be revived: extending an existing key takes no memory, so a full
server does not refuse it.
"""

COMMON: Final = (
    f"""
local GRACE, LAYOUT = {GRACE}, '{LAYOUT}'
"""
    """
local p = ARGV[1]
local root = p .. '\\0'
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local living = {}
local function alive(owner)
  if living[owner] == nil then living[owner] = redis.call('PTTL', root .. 'o:' .. owner) > GRACE end
  return living[owner]
end

-- For the connection that watches it, if there is one. Where the user may not publish, it is looked for again and again.
local function tell(key) redis.pcall('PUBLISH', root .. 'n:' .. key, '') end

local function forget(key)
  tell(key)
  redis.call('UNLINK', root .. 'v:' .. key, root .. 'j:' .. key)
  redis.call('ZREM', root .. 'keys', key)
  redis.call('ZREM', root .. 'times', key)
  redis.call('ZREM', root .. 'expiry', key)
end

local function unclaim(key)
  redis.call('DEL', root .. 'c:' .. key)
  redis.call('ZREM', root .. 'claims', key)
end

-- Whether there was a claim that no living owner has: it is gone then.
local function unclaim_if_dead(key)
  local owner = redis.call('HGET', root .. 'c:' .. key, 'owner')
  if not owner or alive(owner) then return false end
  unclaim(key)
  return true
end

-- The rows of runs. Texts that name an index are told apart by their length.
local function index_of(kind, status, text)
  return root .. 'runs:' .. kind .. ':' .. #status .. ':' .. status .. text
end

local function indexes_of(status, agent, session, labels)
  local found = {index_of('', status, ''), index_of('a', status, agent)}
  if session ~= '' then found[3] = index_of('s', status, session) end
  for _, label in ipairs(labels) do found[#found + 1] = index_of('l', status, label) end
  return found
end

-- The columns of a row, seven texts and nine numbers first; then packed labels, value, expiry. Nothing, if there is none or it has come to its end.
local columns = {'agent', 'session', 'status', 'claim', 'checkpoint', 'last_agent', 'error',
  'started', 'updated', 'ended', 'attempts', 'steps', 'input_tokens', 'output_tokens', 'cached_tokens', 'requests', 'labels', 'value', 'ends'}
local SESSION, STATUS, CLAIM, STARTED, LABELS, VALUE, ENDS = 2, 3, 4, 8, 17, 18, 19
local function read_entry(run)
  local held = redis.call('HMGET', root .. 'r:' .. run, unpack(columns))
  if held[1] and (held[ENDS] == '0' or tonumber(held[ENDS]) > now) then return held end
end

-- A row as it is answered: the run, its texts and numbers, the list of its labels, its value.
local function answer_of(run, held)
  local answer = {run}
  for at = 1, LABELS - 1 do answer[at + 1] = held[at] end
  answer[LABELS + 1], answer[VALUE + 1] = cmsgpack.unpack(held[LABELS]), held[VALUE]
  return answer
end

local function drop_entry(run)
  local held = redis.call('HMGET', root .. 'r:' .. run, 'status', 'agent', 'session', 'labels', 'claim')
  if held[1] then
    for _, index in ipairs(indexes_of(held[1], held[2], held[3], cmsgpack.unpack(held[4]))) do redis.call('ZREM', index, run) end
    if held[5] ~= '' then redis.call('ZREM', root .. 'runs:claims', held[5]) end
    tell(run)
  end
  redis.call('UNLINK', root .. 'r:' .. run)
  redis.call('ZREM', root .. 'runs', run)
  redis.call('ZREM', root .. 'runs:ends', run)
end

local function drop_entries(index, score, most)
  local gone = redis.call('ZRANGEBYSCORE', root .. index, '-inf', score, 'LIMIT', 0, most)
  for _, run in ipairs(gone) do drop_entry(run) end
  return #gone
end

local function forget_until(index, score, most)
  local gone = redis.call('ZRANGEBYSCORE', root .. index, '-inf', score, 'LIMIT', 0, most)
  for _, key in ipairs(gone) do
    forget(key)
    unclaim_if_dead(key)
  end
  return #gone
end
"""
)

# The checks of an operation before it writes anything. A refusal is {reason, key, found value,
# expected value}.
_LOOKS: Final = """
local function refused(reason, key, found, wanted) return {reason, key, found or '', wanted or ''} end

-- The writes of an operation stand between two positions of ARGV: a kind, a key, and what the kind needs.
local function check(at, last)
  while at <= last do
    local kind, key = ARGV[at], ARGV[at + 1]
    if kind == 'append' then
      local held = redis.call('LLEN', root .. 'j:' .. key)
      if held ~= tonumber(ARGV[at + 2]) then return refused('position', key, held, ARGV[at + 2]) end
      at = at + 4 + ARGV[at + 3]
    elseif kind == 'expect' then
      local value, same = redis.call('GET', root .. 'v:' .. key), nil
      if ARGV[at + 2] == '1' then same = value == ARGV[at + 3] else same = not value and redis.call('EXISTS', root .. 'j:' .. key) == 0 end
      if not same then return refused('value', key) end
      at = at + 4
    elseif kind == 'expect_entry' then
      local row, same = read_entry(key), nil
      if ARGV[at + 2] == '1' then same = row and row[VALUE] == ARGV[at + 3] else same = not row or row[CLAIM] == '' end
      if not same then return refused('value', key) end
      at = at + 4
    elseif kind == 'entry' then
      at = at + 5 + ARGV[at + 4]
    else
      at = at + (kind == 'put' and 4 or 2)
    end
  end
end
"""

# The server can refuse a script's first write, because memory or disk is full or it is a replica;
# once it has accepted one, it accepts all the others. So an operation is written as a whole or not
# at all, provided that nothing in it can fail for other reasons: those were checked before.
_WRITES: Final = """
local function written(key, ms, listed)
  tell(key)
  if not listed then redis.call('ZADD', root .. 'keys', 0, key) end
  if ms > 1e12 then -- marks.AGELESS: it has no age
    redis.call('ZREM', root .. 'times', key)
  else
    redis.call('ZADD', root .. 'times', now, key)
  end
  local value, journal = root .. 'v:' .. key, root .. 'j:' .. key
  if ms > 0 then
    redis.call('PEXPIRE', value, ms)
    redis.call('PEXPIRE', journal, ms)
    redis.call('ZADD', root .. 'expiry', now + ms, key)
  elseif redis.call('ZREM', root .. 'expiry', key) == 1 then
    redis.call('PERSIST', value)
    redis.call('PERSIST', journal)
  end
end

local function push(key, first, last)
  local held
  for start = first, last, 1000 do
    held = redis.call('RPUSH', root .. 'j:' .. key, unpack(ARGV, start, math.min(start + 999, last)))
  end
  if held then written(key, ttl, held > last - first + 1) end
  return held
end

local function put(key, value, ms)
  redis.call('SET', root .. 'v:' .. key, value, 'KEEPTTL')
  written(key, ms)
end

local function list_run(run, value, ms, first, last)
  local held, labels, words = read_entry(run), {}, {}
  if held then
    labels = cmsgpack.unpack(held[LABELS])
  else
    for at = first + LABELS - 1, last do labels[#labels + 1] = ARGV[at] end
    drop_entry(run)
  end
  for at, column in ipairs(columns) do
    if at >= LABELS then break end
    words[2 * at - 1], words[2 * at] = column, held and (at == 1 or at == STARTED) and held[at] or ARGV[first + at - 1]
  end
  local agent, session, status, claim, started = words[2], words[2 * SESSION], words[2 * STATUS], words[2 * CLAIM], words[2 * STARTED]
  local ends = ms > 0 and now + ms or 0
  -- This is the first write, which may be refused.
  redis.call('HSET', root .. 'r:' .. run, 'labels', cmsgpack.pack(labels), 'value', value, 'ends', string.format('%.0f', ends), unpack(words))
  if not held or held[STATUS] ~= status or held[SESSION] ~= session then
    if held then
      for _, index in ipairs(indexes_of(held[STATUS], agent, held[SESSION], labels)) do redis.call('ZREM', index, run) end
    end
    for _, index in ipairs(indexes_of(status, agent, session, labels)) do redis.call('ZADD', index, started, run) end
  end
  local before = held and held[CLAIM] or ''
  if before ~= claim then
    if before ~= '' then redis.call('ZREM', root .. 'runs:claims', before) end
    if claim ~= '' then redis.call('ZADD', root .. 'runs:claims', 0, claim) end
  end
  tell(run)
  redis.call('ZADD', root .. 'runs', now, run)
  if ends > 0 then redis.call('ZADD', root .. 'runs:ends', ends, run) else redis.call('ZREM', root .. 'runs:ends', run) end
end

local function write(at, last)
  while at <= last do
    local kind, key = ARGV[at], ARGV[at + 1]
    if kind == 'append' then
      local records = tonumber(ARGV[at + 3])
      push(key, at + 4, at + 3 + records)
      at = at + 4 + records
    elseif kind == 'put' then
      local ms = tonumber(ARGV[at + 3])
      put(key, ARGV[at + 2], ms > 0 and ms or ttl)
      at = at + 4
    elseif kind == 'remove' then
      forget(key)
      at = at + 2
    elseif kind == 'entry' then
      local ms, count = tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
      list_run(key, ARGV[at + 2], ms > 0 and ms or ttl, at + 5, at + 4 + count)
      at = at + 5 + count
    elseif kind == 'drop' then
      drop_entry(key)
      at = at + 2
    else
      at = at + 4
    end
  end
end
"""

# Each returns its answer, or nil and the reason why it is refused.
_OPERATIONS: Final = """
local operations = {}

function operations.set(at)
  put(ARGV[at], ARGV[at + 1], ttl)
  return 1
end

function operations.create(at)
  if redis.call('EXISTS', root .. 'v:' .. ARGV[at], root .. 'j:' .. ARGV[at]) > 0 then return 0 end
  return operations.set(at)
end

function operations.delete(at)
  forget(ARGV[at])
  return 1
end

function operations.append(at, last)
  return push(ARGV[at], at + 1, last) or redis.call('LLEN', root .. 'j:' .. ARGV[at])
end

function operations.keep_alive(at)
  local owner, ms = ARGV[at], ARGV[at + 1] + GRACE
  living[owner] = nil
  if ARGV[at + 2] == '0' then return redis.call('PEXPIRE', root .. 'o:' .. owner, ms) end
  redis.call('SET', root .. 'o:' .. owner, 1, 'PX', ms)
  for _, known in ipairs(redis.call('ZRANGE', root .. 'owners', 0, 9)) do  -- each process adds one: the oldest that are gone make room
    if redis.call('EXISTS', root .. 'o:' .. known) == 0 then redis.call('ZREM', root .. 'owners', known) end
  end
  redis.call('ZADD', root .. 'owners', now, owner)
  return 1
end

function operations.revoke(at)
  living[ARGV[at]] = nil
  redis.call('DEL', root .. 'o:' .. ARGV[at])
  redis.call('ZREM', root .. 'owners', ARGV[at])
  return 1
end

function operations.claim(at, last)
  local key, owner, least = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  local claim = root .. 'c:' .. key
  local held = redis.call('HMGET', claim, 'owner', 'attempts')
  if held[1] and held[1] ~= owner and alive(held[1]) then return 0 end
  if not alive(owner) then return nil, refused('owner', key, owner) end
  local wrong = check(at + 3, last)
  if wrong then return nil, wrong end
  -- The clock, so that no epoch is given twice by a server that has lost the last one. Numbers of a script are exact up to 2^53 microseconds, in the year 2255.
  local epoch = math.max((redis.call('GET', root .. 'epoch') or 0) + 1, least + 1, clock[1] * 1000000 + clock[2])
  local attempts = (held[2] or 0) + 1
  local text = string.format('%.0f', epoch)
  redis.call('SET', root .. 'epoch', text)
  redis.call('HSET', claim, 'owner', owner, 'epoch', text, 'attempts', attempts)
  redis.call('ZADD', root .. 'claims', 0, key)
  write(at + 3, last)
  return {epoch, attempts}
end

function operations.commit(at, last)
  local key, owner, epoch = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  if epoch ~= '' then
    local held = redis.call('HMGET', root .. 'c:' .. key, 'owner', 'epoch')
    if held[1] ~= owner or held[2] ~= epoch then return nil, refused('epoch', key, held[1]) end
    if not alive(owner) then return nil, refused('owner', key, owner) end
  end
  local wrong = check(at + 4, last)
  if wrong then return nil, wrong end
  write(at + 4, last)
  if epoch ~= '' and ARGV[at + 3] ~= 'keep' then unclaim(key) end
  return 1
end
"""

# prefix, writer, number of the batch, time to live in ms or 0; then for each operation its name,
# the number of its arguments, and the arguments.
BATCH: Final = (
    COMMON
    + """
-- It may have been emptied, or be another server than a moment ago; or a newer version may have taken over.
if redis.call('GET', root .. 'version') ~= LAYOUT then return redis.error_reply('UNREADY this prefix is to be looked at first') end

local number, ttl = tonumber(ARGV[3]), tonumber(ARGV[4])
local done = redis.call('GET', root .. 'w:' .. ARGV[2])
if done then
  done = cmsgpack.unpack(done)
  if done[1] == number then return done[2] end
  if done[1] > number then return redis.error_reply('LATE this batch is over') end
end

-- What ends is ended here as well, a few with each batch: the server removes values by itself, but not what leads to them.
forget_until('expiry', now, 20)
drop_entries('runs:ends', now, 20)
"""
    + _LOOKS
    + _WRITES
    + _OPERATIONS
    + """
local answers, at = {}, 5
while at <= #ARGV do
  local count = tonumber(ARGV[at + 1])
  local well, answer, why = pcall(operations[ARGV[at]], at + 2, at + 1 + count)
  if not well then
    answers[#answers + 1] = {0, type(answer) == 'table' and answer.err or tostring(answer)}
  elseif why then
    answers[#answers + 1] = {2, why}
  else
    answers[#answers + 1] = {1, answer}
  end
  at = at + 2 + count
end
redis.pcall('SET', root .. 'w:' .. ARGV[2], cmsgpack.pack({number, answers}), 'PX', 3600000)
return answers
"""
)
