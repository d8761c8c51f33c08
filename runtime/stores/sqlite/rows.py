"""The pending rows of a transaction, table by table: SQLite gets each statement once for all of
them.

The order of the statements is fixed: removals, then inserts, then updates. Rows for which that
order would be wrong are written earlier. This module never starts or ends a transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..run_entries import NUMBERS, TEXTS

if TYPE_CHECKING:
    import sqlite3

__all__ = ["Rows"]

_STATEMENTS: Final = (
    ("gone_records", "DELETE FROM records WHERE entry = ?"),
    ("gone_contents", "DELETE FROM contents WHERE entry = ?"),
    ("gone_items", "DELETE FROM items WHERE id = ?"),
    ("gone_claims", "DELETE FROM claims WHERE key = ?"),
    ("gone_runs", "DELETE FROM runs WHERE id = ?"),
    ("items", "INSERT INTO items (id, key, records, written, expires) VALUES (?, ?, ?, ?, ?)"),
    ("changes", "UPDATE items SET records = ?, written = ?, expires = ? WHERE id = ?"),
    ("contents", "INSERT OR REPLACE INTO contents VALUES (?, ?)"),
    ("records", "INSERT INTO records VALUES (?, ?, ?)"),
    ("claims", "INSERT OR REPLACE INTO claims VALUES (?, ?, ?, ?)"),
    (
        "runs",
        (
            f"INSERT INTO runs (id, run, {', '.join((*TEXTS, *NUMBERS))}, labels, value, "  # noqa: S608 -- constants
            f"written, expires) VALUES ({', '.join('?' * (6 + len(TEXTS) + len(NUMBERS)))})"
        ),
    ),
    (
        "run_changes",
        (
            f"UPDATE runs SET {' = ?, '.join((*TEXTS[1:], *NUMBERS[1:]))} = ?, value = ?, "  # noqa: S608 -- constants
            "written = ?, expires = ? WHERE id = ?"
        ),
    ),
)


class Rows:
    """Rows to write before the transaction ends, or before these tables are read again."""

    __slots__ = ("_connection", "_touched", *(name for name, _ in _STATEMENTS))

    changes: list[tuple[int, float, float | None, int]]
    claims: list[tuple[bytes, bytes, int, int]]
    contents: list[tuple[int, bytes]]
    gone_claims: list[tuple[bytes]]
    gone_contents: list[tuple[int]]
    gone_items: list[tuple[int]]
    gone_records: list[tuple[int]]
    gone_runs: list[tuple[int]]
    items: list[tuple[int, bytes, int, float, float | None]]
    records: list[tuple[int, int, bytes]]
    run_changes: list[tuple[bytes | float | None, ...]]
    runs: list[tuple[bytes | float | None, ...]]

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        # The ids of items, the keys of claims, and `(id,)` of runs that have pending rows.
        self._touched: set[object] = set()
        self.drop()

    def drop(self) -> None:
        """Discard all rows, because their transaction failed."""
        self._touched.clear()
        for name, _ in _STATEMENTS:
            setattr(self, name, [])

    def touch(self, what: object) -> None:
        """Note that it has a pending row."""
        self._touched.add(what)

    def before_removal(self, what: object) -> None:
        """Write the pending rows of something that is removed next."""
        if what in self._touched:
            self.write()

    def write(self) -> None:
        """Write them all, now."""
        for name, statement in _STATEMENTS:
            rows: list[Any] = getattr(self, name)
            if rows:
                self._connection.executemany(statement, rows)
                rows.clear()
        self._touched.clear()
