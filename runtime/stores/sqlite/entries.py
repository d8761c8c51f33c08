"""The rows of runs in the file of a `SQLiteStore`.

Each index starts with the searched column and the status, and ends with the start time of the run.
For every kind of query, the newest entries of each status are adjacent, and those of several
statuses are merged. This module never starts or ends a transaction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgpack  # type: ignore[import-untyped]  # it has no stubs

from ..run_entries import NUMBERS, TEXTS
from .known import PLACES, Known, Listed, chunks

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ..threaded_store import EncodedEntry, EncodedQuery, EncodedWrite
    from .rows import Rows
    from .state import State

__all__ = ["SCHEMA", "Entries"]

SCHEMA: Final = (
    """CREATE TABLE runs (
        id INTEGER PRIMARY KEY,
        run BLOB NOT NULL UNIQUE,
        agent BLOB NOT NULL,
        session BLOB NOT NULL,
        status BLOB NOT NULL,
        claim BLOB,
        checkpoint BLOB NOT NULL,
        last_agent BLOB NOT NULL,
        error BLOB NOT NULL,
        started INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        ended INTEGER NOT NULL,
        attempts INTEGER NOT NULL,
        steps INTEGER NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cached_tokens INTEGER NOT NULL,
        requests INTEGER NOT NULL,
        labels BLOB NOT NULL,
        value BLOB NOT NULL,
        written REAL NOT NULL,
        expires REAL
    )""",
    "CREATE INDEX runs_by_status ON runs (status, started)",
    "CREATE INDEX runs_by_agent ON runs (agent, status, started)",
    "CREATE INDEX runs_by_session ON runs (session, status, started) WHERE session > x''",
    "CREATE INDEX runs_by_claim ON runs (claim) WHERE claim IS NOT NULL",
    "CREATE INDEX runs_by_end ON runs (expires) WHERE expires IS NOT NULL",
    """CREATE TABLE run_labels (
        label BLOB NOT NULL, status BLOB NOT NULL, started INTEGER NOT NULL, id INTEGER NOT NULL, PRIMARY KEY (label, status, started, id)
    ) WITHOUT ROWID""",
    # For people: texts as texts, times as times. The library itself never reads it.
    """CREATE VIEW run_list AS SELECT
        CAST(runs.run AS TEXT) AS run,
        CAST(agent AS TEXT) AS agent,
        nullif(CAST(session AS TEXT), '') AS session,
        CAST(status AS TEXT) AS status,
        claim IS NOT NULL AS unfinished,
        CAST(owners.name AS TEXT) AS owner,
        CAST(checkpoint AS TEXT) AS checkpoint,
        datetime(started / 1e6, 'unixepoch') AS started,
        datetime(updated / 1e6, 'unixepoch') AS updated,
        CASE WHEN ended THEN datetime(ended / 1e6, 'unixepoch') END AS ended,
        runs.attempts AS attempts,
        steps,
        input_tokens,
        output_tokens,
        cached_tokens,
        requests,
        nullif(CAST(last_agent AS TEXT), '') AS last_agent,
        nullif(CAST(error AS TEXT), '') AS error
    FROM runs LEFT JOIN claims ON claims.key = runs.claim LEFT JOIN owners ON owners.name = claims.owner
    WHERE status <> x'74696d6572' AND (expires IS NULL OR expires > (julianday('now') - 2440587.5) * 86400.0)""",
    """CREATE VIEW label_list AS SELECT
        CAST(run AS TEXT) AS run,
        CAST(substr(label, 1, instr(label, x'00') - 1) AS TEXT) AS name,
        CAST(substr(label, instr(label, x'00') + 1) AS TEXT) AS value
    FROM run_labels JOIN runs ON runs.id = run_labels.id""",
)

_STARTED: Final = 1 + len(TEXTS)  # the place of that column
_LOOKED_AT: Final = 500  # runs per step of a prune
_LAST: Final = 2**62  # larger than every id
_COLUMNS: Final = ", ".join(
    f"runs.{name}" for name in ("run", *TEXTS, *NUMBERS, "labels", "value", "id")
)
_IN_TIME: Final = (
    "AND {0}.status = :status AND {0}.started >= :since AND {0}.started <= :top AND ({0}.started "
    "< :place OR {0}.id < :last)"
)
_LISTED: Final = (
    f"SELECT run, id, status, started, labels, expires, claim FROM runs WHERE run IN ({PLACES})"  # noqa: S608 -- a constant
)


class Entries:
    """The list of runs."""

    def __init__(self, state: State, ttl: float | None, known: Known, rows: Rows) -> None:
        self._state = state
        self._execute = state.connection.execute
        self._ttl = ttl
        self._known = known
        self._rows = rows

    def look_for(self, keys: Collection[bytes]) -> None:
        """Load the entries of many runs at once, before each of them is written."""
        runs = self._known.runs
        for chunk in chunks(keys, runs):
            runs.update(dict.fromkeys(chunk))
            for key, *held in self._execute(_LISTED, chunk):
                runs[key] = Listed(*held)

    def put(self, write: EncodedWrite) -> None:
        key, now = write.key, self._state.now
        lasts = self._ttl if write.seconds is None else write.seconds
        expires = None if lasts is None else now + lasts
        agent, session, status, claimed, *others = write.records[: len(TEXTS)]
        labels = write.records[len(TEXTS) :]
        started, *numbers = write.numbers
        claim = claimed or None
        held = self._find(key)
        if held is not None and held.expires is not None and held.expires <= now:
            self._remove(key, held)
            held = None
        if held is None:
            packed = msgpack.packb(labels) if labels else b""
            number = self._next_id()
            self._rows.runs.append(
                (
                    number,
                    key,
                    agent,
                    session,
                    status,
                    claim,
                    *others,
                    started,
                    *numbers,
                    packed,
                    write.value,
                    now,
                    expires,
                )
            )
            self._label(labels, status, started, number)
            self._known.runs[key] = Listed(number, status, started, packed, expires, claim)
        else:
            number = held.id
            self._rows.run_changes.append(
                (session, status, claim, *others, *numbers, write.value, now, expires, number)
            )
            if held.labels and held.status != status:
                kept = msgpack.unpackb(held.labels)
                self._unlabel(kept, held.status, held.started, number)
                self._label(kept, status, held.started, number)
            self._known.runs[key] = Listed(
                number, status, held.started, held.labels, expires, claim
            )
        self._rows.touch((number,))

    def drop(self, key: bytes) -> None:
        held = self._find(key)
        if held is not None:
            self._remove(key, held)

    def _find(self, key: bytes) -> Listed | None:
        """Return the entry of that run, expired or not."""
        runs = self._known.runs
        held = runs.get(key)
        if held is None and key not in runs:
            row = self._execute(
                "SELECT id, status, started, labels, expires, claim FROM runs WHERE run = ?",
                (key,),
            ).fetchone()
            held = runs[key] = None if row is None else Listed(*row)
        return held

    def is_expected(self, write: EncodedWrite) -> bool:
        """Return whether the run has that row or, without one, no process has to continue it."""
        held = self._find(write.key)
        if held is not None and held.expires is not None and held.expires <= self._state.now:
            held = None
        if write.value is None:
            return held is None or held.claim is None
        if held is None:
            return False
        self._rows.write()
        (value,) = self._execute("SELECT value FROM runs WHERE id = ?", (held.id,)).fetchone()
        return bool(value == write.value)

    def _next_id(self) -> int:
        known = self._known
        if known.last_run is None:
            self._rows.write()
            (known.last_run,) = self._execute("SELECT coalesce(max(id), 0) FROM runs").fetchone()
        assert known.last_run is not None
        known.last_run += 1
        return known.last_run

    def run_entry(self, key: bytes) -> EncodedEntry | None:
        self._rows.write()
        query = f"SELECT {_COLUMNS} FROM runs WHERE run = ? AND (expires IS NULL OR expires > ?)"  # noqa: S608 -- constants
        row = self._execute(query, (key, self._state.now)).fetchone()
        return None if row is None else _entry(row)

    def run_entries(self, _key: bytes, query: EncodedQuery) -> list[EncodedEntry]:
        self._rows.write()
        place, last = query.until, -1
        if query.after is not None:
            row = self._execute(
                "SELECT started, id FROM runs WHERE run = ?", (query.after,)
            ).fetchone()
            if row is None:
                return []
            place, last = row
        values: dict[str, Any] = {
            "since": query.since,
            "top": min(query.until - 1, place),
            "place": place,
            "last": last,
        }
        values |= {
            "agent": query.agent,
            "session": query.session,
            "limit": query.limit,
            "now": self._state.now,
        }
        values |= {f"label{number}": label for number, label in enumerate(query.labels)}
        statement = _statement(query)
        rows = [
            row
            for status in query.statuses
            for row in self._execute(statement, values | {"status": status})
        ]
        rows.sort(key=lambda row: (row[_STARTED], row[-1]), reverse=True)
        return [_entry(row) for row in rows[: query.limit]]

    def prune(self, last: float, behind: int) -> tuple[int, bool]:
        """Remove entries that have expired, or were not written since `last`, from the next few.

        Returns the last checked one, and whether it was the last of all.
        """
        found = self._execute(
            "SELECT id FROM runs WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?", (behind, _LOOKED_AT)
        ).fetchone()
        end = _LAST if found is None else found[0]
        self._remove_all(
            "id > ? AND id <= ? AND (coalesce(expires <= ?, 0) OR written <= ?)",
            (behind, end, self._state.now, last),
        )
        return end, found is None

    def sweep(self, most: int) -> None:
        """Remove some expired entries."""
        self._remove_all("expires <= ? ORDER BY expires LIMIT ?", (self._state.now, most))

    def _remove_all(self, which: str, values: tuple[float, ...]) -> None:
        self._rows.write()
        for key, *held in self._execute(
            f"SELECT run, id, status, started, labels, expires, claim FROM runs WHERE {which}",  # noqa: S608 -- constants
            values,
        ).fetchall():
            self._remove(key, Listed(*held))
        self._rows.write()

    def _remove(self, key: bytes, held: Listed) -> None:
        if held.labels:
            self._unlabel(msgpack.unpackb(held.labels), held.status, held.started, held.id)
        self._rows.before_removal((held.id,))
        self._rows.gone_runs.append((held.id,))
        self._known.runs[key] = None
        self._known.gone(key)

    def _label(self, labels: Sequence[bytes], status: bytes, started: int, number: int) -> None:
        for label in labels:
            self._execute(
                "INSERT OR IGNORE INTO run_labels VALUES (?, ?, ?, ?)",
                (label, status, started, number),
            )

    def _unlabel(self, labels: Sequence[bytes], status: bytes, started: int, number: int) -> None:
        for label in labels:
            self._execute(
                "DELETE FROM run_labels WHERE label = ? AND status = ? AND started = ? AND id = ?",
                (label, status, started, number),
            )


def _statement(query: EncodedQuery) -> str:
    """Return the statement for one status.

    It uses the narrowest index, and checks the other conditions in each row.
    """
    also = [
        f"AND EXISTS (SELECT 1 FROM run_labels AS l WHERE l.label = :label{number} AND "  # noqa: S608 -- constants
        "l.status = runs.status AND l.started = runs.started AND l.id = runs.id)"
        for number in range(1, len(query.labels))
    ]
    by_label, by_session = bool(query.labels), query.session is not None and not query.labels
    if query.session is not None:
        also.append("AND runs.session = :session")
    if query.agent is not None:
        also.append("AND runs.agent = :agent")
    if by_label:
        source, table = (
            "run_labels AS first CROSS JOIN runs ON runs.id = first.id WHERE first.label = :label0",
            "first",
        )
    else:
        index = (
            "runs_by_session"
            if by_session
            else "runs_by_agent"
            if query.agent is not None
            else "runs_by_status"
        )
        source, table = (
            f"runs INDEXED BY {index} WHERE {'runs.session > x' + repr('') if by_session else '1'}",
            "runs",
        )
    still = "AND (runs.expires IS NULL OR runs.expires > :now)"
    order = f"ORDER BY {table}.started DESC, {table}.id DESC LIMIT :limit"
    return (
        f"SELECT {_COLUMNS} FROM {source} {' '.join(also)} {_IN_TIME.format(table)} {still} "  # noqa: S608 -- constants
        f"{order}"
    )


def _entry(row: Sequence[Any]) -> EncodedEntry:
    run, *columns, labels, value, _ = row
    texts = [column or b"" for column in columns[: len(TEXTS)]]
    return run, texts, columns[len(TEXTS) :], msgpack.unpackb(labels) if labels else (), value
