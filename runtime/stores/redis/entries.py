"""The rows of runs in Redis: the scripts that read and search them, in steps.

Each run has a key `r:` with its columns, written as a part of a batch. `runs:claims` has the claims
of the runs that a process has to continue. `runs` has the time of each run's last write, and
`runs:ends` the expiry of those that expire. Each status, and each status combined with an agent, a
session or a label, has its own index, sorted by the start of the runs: the newest of each status
are adjacent, and the caller merges those of several statuses.
"""

from __future__ import annotations

from typing import Final

from .scripts import COMMON

__all__ = ["FIND_ENTRY", "LIST_ENTRIES", "PRUNE_ENTRIES"]

# prefix; run
FIND_ENTRY: Final = (
    COMMON
    + """
local held = read_entry(ARGV[2])
return held and answer_of(ARGV[2], held)
"""
)

# prefix; status; agent, session, each '0', or '1' and the text; since, until; how many are checked;
# after which run and its time, or nothing; labels. Returns the last time and run that were checked,
# or nothing at the end; and the entries.
LIST_ENTRIES: Final = (
    COMMON
    + """
local status, most = ARGV[2], tonumber(ARGV[7])
local agent, session = ARGV[3], ARGV[4]
local place, last = ARGV[8], ARGV[9]
local indexes = {}
for at = 10, #ARGV do indexes[#indexes + 1] = index_of('l', status, ARGV[at]) end
if session ~= '0' then indexes[#indexes + 1] = index_of('s', status, session:sub(2)) end
if agent ~= '0' then indexes[#indexes + 1] = index_of('a', status, agent:sub(2)) end
if #indexes == 0 then indexes[1] = index_of('', status, '') end
-- The shortest is gone through, and the others are asked.
local shortest, size = 1, nil
for at, index in ipairs(indexes) do
  local held = redis.call('ZCARD', index)
  if not size or held < size then shortest, size = at, held end
end
local driver = table.remove(indexes, shortest)
local top = place ~= '' and place or '(' .. ARGV[6]
local rows = redis.call('ZREVRANGEBYSCORE', driver, top, ARGV[5], 'WITHSCORES', 'LIMIT', 0, most)
local found, began, run = {}, nil, nil
for at = 1, #rows, 2 do
  run, began = rows[at], rows[at + 1]
  local wanted = not (place ~= '' and tonumber(began) == tonumber(place) and run >= last)
  for _, index in ipairs(indexes) do
    wanted = wanted and redis.call('ZSCORE', index, run)
  end
  local held = wanted and read_entry(run)
  if held then found[#found + 1] = answer_of(run, held) end
end
if #rows < 2 * most then return {'', '', found} end
return {string.format('%.0f', tonumber(began)), run, found}
"""
)

# prefix; the age in ms from which entries are removed, or -1; how many at most
PRUNE_ENTRIES: Final = (
    COMMON
    + """
local most = tonumber(ARGV[3])
local gone = drop_entries('runs:ends', now, most)
if gone < most and tonumber(ARGV[2]) >= 0 then gone = gone + drop_entries('runs', now - ARGV[2], most - gone) end
return gone
"""
)
