"""The version of the data under a prefix in Redis.

A process checks it when it connects, and each batch checks that it is still there. All keys have a
NUL after the prefix, so that stores whose prefixes extend one another (`app:` and `app:v:`) do not
read each other's data. The first process of a later version that connects will migrate the data, in
steps.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

from ..troubles import Newer
from .scripts import COMMON, LAYOUT

__all__ = ["prepare"]

# prefix. Returns 0 when everything is ready, or else the stored version.
_PREPARE: Final = (
    COMMON
    + """
local found = redis.call('GET', root .. 'version')
if found and found ~= LAYOUT then return found end
for _, index in ipairs({'keys', 'times', 'expiry'}) do
  local kind = redis.call('TYPE', root .. index).ok
  if kind ~= 'none' and kind ~= 'zset' then
    return redis.error_reply('WRONGTYPE ' .. p .. index .. ' is no index of a store')
  end
end
if not found then redis.call('SET', root .. 'version', LAYOUT) end
return 0
"""
)


class _Client(Protocol):
    def execute_command(self, *words: object) -> Any: ...


def prepare(client: _Client, prefix: bytes) -> None:
    """Check that the data under the prefix has this version. Several processes may do so."""
    found = client.execute_command("EVAL", _PREPARE, 0, prefix)
    if found != 0:
        msg = (
            f"its data has version {found.decode(errors='replace')}, and this version of offbook "
            f"supports up to {LAYOUT}"
        )
        raise Newer(msg)
