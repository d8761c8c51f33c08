"""The store in a file: for one machine, and for any number of processes on it.

Owns: the connection, its transactions, and what SQLite's errors mean. What is in the tables, and how it gets there, is in `sqlite_tables.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..errors import StoreError, UsageError
from .arguments import span, time_to_live
from .sqlite_tables import Foreign, Newer, Tables
from .store_thread import WRITES, Operation, Trouble
from .threaded_store import DrivenStore

if TYPE_CHECKING:
    import sqlite3

__all__ = ["SQLiteStore"]

_IN_MEMORY: Final = ":memory:"
_PAUSE: Final = 0.01  # seconds between two attempts at what SQLite does not wait for by itself

_ADVICE: Final = {
    "SQLITE_BUSY": "another process holds its lock: let that one finish, or raise busy_timeout",
    "SQLITE_LOCKED": "another process holds its lock: let that one finish, or raise busy_timeout",
    "SQLITE_CANTOPEN": "the file cannot be opened: see that its folder exists, and that this user may write in it",
    "SQLITE_NOTADB": "the file is no SQLite database: give another path, or move it away",
    "SQLITE_READONLY": "it cannot be written: see that this user may write the file and in its folder, and that the file system is not read-only",
    "SQLITE_PERM": "it cannot be written: see that this user may write the file and in its folder",
    "SQLITE_FULL": "there is no room left: free some on the disk; nothing of this operation was written",
    "SQLITE_IOERR": "the disk has failed, or has no room left: see what the system says of it",
    "SQLITE_CORRUPT": "the file is damaged: restore it from a backup, or move it away",
    "SQLITE_TOOBIG": "it is too large for SQLite, which takes up to 1,000,000,000 bytes at once: keep it elsewhere, and its name here",
    "SQLITE_PROTOCOL": "too many processes have opened it at once: try again",
}
"""What to do about an error, by its primary code."""

_OF_ALL_OPERATIONS: Final = frozenset(_ADVICE) - {"SQLITE_FULL", "SQLITE_TOOBIG"}
"""Those which every operation would meet. What has no code is about the values of one."""


class SQLiteStore(DrivenStore):
    """A store in a file, which is made when it is first used; its folder has to be there.

    `ttl`: the seconds for which a key is there after it was last written; None: for ever. `busy_timeout`: the seconds to wait for another process that is
    writing. What was answered survives the end of the process; of what was written right before the machine itself went down, the last may be missing, but
    never a part of an operation. `":memory:"` is a database of this process that is gone when the store is closed.
    """

    def __init__(self, path: str | os.PathLike[str] = "understudy.db", *, ttl: float | None = None, busy_timeout: float = 10.0) -> None:
        name = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
        if not isinstance(name, str) or not name or "\0" in name:
            msg = f"SQLiteStore: path={path!r} is no path of a file; give a text or a Path."
            raise UsageError(msg)
        self._path = name if name == _IN_MEMORY else str(Path(name).absolute())
        self._made_in = os.getpid()
        self._ttl = time_to_live("SQLiteStore", ttl)
        self._busy_timeout = span("SQLiteStore", busy_timeout, name="busy_timeout", zero=True)
        super().__init__("SQLiteStore")

    def __repr__(self) -> str:
        return f"SQLiteStore({self._path!r})"

    def _make_backend(self) -> _Connection:
        if self._path == _IN_MEMORY and os.getpid() != self._made_in:
            msg = "SQLiteStore(':memory:') is in the memory of the process that this one was forked from. Give both the path of a file, or make one here."
            raise UsageError(msg)
        return _Connection(repr(self), self._path, self._ttl, self._busy_timeout)


class _Connection:
    """The backend: one connection, opened when it is first needed."""

    patience = 0.0  # there is nothing to lose; SQLite itself waits for locks

    def __init__(self, name: str, path: str, ttl: float | None, busy_timeout: float) -> None:
        self._name = name
        self._path = path
        self._busy_timeout = busy_timeout
        self._ttl = ttl
        self._connection: sqlite3.Connection | None = None
        self._tables: Tables | None = None

    def perform(self, batch: Sequence[Operation], number: int) -> None:  # noqa: ARG002 -- a transaction of a file is done or not, and is never in doubt
        tables = self._open()
        connection = tables.connection
        connection.execute("BEGIN IMMEDIATE" if any(operation.name in WRITES for operation in batch) else "BEGIN")
        try:
            tables.now = time.time()
            for operation in batch:
                operation.result = tables.do(operation)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def judge(self, error: Exception) -> Trouble:
        return Trouble.BATCH if isinstance(error, Newer | Foreign) or _code(error) in _OF_ALL_OPERATIONS else Trouble.OPERATION

    def explain(self, error: Exception, operation: Operation) -> StoreError:
        if isinstance(error, Newer):
            what = f"it was made by a newer version of understudy: its tables are of version {error.found}, and this one knows up to {error.known}. Update it"
        elif isinstance(error, Foreign):
            what = "it is a database of some other program: give another path"
        else:
            advice = _ADVICE.get(_code(error))
            if _code(error) == "SQLITE_CANTOPEN" and not Path(self._path).parent.is_dir():
                advice = f"there is no folder {str(Path(self._path).parent)!r}: make it first"
            what = f"{error} ({advice})" if advice else f"{type(error).__name__}: {error}"
        return StoreError(f"{self._name}.{operation.name}{_of(operation)}: {what}.")

    def close(self) -> None:
        connection, self._connection, self._tables = self._connection, None, None
        if connection is not None:
            connection.close()

    def _open(self) -> Tables:
        if self._tables is not None:
            return self._tables
        import sqlite3  # noqa: PLC0415 -- only who uses it needs it

        # Used in one thread at a time, but not always in the same one: the worker's thread ends when there is nothing to do.
        connection = sqlite3.connect(self._path, timeout=self._busy_timeout, isolation_level=None, check_same_thread=False, cached_statements=64)
        try:
            self._write_ahead(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            tables = Tables(connection, self._ttl)
            tables.prepare()
        except BaseException:
            connection.close()
            raise
        self._connection, self._tables = connection, tables
        return tables

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        """Let readers and a writer work at the same time. SQLite does not wait by itself when two processes ask for it at once."""
        deadline = time.monotonic() + self._busy_timeout
        while True:
            try:
                if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                    connection.execute("PRAGMA journal_mode = WAL").fetchone()
            except Exception as error:
                if _code(error) not in ("SQLITE_BUSY", "SQLITE_LOCKED") or time.monotonic() >= deadline:
                    raise
            else:
                return
            time.sleep(_PAUSE)


def _of(operation: Operation) -> str:
    return f" of {operation.key.decode('utf-8', 'surrogatepass')!r}" if operation.key else ""


def _code(error: BaseException) -> str:
    """The name of the primary code of an error of SQLite, or nothing."""
    name = getattr(error, "sqlite_errorname", None)
    return "_".join(name.split("_")[:2]) if isinstance(name, str) else ""
