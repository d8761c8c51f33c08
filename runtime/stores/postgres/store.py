"""The store in a PostgreSQL: for many machines, and as durable as that database.

Owns: the connection, and what is sent over it. What is in the tables, and how it gets there, is in `postgres_tables.py` and `postgres_functions.py`.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ...errors import StoreError, UsageError
from ..arguments import time_to_live
from ..store_thread import Operation, Trouble
from ..threaded_store import DrivenStore
from ..watching import Watchers
from .batch import Batch
from .errors import Newer, concerns, is_lock_timeout, said_of
from .listening import Notifications, see_to_watched
from .tables import VERSION, Statements

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
# Milliseconds. A session that is stopped in a transaction, whatever has brought it there, is ended before others have waited in vain for what it has locked.
_LIMITS: Final = {"lock_timeout": 3_000, "statement_timeout": 60_000, "idle_in_transaction_session_timeout": 1_000}
_HURRY: Final = 10.0  # seconds after a lock that could not be had
_HURRIED_WAIT: Final = 100  # milliseconds for which a lock is waited for in that time
_PRUNED_AT_ONCE: Final = 5_000
_READS: Final = frozenset(("get", "read", "keys", "holder", "orphans", "run_entry", "run_entries"))
_MAY_END: Final = frozenset(("holder", "orphans"))


class PostgresStore(DrivenStore):
    """A store in a PostgreSQL, version 12 or newer.

    `dsn`: as libpq takes it, `postgresql://user:password@host/database` or `host=… dbname=…`. Its tables, whose names begin with `prefix`, are made at first
    use, in `schema` if one is given, which has to be there, and else where the connection makes tables. `ttl`: the seconds for which a key is there after it
    was last written; None: for ever. Owners' times go by the server's clock. When the server is away, what is asked waits for it for some seconds.

    `death_proof`: an owner whose connection has ended is dead at once, and not only when its time is over. A pooler that shares connections, as pgbouncer
    does in its mode "transaction", makes that meaningless: where one is noticed it is not done; where one hides that it is there, give False.
    """

    def __init__(self, dsn: str, *, ttl: float | None = None, schema: str | None = None, prefix: str = "understudy_", death_proof: bool = True) -> None:
        for name, value in (("prefix", prefix), *([("schema", schema)] if schema is not None else [])):
            if not isinstance(value, str) or "\0" in value or not 0 < len(value.encode("utf-8", "replace")) <= _LONGEST_NAME:
                msg = f"PostgresStore: {name}={value!r:.80} is no name of at most {_LONGEST_NAME} bytes."
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

    def _make_backend(self) -> _Database:
        return _Database(repr(self), self._dsn, Statements(self._schema, self._prefix, self._ttl), death_proof=self._death_proof)

    def _make_source(self, watchers: Watchers) -> Notifications:
        dsn = self._dsn
        return Notifications(watchers, lambda: _connect(dsn), Statements(self._schema, self._prefix, self._ttl))


class _Database:
    """The backend: one connection, made when it is first needed, and again when it was lost."""

    patience = _PATIENCE

    def __init__(self, name: str, dsn: str, statements: Statements, *, death_proof: bool) -> None:
        self._name = name
        self._dsn = dsn
        self._statements = statements
        self._writer = os.urandom(16)
        self._connection: Connection[TupleRow] | None = None
        self._death_proof = death_proof
        self._provable = death_proof  # on this connection
        self._tells = False  # whether this connection can tell those who watch
        # The owners of this process, each with a lock that the server lets go with the connection.
        self._owners: set[bytes] = set()
        self._hurry_until = -math.inf

    def perform(self, batch: Sequence[Operation], number: int) -> None:
        connection = self._open()
        try:
            # A read is not a step of its own: it takes part in no transaction.
            reading = [operation for operation in batch if operation.name in _READS or (operation.name == "append" and not operation.arguments[0])]
            for operation, rows in zip(reading, self._ask(connection, reading), strict=True):
                operation.result = self._statements.result(operation, rows)
            if len(reading) < len(batch):
                read = set(map(id, reading))
                self._write(connection, [operation for operation in batch if operation.name != "prune" and id(operation) not in read], number)
            for operation in batch:
                if operation.name == "prune":
                    operation.result = self._prune(connection, operation)
        except BaseException as error:
            if isinstance(error, Exception) and is_lock_timeout(error):
                self._hurry_until = time.monotonic() + _HURRY
            if connection.broken or connection.closed or not _is_idle(connection):
                self._drop()
            raise

    def judge(self, error: Exception) -> Trouble:
        return concerns(error)

    def explain(self, error: Exception, operation: Operation) -> StoreError:
        key = f" of {operation.key.decode('utf-8', 'surrogatepass')!r}" if operation.key else ""
        return StoreError(f"{self._name}.{operation.name}{key}: {said_of(error)}")

    def close(self) -> None:
        connection = self._connection
        if connection is not None:
            with suppress(Exception):  # what it was is of no use any more, and is removed by prune() if it stays
                connection.execute(self._statements.sql["end"], (self._writer,))
            self._drop()

    def _write(self, connection: Connection[TupleRow], batch: Sequence[Operation], number: int) -> None:
        """Send all as one message, which is one transaction: a process that is stopped now holds nothing, and one that asks again has the same answers."""
        if not batch:
            return
        self._owners.update(operation.key for operation in batch if operation.name == "keep_alive")
        sent = Batch(batch)
        # While something is locked for long, nothing else waits for it.
        wait = _HURRIED_WAIT if time.monotonic() < self._hurry_until else None
        values: tuple[object, ...] = (self._writer, number, self._statements.ttl, self._provable, wait, *sent.arguments())
        statement = "perform"
        if self._tells:
            statement, values = "perform_and_tell", (sent.written(), *values)
        row = connection.cursor(binary=True).execute(self._statements.sql[statement], values).fetchone()
        assert row is not None
        sent.answer(row[:4])
        self._owners.difference_update(operation.key for operation in batch if operation.name == "revoke" or operation.result is False)

    def _ask(self, connection: Connection[TupleRow], reading: Sequence[Operation]) -> list[list[TupleRow]]:
        """Send all without waiting for one after the other, but for those that may end an owner: what a stopped process has begun would stay locked."""
        if len(reading) > 1 and not any(operation.name in _MAY_END for operation in reading):
            with connection.pipeline():
                cursors = [self._execute(connection, operation) for operation in reading]
            return [cursor.fetchall() for cursor in cursors]
        return [self._execute(connection, operation).fetchall() for operation in reading]

    def _execute(self, connection: Connection[TupleRow], operation: Operation) -> Cursor[TupleRow]:
        return connection.cursor(binary=True).execute(*self._statements.of(operation))

    def _prune(self, connection: Connection[TupleRow], operation: Operation) -> int:
        """A part at a time."""
        count, behind = 0, 0
        while behind is not None:
            row = connection.execute(self._statements.sql["prune"], (behind, operation.arguments[0], _PRUNED_AT_ONCE)).fetchone()
            assert row is not None
            count, behind = count + row[0], row[1]
        return count

    # ---- the connection

    def _open(self) -> Connection[TupleRow]:
        if self._connection is None or self._connection.closed:
            self._drop()
            connection = _connect(self._dsn)
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
        """Make it ready, with the tables that this version knows; then hold the owners of this process, before anything is done for one of them."""
        from .arrays import register  # noqa: PLC0415 -- it imports the client

        register(connection)
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        # A pooler says another number than the server: what is set, prepared or locked in a session may be another client's the next moment.
        pooled = row is None or row[0] != connection.info.backend_pid
        self._provable = self._death_proof and not pooled
        if pooled:
            connection.prepare_threshold = None
        else:
            connection.execute("SET client_min_messages = warning")
            # What is set by the dsn, the user or the database stays.
            names, values = list(_LIMITS), [str(value) for value in _LIMITS.values()]
            connection.execute(
                "SELECT set_config(name, given.value, false) FROM pg_settings JOIN unnest(%s::text[], %s::text[]) AS given (name, value) USING (name)"
                " WHERE setting = '0'",
                (names, values),
            )
        self._see_to_tables(connection)
        self._tells = see_to_watched(connection, self._statements)
        if self._owners and self._provable:
            connection.execute(self._statements.sql["prove"], (list(self._owners),))

    def _see_to_tables(self, connection: Connection[TupleRow]) -> None:
        """Of several processes one makes them, or makes those of an earlier version into what they are now."""
        version = self._version(connection)
        if version is None or version < VERSION:
            with connection.transaction():
                connection.execute("SET LOCAL lock_timeout = 0")
                connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_FIRST_USE,))
                version = self._version(connection)
                made = self._statements.schema if version is None else []
                upgrades = self._statements.upgrades[(version or 1) - 1 :]  # those that another process has not made meanwhile
                for statement in [*made, *(statement for upgrade in upgrades for statement in upgrade)]:
                    connection.execute(statement, ())
            version = self._version(connection)
        if version is None or version > VERSION:
            msg = f"the tables are of version {version}, and this one knows up to {VERSION}"
            raise Newer(msg)

    def _version(self, connection: Connection[TupleRow]) -> int | None:
        found = connection.execute(self._statements.sql["find"], (self._statements.version_table,)).fetchone()
        if found is None or not found[0]:
            return None
        row = connection.execute(self._statements.sql["version"], ()).fetchone()
        return 0 if row is None else row[0]


def _connect(dsn: str) -> Connection[TupleRow]:
    import psycopg  # noqa: PLC0415 -- an extra, which only who uses it needs

    given = psycopg.conninfo.conninfo_to_dict(dsn)
    return psycopg.connect(psycopg.conninfo.make_conninfo("", **(_SILENCE | given)), autocommit=True)


def _is_idle(connection: Connection[TupleRow]) -> bool:
    from psycopg.pq import TransactionStatus  # noqa: PLC0415 -- an extra, which only who uses it needs

    return connection.info.transaction_status == TransactionStatus.IDLE


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
