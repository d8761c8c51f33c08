"""The PostgreSQL store: for many machines, and as durable as that database.

This module has the connection, and sends the operations. `tables.py` and `functions.py` have the
tables and the SQL.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from ...errors import StoreError, UsageError
from ..arguments import is_plain_function, time_to_live
from ..risks import Risks
from ..store_thread import STEP_SECONDS, Operation, SteppedOperation
from ..threaded_store import DrivenStore
from ..troubles import Newer, Trouble, Unusable
from ..watching import Watchers
from .batch import Batch
from .errors import concerns, is_lock_timeout, said_of
from .listening import Notifications, see_to_watched
from .risks import risks_of
from .tables import ANSWER_SECONDS, PATIENCE_SECONDS, VERSION, Statements

if TYPE_CHECKING:
    from psycopg import Connection, Cursor
    from psycopg.rows import TupleRow

    from .client import BoundedConnection

__all__ = ["PostgresStore"]

# Bytes that a server writes per second at least: with large values, it may be silent for longer.
_SLOWEST: Final = 10_000_000
# seconds for which the server may be silent while a connection is closed
_CLOSING_SECONDS: Final = 1.0
_OLDEST: Final = 120_000  # the oldest supported server version
_LONGEST_NAME: Final = 48
_FIRST_USE: Final = 0x6F666662  # the advisory lock for creating tables: "offb"
# Milliseconds. A session that is stuck in a transaction, for any reason, is ended before others
# have waited in vain for its locks.
_LIMITS: Final = {
    "lock_timeout": 3_000,
    "statement_timeout": 60_000,
    "idle_in_transaction_session_timeout": 1_000,
}
_HURRY: Final = 10.0  # seconds after a lock timeout
_HURRIED_WAIT: Final = 100  # milliseconds to wait for a lock in that time
_PRUNED_AT_FIRST: Final = 100  # rows in the first step of a prune
_PRUNED_AT_MOST: Final = 5_000
_PRUNED_WEIGHT: Final = 2_000  # the size limit of one step: records, and pages of values
_BEHIND_ALL: Final = 2**62
_READS: Final = frozenset(("get", "read", "keys", "holder", "orphans", "run_entry", "run_entries"))
_MAY_END: Final = frozenset(("holder", "orphans"))


class PostgresStore(DrivenStore):
    """A store in PostgreSQL, version 12 or newer.

    `dsn`: a libpq connection string, `postgresql://user:password@host/database` or `host=…
    dbname=…`; of several hosts, a writable one is used. A function that returns a dsn is called for
    each connection, for credentials that change. The tables, whose names start with `prefix`, are
    created on first use, in `schema` if set, which must exist, and otherwise in the connection's
    default schema. `ttl`: the lifetime of a key in seconds, since it was last written; None:
    forever. Owners are timed by the server's clock. When the server is unavailable, operations wait
    for it for some seconds.

    `death_proof`: an owner whose connection has ended is dead at once, instead of when it expires.
    A pooler that shares connections, such as pgbouncer in "transaction" mode, makes that
    meaningless: it is turned off if such a pooler is detected; if yours hides itself, pass False.
    """

    def __init__(
        self,
        dsn: str | Callable[[], str],
        *,
        ttl: float | None = None,
        schema: str | None = None,
        prefix: str = "offbook_",
        death_proof: bool = True,
    ) -> None:
        for name, value in (
            ("prefix", prefix),
            *([("schema", schema)] if schema is not None else []),
        ):
            if (
                not isinstance(value, str)
                or "\0" in value
                or not 0 < len(value.encode("utf-8", "replace")) <= _LONGEST_NAME
            ):
                msg = (
                    f"PostgresStore: {name} must be a name of at most {_LONGEST_NAME} "
                    f"bytes, got {value!r:.80}."
                )
                raise UsageError(msg)
        self._dsn = dsn
        self._address = _without_secrets(dsn)
        self._schema = schema
        self._prefix = prefix
        self._ttl = time_to_live("PostgresStore", ttl)
        self._death_proof = bool(death_proof)
        super().__init__("PostgresStore")

    def __repr__(self) -> str:
        schema = "" if self._schema is None else f", schema={self._schema!r}"
        return f"PostgresStore({self._address!r}{schema}, prefix={self._prefix!r})"

    def schema_sql(self, role: str | None = None) -> str:
        """Return the SQL that creates the tables, and grants their use to a role that cannot."""
        return Statements(self._schema, self._prefix, self._ttl).script(role)

    def _make_backend(self) -> _Database:
        return _Database(
            repr(self),
            self._dsn,
            Statements(self._schema, self._prefix, self._ttl),
            death_proof=self._death_proof,
        )

    def _make_source(self, watchers: Watchers) -> Notifications:
        dsn = self._dsn
        return Notifications(
            watchers, lambda: _connect(dsn), Statements(self._schema, self._prefix, self._ttl)
        )


class _Database:
    """The backend: one connection, made on first use, and again after a loss."""

    patience = PATIENCE_SECONDS
    answer_seconds = ANSWER_SECONDS
    closes_at_fork = False  # the end of the connection is the death of the owners

    def __init__(
        self, name: str, dsn: str | Callable[[], str], statements: Statements, *, death_proof: bool
    ) -> None:
        self._name = name
        self._dsn = dsn
        self._statements = statements
        self._writer = os.urandom(16)
        self._connection: BoundedConnection | None = None
        self._risks = Risks()
        self._death_proof = death_proof
        self._provable = death_proof  # the same for the current connection
        # Milliseconds; set if the lock timeout cannot be set for the session.
        self._lock_wait: int | None = None
        self._tells = False  # whether this connection can notify watchers
        # The owners of this process, each with a lock that the server releases with the connection.
        self._owners: set[bytes] = set()
        self._hurry_until = -math.inf

    def perform(self, batch: Sequence[Operation], number: int) -> None:
        connection = self._open()
        connection.patience = (
            self.answer_seconds + sum(operation.size for operation in batch) / _SLOWEST
        )
        try:
            # A read needs no transaction.
            reading = [
                operation
                for operation in batch
                if operation.name in _READS
                or (operation.name == "append" and not operation.arguments[0])
            ]
            for operation, rows in zip(reading, self._ask(connection, reading), strict=True):
                operation.result = self._statements.result(operation, rows)
            if len(reading) < len(batch):
                read = set(map(id, reading))
                self._write(
                    connection,
                    [
                        operation
                        for operation in batch
                        if operation.name != "prune" and id(operation) not in read
                    ],
                    number,
                )
            for operation in batch:
                if isinstance(operation, SteppedOperation):
                    self._prune(connection, operation)
        except BaseException as error:
            if isinstance(error, Exception) and is_lock_timeout(error):
                self._hurry_until = time.monotonic() + _HURRY
            waits = isinstance(error, Exception) and concerns(error) is Trouble.WAITED_FOR
            if waits or connection.broken or connection.closed or not _is_idle(connection):
                self._drop()
            raise

    def judge(self, error: Exception) -> Trouble:
        return concerns(error)

    def explain(self, error: Exception, operation: Operation) -> StoreError:
        key = f" of {operation.key.decode('utf-8', 'surrogatepass')!r}" if operation.key else ""
        return said_of(error, f"{self._name}.{operation.name}{key}")

    def close(self) -> None:
        connection = self._connection
        if connection is not None:
            connection.patience = _CLOSING_SECONDS
            # The row is useless from now on, and prune() removes it if it stays.
            with suppress(Exception):
                connection.execute(self._statements.sql["end"], (self._writer,))
            self._drop()

    def before_fork(self) -> None:
        """Do nothing: the connection stays as it is."""

    def descriptors(self) -> list[int]:
        return [] if self._connection is None else [self._connection.pgconn.socket]

    def _write(
        self, connection: Connection[TupleRow], batch: Sequence[Operation], number: int
    ) -> None:
        """Send all operations as one message, which is one transaction.

        A process that is stopped now holds no locks, and a repeated batch returns the same answers.
        """
        if not batch:
            return
        self._owners.update(operation.key for operation in batch if operation.name == "keep_alive")
        sent = Batch(batch)
        # While something is locked for long, nothing else waits for it.
        wait = _HURRIED_WAIT if time.monotonic() < self._hurry_until else self._lock_wait
        values: tuple[object, ...] = (
            self._writer,
            number,
            self._statements.ttl,
            self._provable,
            wait,
            *sent.arguments(),
        )
        statement = "perform"
        if self._tells:
            statement, values = "perform_and_tell", (sent.written(), *values)
        row = (
            connection.cursor(binary=True)
            .execute(self._statements.sql[statement], values)
            .fetchone()
        )
        assert row is not None
        sent.answer(row[:4])
        self._owners.difference_update(
            operation.key
            for operation in batch
            if operation.name == "revoke" or operation.result is False
        )

    def _ask(
        self, connection: Connection[TupleRow], reading: Sequence[Operation]
    ) -> list[list[TupleRow]]:
        """Send all reads without waiting for each answer, except those that may end an owner.

        A process that is stopped during such a read would leave its locks.
        """
        if len(reading) > 1 and not any(operation.name in _MAY_END for operation in reading):
            with connection.pipeline():
                cursors = [self._execute(connection, operation) for operation in reading]
            return [cursor.fetchall() for cursor in cursors]
        return [self._execute(connection, operation).fetchall() for operation in reading]

    def _execute(self, connection: Connection[TupleRow], operation: Operation) -> Cursor[TupleRow]:
        return connection.cursor(binary=True).execute(*self._statements.of(operation))

    def _prune(self, connection: Connection[TupleRow], operation: SteppedOperation) -> None:
        """Do one step, of about as many rows as can be removed in its time."""
        stage, behind, rows, count = operation.progress or ("small", 0, _PRUNED_AT_FIRST, 0)
        older = operation.arguments[0]
        started = time.monotonic()
        cursor = connection.cursor(binary=True)

        def ask(name: str, *values: object) -> tuple[Any, ...]:
            row = cursor.execute(self._statements.sql[name], values).fetchone()
            assert row is not None
            return row

        if stage == "small":
            ask("prune_small")
            stage = "runs"
        elif stage == "runs":
            (last,) = ask("prune_runs", behind, rows, older, older)
            stage, behind = ("entries", 0) if last is None else (stage, last)
        elif stage == "entries":
            last, gone = ask("prune_entries", behind, older, rows, _PRUNED_WEIGHT, _PRUNED_WEIGHT)
            if gone is None:  # the first of them is too large to remove at once
                first, gone = ask("prune_records", behind, _PRUNED_WEIGHT, _PRUNED_WEIGHT)
                behind = behind if gone else first
            else:
                count += gone
                stage, behind = ("claims", 0) if last is None else (stage, last)
        else:
            gone, more = ask("prune", _BEHIND_ALL, older, rows)
            stage, count = "" if more is None else stage, count + gone
        share = STEP_SECONDS / max(time.monotonic() - started, 1e-4)
        rows = max(1, min(_PRUNED_AT_MOST, int(rows * min(share / 2, 2.0))))
        operation.result = count
        operation.progress, operation.is_done = (stage, behind, rows, count), not stage

    # ---- the connection

    def _open(self) -> BoundedConnection:
        if self._connection is None or self._connection.closed:
            self._drop()
            connection = _connect(self._dsn)
            connection.patience = self.answer_seconds
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _prepare(self, connection: BoundedConnection) -> None:
        """Prepare the connection: check the tables, then lock the owners of this process.

        The locks come before anything is done for one of the owners.
        """
        from .arrays import register  # noqa: PLC0415 -- it imports the client

        register(connection)
        if connection.info.server_version < _OLDEST:
            msg = (
                f"the server must have version {_OLDEST // 10_000} or newer, got version "
                f"{connection.info.server_version / 10_000:.0f}. Update PostgreSQL"
            )
            raise Unusable(msg)
        # Quotes in the statements mean the same everywhere; poolers track this setting for each of
        # their clients.
        connection.execute("SET standard_conforming_strings = on")
        row = connection.execute("SELECT pg_backend_pid(), pg_is_in_recovery()").fetchone()
        if row is not None and row[1]:
            raise _standby()
        # A pooler reports another process id than the server: settings, prepared statements and
        # locks of the session may belong to another client the next moment.
        pooled = row is None or row[0] != connection.info.backend_pid
        self._provable = self._death_proof and not pooled
        self._lock_wait = None
        if pooled:
            connection.prepare_threshold = None
            limit = connection.execute(
                "SELECT setting FROM pg_settings WHERE name = 'lock_timeout'"
            ).fetchone()
            if limit is not None and limit[0] == "0":
                self._lock_wait = _LIMITS["lock_timeout"]
        else:
            connection.execute("SET client_min_messages = warning")
            # Functions in the server must see commits of others that happened while they waited for
            # a lock.
            connection.execute("SET default_transaction_isolation = 'read committed'")
            # Settings of the dsn, the user or the database take precedence.
            names, values = list(_LIMITS), [str(value) for value in _LIMITS.values()]
            connection.execute(
                "SELECT set_config(name, given.value, false) FROM pg_settings JOIN "
                "unnest(%s::text[], %s::text[]) AS given (name, value) USING (name)"
                " WHERE setting = '0'",
                (names, values),
            )
        self._see_to_tables(connection)
        self._risks.tell(self._name, risks_of(connection))
        self._tells = see_to_watched(connection, self._statements)
        if self._owners and self._provable:
            connection.execute(self._statements.sql["prove"], (list(self._owners),))

    def _see_to_tables(self, connection: Connection[TupleRow]) -> None:
        """Create the tables if needed. Only one of several processes does."""
        version = self._version(connection)
        if version is None:
            with connection.transaction():
                # To see the tables of the process that had the lock before.
                connection.execute("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
                connection.execute("SET LOCAL lock_timeout = 0")
                connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_FIRST_USE,))
                # no other process has created them in the meantime
                if self._version(connection) is None:
                    for statement in self._statements.schema:
                        connection.execute(statement, ())
            version = self._version(connection)
        if version != VERSION:
            msg = (
                f"the tables have version {version}, and this version of offbook supports up to "
                f"{VERSION}"
            )
            raise Newer(msg)

    def _version(self, connection: Connection[TupleRow]) -> int | None:
        found = connection.execute(
            self._statements.sql["find"], (self._statements.version_table,)
        ).fetchone()
        if found is None or not found[0]:
            return None
        row = connection.execute(self._statements.sql["version"], ()).fetchone()
        return 0 if row is None else row[0]


def _connect(dsn: str | Callable[[], str]) -> BoundedConnection:
    from .client import connect  # noqa: PLC0415 -- it imports the client

    return connect(dsn)


def _standby() -> Exception:
    from psycopg.errors import ReadOnlySqlTransaction  # noqa: PLC0415 -- an extra, which only who uses it needs

    return ReadOnlySqlTransaction("the server is a hot standby, which cannot be written")


def _is_idle(connection: Connection[TupleRow]) -> bool:
    from psycopg.pq import TransactionStatus  # noqa: PLC0415 -- an extra, which only who uses it needs

    return connection.info.transaction_status == TransactionStatus.IDLE


def _without_secrets(dsn: object) -> str:
    """Return the address without credentials: host, port and database."""
    try:
        from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 -- an extra, which only who uses it needs
    except ImportError as error:
        msg = "PostgresStore needs the package psycopg: pip install 'offbook[postgres]'."
        raise UsageError(msg) from error
    if is_plain_function(dsn):
        return f"dsn by {getattr(dsn, '__qualname__', type(dsn).__name__)}"
    if not isinstance(dsn, str):
        msg = (
            "PostgresStore: dsn must be a string such as postgresql://user@host/database, "
            f"or a function (`def`) that returns one, got a {type(dsn).__name__}."
        )
        raise UsageError(msg)
    try:
        parts = conninfo_to_dict(dsn)
    except Exception:  # noqa: BLE001 -- an invalid dsn raises anything
        msg = (
            "PostgresStore: dsn must have the form postgresql://user@host/database. The "
            "one passed is not shown, because it may contain a password."
        )
        raise UsageError(msg) from None
    return " ".join(
        f"{name}={parts[name]}" for name in ("host", "port", "dbname") if parts.get(name)
    )
