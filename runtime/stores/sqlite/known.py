"""What one connection knows of the file, and need not ask again: as long as no other connection has written.

SQLite says whether one has (`PRAGMA data_version`), within the transaction that is open; from then on until its end no other can. What this connection writes
itself, it puts here as well.

Owns: what is known, and when it is forgotten. It must never be asked outside of a transaction, and never hold more than a bound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import sqlite3

__all__ = ["PLACES", "Item", "Known", "Listed", "Owner", "Taken", "chunks"]

_MOST: Final = 30_000
"""Keys: those of some ten thousand runs at once."""

_CHUNK: Final = 32
"""Keys that are looked for by one statement."""

PLACES: Final = ", ".join("?" * _CHUNK)
"""Of that statement."""


class Item(NamedTuple):
    """What there is of a key."""

    id: int
    records: int
    expires: float | None
    has_value: bool
    """False only if it certainly has none."""


class Taken(NamedTuple):
    """What there is of a claim."""

    owner: bytes
    epoch: int
    attempts: int


class Listed(NamedTuple):
    """What there is of a run in the list of runs."""

    id: int
    status: bytes
    started: int
    labels: bytes
    expires: float | None


class Owner(NamedTuple):
    """What there is of an owner."""

    until: float
    seconds: float
    boot: str
    file: str | None
    inode: str | None


class Known:
    """What is known of the file. None: it is known that there is nothing."""

    __slots__ = ("_gone", "_version", "claims", "former", "items", "last_id", "last_run", "owners", "runs")

    def __init__(self) -> None:
        self.items: dict[bytes, Item | None] = {}
        self.claims: dict[bytes, Taken | None] = {}
        self.runs: dict[bytes, Listed | None] = {}
        self.owners: dict[bytes, Owner | None] = {}
        self.former: bool | None = None
        """Whether there are leases of the version before; None: that is unknown."""
        self.last_id: int | None = None
        """The largest number of an item; None: unknown."""
        self.last_run: int | None = None
        """The same of a run in the list."""
        self._version: int | None = None
        self._gone: list[bytes] = []

    def holds(self, connection: sqlite3.Connection) -> bool:
        """Whether what was known holds in the transaction that has just begun. If it does not, it is forgotten."""
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if version == self._version and len(self.items) + len(self.claims) + len(self.runs) <= _MOST:
            return True
        self.forget()
        self._version = version
        return False

    def forget(self) -> None:
        """Another connection has written, or a transaction was not done."""
        self._version = self.former = self.last_id = self.last_run = None
        self._gone.clear()
        for table in (self.items, self.claims, self.runs, self.owners):
            table.clear()

    def gone(self, key: bytes) -> None:
        """There is nothing of that key any more. Until the transaction ends, that is worth knowing."""
        self._gone.append(key)

    def end(self) -> None:
        """A transaction was done: what is gone is asked for no more."""
        for key in self._gone:
            for table in (self.items, self.claims, self.runs):
                if table.get(key, self) is None:
                    del table[key]
        self._gone.clear()


def chunks(keys: Collection[bytes], known: Collection[bytes]) -> Iterator[list[bytes]]:
    """The unknown ones of these keys, as many at once as one statement looks for. What is left over is looked for one by one."""
    unknown = [key for key in dict.fromkeys(keys) if key not in known]
    for start in range(0, len(unknown) - _CHUNK + 1, _CHUNK):
        yield unknown[start : start + _CHUNK]
