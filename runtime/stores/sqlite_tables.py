"""What is in the file of a `SQLiteStore`, and how each operation reads and writes it.

Owns: the tables and their version. It must never begin or end a transaction of an operation: those are shared by a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from .store_thread import Operation

__all__ = ["Foreign", "Newer", "Tables"]

_VERSION: Final = 1
_APPLICATION: Final = 0x75647374  # "udst", in the header of the file: tells it from a database of some other program

# The value has a table of its own, because a row is written as a whole: otherwise every record would write the value again.
_SCHEMA: Final = (
    """CREATE TABLE entries (
        id INTEGER PRIMARY KEY,
        key BLOB NOT NULL UNIQUE,
        records INTEGER NOT NULL,
        written REAL NOT NULL,
        expires REAL
    )""",
    "CREATE TABLE contents (entry INTEGER PRIMARY KEY, value BLOB NOT NULL)",
    "CREATE TABLE records (entry INTEGER NOT NULL, number INTEGER NOT NULL, record BLOB NOT NULL, PRIMARY KEY (entry, number)) WITHOUT ROWID",
    "CREATE TABLE leases (key BLOB PRIMARY KEY, owner BLOB NOT NULL, until REAL NOT NULL) WITHOUT ROWID",
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)

_IS_THERE: Final = "(expires IS NULL OR expires > ?)"


class Newer(Exception):
    """The tables were made by a newer version."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(f"version {found}")
        self.found = found
        self.known = known


class Foreign(Exception):
    """The database is some other program's."""


