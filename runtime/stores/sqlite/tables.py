"""What is in the file of a `SQLiteStore` of values and journals, and how each operation reads and writes it.

Owns: those tables, through one connection. It must never begin or end a transaction of an operation: those are shared by a batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...errors import WriteRefused
from .entries import Entries
from .known import PLACES, Item, Known, chunks
from .rows import Rows

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ..threaded_store import EncodedWrite
    from .state import State

__all__ = ["IS_THERE", "Tables", "behind", "refused"]

IS_THERE: Final = "(expires IS NULL OR expires > ?)"


class Tables:
    """Values and journals."""

    def __init__(self, state: State, ttl: float | None) -> None:
        self._state = state
        self._connection = state.connection
        self._ttl = ttl
        self._ending = 0  # keys that were written with a time of their own
        self.known = Known()
        self.rows = Rows(state.connection)
        self.entries = Entries(state, ttl, self.known, self.rows)

    def begin(self) -> None:
        """A transaction has begun."""
        self._ending = 0

    def look_for(self, keys: Collection[bytes]) -> None:
        """Find out what there is of many keys, before each of them is asked for."""
        items = self.known.items
        for chunk in chunks(keys, items):
            items.update(dict.fromkeys(chunk))
            for key, number, records, expires in self._connection.execute(_ITEMS, chunk):
                items[key] = Item(number, records, expires, has_value=True)

    def end(self) -> None:
        """A transaction that has written ends. With each key that has a time of its own go two that have expired: so that no more are kept than are alive."""
        self.rows.write()
        if self._ending:
            most = 2 * self._ending
            gone = "SELECT key, id, records, expires FROM items WHERE expires <= ? ORDER BY expires LIMIT ?"
            for key, number, records, expires in self._connection.execute(gone, (self._state.now, most)).fetchall():
                self._remove(key, Item(number, records, expires, has_value=True))
            self.rows.write()
            self.entries.sweep(most)

    def get(self, key: bytes) -> bytes | None:
        self.rows.write()
        query = f"SELECT value FROM items JOIN contents ON entry = id WHERE key = ? AND {IS_THERE}"  # noqa: S608 -- a constant
        row = self._connection.execute(query, (key, self._state.now)).fetchone()
        return None if row is None else row[0]

    def set(self, key: bytes, value: bytes, seconds: float | None = None) -> None:
        entry, _records = self._written(key, 0, seconds, value=True)
        self.rows.contents.append((entry, value))

    def create(self, key: bytes, value: bytes) -> bool:
        if self._find(key) is not None:
            return False
        self.set(key, value)
        return True

    def delete(self, key: bytes) -> None:
        found = self._find(key)
        if found is not None:
            self._remove(key, found)

    def append(self, key: bytes, records: Sequence[bytes]) -> int:
        if not records:
            found = self._find(key)
            return 0 if found is None else found.records
        entry, before = self._written(key, len(records))
        self.rows.records.extend((entry, number, record) for number, record in enumerate(records, before + 1))
        return before + len(records)

    def read(self, key: bytes, after: int) -> list[bytes]:
        found = self._find(key)
        if found is None or found.records <= after:
            return []
        self.rows.write()
        rows = self._connection.execute("SELECT record FROM records WHERE entry = ? AND number > ? ORDER BY number", (found.id, after))
        return [record for (record,) in rows]

    def keys(self, prefix: bytes) -> list[bytes]:
        self.rows.write()
        query = f"SELECT key FROM items WHERE key >= ? AND key < ? AND {IS_THERE} ORDER BY key"  # noqa: S608 -- a constant
        return [key for (key,) in self._connection.execute(query, (prefix, behind(prefix), self._state.now))]

    def check(self, writes: Sequence[EncodedWrite]) -> None:
        """Raise, if one of the writes is to be refused: by what there is before the first of them."""
        for write in writes:
            if write.kind == "append":
                found = self._find(write.key)
                held = 0 if found is None else found.records
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
                self.entries.put(write)
            elif write.kind == "drop":
                self.entries.drop(write.key)
            elif write.kind == "remove":
                self.delete(write.key)

    def prune(self, older_than: float | None) -> int:
        """Remove what is over, and the claims of owners that are gone on keys of which there is nothing. Returns how many keys there were."""
        self.rows.write()
        self.known.forget()
        self.entries.prune(older_than)
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

    def _find(self, key: bytes) -> Item | None:
        """What there is of that key now."""
        items = self.known.items
        found = items.get(key)
        if found is None and key not in items:
            row = self._connection.execute("SELECT id, records, expires FROM items WHERE key = ?", (key,)).fetchone()
            found = items[key] = None if row is None else Item(row[0], row[1], row[2], has_value=True)
        if found is not None and found.expires is not None and found.expires <= self._state.now:
            if self._state.writing:
                self._remove(key, found)
            return None
        return found

    def _written(self, key: bytes, more: int, seconds: float | None = None, *, value: bool = False) -> tuple[int, int]:
        """The item of that key, which is written now and has so many records more, and how many it had before."""
        now = self._state.now
        lasts = self._ttl if seconds is None else seconds
        expires = None if lasts is None else now + lasts
        found = self._find(key)
        if found is None:
            number, before = self._next_id(), 0
            self.rows.items.append((number, key, more, now, expires))
        else:
            number, before = found.id, found.records
            value = value or found.has_value
            self.rows.changes.append((before + more, now, expires, number))
        self.rows.touch(number)
        self.known.items[key] = Item(number, before + more, expires, value)
        return number, before

    def _next_id(self) -> int:
        known = self.known
        if known.last_id is None:
            self.rows.write()
            (known.last_id,) = self._connection.execute("SELECT coalesce(max(id), 0) FROM items").fetchone()
        assert known.last_id is not None
        known.last_id += 1
        return known.last_id

    def _remove(self, key: bytes, item: Item) -> None:
        rows, number = self.rows, (item.id,)
        rows.before_removal(item.id)
        if item.records:
            rows.gone_records.append(number)
        if item.has_value:
            rows.gone_contents.append(number)
        rows.gone_items.append(number)
        self.known.items[key] = None
        self.known.gone(key)


_ITEMS: Final = f"SELECT key, id, records, expires FROM items WHERE key IN ({PLACES})"  # noqa: S608 -- a constant


def behind(prefix: bytes) -> bytes:
    """The first text behind all that begin so: no byte of UTF-8 is so large that it could not be one larger."""
    return prefix[:-1] + bytes((prefix[-1] + 1,)) if prefix else b"\xff"


def refused(reason: str, key: bytes, why: str) -> WriteRefused:
    name = key.decode("utf-8", "surrogatepass")
    return WriteRefused(f"nothing was written for {name!r}: {why}.", reason=reason, key=name)
