"""Detection of other processes' writes for a `SQLiteStore`: by polling the files' times, and the
watched keys when those have changed.

One check takes two system calls, for everything that a process watches. Two writes within one tick
of the file system's clock have the same time: so after a change, the next check reads the keys
again. The connection only reads. The files are not opened otherwise: closing a file releases the
locks that SQLite has on it.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..listening import wait_for_any
from ..watching import Watchers

if TYPE_CHECKING:
    import sqlite3

__all__ = ["FileLooks"]

_BETWEEN: Final = 0.02
"""Seconds between two checks. It must be longer than a tick of the file system's clock."""
_SHARE: Final = 5
"""Reading the keys takes at most this fraction of the time, as a divisor."""
_AT_ONCE: Final = 500


class FileLooks:
    """Polls one file, and its write-ahead log."""

    def __init__(self, watchers: Watchers, path: str, busy_timeout: float) -> None:
        self._watchers = watchers
        self._paths = (path, f"{path}-wal")
        self._busy_timeout = busy_timeout
        self._connection: sqlite3.Connection | None = None
        self._using = threading.Lock()  # held while the connection is used, and during a fork
        self._said: dict[bytes, tuple[Any, ...] | None] = {}  # the last seen state of each key
        self._times: tuple[tuple[int, ...] | None, ...] = ()
        self._is_fresh = False  # whether the last check has found a change
        self._next = 0.0

    def open(self) -> None:
        with self._using:
            self._connect()
        self._said.clear()
        self._times, self._is_fresh = _times_of(self._paths), True

    def follow(self, added: Collection[bytes], gone: Collection[bytes]) -> None:
        for key in gone:
            self._said.pop(key, None)
        if added:
            self._said.update(self._look(list(added)))
            self._watchers.arm(added)

    def wait(self, wake: socket.socket, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            if wait_for_any([wake], max(_BETWEEN, self._next - now) if self._said else seconds):
                return
            times = _times_of(self._paths)
            if times[0] is None or (
                self._times and self._times[0] is not None and times[0][:2] != self._times[0][:2]
            ):
                msg = "the file of the SQLite store was deleted or replaced"
                raise FileNotFoundError(msg)
            changed, self._times = times != self._times, times
            if changed or self._is_fresh:
                self._is_fresh = changed
                self._tell()

    def close(self) -> None:
        with self._using:
            self._disconnect()

    def before_fork(self) -> None:
        self._using.acquire()
        self._disconnect()

    def after_fork(self) -> None:
        self._using.release()

    def descriptors(self) -> list[int]:
        return []

    def _connect(self) -> sqlite3.Connection:
        import sqlite3  # noqa: PLC0415 -- only who uses it needs it

        uri = f"{Path(self._paths[0]).as_uri()}?mode=ro"
        self._connection = sqlite3.connect(
            uri, timeout=self._busy_timeout, isolation_level=None, check_same_thread=False, uri=True
        )
        return self._connection

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _tell(self) -> None:
        began = time.monotonic()
        found = self._look(list(self._said))
        told = [key for key, said in found.items() if said != self._said[key]]
        self._said.update(found)
        self._watchers.tell(told)
        now = time.monotonic()
        self._next = now + _SHARE * (now - began)

    def _look(self, keys: list[bytes]) -> dict[bytes, tuple[Any, ...] | None]:
        with self._using:  # a fork may have closed the connection
            return self._look_by(self._connection or self._connect(), keys)

    def _look_by(
        self, connection: sqlite3.Connection, keys: list[bytes]
    ) -> dict[bytes, tuple[Any, ...] | None]:
        found: dict[bytes, tuple[Any, ...] | None] = dict.fromkeys(keys)
        for start in range(0, len(keys), _AT_ONCE):
            part = keys[start : start + _AT_ONCE]
            places = ", ".join("?" * len(part))
            query = f"SELECT key, id, records, written FROM items WHERE key IN ({places})"  # noqa: S608 -- places alone
            for key, *said in connection.execute(query, part):
                found[key] = tuple(said)
            rows = f"SELECT run, id, status, written FROM runs WHERE run IN ({places})"  # noqa: S608 -- places alone
            for run, *said in connection.execute(rows, part):
                found[run] = (*(found[run] or ()), *said)
        return found


def _times_of(paths: Collection[str]) -> tuple[tuple[int, ...] | None, ...]:
    return tuple(_time_of(path) for path in paths)


def _time_of(path: str) -> tuple[int, ...] | None:
    """Return the file's identity, its last write, and its size."""
    try:
        stat = os.stat(path)  # noqa: PTH116 -- fifty times a second
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size
