"""Long sessions as they were when this system had their last turn: so that a turn reads what is new, and not again what it has read or written before.

What is known proves itself at each turn: its last record has to stand in the store where it stood, and no two records are the same. A session that others
have gone on with is read from there; one that was cleared, has expired or was taken back is read anew.

Owns: which are kept, and how many: by their bytes, those that were used last. It must never be believed without that look at the store.
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
"""Of a session: what is shorter is read in less time than the rest of a turn takes, and there may be very many such."""

_MOST_BYTES: Final = 16 << 20
"""Of all together, as they lie in the store."""


class KnownSessions:
    """The long sessions of one system."""

    __slots__ = ("_bytes", "_logs")

    def __init__(self) -> None:
        self._logs: OrderedDict[tuple[StoreAccess, str], SessionLog] = OrderedDict()  # the one that was used last is the last
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._logs)

    def take(self, access: StoreAccess, session_id: str) -> SessionLog | None:
        """What is known of it, for one whose turn it is: until that puts it back, it is known no more."""
        log = self._logs.pop((access, session_id), None) if self._logs else None
        if log is not None:
            self._bytes -= log.size
        return log

    def keep(self, access: StoreAccess, session_id: str, log: SessionLog, written: Sequence[bytes]) -> None:
        """It is like that in the store, as far as the one knows whose turn it was, who has written those records behind it."""
        if not _LEAST_BYTES <= log.size + sum(map(len, written)) <= _MOST_BYTES:
            return
        try:
            log.read(written)  # and not what they were made of: others have that, and may change it
        except CheckpointError:
            return  # the next reader is told
        if not log.is_marked:
            return
        self.take(access, session_id)
        self._logs[access, session_id] = log
        self._bytes += log.size
        while self._bytes > _MOST_BYTES:
            _, dropped = self._logs.popitem(last=False)
            self._bytes -= dropped.size


def known_sessions_of(system: Host) -> KnownSessions:
    """Those of that system."""
    known = system.belongings.get(KnownSessions)
    if known is None:
        known = system.belongings[KnownSessions] = KnownSessions()
    assert isinstance(known, KnownSessions)
    return known
