"""The store in a file: for one machine, and for any number of processes on it.

Owns: the connection, its transactions, and what SQLite's errors mean. What is in the tables, and how it gets there, is in `sqlite_tables.py` and
`sqlite_owners.py`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...errors import StoreError, UsageError, WriteRefused
from ..arguments import span, time_to_live
from ..store_thread import WRITES, Operation, Trouble
from ..threaded_store import DrivenStore
from ..watching import Watch as KeyWatch
from ..watching import Watchers
from .files import Proofs, Replaced, Watch, make_file
from .listening import FileLooks
from .owners import NeedsToWrite, Owners
from .schema import Foreign, Newer, look, prepare
from .state import MachineTime, State
from .tables import Tables

if TYPE_CHECKING:
    import sqlite3

__all__ = ["SQLiteStore"]

_IN_MEMORY: Final = ":memory:"
_OWN: Final = 0o600  # what the user of this process has to be allowed
_PAUSE: Final = 0.01  # seconds between two attempts at what SQLite does not wait for by itself
_MANY: Final = 8  # operations of which it is worth while to find out at once what they will ask for

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
    writing. `mode`: the permissions of the files that it makes, those beside the database as well. What was answered survives the end of the process; of what
    was written right before the machine itself went down, the last may be missing, but never a part of an operation. `":memory:"` is a database of this process
    that is gone when the store is closed.

    Owners are timed by the clock of the machine's start, which counts the time that it was suspended (on Linux; elsewhere by the clock that never goes back,
    and where a start of the machine has no name, one of before may seem alive for as long as its owner had asked for). An owner whose process has ended is
    noticed at once, by the lock on a file beside the database; on Windows, and if a process that it has forked lives on, when its time is over. `ttl` goes by
    none of the steps of the clock on the wall.
    """

    _machine = MachineTime  # where the time comes from

    def __init__(
        self,
        path: str | os.PathLike[str] = "understudy.db",
        *,
        ttl: float | None = None,
        busy_timeout: float = 10.0,
        mode: int = 0o600,
    ) -> None:
        name = os.fspath(path) if isinstance(path, str | os.PathLike) else ""
        if not isinstance(name, str) or not name or "\0" in name:
            msg = f"SQLiteStore: path={path!r} is no path of a file; give a text or a Path."
            raise UsageError(msg)
        if not isinstance(mode, int) or isinstance(mode, bool) or mode & ~0o777 or ~mode & _OWN:
            msg = f"SQLiteStore: mode={mode!r} are no permissions with which it could read and write its files; give such as 0o600 or 0o660."
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
            msg = "SQLiteStore(':memory:') is in the memory of the process that this one was forked from. Give both the path of a file, or make one here."
            raise UsageError(msg)
        return _Backend(repr(self), self._path, self._ttl, self._busy_timeout, self._mode, self._machine())

    def watch(self, keys: Sequence[str], changed: Callable[[], None]) -> KeyWatch:
        if self._path == _IN_MEMORY:  # there is no file to look at
            return Watchers().add([key.encode("utf-8", "surrogatepass") for key in keys], changed)
        return super().watch(keys, changed)

    def _make_source(self, watchers: Watchers) -> FileLooks:
        return FileLooks(watchers, os.path.realpath(self._path), self._busy_timeout)


class _Backend:
    """The backend: one connection, opened when it is first needed."""

    patience = 0.0  # there is nothing to lose; SQLite itself waits for locks

    def __init__(self, name: str, path: str, ttl: float | None, busy_timeout: float, mode: int, machine: MachineTime) -> None:
        self._name = name
        self._path = path
        self._busy_timeout = busy_timeout
        self._ttl = ttl
        self._mode = mode
        self._machine = machine
        self._opened: _Opened | None = None

    def perform(self, batch: Sequence[Operation], number: int) -> None:  # noqa: ARG002 -- a transaction of a file is done or not, and is never in doubt
        opened = self._open()
        writing = any(operation.name in WRITES for operation in batch)
        try:
            opened.perform(batch, writing=writing)
        except NeedsToWrite:
            opened.perform(batch, writing=True)

    def judge(self, error: Exception) -> Trouble:
        concerns_all = isinstance(error, Newer | Foreign | Replaced | OSError) or _code(error) in _OF_ALL_OPERATIONS
        return Trouble.BATCH if concerns_all else Trouble.OPERATION

    def explain(self, error: Exception, operation: Operation) -> StoreError:
        return StoreError(f"{self._name}.{operation.name}{_of(operation)}: {self._why(error)}.")

    def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def _why(self, error: Exception) -> str:
        if isinstance(error, Newer):
            return f"it was made by a newer version of understudy: its tables are of version {error.found}, and this one knows up to {error.known}. Update it"
        if isinstance(error, Foreign):
            return "it is a database of some other program: give another path"
        if isinstance(error, Replaced):
            return f"{error} while it was in use: what is written here may be nowhere. Leave its files alone, and make another store to use what is there now"
        advice = _ADVICE.get("SQLITE_CANTOPEN" if isinstance(error, OSError) else _code(error))
        if not Path(self._path).parent.is_dir():
            advice = f"there is no folder {str(Path(self._path).parent)!r}: make it first"
        return f"{error} ({advice})" if advice else f"{type(error).__name__}: {error}"

    def _open(self) -> _Opened:
        if self._opened is not None:
            return self._opened
        import sqlite3  # noqa: PLC0415 -- only who uses it needs it

        # The name of the file itself, as SQLite finds it: what stands beside it is the same for all that come by a link.
        path = None if self._path == _IN_MEMORY else os.path.realpath(self._path)
        if path is not None:
            make_file(path, self._mode)
        # Used in one thread at a time, but not always in the same one: the worker's thread ends when there is nothing to do.
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
            state = State(connection, self._machine)
            prepare(connection, state)
            self._opened = _Opened(state, Tables(state, self._ttl), Proofs(path, self._mode), None if path is None else Watch(path))
        except BaseException:
            connection.close()
            raise
        return self._opened

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


class _Opened:
    """The connection, and what there is on it."""

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
                (owners, ("keep_alive", "revoke", "claim", "commit", "holder", "orphans", "prune")),
            )
            for name in names
        }

    def perform(self, batch: Sequence[Operation], *, writing: bool) -> None:
        """Do all of them in one transaction. What is refused has looked before it wrote anything: the others are done."""
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
                    operation.error, operation.result = None, self._methods[operation.name](operation.key, *operation.arguments)
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
        # Now, and not before: what is answered was in the file that has this name.
        if self._watch is not None:
            self._watch.look()

    def _look_for(self, batch: Sequence[Operation]) -> None:
        """Find out at once what all of them will ask for."""
        if len(batch) >= _MANY:
            taken = [operation for operation in batch if operation.name in ("claim", "commit")]
            self._owners.look_for([operation.key for operation in taken])
            writes = [write for operation in taken for write in operation.arguments[1]]
            self._tables.look_for([write.key for write in writes if write.kind not in ("entry", "drop")])
            self._tables.entries.look_for([write.key for write in writes if write.kind in ("entry", "drop")])

    def close(self) -> None:
        self._proofs.close()
        self.connection.close()


def _of(operation: Operation) -> str:
    return f" of {operation.key.decode('utf-8', 'surrogatepass')!r}" if operation.key else ""


def _code(error: BaseException) -> str:
    """The name of the primary code of an error of SQLite, or nothing."""
    name = getattr(error, "sqlite_errorname", None)
    return "_".join(name.split("_")[:2]) if isinstance(name, str) else ""
