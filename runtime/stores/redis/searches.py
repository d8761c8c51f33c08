"""Scripts that search Redis by prefix or age, in steps.

The server does nothing else while a script runs. So most scripts handle at most `AT_ONCE` keys in
one call, and the caller continues where it ended.
"""

from __future__ import annotations

from typing import Final

from .scripts import COMMON

__all__ = ["AT_ONCE", "HOLDER", "KEYS", "ORPHANS", "PRUNE", "PRUNE_CLAIMS", "PRUNE_OWNERS"]

AT_ONCE: Final = 1000

# prefix; key
HOLDER: Final = (
    COMMON
    + """
local owner = redis.call('HGET', root .. 'c:' .. ARGV[2], 'owner')
return owner and alive(owner) and owner
"""
)

# prefix; start and end of the range, in the syntax of ZRANGEBYLEX
KEYS: Final = (
    COMMON
    + """
while forget_until('expiry', now, 1000) == 1000 do end
return redis.call('ZRANGEBYLEX', root .. 'keys', ARGV[2], ARGV[3])
"""
)

# prefix; start and end of the range, as above; how many at most; the index: that of the keys, or of
# the claims of runs. Returns the last checked key, or '' at the end; and keys and attempts in turn.
ORPHANS: Final = (
    COMMON
    + """
local most = tonumber(ARGV[4])
local keys = redis.call('ZRANGEBYLEX', root .. ARGV[5], ARGV[2], ARGV[3], 'LIMIT', 0, most)
local found = {}
for _, key in ipairs(keys) do
  local held = redis.call('HMGET', root .. 'c:' .. key, 'owner', 'attempts')
  if not (held[1] and alive(held[1])) and (ARGV[5] ~= 'keys' or redis.call('EXISTS', root .. 'v:' .. key) == 1) then
    found[#found + 1] = key
    found[#found + 1] = tonumber(held[2] or 0)
  end
end
return {#keys == most and keys[most] or '', found}
"""
)

# prefix; the age in ms from which keys are removed, or -1; how many at most
PRUNE: Final = (
    COMMON
    + """
local most = tonumber(ARGV[3])
local gone = forget_until('expiry', now, most)
if gone < most and tonumber(ARGV[2]) >= 0 then
  gone = gone + forget_until('times', now - ARGV[2], most - gone)
end
return gone
"""
)

# prefix; start of the range, as above; how many at most. Returns the last key, as ORPHANS; and the
# number of removed claims: those without data and without a living owner.
PRUNE_CLAIMS: Final = (
    COMMON
    + """
local most, gone = tonumber(ARGV[3]), 0
local keys = redis.call('ZRANGEBYLEX', root .. 'claims', ARGV[2], '+', 'LIMIT', 0, most)
for _, key in ipairs(keys) do
  if redis.call('EXISTS', root .. 'v:' .. key, root .. 'j:' .. key) == 0 and not redis.call('ZSCORE', root .. 'runs:claims', key)
    and unclaim_if_dead(key) then gone = gone + 1 end
end
return {#keys == most and keys[most] or '', gone}
"""
)

# prefix; the position in the list of owners to start at; how many at most. Removes expired owners.
# Returns the position to continue at, or -1.
PRUNE_OWNERS: Final = (
    COMMON
    + """
local start, most, stay = tonumber(ARGV[2]), tonumber(ARGV[3]), 0
local owners = redis.call('ZRANGE', root .. 'owners', start, start + most - 1)
for _, owner in ipairs(owners) do
  if alive(owner) then
    stay = stay + 1
  else
    redis.call('DEL', root .. 'o:' .. owner)
    redis.call('ZREM', root .. 'owners', owner)
  end
end
return #owners == most and start + stay or -1
"""
)
