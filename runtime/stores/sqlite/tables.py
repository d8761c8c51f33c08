"""What is in the file of a `SQLiteStore` of values and journals, and how each operation reads and writes it.

Owns: those tables, through one connection. It must never begin or end a transaction of an operation: those are shared by a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...errors import WriteRefused

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..threaded_store import EncodedWrite
    from .entries import Entries
    from .state import State

__all__ = ["IS_THERE", "Tables", "behind", "refused"]

IS_THERE: Final = "(expires IS NULL OR expires > ?)"


class Tables:
    """Values and journals."""

    def __init__(self, state: State, ttl: float | None, entries: Entries) -> None:
        self._state = state
        self._connection = state.connection
        self._ttl = ttl
        self._entries = entries
        # What the transaction under way has met of each key: the number of its item and that of its records, or that there is none. Another connection
        # cannot change it meanwhile.
        self._met: dict[bytes, tuple[int, int] | None] = {}
        self._ending = 0  # keys that were written with a time of their own

    def begin(self) -> None:
        """A transaction has begun."""
        self._met.clear()
        self._ending = 0

    def end(self) -> None:
        """A transaction that has written ends. With each key that has a time of its own go two that have expired: so that no more are kept than are alive."""
        if self._ending:
            most = 2 * self._ending
            gone = "SELECT key, id FROM items WHERE expires <= ? ORDER BY expires LIMIT ?"
            for key, entry in self._connection.execute(gone, (self._state.now, most)).fetchall():
                self._remove(key, entry)
            self._entries.sweep(most)

    def get(self, key: bytes) -> bytes | None:
        query = f"SELECT value FROM items JOIN contents ON entry = id WHERE key = ? AND {IS_THERE}"  # noqa: S608 -- a constant
        row = self._connection.execute(query, (key, self._state.now)).fetchone()
        return None if row is None else row[0]

    def set(self, key: bytes, value: bytes, seconds: float | None = None) -> None:
        entry, _records = self._written(key, 0, seconds)
        self._connection.execute("INSERT OR REPLACE INTO contents VALUES (?, ?)", (entry, value))

    def create(self, key: bytes, value: bytes) -> bool:
        if self._find(key) is not None:
            return False
        self.set(key, value)
        return True

    def delete(self, key: bytes) -> None:
        found = self._find(key)
        if found is not None:
            self._remove(key, found[0])

    def append(self, key: bytes, records: Sequence[bytes]) -> int:
        if not records:
            found = self._find(key)
            return 0 if found is None else found[1]
        entry, before = self._written(key, len(records))
        if len(records) == 1:
            self._connection.execute("INSERT INTO records VALUES (?, ?, ?)", (entry, before + 1, records[0]))
        else:
            rows = ((entry, number, record) for number, record in enumerate(records, before + 1))
            self._connection.executemany("INSERT INTO records VALUES (?, ?, ?)", rows)
        return before + len(records)

    def read(self, key: bytes, after: int) -> list[bytes]:
        found = self._find(key)
        if found is None or found[1] <= after:
            return []
        rows = self._connection.execute("SELECT record FROM records WHERE entry = ? AND number > ? ORDER BY number", (found[0], after))
        return [record for (record,) in rows]

    def keys(self, prefix: bytes) -> list[bytes]:
        query = f"SELECT key FROM items WHERE key >= ? AND key < ? AND {IS_THERE} ORDER BY key"  # noqa: S608 -- a constant
        return [key for (key,) in self._connection.execute(query, (prefix, behind(prefix), self._state.now))]

    def check(self, writes: Sequence[EncodedWrite]) -> None:
        """Raise, if one of the writes is to be refused: by what there is before the first of them."""
        for write in writes:
            if write.kind == "append":
                found = self._find(write.key)
                held = 0 if found is None else found[1]
                if held != write.after:
                    raise refused("position", write.key, f"its journal holds {held} records, and not {write.after}")
            elif write.kind == "expect":
                is_so = self._find(write.key) is None if write.value is None else self.get(write.key) == write.value
                if not is_so:
                    raise refused("value", write.key, "its value is another one by now")

    def write(self, writes: Sequence[EncodedWrite]) -> None:
        """Do them, in their order, once they have been checked."""
        for write in writes:
            if write.kind == "append":
                if write.records:
                    self.append(write.key, write.records)
            elif write.kind == "put":
                assert write.value is not None
                self.set(write.key, write.value, write.seconds)
                if write.seconds is not None:
                    self._ending += 1
            elif write.kind == "entry":
                self._entries.put(write)
            elif write.kind == "drop":
                self._entries.drop(write.key)
            elif write.kind == "remove":
                self.delete(write.key)

    def prune(self, older_than: float | None) -> int:
        """Remove what is over, and the claims of owners that are gone on keys of which there is nothing. Returns how many keys there were."""
        self._met.clear()
        self._entries.prune(older_than)
        gone = "(coalesce(expires <= :now, 0) OR written <= :last)"
        times = {"now": self._state.now, "last": -1.0 if older_than is None else self._state.now - older_than}
        left = f"SELECT key FROM claims WHERE owner NOT IN (SELECT name FROM owners) AND key NOT IN (SELECT key FROM items WHERE NOT {gone})"  # noqa: S608 -- a constant
        execute = self._connection.execute
        (keys,) = execute(f"SELECT count(*) FROM (SELECT key FROM items WHERE {gone} UNION {left})", times).fetchone()  # noqa: S608 -- a constant
        execute(f"DELETE FROM claims WHERE key IN ({left})", times)  # noqa: S608 -- a constant
        for table in ("records", "contents"):
            execute(f"DELETE FROM {table} WHERE entry IN (SELECT id FROM items WHERE {gone})", times)  # noqa: S608 -- a constant
        execute(f"DELETE FROM items WHERE {gone}", times)  # noqa: S608 -- a constant
        execute("DELETE FROM former_leases WHERE until <= :now", times)
        return int(keys)

    def _find(self, key: bytes) -> tuple[int, int] | None:
        """The number of an item, and that of its records."""
        if key in self._met:
            return self._met[key]
        row = self._connection.execute("SELECT id, records, expires FROM items WHERE key = ?", (key,)).fetchone()
        found: tuple[int, int] | None = None
        if row is not None and row[2] is not None and row[2] <= self._state.now:
            if self._state.writing:
                self._remove(key, row[0])
        elif row is not None:
            found = (row[0], row[1])
        self._met[key] = found
        return found

    def _written(self, key: bytes, more: int, seconds: float | None = None) -> tuple[int, int]:
        """The item of that key, which is written now and has so many records more, and how many it had before."""
        now = self._state.now
        lasts = self._ttl if seconds is None else seconds
        expires = None if lasts is None else now + lasts
        found = self._find(key)
        if found is None:
            cursor = self._connection.execute("INSERT INTO items (key, records, written, expires) VALUES (?, ?, ?, ?)", (key, more, now, expires))
            assert cursor.lastrowid is not None
            found = (cursor.lastrowid, 0)
        else:
            self._connection.execute("UPDATE items SET records = ?, written = ?, expires = ? WHERE id = ?", (found[1] + more, now, expires, found[0]))
        self._met[key] = (found[0], found[1] + more)
        return found

    def _remove(self, key: bytes, entry: int) -> None:
        for statement in ("DELETE FROM records WHERE entry = ?", "DELETE FROM contents WHERE entry = ?", "DELETE FROM items WHERE id = ?"):
            self._connection.execute(statement, (entry,))
        self._met[key] = None


def behind(prefix: bytes) -> bytes:
    """The first text behind all that begin so: no byte of UTF-8 is so large that it could not be one larger."""
    return prefix[:-1] + bytes((prefix[-1] + 1,)) if prefix else b"\xff"


def refused(reason: str, key: bytes, why: str) -> WriteRefused:
    name = key.decode("utf-8", "surrogatepass")
    return WriteRefused(f"nothing was written for {name!r}: {why}.", reason=reason, key=name)
