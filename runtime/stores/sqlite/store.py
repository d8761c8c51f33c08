"""The SQLite store: for one machine, and for any number of processes on it.

This module has the connection, its transactions, and the handling of SQLite's errors. `tables.py`
and `owners.py` read and write the tables.
"""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...errors import StoreError, UsageError, ValueRefused, WriteRefused
from ..arguments import span, time_to_live
from ..risks import Risks
from ..store_thread import WRITES, Operation, SteppedOperation
from ..threaded_store import DrivenStore
from ..troubles import SQLITE, Trouble, named
from ..watching import Watch as KeyWatch
from ..watching import Watchers
from .copying import Mixed, check_left_wal, copy_database
from .files import Proofs, Replaced, Watch, make_file
from .listening import FileLooks
from .owners import NeedsToWrite, Owners
from .risks import risks_of
from .schema import Foreign, Newer, look, prepare
from .state import MachineTime, State
from .tables import Tables

if TYPE_CHECKING:
    import sqlite3

__all__ = ["SQLiteStore"]

_IN_MEMORY: Final = ":memory:"
_ANY_KEY: Final = "offbook:"
_OWN: Final = 0o600  # permissions that the user of this process needs
_PAUSE: Final = 0.01  # seconds between two attempts, where SQLite does not wait by itself
_LARGEST_LOG: Final = 16 << 20  # bytes of the write-ahead log after it was larger
_OF_RUNS: Final = ("entry", "drop", "expect_entry")
_MANY: Final = 8  # batch size from which loading all rows in advance pays off


class SQLiteStore(DrivenStore):
    """A store in a file, which is created on first use; its folder must exist.

    `ttl`: the lifetime of a key in seconds, since it was last written; None: forever.
    `busy_timeout`: the seconds to wait for another process that is writing. `mode`: the permissions
    of the files that it creates, including those next to the database. Completed operations survive
    the end of the process; if the machine itself crashes, the last ones may be missing, but never a
    part of an operation. `":memory:"` is a database of this process that is discarded when the
    store is closed.

    Owners are timed by the machine's clock since boot, which includes suspended time (on Linux;
    elsewhere by a monotonic clock, and where boots cannot be identified, an owner of an earlier
    boot may seem alive for as long as it had asked for). An owner whose process has ended is
    detected at once, by the lock on a file next to the database; on Windows, and if a forked child
    of that process survives, when it expires. Steps of the wall clock do not affect `ttl`.
    """

    _machine = MachineTime  # the source of times

    def __init__(
        self,
        path: str | os.PathLike[str] = "offbook.db",
        *,
        ttl: float | None = None,
        busy_timeout: float = 10.0,
        mode: int = 0o600,
    ) -> None:
        name = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
        if not isinstance(name, str) or not name or "\0" in name:
            msg = f"SQLiteStore: path must be a string or a Path of a file, got {path!r}."
            raise UsageError(msg)
        if not isinstance(mode, int) or isinstance(mode, bool) or mode & ~0o777 or ~mode & _OWN:
            msg = (
                "SQLiteStore: mode must let the owner read and write the file, such as "
                f"0o600 or 0o660, got {mode!r}."
            )
            raise UsageError(msg)
        self._path = name if name == _IN_MEMORY else str(Path(name).absolute())
        self._made_in = os.getpid()
        self._ttl = time_to_live("SQLiteStore", ttl)
        self._busy_timeout = span("SQLiteStore", busy_timeout, name="busy_timeout", zero=True)
        self._mode = mode
        super().__init__("SQLiteStore")

    def __repr__(self) -> str:
        return f"SQLiteStore({self._path!r})"

    def _make_backend(self) -> _Backend:
        if self._path == _IN_MEMORY and os.getpid() != self._made_in:
            msg = (
                "SQLiteStore(':memory:') belongs to the parent process, which forked this "
                "one. Pass the path of a file to both, or make a store after the fork."
            )
            raise UsageError(msg)
        return _Backend(
            repr(self), self._path, self._ttl, self._busy_timeout, self._mode, self._machine()
        )

    async def backup(self, path: str | os.PathLike[str]) -> None:
        """Copy the whole store into a file, as it is at this moment.

        Others may use the store in the meantime.

        The copy is itself a store. It appears only when it is complete. The file must not exist
        yet.
        """
        if self._path == _IN_MEMORY:
            msg = (
                "SQLiteStore(':memory:').backup: a store in memory has no file to copy. "
                "Use a store with the path of a file."
            )
            raise UsageError(msg)
        await self.get(_ANY_KEY)  # the file and its tables exist
        call = f"{self!r}.backup({os.fspath(path)!r})"
        try:
            await asyncio.to_thread(
                copy_database, self._path, Path(path), self._mode, self._busy_timeout
            )
        except FileExistsError as error:
            msg = (
                f"{call}: this file already exists and is not overwritten. Pass another name, "
                "such as one with the date."
            )
            raise UsageError(msg) from error
        except Exception as error:
            msg = (
                f"{call}: {type(error).__name__}: {error}. Check that the folder exists, is "
                "writable and has free space."
            )
            raise StoreError(msg) from error

    def watch(self, keys: Sequence[str], changed: Callable[[], None]) -> KeyWatch:
        if self._path == _IN_MEMORY:  # there is no file to poll
            return Watchers().add([key.encode("utf-8", "surrogatepass") for key in keys], changed)
        return super().watch(keys, changed)

    def _make_source(self, watchers: Watchers) -> FileLooks:
        return FileLooks(watchers, os.path.realpath(self._path), self._busy_timeout)


