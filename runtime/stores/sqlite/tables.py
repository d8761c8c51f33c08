"""Values and journals in the file of a `SQLiteStore`, and the operations that read and write them.

This module never starts or ends a transaction: a batch shares one.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from ...errors import WriteRefused
from .entries import Entries
from .known import PLACES, Item, Known, chunks
from .rows import Rows

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ..threaded_store import EncodedWrite
    from .state import State

__all__ = ["IS_THERE", "Tables", "behind", "refused"]

_LOOKED_AT: Final = 500  # rows per step of a prune
_LAST: Final = 2**62  # larger than every id
_INCREMENTAL: Final = 2
_PAGES: Final = 200  # pages released at once
_RECORDS: Final = 500  # records of a journal removed at once
# The key prefix of items that are being removed: no text in UTF-8 starts with it.
_REMOVED: Final = b"\xff"
# The age of values that last for longer than `marks.AGELESS` is ignored.
_GONE: Final = """SELECT id, key, records FROM items
    WHERE id > :behind AND id <= :end
    AND (coalesce(expires <= :now, 0) OR (written <= :last AND coalesce(expires <= :now + 1e9, 1)) OR key >= :removed)
    ORDER BY id"""
_SOME_RECORDS: Final = (
    "DELETE FROM records WHERE entry = ? AND number IN (SELECT number FROM records WHERE entry = "
    "? ORDER BY number LIMIT ?)"
)
_IDLE_CLAIMS: Final = """DELETE FROM claims WHERE key > ? AND key <= ?
    AND owner NOT IN (SELECT name FROM owners) AND NOT EXISTS (SELECT 1 FROM items WHERE items.key = claims.key)
    AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.claim = claims.key)"""

IS_THERE: Final = "(expires IS NULL OR expires > ?)"


class Tables:
    """Values and journals."""

    def __init__(self, state: State, ttl: float | None) -> None:
        self._state = state
        self._connection = state.connection
        self._ttl = ttl
        self._ending = 0  # written keys that have their own time to live
        self.known = Known()
        self.rows = Rows(state.connection)
        self.entries = Entries(state, ttl, self.known, self.rows)

    def begin(self) -> None:
        """Reset the state of a transaction, which has just started."""
        self._ending = 0

    def look_for(self, keys: Collection[bytes]) -> None:
        """Load the items of many keys at once, before each of them is needed."""
        items = self.known.items
        for chunk in chunks(keys, items):
            items.update(dict.fromkeys(chunk))
            for key, number, records, expires in self._connection.execute(_ITEMS, chunk):
                items[key] = Item(number, records, expires, has_value=True)

    def end(self) -> None:
        """Finish a transaction that writes.

        For each written key with its own time to live, two expired ones are removed: so the number
        of expired keys stays small.
        """
        self.rows.write()
        if self._ending:
            most = 2 * self._ending
            gone = (
                "SELECT key, id, records, expires FROM items WHERE expires <= ? ORDER BY expires "
                "LIMIT ?"
            )
            for key, number, records, expires in self._connection.execute(
                gone, (self._state.now, most)
            ).fetchall():
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
        self.rows.records.extend(
            (entry, number, record) for number, record in enumerate(records, before + 1)
        )
        return before + len(records)

    def read(self, key: bytes, after: int) -> list[bytes]:
        found = self._find(key)
        if found is None or found.records <= after:
            return []
        self.rows.write()
        rows = self._connection.execute(
            "SELECT record FROM records WHERE entry = ? AND number > ? ORDER BY number",
            (found.id, after),
        )
        return [record for (record,) in rows]

    def keys(self, prefix: bytes) -> list[bytes]:
        self.rows.write()
        query = f"SELECT key FROM items WHERE key >= ? AND key < ? AND {IS_THERE} ORDER BY key"  # noqa: S608 -- a constant
        return [
            key
            for (key,) in self._connection.execute(query, (prefix, behind(prefix), self._state.now))
        ]

    def check(self, writes: Sequence[EncodedWrite]) -> None:
        """Raise if one of the writes must be refused, given the state before the first of them."""
        for write in writes:
            if write.kind == "append":
                found = self._find(write.key)
                held = 0 if found is None else found.records
                if held != write.after:
                    raise refused(
                        "position",
                        write.key,
                        f"its journal has {held} records, expected {write.after}",
                    )
            elif write.kind == "expect":
                is_so = (
                    self._find(write.key) is None
                    if write.value is None
                    else self.get(write.key) == write.value
                )
                if not is_so:
                    raise refused("value", write.key, "its value has changed in the meantime")
            elif write.kind == "expect_entry" and not self.entries.is_expected(write):
                raise refused("value", write.key, "the row of that run has changed in the meantime")

    def write(self, writes: Sequence[EncodedWrite]) -> None:
        """Do the writes, in their order, once they have been checked."""
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

    def prune(
        self, older_than: float | None, progress: tuple[str, Any, int] | None, until: float
    ) -> tuple[tuple[str, Any, int], bool]:
        """Remove expired data, and claims of dead owners on keys without data, until `until`.

        Takes and returns the progress: the stage, the row after which to continue, and the number
        of removed keys. Also returns whether all is done.
        """
        self.rows.write()
        self.known.forget()
        stage: str
        behind: Any  # a number, or a key
        stage, behind, count = progress or ("runs", 0, 0)
        last = -1.0 if older_than is None else self._state.now - older_than
        while stage and time.monotonic() < until:
            if stage == "runs":
                behind, is_over = self.entries.prune(last, behind)
                stage, behind = ("items", 0) if is_over else (stage, behind)
            elif stage == "items":
                behind, gone, is_over = self._prune_items(last, behind, until)
                count += gone
                stage, behind = ("claims", b"") if is_over else (stage, behind)
            elif stage == "claims":
                behind, gone, is_over = self._prune_claims(behind)
                count += gone
                stage = "pages" if is_over else stage
            else:
                stage = stage if self._give_back_pages() else ""
        return (stage, behind, count), not stage

    def _prune_items(self, last: float, behind: int, until: float) -> tuple[int, int, bool]:
        """Remove expired items from the next few.

        Returns the last checked one, the number of removed ones, and whether it was the last of
        all.
        """
        execute = self._connection.execute
        found = execute(
            "SELECT id FROM items WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?", (behind, _LOOKED_AT)
        ).fetchone()
        end = _LAST if found is None else found[0]
        rows = execute(
            _GONE,
            {
                "behind": behind,
                "end": end,
                "now": self._state.now,
                "last": last,
                "removed": _REMOVED,
            },
        ).fetchall()
        gone = 0
        for number, key, records in rows:
            if key < _REMOVED:
                gone += 1
                execute(
                    "DELETE FROM claims WHERE key = ? AND owner NOT IN (SELECT name FROM owners)",
                    (key,),
                )
                # they are removed step by step; nothing finds them in the meantime
                if records > _RECORDS:
                    execute(
                        "UPDATE items SET key = ?, expires = NULL WHERE id = ?",
                        (_REMOVED + b"%d" % number, number),
                    )
            if records > _RECORDS:
                while execute(_SOME_RECORDS, (number, number, _RECORDS)).rowcount == _RECORDS:
                    if time.monotonic() >= until:
                        return number - 1, gone, False
            for table, column in (("records", "entry"), ("contents", "entry"), ("items", "id")):
                execute(f"DELETE FROM {table} WHERE {column} = ?", (number,))  # noqa: S608 -- constants
            if time.monotonic() >= until:
                return number, gone, False
        return end, gone, found is None

    def _prune_claims(self, behind: bytes) -> tuple[bytes, int, bool]:
        execute = self._connection.execute
        keys = [
            key
            for (key,) in execute(
                "SELECT key FROM claims WHERE key > ? ORDER BY key LIMIT ?", (behind, _LOOKED_AT)
            )
        ]
        if not keys:
            return behind, 0, True
        return keys[-1], execute(_IDLE_CLAIMS, (behind, keys[-1])).rowcount, len(keys) < _LOOKED_AT

    def _give_back_pages(self) -> bool:
        """Release some unused pages, so that the file shrinks.

        Returns False if there are no more.
        """
        execute = self._connection.execute
        execute(f"PRAGMA incremental_vacuum({_PAGES})").fetchall()
        (mode,), (left,) = (
            execute("PRAGMA auto_vacuum").fetchone(),
            execute("PRAGMA freelist_count").fetchone(),
        )
        return bool(mode == _INCREMENTAL and left)

    def _find(self, key: bytes) -> Item | None:
        """Return the current item of that key."""
        items = self.known.items
        found = items.get(key)
        if found is None and key not in items:
            row = self._connection.execute(
                "SELECT id, records, expires FROM items WHERE key = ?", (key,)
            ).fetchone()
            found = items[key] = (
                None if row is None else Item(row[0], row[1], row[2], has_value=True)
            )
        if found is not None and found.expires is not None and found.expires <= self._state.now:
            if self._state.writing:
                self._remove(key, found)
            return None
        return found

    def _written(
        self, key: bytes, more: int, seconds: float | None = None, *, value: bool = False
    ) -> tuple[int, int]:
        """Mark the item of that key as written now, with `more` additional records.

        Returns its id, and the number of records it had before.
        """
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
            (known.last_id,) = self._connection.execute(
                "SELECT coalesce(max(id), 0) FROM items"
            ).fetchone()
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
    """Return the first key after all with that prefix.

    The last byte of UTF-8 can always be incremented.
    """
    return prefix[:-1] + bytes((prefix[-1] + 1,)) if prefix else b"\xff"


def refused(reason: str, key: bytes, why: str) -> WriteRefused:
    name = key.decode("utf-8", "surrogatepass")
    return WriteRefused(f"nothing was written for {name!r}: {why}.", reason=reason, key=name)
