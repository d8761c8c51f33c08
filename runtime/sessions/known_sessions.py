"""A cache of long sessions, so that a turn only reads what is new.

The cache is verified at each turn: the last cached record must be at the same place in the store,
and no two records are equal. If other processes have continued the session, the rest is read from
there. A session that was cleared, has expired or was rolled back is read again in full.

The cache is limited by bytes, and drops the least recently used sessions. It is never trusted
without that check.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from ..errors import CheckpointError
from .session_log import SessionLog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..actor.host import Host
    from ..durability.store_access import StoreAccess

__all__ = ["KnownSessions", "known_sessions_of"]

_LEAST_BYTES: Final = 8 << 10
"""The smallest session to cache, in bytes.

A shorter one is read faster than the rest of a turn takes, and there may be a large number of them.
"""

_MOST_BYTES: Final = 16 << 20
"""The total size of the cache, in bytes as stored."""


class KnownSessions:
    """The long sessions of one system."""

    __slots__ = ("_bytes", "_logs")

    def __init__(self) -> None:
        # The least recently used first.
        self._logs: OrderedDict[tuple[StoreAccess, str], SessionLog] = OrderedDict()
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._logs)

    def take(self, access: StoreAccess, session_id: str) -> SessionLog | None:
        """Remove and return the cached session, for the run that has the turn.

        The session is not in the cache until `keep` puts it back.
        """
        log = self._logs.pop((access, session_id), None) if self._logs else None
        if log is not None:
            self._bytes -= log.size
        return log

    def keep(
        self, access: StoreAccess, session_id: str, log: SessionLog, written: Sequence[bytes]
    ) -> None:
        """Cache a session as its last turn left it, with the records that the turn has appended."""
        if not _LEAST_BYTES <= log.size + sum(map(len, written)) <= _MOST_BYTES:
            return
        try:
            log.read(written)  # not their source values, which other code has and may change
        except CheckpointError:
            return  # reported to the next reader
        if not log.is_marked:
            return
        self.take(access, session_id)
        self._logs[access, session_id] = log
        self._bytes += log.size
        while self._bytes > _MOST_BYTES:
            _, dropped = self._logs.popitem(last=False)
            self._bytes -= dropped.size


def known_sessions_of(system: Host) -> KnownSessions:
    """Return the cache of that system."""
    known = system.belongings.get(KnownSessions)
    if known is None:
        known = system.belongings[KnownSessions] = KnownSessions()
    assert isinstance(known, KnownSessions)
    return known