class _Backend:
    """The backend: one connection, opened on first use."""

    patience = 0.0  # there is no connection to lose; SQLite itself waits for locks
    closes_at_fork = True

    def __init__(
        self,
        name: str,
        path: str,
        ttl: float | None,
        busy_timeout: float,
        mode: int,
        machine: MachineTime,
    ) -> None:
        self._name = name
        self._path = path
        self._busy_timeout = busy_timeout
        self._ttl = ttl
        self._mode = mode
        self._machine = machine
        self._opened: _Opened | None = None
        # Set when the file is first opened, and retained while the connection is closed for a fork.
        self._proofs: Proofs | None = None
        self._watch: Watch | None = None
        self._risks = Risks()

    def perform(self, batch: Sequence[Operation], number: int) -> None:  # noqa: ARG002 -- a transaction of a file is never in doubt
        opened = self._open()
        writing = any(operation.name in WRITES for operation in batch)
        try:
            opened.perform(batch, writing=writing)
        except NeedsToWrite:
            opened.perform(batch, writing=True)

    def judge(self, error: Exception) -> Trouble:
        if isinstance(error, Newer | Foreign | Mixed | Replaced | OSError):
            return Trouble.REFUSED
        known = named(SQLITE, _code(error))
        return Trouble.OPERATION if known is None else known.trouble

    def explain(self, error: Exception, operation: Operation) -> StoreError:
        known = named(SQLITE, _code(error))
        kind = ValueRefused if known is not None and known.is_content else StoreError
        return kind(f"{self._name}.{operation.name}{_of(operation)}: {self._why(error)}.")

    def close(self) -> None:
        opened, self._opened = self._opened, None
        proofs, self._proofs = self._proofs, None
        if proofs is not None:
            proofs.close()
        if opened is not None:
            opened.connection.close()

    def before_fork(self) -> None:
        if self._opened is not None and self._path != _IN_MEMORY:
            opened, self._opened = self._opened, None
            opened.connection.close()

    def descriptors(self) -> list[int]:
        return [] if self._proofs is None else self._proofs.descriptors()

    def _why(self, error: Exception) -> str:
        if isinstance(error, Newer):
            return (
                f"a newer version of offbook created it: its tables have version {error.found}, "
                f"and this version supports up to {error.known}. Update offbook"
            )
        if isinstance(error, Mixed):
            return (
                f"a copy replaced it, but the {self._path}-wal of the former file, which does "
                f"not belong to the copy, was left ({error}). The copy itself is intact: stop "
                "every process that uses it, remove the files that end in -wal and -shm, and "
                "start again"
            )
        if isinstance(error, Foreign):
            return "it is a database of another program: pass another path"
        if isinstance(error, Replaced):
            return (
                f"{error} while it was in use: writes of this store may be lost. Do not change "
                "its files, and create another store to use the current file"
            )
        known = named(SQLITE, "SQLITE_CANTOPEN" if isinstance(error, OSError) else _code(error))
        advice = None if known is None else known.advice
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            return f"{error} (raise the limit of open files, or close some)"
        if not Path(self._path).parent.is_dir():
            advice = f"the folder {str(Path(self._path).parent)!r} does not exist: create it first"
        return f"{error} ({advice})" if advice else f"{type(error).__name__}: {error}"

    def _open(self) -> _Opened:
        if self._opened is not None:
            return self._opened
        import sqlite3  # noqa: PLC0415 -- only who uses it needs it

        # The name of the file itself, as SQLite finds it: the files next to it are the same for all
        # that open it by a link.
        path = None if self._path == _IN_MEMORY else os.path.realpath(self._path)
        if path is not None:
            if self._watch is not None:
                self._watch.look_at_database()
            make_file(path, self._mode)
            check_left_wal(path, self._busy_timeout, in_use=Proofs(path, self._mode).any_alive())
        # Used in one thread at a time, but not always in the same one: the worker's thread ends
        # when it is idle.
        connection = sqlite3.connect(
            _IN_MEMORY if path is None else f"{Path(path).as_uri()}?mode=rw",
            timeout=self._busy_timeout,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=64,
            uri=path is not None,
        )
        try:
            self._write_ahead(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA journal_size_limit = {_LARGEST_LOG}")
            # Overwrites deleted data in free parts of pages.
            connection.execute("PRAGMA secure_delete = ON")
            state = State(connection, self._machine)
            prepare(connection, state)
            self._proofs = self._proofs or Proofs(path, self._mode)
            self._watch = None if path is None else Watch(path)
            self._opened = _Opened(state, Tables(state, self._ttl), self._proofs, self._watch)
            if path is not None:
                self._risks.tell(self._name, risks_of(path))
        except BaseException:
            connection.close()
            raise
        return self._opened

    def _write_ahead(self, connection: sqlite3.Connection) -> None:
        """Enable the write-ahead log, so that readers and a writer can work at the same time.

        SQLite does not wait by itself when two processes do so at once.
        """
        deadline = time.monotonic() + self._busy_timeout
        while True:
            try:
                if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
                    # A new file can shrink again; an existing one stays as it is.
                    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
                    connection.execute("PRAGMA journal_mode = WAL").fetchone()
            except Exception as error:
                if (
                    _code(error) not in ("SQLITE_BUSY", "SQLITE_LOCKED")
                    or time.monotonic() >= deadline
                ):
                    raise
            else:
                return
            time.sleep(_PAUSE)


class _Opened:
    """The connection, and the objects that use it."""

    def __init__(self, state: State, tables: Tables, proofs: Proofs, watch: Watch | None) -> None:
        self.connection = state.connection
        self._state = state
        self._tables = tables
        self._proofs = proofs
        self._watch = watch
        self._owners = owners = Owners(state, tables, proofs)
        self._methods: dict[str, Callable[..., object]] = {
            name: getattr(of, name)
            for of, names in (
                (tables, ("get", "set", "delete", "append", "read", "keys", "create")),
                (tables.entries, ("run_entry", "run_entries")),
                (owners, ("keep_alive", "revoke", "claim", "commit", "holder", "orphans")),
            )
            for name in names
        }

    def perform(self, batch: Sequence[Operation], *, writing: bool) -> None:
        """Do all operations in one transaction.

        A refused operation has checked before it wrote anything: the others are done.
        """
        connection = self.connection
        connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
        try:
            holds = self._tables.known.holds(connection)
            if not holds:
                look(connection)
            self._state.begin(writing=writing, holds=holds)
            self._tables.begin()
            self._look_for(batch)
            for operation in batch:
                try:
                    operation.error, operation.result = None, self._do(operation)
                except WriteRefused as error:
                    operation.error = error.with_traceback(None)
            if writing:
                self._tables.end()
                self._state.end()
            connection.execute("COMMIT")
            self._tables.known.end()
        except BaseException:
            self._tables.rows.drop()
            self._tables.known.forget()
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._proofs.settle(done=False)
            raise
        self._proofs.settle(done=True)
        # Checked after the commit: the answered data is in the file that has this name.
        if self._watch is not None:
            self._watch.look()

    def _do(self, operation: Operation) -> object:
        if isinstance(operation, SteppedOperation):
            return self._owners.prune(operation)
        return self._methods[operation.name](operation.key, *operation.arguments)

    def _look_for(self, batch: Sequence[Operation]) -> None:
        """Load all rows that the batch needs at once."""
        if len(batch) >= _MANY:
            taken = [operation for operation in batch if operation.name in ("claim", "commit")]
            self._owners.look_for([operation.key for operation in taken])
            writes = [write for operation in taken for write in operation.arguments[1]]
            self._tables.look_for([write.key for write in writes if write.kind not in _OF_RUNS])
            self._tables.entries.look_for([write.key for write in writes if write.kind in _OF_RUNS])


def _of(operation: Operation) -> str:
    return f" of {operation.key.decode('utf-8', 'surrogatepass')!r}" if operation.key else ""


def _code(error: BaseException) -> str:
    """Return the name of the primary code of an error of SQLite, or an empty string."""
    name = getattr(error, "sqlite_errorname", None)
    return "_".join(name.split("_")[:2]) if isinstance(name, str) else ""