class Tables:
    """The tables, through one connection. `now` is the time of the batch under way."""

    def __init__(self, connection: sqlite3.Connection, ttl: float | None) -> None:
        self.connection = connection
        self.now = 0.0
        self._ttl = ttl
        self._methods: dict[str, Callable[..., object]] = {
            name: getattr(self, f"_{name}")
            for name in ("get", "set", "delete", "append", "read", "keys", "create", "acquire", "renew", "release", "holder", "prune")
        }

    def prepare(self) -> None:
        """See that the tables are there, and that they are those which this version knows."""
        if self._said() == (_APPLICATION, _VERSION):
            return
        self.connection.execute("BEGIN IMMEDIATE")  # nobody makes them while it is looked at what there is
        try:
            if not self._is_ready():  # another process may have been quicker
                for statement in _SCHEMA:
                    self.connection.execute(statement)
            self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise

    def do(self, operation: Operation) -> object:
        """Do an operation, within the transaction that is open."""
        return self._methods[operation.name](operation.key, *operation.arguments)

    def _said(self) -> tuple[int, int]:
        """Whose tables they are, and of which version."""
        (application,) = self.connection.execute("PRAGMA application_id").fetchone()
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        return application, version

    def _is_ready(self) -> bool:
        application, version = self._said()
        if application == _APPLICATION and version == _VERSION:
            return True
        if application == _APPLICATION and version > _VERSION:
            raise Newer(version, _VERSION)
        (tables,) = self.connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application or version or tables:
            raise Foreign
        return False

    # ---- values and journals

    def _get(self, key: bytes) -> bytes | None:
        query = f"SELECT value FROM entries JOIN contents ON entry = id WHERE key = ? AND {_IS_THERE}"  # noqa: S608 -- a constant
        row = self.connection.execute(query, (key, self.now)).fetchone()
        return None if row is None else row[0]

    def _set(self, key: bytes, value: bytes) -> None:
        entry, _records = self._written(key, 0)
        self.connection.execute("INSERT OR REPLACE INTO contents VALUES (?, ?)", (entry, value))

    def _create(self, key: bytes, value: bytes) -> bool:
        if self._find(key) is not None:
            return False
        self._set(key, value)
        return True

    def _delete(self, key: bytes) -> None:
        row = self.connection.execute("SELECT id FROM entries WHERE key = ?", (key,)).fetchone()
        if row is not None:
            self._remove(row[0])

    def _append(self, key: bytes, records: list[bytes]) -> int:
        if not records:
            found = self._find(key)
            return 0 if found is None else found[1]
        entry, before = self._written(key, len(records))
        rows = [(entry, number, record) for number, record in enumerate(records, before + 1)]
        self.connection.executemany("INSERT INTO records VALUES (?, ?, ?)", rows)
        return before + len(records)

    def _read(self, key: bytes, after: int) -> list[bytes]:
        found = self._find(key)
        if found is None or found[1] <= after:
            return []
        rows = self.connection.execute("SELECT record FROM records WHERE entry = ? AND number > ? ORDER BY number", (found[0], after))
        return [record for (record,) in rows]

    def _keys(self, prefix: bytes) -> list[bytes]:
        # The first text behind all that begin with the prefix: no byte of UTF-8 is so large that it could not be one larger.
        behind = prefix[:-1] + bytes((prefix[-1] + 1,)) if prefix else b"\xff"
        query = f"SELECT key FROM entries WHERE key >= ? AND key < ? AND {_IS_THERE} ORDER BY key"  # noqa: S608 -- a constant
        return [key for (key,) in self.connection.execute(query, (prefix, behind, self.now))]

    def _find(self, key: bytes) -> tuple[int, int] | None:
        """The number of an entry, and that of its records."""
        row: tuple[int, int] | None = self.connection.execute(
            f"SELECT id, records FROM entries WHERE key = ? AND {_IS_THERE}",  # noqa: S608 -- a constant
            (key, self.now),
        ).fetchone()
        return row

    def _written(self, key: bytes, more: int) -> tuple[int, int]:
        """The entry of that key, which is written now and has so many records more, and how many it had before."""
        expires = None if self._ttl is None else self.now + self._ttl
        row = self.connection.execute("SELECT id, records, expires FROM entries WHERE key = ?", (key,)).fetchone()
        if row is not None and row[2] is not None and row[2] <= self.now:
            self._remove(row[0])
            row = None
        if row is None:
            cursor = self.connection.execute(
                "INSERT INTO entries (key, records, written, expires) VALUES (?, ?, ?, ?)",
                (key, more, self.now, expires),
            )
            assert cursor.lastrowid is not None
            return cursor.lastrowid, 0
        entry, before, _expires = row
        self.connection.execute("UPDATE entries SET records = ?, written = ?, expires = ? WHERE id = ?", (before + more, self.now, expires, entry))
        return entry, before

    def _remove(self, entry: int) -> None:
        for statement in ("DELETE FROM records WHERE entry = ?", "DELETE FROM contents WHERE entry = ?", "DELETE FROM entries WHERE id = ?"):
            self.connection.execute(statement, (entry,))

    # ---- leases

    def _acquire(self, key: bytes, owner: bytes, seconds: float) -> bool:
        row = self.connection.execute("SELECT owner, until FROM leases WHERE key = ?", (key,)).fetchone()
        if row is not None and row[0] != owner and row[1] > self.now:
            return False
        self.connection.execute("INSERT OR REPLACE INTO leases VALUES (?, ?, ?)", (key, owner, self.now + seconds))
        return True

    def _renew(self, _first: bytes, keys: list[bytes], owner: bytes, seconds: float) -> list[bytes]:
        statement = "UPDATE leases SET until = ? WHERE key = ? AND owner = ? AND until > ?"
        return [key for key in keys if self.connection.execute(statement, (self.now + seconds, key, owner, self.now)).rowcount]

    def _release(self, key: bytes, owner: bytes) -> None:
        self.connection.execute("DELETE FROM leases WHERE key = ? AND owner = ?", (key, owner))

    def _holder(self, key: bytes) -> bytes | None:
        row = self.connection.execute("SELECT owner FROM leases WHERE key = ? AND until > ?", (key, self.now)).fetchone()
        return None if row is None else row[0]

    # ---- cleaning up

    def _prune(self, _key: bytes, older_than: float | None) -> int:
        last = -1.0 if older_than is None else self.now - older_than
        gone = "expires <= :now OR written <= :last"
        times = {"now": self.now, "last": last}
        query = f"SELECT count(*) FROM (SELECT key FROM entries WHERE {gone} UNION SELECT key FROM leases WHERE until <= :now)"  # noqa: S608 -- a constant
        (keys,) = self.connection.execute(query, times).fetchone()
        for table in ("records", "contents"):
            self.connection.execute(f"DELETE FROM {table} WHERE entry IN (SELECT id FROM entries WHERE {gone})", times)  # noqa: S608 -- a constant
        self.connection.execute(f"DELETE FROM entries WHERE {gone}", times)  # noqa: S608 -- a constant
        self.connection.execute("DELETE FROM leases WHERE until <= :now", times)
        return int(keys)
