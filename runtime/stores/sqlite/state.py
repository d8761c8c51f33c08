"""The one row of a `SQLiteStore`'s file that is about the whole of it: its time, and the counter of epochs.

Leases are judged by the machine's time since its start. `ttl` is judged by the store's own time, which stands where the clock on the wall stood when the file
was made, goes on with the machine, and goes on by what the clock on the wall says only while the machine was down. So no step of that clock reaches what is
stored, and what has a time to live has it across a restart.

Owns: that row, and what a machine says of the time. It must never begin or end a transaction.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ...clock import boottime

if TYPE_CHECKING:
    import sqlite3

__all__ = ["STATE", "MachineTime", "State"]

STATE: Final = """CREATE TABLE state (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        epoch INTEGER NOT NULL,
        time REAL NOT NULL,
        boottime REAL NOT NULL,
        wall REAL NOT NULL,
        boot TEXT NOT NULL
    )"""
"""`time` is what the store's time was when the other three were read."""

_SAVED_EVERY: Final = 60.0  # seconds: a step of the clock on the wall counts after a restart only if it was later than this before


class MachineTime:
    """What a machine says of the time."""

    def __init__(self) -> None:
        self._offset = _offset_of_namespace()

    def boottime(self) -> float:
        """Seconds of this start of the machine: the same for all its processes."""
        return boottime() - self._offset

    def wall(self) -> float:
        return time.time()

    def boot(self) -> str:
        """Which start of the machine this is; nothing, where that is not said."""
        try:
            return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        except OSError:
            return ""


class State:
    """That row, through one connection. What it says holds within the transaction that is open."""

    def __init__(self, connection: sqlite3.Connection, source: MachineTime) -> None:
        self.connection = connection
        self._source = source
        self.boot = source.boot()
        self.writing = False
        """Whether the transaction may write."""
        self.machine = 0.0
        """Seconds of this start of the machine. By this leases are judged."""
        self.now = 0.0
        """The store's time. By this it is judged what has expired."""
        self.epoch = 0
        """The last one that was given."""
        self._saved: tuple[int, float, float, float, str] = (0, 0.0, 0.0, 0.0, "")
        self._due = False

    def make(self) -> None:
        """Write it for the first time: rows of before bear the time of the clock on the wall, and go on to mean the same."""
        wall = self._source.wall()
        self.connection.execute("INSERT INTO state VALUES (1, 0, ?, ?, ?, ?)", (wall, self._source.boottime(), wall, self.boot))

    def begin(self, *, writing: bool, holds: bool) -> None:
        """Read it, when a transaction has begun; not before, because that may have waited for others. `holds`: it is as this connection has left it."""
        self.writing = writing
        if not holds:
            self._saved = self.connection.execute("SELECT epoch, time, boottime, wall, boot FROM state").fetchone()
        epoch, then, boottime_then, wall_then, boot = self._saved
        self.epoch, self.machine = epoch, self._source.boottime()
        passed = self.machine - boottime_then
        if passed < 0 or self.is_over(boot):
            self.now = then + max(0.0, self._source.wall() - wall_then)
            self._due = True
        else:
            self.now = then + passed
            self._due = passed >= _SAVED_EVERY

    def end(self) -> None:
        """Write what has changed, at the end of a transaction that writes."""
        epoch, then, boottime_then, wall_then, boot = self._saved
        if self._due:
            then, boottime_then, wall_then, boot = self.now, self.machine, self._source.wall(), self.boot or boot
        if self._due or self.epoch != epoch:
            row = (self.epoch, then, boottime_then, wall_then, boot)
            self.connection.execute("UPDATE state SET epoch = ?, time = ?, boottime = ?, wall = ?, boot = ?", row)
            self._saved = row

    def is_over(self, boot: str) -> bool:
        """Whether that is known to be an earlier start of the machine. A process from which `/proc` is hidden does not know its own."""
        return bool(boot and self.boot and boot != self.boot)


def _offset_of_namespace() -> float:
    """By how much the clock of this process differs from that of the machine: containers may have one of their own."""
    try:
        for line in Path("/proc/self/timens_offsets").read_text(encoding="ascii").splitlines():
            name, seconds, nanoseconds = line.split()
            if name == "boottime":
                return int(seconds) + int(nanoseconds) / 1e9
    except (OSError, ValueError):
        pass
    return 0.0
