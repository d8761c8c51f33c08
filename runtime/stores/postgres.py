"""The store in a PostgreSQL: for many machines, and as durable as that database.

Owns: the connection, its transactions, and what the errors of `psycopg` mean. What is in the tables, and how it gets there, is in `postgres_tables.py`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ..errors import StoreError, UsageError
from .arguments import time_to_live
from .postgres_tables import VERSION, Statements
from .store_thread import WRITES, Operation, Trouble
from .threaded_store import DrivenStore

if TYPE_CHECKING:
    from psycopg import Connection, Cursor
    from psycopg.rows import TupleRow

__all__ = ["PostgresStore"]

_PATIENCE: Final = 5.0
_TIMEOUT: Final = 5  # seconds to connect, and after which a server that says nothing is taken for gone
# A server that is gone without a word is noticed, though TCP alone would wait for minutes.
_SILENCE: Final = {
    "connect_timeout": _TIMEOUT,
    "tcp_user_timeout": _TIMEOUT * 1000,
    "keepalives_idle": _TIMEOUT,
    "keepalives_interval": 1,
    "keepalives_count": 3,
}
_LONGEST_NAME: Final = 48
_FIRST_USE: Final = 0x75647374  # the advisory lock under which tables are made: "udst"

# Codes of errors, the most specific first, each with whom it concerns and what to do.
_CODES: Final = (
    ("28", Trouble.BATCH, "it refuses the user or the password of the dsn: correct it"),
    ("3D000", Trouble.BATCH, "there is no such database: make it, or correct the dsn"),
    ("3F000", Trouble.BATCH, "there is no such schema: make it, or correct the argument schema"),
    ("42501", Trouble.BATCH, "the user of the dsn may not do that: grant it"),
    ("25006", Trouble.BATCH, "it is a standby, or set to read-only: give the dsn of the primary"),
    ("53100", Trouble.BATCH, "its disk is full: free some room; nothing of this operation was written"),
    ("53300", Trouble.LOST, "it has no connection left: raise max_connections, or close some"),
    ("53", Trouble.BATCH, "it has run out of something that it needs: see its log"),
    ("40", Trouble.LOST, "it was in the way of others again and again: try again"),
    ("57P", Trouble.LOST, "it is starting, stopping, or has ended the connection: try again when it runs"),
    ("08", Trouble.LOST, "it cannot be reached: see that it runs, and that the dsn names its host and port"),
    ("57014", Trouble.BATCH, "it took longer than statement_timeout: raise that"),
    ("55P03", Trouble.BATCH, "it waited longer than lock_timeout: raise that"),
)


class PostgresStore(DrivenStore):
    """A store in a PostgreSQL, version 12 or newer.

    `dsn`: as libpq takes it, `postgresql://user:password@host/database` or `host=… dbname=…`. Its tables, whose names begin with `prefix`, are made at first
    use, in `schema` if one is given, which has to be there, and else where the connection makes tables. `ttl`: the seconds for which a key is there after it
    was last written; None: for ever. Leases go by the server's clock. When the server is away, what is asked waits for it for some seconds.
    """

    def __init__(self, dsn: str, *, ttl: float | None = None, schema: str | None = None, prefix: str = "understudy_") -> None:
        for name, value in (("prefix", prefix), *([("schema", schema)] if schema is not None else [])):
            if not isinstance(value, str) or "\0" in value or not 0 < len(value.encode("utf-8", "replace")) <= _LONGEST_NAME:
                msg = f"PostgresStore: {name}={value!r:.80} is no name of at most {_LONGEST_NAME} bytes."
                raise UsageError(msg)
        self._dsn = dsn
        self._address = _without_secrets(dsn)
        self._schema = schema
        self._prefix = prefix
        self._ttl = time_to_live("PostgresStore", ttl)
        super().__init__("PostgresStore")

    def __repr__(self) -> str:
        schema = "" if self._schema is None else f", schema={self._schema!r}"
        return f"PostgresStore({self._address!r}{schema}, prefix={self._prefix!r})"

    def _make_backend(self) -> _Database:
        return _Database(repr(self), self._dsn, Statements(self._quoted, self._ttl))

    def _quoted(self, table: str) -> str:
        """The name of a table as it stands in a statement. A percent sign would be taken for a place where something goes in."""
        name = f"{self._prefix}{table}"
        return ".".join('"' + part.replace('"', '""').replace("%", "%%") + '"' for part in (self._schema, name) if part)


class _Database:
    """The backend: one connection, made when it is first needed, and again when it was lost."""

    patience = _PATIENCE

    def __init__(self, name: str, dsn: str, statements: Statements) -> None:
        self._name = name
        self._dsn = dsn
        self._statements = statements
        self._writer = os.urandom(16)
        self._connection: Connection[TupleRow] | None = None
        # The batch that was about to be committed when the connection was lost, with its results.
        self._in_doubt: tuple[int, list[object]] | None = None

    def perform(self, batch: Sequence[Operation], number: int) -> None:
        connection = self._open()
        writing = any(operation.name in WRITES for operation in batch)
        try:
            connection.autocommit = not writing
            if writing:
                self._write(connection, batch, number)
            else:
                for operation, rows in zip(batch, self._ask(connection, [self._statements.of(operation) for operation in batch]), strict=True):
                    operation.result = self._statements.result(operation, rows)
        except BaseException:
            self._back_out(connection)
            raise

    def judge(self, error: Exception) -> Trouble:
        known = _entry(error)
        if known is not None:
            return known[1]
        if isinstance(error, _Newer) or _is_refusal(error) or _is(error, "ProgrammingError"):
            return Trouble.BATCH
        return Trouble.LOST if _is(error, "OperationalError") and _state(error) is None else Trouble.OPERATION

    def explain(self, error: Exception, operation: Operation) -> StoreError:
        key = f" of {operation.key.decode('utf-8', 'surrogatepass')!r}" if operation.key else ""
        known = _entry(error)
        advice = known[2] if known is not None else None
        if isinstance(error, _Newer):
            advice = "they were made by a newer version of understudy: update this one, or give the store another prefix"
        elif advice is None and _is(error, "OperationalError"):
            advice = "see that it runs, and that the dsn names its host and port, a user and the password"
        said = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
        what = " ".join(said.split()).rstrip(".") or type(error).__name__
        return StoreError(f"{self._name}.{operation.name}{key}: {what}{f' ({advice})' if advice else ''}.")

    def close(self) -> None:
        connection = self._connection
        if connection is not None:
            with suppress(Exception):  # what it was is of no use to anybody any more, and is removed by prune() if it stays
                connection.autocommit = True
                connection.execute(self._statements.sql["end"], (self._writer,))
            self._drop()

    # ---- transactions

    def _write(self, connection: Connection[TupleRow], batch: Sequence[Operation], number: int) -> None:
        # In the order of their keys, because two that lock the same rows in different orders would wait for each other.
        ordered = sorted(batch, key=lambda operation: (operation.name in ("acquire", "renew", "release", "holder"), operation.key))
        written = [operation.key for operation in ordered if operation.name in ("set", "create", "append")]
        statements: list[tuple[bytes, tuple[object, ...]]] = [(self._statements.sql["begin"], (self._writer, number))]
        if written:
            statements.append((self._statements.sql["clear"], (written,)))
        first = len(statements)
        answers = self._ask(connection, [*statements, *map(self._statements.of, ordered)])
        if answers[0]:
            results = [self._statements.result(operation, rows) for operation, rows in zip(ordered, answers[first:], strict=True)]
            self._in_doubt = (number, results)
            connection.commit()
            self._in_doubt = None
        else:
            # It was committed, and only the answer was lost: what it has just done for the second time is taken back.
            connection.rollback()
            assert self._in_doubt is not None
            assert self._in_doubt[0] == number
            results, self._in_doubt = self._in_doubt[1], None
        for operation, result in zip(ordered, results, strict=True):
            operation.result = result

    def _ask(self, connection: Connection[TupleRow], statements: Sequence[tuple[bytes, tuple[object, ...]]]) -> list[list[TupleRow]]:
        """Send all without waiting for one after the other, and return the rows of each."""
        if len(statements) == 1:
            cursors = [self._execute(connection, statements[0])]
        else:
            with connection.pipeline():
                cursors = [self._execute(connection, statement) for statement in statements]
        return [cursor.fetchall() if cursor.description is not None else [] for cursor in cursors]

    def _execute(self, connection: Connection[TupleRow], statement: tuple[bytes, tuple[object, ...]]) -> Cursor[TupleRow]:
        return connection.cursor(binary=True).execute(statement[0], statement[1])

    def _back_out(self, connection: Connection[TupleRow]) -> None:
        """After an error: end the transaction, or the connection, if that is not to be had."""
        with suppress(Exception):  # what has led here is raised again
            if not connection.broken and not connection.closed:
                connection.rollback()
                return
        self._drop()

    # ---- the connection

    def _open(self) -> Connection[TupleRow]:
        if self._connection is None or self._connection.closed:
            self._drop()
            import psycopg  # noqa: PLC0415 -- an extra, which only who uses it needs

            given = psycopg.conninfo.conninfo_to_dict(self._dsn)
            connection = psycopg.connect(psycopg.conninfo.make_conninfo("", **(_SILENCE | given)))
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

    def _prepare(self, connection: Connection[TupleRow]) -> None:
        """See that the tables are there, and that they are those which this version knows. Of several processes one makes them."""
        from psycopg import IsolationLevel  # noqa: PLC0415 -- an extra, which only who uses it needs

        connection.isolation_level = IsolationLevel.READ_COMMITTED
        # A batch that comes again waits for the transaction of the first time, but not for ever.
        connection.execute("SET client_min_messages = warning")
        connection.execute(f"SET lock_timeout = '{_TIMEOUT * 2}s'")
        if not self._are_there(connection):
            connection.execute("SELECT pg_advisory_lock(%s)", (_FIRST_USE,))
            connection.commit()  # what another process has made meanwhile is seen for sure in the next transaction only
            if not self._are_there(connection):
                for statement in self._statements.schema:
                    connection.execute(statement, ())
            connection.commit()
            connection.execute("SELECT pg_advisory_unlock(%s)", (_FIRST_USE,))
        row = connection.execute(self._statements.sql["version"], ()).fetchone()
        connection.commit()
        if row is None or row[0] > VERSION:
            msg = f"the tables are of version {None if row is None else row[0]}, and this one knows up to {VERSION}"
            raise _Newer(msg)

    def _are_there(self, connection: Connection[TupleRow]) -> bool:
        row = connection.execute(self._statements.sql["find"], (self._statements.version_table,)).fetchone()
        return row is not None and bool(row[0])


class _Newer(Exception):
    """The tables were made by a newer version."""


def _without_secrets(dsn: object) -> str:
    """Where it is: host, port and database."""
    try:
        from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415 -- an extra, which only who uses it needs
    except ImportError as error:
        msg = "PostgresStore needs the package psycopg: pip install 'understudy[postgres]'."
        raise UsageError(msg) from error
    if not isinstance(dsn, str):
        msg = f"PostgresStore: dsn is a {type(dsn).__name__}; give a text as postgresql://user@host/database."
        raise UsageError(msg)
    try:
        parts = conninfo_to_dict(dsn)
    except Exception:  # noqa: BLE001 -- a text that is no dsn raises anything
        msg = "PostgresStore: the dsn cannot be read (it is not shown, because it may hold a password); give one as postgresql://user@host/database."
        raise UsageError(msg) from None
    return " ".join(f"{name}={parts[name]}" for name in ("host", "port", "dbname") if parts.get(name))


def _state(error: BaseException) -> str | None:
    """The code that the server has given an error, if it has."""
    state = getattr(error, "sqlstate", None)
    return state if isinstance(state, str) else None


def _entry(error: BaseException) -> tuple[str, Trouble, str] | None:
    state = _state(error)
    return None if state is None else next((entry for entry in _CODES if state.startswith(entry[0])), None)


def _is_refusal(error: BaseException) -> bool:
    """Whether the server has turned a connection away after it was told who wants it: that has no code, and is not different the next time."""
    connection = getattr(error, "pgconn", None)
    return _state(error) is None and connection is not None and bool(connection.used_password)


def _is(error: BaseException, name: str) -> bool:
    """Whether it is of the client's class of that name, which is not imported for that."""
    return any(cls.__name__ == name and cls.__module__.startswith("psycopg") for cls in type(error).__mro__)
