"""How a `SQLiteStore` notices what other processes write: by a look at the files' own times, and at the watched keys when those have changed.

One look is two calls of the system, for all that is watched in a process. Two writes within one tick of the file system's clock bear the same time: so what has
changed is looked at once more with the next look.

Owns: these looks, and a connection that only reads. It must never open the files otherwise: closing a file lets go of the locks that SQLite has on it.
"""

from __future__ import annotations

import os
import socket
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
"""Seconds between two looks. It has to be longer than a tick of the file system's clock."""
_SHARE: Final = 5
"""Looking at the keys takes at most one part of so many of the time."""
_AT_ONCE: Final = 500


class FileLooks:
    """The looks at one file, and at the one beside it to which is written ahead."""

    def __init__(self, watchers: Watchers, path: str, busy_timeout: float) -> None:
        self._watchers = watchers
        self._paths = (path, f"{path}-wal")
        self._busy_timeout = busy_timeout
        self._connection: sqlite3.Connection | None = None
        self._said: dict[bytes, tuple[Any, ...] | None] = {}  # what was last seen of each key
        self._times: tuple[tuple[int, ...] | None, ...] = ()
        self._is_fresh = False  # whether the last look has found a change
        self._next = 0.0

    def open(self) -> None:
        import sqlite3  # noqa: PLC0415 -- only who uses it needs it

        uri = f"{Path(self._paths[0]).as_uri()}?mode=ro"
        self._connection = sqlite3.connect(uri, timeout=self._busy_timeout, isolation_level=None, check_same_thread=False, uri=True)
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
            if times[0] is None or (self._times and self._times[0] is not None and times[0][:2] != self._times[0][:2]):
                msg = "the file was removed or replaced"
                raise FileNotFoundError(msg)
            changed, self._times = times != self._times, times
            if changed or self._is_fresh:
                self._is_fresh = changed
                self._tell()

    def close(self) -> None:
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
        assert self._connection is not None
        found: dict[bytes, tuple[Any, ...] | None] = dict.fromkeys(keys)
        for start in range(0, len(keys), _AT_ONCE):
            part = keys[start : start + _AT_ONCE]
            places = ", ".join("?" * len(part))
            query = f"SELECT key, id, records, written FROM items WHERE key IN ({places})"  # noqa: S608 -- places alone
            for key, *said in self._connection.execute(query, part):
                found[key] = tuple(said)
        return found


def _times_of(paths: Collection[str]) -> tuple[tuple[int, ...] | None, ...]:
    return tuple(_time_of(path) for path in paths)


def _time_of(path: str) -> tuple[int, ...] | None:
    """Which file it is, when it was written, and how long it is."""
    try:
        stat = os.stat(path)  # noqa: PTH116 -- fifty times a second
    except FileNotFoundError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_size
