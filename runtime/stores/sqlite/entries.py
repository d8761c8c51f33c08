"""What is in the file of a `SQLiteStore` of the list of runs, and how it is read and written.

Each index begins with what is asked for and the status, and ends with when a run was started: whatever is asked for, the newest of each status stand at one
place, and those of several statuses are merged.

Owns: those tables, through one connection. It must never begin or end a transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgpack  # type: ignore[import-untyped]  # it has no stubs

from .state import State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..threaded_store import EncodedEntry, EncodedQuery, EncodedWrite

__all__ = ["SCHEMA", "Entries"]

SCHEMA: Final = (
    """CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        run BLOB NOT NULL UNIQUE,
        agent BLOB NOT NULL,
        session BLOB NOT NULL,
        status BLOB NOT NULL,
        started INTEGER NOT NULL,
        labels BLOB NOT NULL,
        value BLOB NOT NULL,
        written REAL NOT NULL,
        expires REAL
    )""",
    "CREATE INDEX runs_by_status ON runs (status, started)",
    "CREATE INDEX runs_by_agent ON runs (agent, status, started)",
    "CREATE INDEX runs_by_session ON runs (session, status, started) WHERE session > x''",
    "CREATE INDEX runs_by_end ON runs (expires) WHERE expires IS NOT NULL",
    """CREATE TABLE run_labels (
        label BLOB NOT NULL, status BLOB NOT NULL, started INTEGER NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (label, status, started, id)
    ) WITHOUT ROWID""",
)

_COLUMNS: Final = "runs.run, runs.agent, runs.session, runs.status, runs.started, runs.labels, runs.value, runs.id"
_IN_TIME: Final = "AND {0}.status = :status AND {0}.started >= :since AND {0}.started <= :top AND ({0}.started < :place OR {0}.id < :last)"
_INSERT: Final = "INSERT OR IGNORE INTO runs (run, agent, session, status, started, labels, value, written, expires) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"


class Entries:
    """The list of runs."""

    def __init__(self, state: State, ttl: float | None) -> None:
        self._state = state
        self._execute = state.connection.execute
        self._ttl = ttl

    def put(self, write: EncodedWrite) -> None:
        now = self._state.now
        lasts = self._ttl if write.seconds is None else write.seconds
        expires = None if lasts is None else now + lasts
        agent, session, status, *labels = write.records
        row = (write.key, agent, session, status, write.after, msgpack.packb(labels) if labels else b"", write.value, now, expires)
        made = self._execute(_INSERT, row)
        if made.rowcount:  # as nearly all begin
            self._label(labels, status, write.after, made.lastrowid)
            return
        held = self._execute("SELECT id, status, started, labels, expires FROM runs WHERE run = ?", (write.key,)).fetchone()
        number, before, started, packed, ends = held
        if ends is not None and ends <= now:
            self._remove(held)
            self._label(labels, status, write.after, self._execute(_INSERT, row).lastrowid)
            return
        values = (session, status, write.value, now, expires, number)
        self._execute("UPDATE runs SET session = ?, status = ?, value = ?, written = ?, expires = ? WHERE id = ?", values)
        if packed and before != status:
            kept = msgpack.unpackb(packed)
            self._unlabel(kept, before, started, number)
            self._label(kept, status, started, number)

    def drop(self, key: bytes) -> None:
        held = self._execute("SELECT id, status, started, labels FROM runs WHERE run = ?", (key,)).fetchone()
        if held is not None:
            self._remove(held)

    def run_entry(self, key: bytes) -> EncodedEntry | None:
        query = f"SELECT {_COLUMNS} FROM runs WHERE run = ? AND (expires IS NULL OR expires > ?)"  # noqa: S608 -- constants
        row = self._execute(query, (key, self._state.now)).fetchone()
        return None if row is None else _entry(row)

    def run_entries(self, _key: bytes, query: EncodedQuery) -> list[EncodedEntry]:
        place, last = query.until, -1
        if query.after is not None:
            row = self._execute("SELECT started, id FROM runs WHERE run = ?", (query.after,)).fetchone()
            if row is None:
                return []
            place, last = row
        values: dict[str, Any] = {"since": query.since, "top": min(query.until - 1, place), "place": place, "last": last}
        values |= {"agent": query.agent, "session": query.session, "limit": query.limit, "now": self._state.now}
        values |= {f"label{number}": label for number, label in enumerate(query.labels)}
        statement = _statement(query)
        rows = [row for status in query.statuses for row in self._execute(statement, values | {"status": status})]
        rows.sort(key=lambda row: (row[4], row[7]), reverse=True)
        return [_entry(row) for row in rows[: query.limit]]

    def prune(self, older_than: float | None) -> None:
        last = -1.0 if older_than is None else self._state.now - older_than
        gone = "SELECT id, status, started, labels FROM runs WHERE coalesce(expires <= ?, 0) OR written <= ?"
        for held in self._execute(gone, (self._state.now, last)).fetchall():
            self._remove(held)

    def sweep(self, most: int) -> None:
        """Remove some that have expired."""
        gone = "SELECT id, status, started, labels FROM runs WHERE expires <= ? ORDER BY expires LIMIT ?"
        for held in self._execute(gone, (self._state.now, most)).fetchall():
            self._remove(held)

    def _remove(self, held: Sequence[Any]) -> None:
        number, status, started, labels, *_ = held
        if labels:
            self._unlabel(msgpack.unpackb(labels), status, started, number)
        self._execute("DELETE FROM runs WHERE id = ?", (number,))

    def _label(self, labels: Sequence[bytes], status: bytes, started: int, number: int | None) -> None:
        for label in labels:
            self._execute("INSERT OR IGNORE INTO run_labels VALUES (?, ?, ?, ?)", (label, status, started, number))

    def _unlabel(self, labels: Sequence[bytes], status: bytes, started: int, number: int) -> None:
        for label in labels:
            self._execute("DELETE FROM run_labels WHERE label = ? AND status = ? AND started = ? AND id = ?", (label, status, started, number))


def _statement(query: EncodedQuery) -> str:
    """For one status. The narrowest index is gone through, and what else is wanted is looked at in each row."""
    also = [
        f"AND EXISTS (SELECT 1 FROM run_labels AS l WHERE l.label = :label{number} AND l.status = runs.status AND l.started = runs.started AND l.id = runs.id)"  # noqa: S608 -- constants
        for number in range(1, len(query.labels))
    ]
    by_label, by_session = bool(query.labels), query.session is not None and not query.labels
    if query.session is not None:
        also.append("AND runs.session = :session")
    if query.agent is not None:
        also.append("AND runs.agent = :agent")
    if by_label:
        source, table = "run_labels AS first CROSS JOIN runs ON runs.id = first.id WHERE first.label = :label0", "first"
    else:
        index = "runs_by_session" if by_session else "runs_by_agent" if query.agent is not None else "runs_by_status"
        source, table = f"runs INDEXED BY {index} WHERE {'runs.session > x' + repr('') if by_session else '1'}", "runs"
    still = "AND (runs.expires IS NULL OR runs.expires > :now)"
    order = f"ORDER BY {table}.started DESC, {table}.id DESC LIMIT :limit"
    return f"SELECT {_COLUMNS} FROM {source} {' '.join(also)} {_IN_TIME.format(table)} {still} {order}"  # noqa: S608 -- constants


def _entry(row: Sequence[Any]) -> EncodedEntry:
    run, agent, session, status, started, labels, value, _ = row
    return run, agent, session, status, started, msgpack.unpackb(labels) if labels else (), value
