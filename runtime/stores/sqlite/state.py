"""The single state row of a `SQLiteStore`'s file: the store's time, and the counter of epochs.

Leases are judged by the machine's time since its boot. `ttl` is judged by the store's own time. It
equalled the wall clock when the file was created, advances with the machine's clock, and uses the
wall clock only for the time while the machine was down. So steps of the wall clock do not affect
stored data, and a time to live holds across a restart. This module never starts or ends a
transaction.
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
"""`time` is the store's time at the moment when the other three were read."""

# Seconds: after a restart, a step of the wall clock has an effect only if it happened within this
# time before.
_SAVED_EVERY: Final = 60.0


class MachineTime:
    """The clocks of the machine."""

    def __init__(self) -> None:
        self._offset = _offset_of_namespace()

    def boottime(self) -> float:
        """Return the seconds since the machine's boot: the same for all its processes."""
        return boottime() - self._offset

    def wall(self) -> float:
        return time.time()

    def boot(self) -> str:
        """Return the id of the machine's current boot; an empty string if it is unavailable."""
        try:
            return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        except OSError:
            return ""


class State:
    """The state row, through one connection. Its values are valid within the open transaction."""

    def __init__(self, connection: sqlite3.Connection, source: MachineTime) -> None:
        self.connection = connection
        self._source = source
        self.boot = source.boot()
        self.writing = False
        """Whether the transaction may write."""
        self.machine = 0.0
        """Seconds since the machine's boot. Leases are judged by it."""
        self.now = 0.0
        """The store's time. Expiry is judged by it."""
        self.epoch = 0
        """The last epoch."""
        self._saved: tuple[int, float, float, float, str] = (0, 0.0, 0.0, 0.0, "")
        self._due = False

    def make(self) -> None:
        """Write the row for the first time.

        It starts at the wall clock, so that times of existing rows stay valid.
        """
        wall = self._source.wall()
        self.connection.execute(
            "INSERT INTO state VALUES (1, 0, ?, ?, ?, ?)",
            (wall, self._source.boottime(), wall, self.boot),
        )

    def begin(self, *, writing: bool, holds: bool) -> None:
        """Read the row, after a transaction has started; not before, because starting may wait for
        others.

        `holds`: the row is as this connection has left it.
        """
        self.writing = writing
        if not holds:
            self._saved = self.connection.execute(
                "SELECT epoch, time, boottime, wall, boot FROM state"
            ).fetchone()
        epoch, then, boottime_then, wall_then, boot = self._saved
        self.epoch, self.machine = epoch, self._source.boottime()
        passed = self.machine - boottime_then
        if passed < 0 or self.is_over(boot):
            self.now = then + max(0.0, self._source.wall() - wall_then)
            self._due = True
        else:
            self.now = then + passed
            self._due = passed >= _SAVED_EVERY

    def next_epoch(self) -> int:
        """Return an epoch that is larger than all before it.

        It is at least the wall clock in microseconds, so that a file that was restored from a copy
        returns none twice.
        """
        self.epoch = max(self.epoch + 1, int(self._source.wall() * 1e6))
        return self.epoch

    def end(self) -> None:
        """Write the changes, at the end of a transaction that writes."""
        epoch, then, boottime_then, wall_then, boot = self._saved
        if self._due:
            then, boottime_then, wall_then, boot = (
                self.now,
                self.machine,
                self._source.wall(),
                self.boot or boot,
            )
        if self._due or self.epoch != epoch:
            row = (self.epoch, then, boottime_then, wall_then, boot)
            self.connection.execute(
                "UPDATE state SET epoch = ?, time = ?, boottime = ?, wall = ?, boot = ?", row
            )
            self._saved = row

    def is_over(self, boot: str) -> bool:
        """Return whether that is known to be an earlier boot of the machine.

        A process that cannot read `/proc` does not know its own boot.
        """
        return bool(boot and self.boot and boot != self.boot)


def _offset_of_namespace() -> float:
    """Return the offset between this process's clock and the machine's.

    A container may have a separate time namespace.
    """
    try:
        for line in Path("/proc/self/timens_offsets").read_text(encoding="ascii").splitlines():
            name, seconds, nanoseconds = line.split()
            if name == "boottime":
                return int(seconds) + int(nanoseconds) / 1e9
    except (OSError, ValueError):
        pass
    return 0.0
