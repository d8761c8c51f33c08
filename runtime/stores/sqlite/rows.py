"""The rows that a transaction has to write, table by table: each statement is given to SQLite once for all of them.

Owns: these rows, and the order of the statements: first what is removed, then what is made, then what is changed. What has rows here that would come in the
wrong order is written before. It must never begin or end a transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

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
    ("runs", "INSERT INTO runs (id, run, agent, session, status, started, labels, value, written, expires) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"),
    ("run_changes", "UPDATE runs SET session = ?, status = ?, value = ?, written = ?, expires = ? WHERE id = ?"),
)


class Rows:
    """What is to be written before the transaction ends, or before anything else is read from these tables."""

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
    run_changes: list[tuple[bytes, bytes, bytes | None, float, float | None, int]]
    runs: list[tuple[int, bytes, bytes, bytes, bytes, int, bytes, bytes | None, float, float | None]]

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._touched: set[object] = set()  # the numbers of items, the keys of claims, and `(number,)` of runs, of which there are rows to write
        self.drop()

    def drop(self) -> None:
        """Write none of them: their transaction is not done."""
        self._touched.clear()
        for name, _ in _STATEMENTS:
            setattr(self, name, [])

    def touch(self, what: object) -> None:
        """A row of it is to be written."""
        self._touched.add(what)

    def before_removal(self, what: object) -> None:
        """It is removed next: what was to be written of it comes before that."""
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
