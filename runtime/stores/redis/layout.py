"""Where a prefix's data lies in Redis, and how what the version before this one has left comes there.

Version 1 had no NUL behind the prefix, so that stores whose prefixes extend one another (`app:` and `app:v:`) read each other's keys. What its indices name is
moved, in steps; its leases stay where they are until they end.

`version` without the NUL is what each version looks at when it connects: an older one refuses what is newer. One that is connected already does not look again:
its indices are replaced by a text, at which each of its writes, and its lists of keys, end with an error. What it can still do is to read single values and
journals, which it does not find any more. After the server was emptied, an old process that writes before a new one does makes data of version 1 again; they
are moved when a new one connects, or finds that the server is empty.

Owns: the version, and that move.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from .scripts import COMMON, LAYOUT
from .searches import AT_ONCE

__all__ = ["Newer", "prepare"]

# prefix; how many keys to move at most. Returns 0 when everything is ready, 1 if there is more to do, or else the version that is there.
_PREPARE: Final = (
    COMMON
    + """
local TAKEN, most = 'moved: this prefix is used by a newer version of understudy', tonumber(ARGV[2])
local said, ready = redis.call('GET', p .. 'version'), redis.call('GET', root .. 'version')
for _, version in ipairs({said or '1', ready or LAYOUT}) do
  if version ~= '1' and version ~= LAYOUT then return version end
end

local moving, found = redis.call('EXISTS', root .. 'moving:keys') == 1, {}
for _, index in ipairs({'keys', 'times', 'expiry'}) do
  local kind = redis.call('TYPE', p .. index).ok
  if kind ~= 'none' and kind ~= 'zset' and not (kind == 'string' and redis.call('GET', p .. index) == TAKEN) then
    return redis.error_reply('WRONGTYPE ' .. p .. index .. ' is no index of a store')
  end
  found[index] = kind
end

-- The first write of these may be refused for want of memory, and all that follow are not.
if not moving then
  for index, kind in pairs(found) do
    if kind == 'zset' then
      redis.call('RENAME', p .. index, root .. 'moving:' .. index)
    end
    if kind ~= 'string' then redis.call('SET', p .. index, TAKEN) end
  end
end
if said == '1' or found.keys == 'zset' then redis.call('SET', root .. 'former', 1) end  -- there may be leases, which no index names
if said ~= LAYOUT then redis.call('SET', p .. 'version', LAYOUT) end

local function move(kind, key)
  if redis.call('EXISTS', p .. kind .. key) == 0 then return 0 end
  if redis.call('RENAMENX', p .. kind .. key, root .. kind .. key) == 0 then redis.call('UNLINK', p .. kind .. key) end
  return 1
end

local keys = redis.call('ZRANGE', root .. 'moving:keys', 0, most - 1)
for _, key in ipairs(keys) do
  if move('v:', key) + move('j:', key) > 0 then
    redis.call('ZADD', root .. 'keys', 0, key)
    redis.call('ZADD', root .. 'times', redis.call('ZSCORE', root .. 'moving:times', key) or now, key)
    local ends = redis.call('ZSCORE', root .. 'moving:expiry', key)
    if ends then redis.call('ZADD', root .. 'expiry', ends, key) end
  end
  redis.call('ZREM', root .. 'moving:keys', key)
end
if #keys == most then return 1 end
redis.call('UNLINK', root .. 'moving:keys', root .. 'moving:times', root .. 'moving:expiry')
if ready ~= LAYOUT then redis.call('SET', root .. 'version', LAYOUT) end
return 0
"""
)


class Newer(Exception):
    """The data was written by a newer version."""


class _Client(Protocol):
    def execute_command(self, *words: object) -> Any: ...


def prepare(client: _Client, prefix: bytes) -> None:
    """See that what is under the prefix is of this version, or move what is of the one before. Several processes may do it at the same time."""
    while True:
        found = client.execute_command("EVAL", _PREPARE, 0, prefix, AT_ONCE)
        if found == 0:
            return
        if isinstance(found, bytes):
            msg = f"its data is of version {found.decode(errors='replace')}, and this one knows up to {LAYOUT}"
            raise Newer(msg)
