"""One connection's cache of the file, valid as long as no other connection has written.

SQLite reports such writes (`PRAGMA data_version`) within the open transaction; from then on until
its end no other connection can write. This connection's own writes update the cache. It must not be
read outside of a transaction, and its size is bounded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import sqlite3

__all__ = ["PLACES", "Item", "Known", "Listed", "Owner", "Taken", "chunks"]

_MOST: Final = 30_000
"""The largest number of cached keys: those of some ten thousand concurrent runs."""

_CHUNK: Final = 32
"""Keys that are looked up by one statement."""

PLACES: Final = ", ".join("?" * _CHUNK)
"""The placeholders of that statement."""


class Item(NamedTuple):
    """The cached row of a key."""

    id: int
    records: int
    expires: float | None
    has_value: bool
    """False only if it certainly has none."""


class Taken(NamedTuple):
    """The cached row of a claim."""

    owner: bytes
    epoch: int
    attempts: int


class Listed(NamedTuple):
    """The cached row of a run."""

    id: int
    status: bytes
    started: int
    labels: bytes
    expires: float | None
    claim: bytes | None


class Owner(NamedTuple):
    """The cached row of an owner."""

    until: float
    seconds: float
    boot: str
    file: str | None
    inode: str | None


class Known:
    """The cache of one connection. A None value records that there is no such row."""

    __slots__ = (
        "_gone",
        "_version",
        "claims",
        "items",
        "last_id",
        "last_run",
        "owners",
        "runs",
    )

    def __init__(self) -> None:
        self.items: dict[bytes, Item | None] = {}
        self.claims: dict[bytes, Taken | None] = {}
        self.runs: dict[bytes, Listed | None] = {}
        self.owners: dict[bytes, Owner | None] = {}
        self.last_id: int | None = None
        """The largest id of an item; None: unknown."""
        self.last_run: int | None = None
        """The same for a run in the list."""
        self._version: int | None = None
        self._gone: list[bytes] = []

    def holds(self, connection: sqlite3.Connection) -> bool:
        """Return whether the cache is valid in the transaction that has just started.

        If it is not, it is cleared.
        """
        (version,) = connection.execute("PRAGMA data_version").fetchone()
        if (
            version == self._version
            and len(self.items) + len(self.claims) + len(self.runs) <= _MOST
        ):
            return True
        self.forget()
        self._version = version
        return False

    def forget(self) -> None:
        """Clear the cache, because another connection has written, or a transaction failed."""
        self._version = self.last_id = self.last_run = None
        self._gone.clear()
        for table in (self.items, self.claims, self.runs, self.owners):
            table.clear()

    def gone(self, key: bytes) -> None:
        """Note that nothing of that key exists any more.

        This stays in the cache until the transaction ends.
        """
        self._gone.append(key)

    def end(self) -> None:
        """Drop the entries of removed keys after a successful transaction."""
        for key in self._gone:
            for table in (self.items, self.claims, self.runs):
                if table.get(key, self) is None:
                    del table[key]
        self._gone.clear()


def chunks(keys: Collection[bytes], known: Collection[bytes]) -> Iterator[list[bytes]]:
    """Yield the keys that are not cached, in chunks for one statement.

    The rest is looked up one by one.
    """
    unknown = [key for key in dict.fromkeys(keys) if key not in known]
    for start in range(0, len(unknown) - _CHUNK + 1, _CHUNK):
        yield unknown[start : start + _CHUNK]
