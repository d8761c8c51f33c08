"""Copies of the file of a `SQLiteStore`: a backup during use, and the detection of a copy that was
put in its place while a `-wal` of the former file was left.

SQLite applies any `-wal` file that it finds next to a database. If it belongs to another database,
the pages of both are mixed. This module opens database files only by SQLite: closing such a file
otherwise would release SQLite's own locks on it.
"""

from __future__ import annotations

import os
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

__all__ = ["Mixed", "check_left_wal", "copy_database"]

_HEADER: Final = 32
"""The size of a `-wal` without a page, in bytes."""


class Mixed(Exception):
    """The file is damaged by a `-wal` that belongs to another one."""


def copy_database(path: str, target: Path, mode: int, busy_timeout: float) -> None:
    """Copy a snapshot of the database, while others continue to write. Blocks.

    Raises `FileExistsError` if the target exists; `OSError`, and errors of sqlite3.
    """
    import sqlite3  # noqa: PLC0415 -- only who uses it needs it

    if target.exists():
        raise FileExistsError(target)
    part = target.with_name(f"{target.name}.{os.urandom(4).hex()}.part")
    os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode))
    try:
        with (
            closing(
                sqlite3.connect(
                    f"{Path(path).as_uri()}?mode=ro",
                    timeout=busy_timeout,
                    isolation_level=None,
                    uri=True,
                )
            ) as source,
            closing(sqlite3.connect(part, isolation_level=None)) as copy,
        ):
            # In one step: that is one transaction, which blocks no writer and does not restart when
            # another process writes.
            source.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE").fetchone()  # makes the copy a single file
            copy.execute("DELETE FROM owners")  # no process has an owner in the copy
        with part.open("rb+") as written:
            os.fsync(written.fileno())
        # Of two copies with one name, one is refused.
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, mode))
        part.replace(target)
    finally:
        with suppress(OSError):
            part.unlink()


def check_left_wal(path: str, busy_timeout: float, *, in_use: bool) -> None:
    """Raise `Mixed` if a copy was put over a file whose `-wal` was left, and does not fit it.

    A process that is killed leaves a `-wal`, too. So the damage itself is checked for, and only if
    the file was changed after its `-wal`: a process that uses it writes to the `-wal` all the time,
    and to the file only at checkpoints.
    """
    if in_use:
        return
    try:
        file, wal = os.stat(path), os.stat(f"{path}-wal")  # noqa: PTH116 -- as in `files`
    except OSError:
        return
    # Its last write, not its last change: SQLite changes the owner of a `-wal` that it opens.
    if wal.st_size <= _HEADER or file.st_ctime_ns < wal.st_mtime_ns:
        return
    import sqlite3  # noqa: PLC0415 -- only who uses it needs it

    # A read-only connection: closing it transfers nothing from the `-wal`, and the copy stays
    # intact.
    with closing(
        sqlite3.connect(
            f"{Path(path).as_uri()}?mode=ro", timeout=busy_timeout, isolation_level=None, uri=True
        )
    ) as connection:
        try:
            found = [row[0] for row in connection.execute("PRAGMA quick_check(1)")]
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorname", "").split("_")[:2] not in (
                ["SQLITE", "CORRUPT"],
                ["SQLITE", "NOTADB"],
            ):
                return  # the store itself reports any other error when it opens the file
            found = [str(error)]
    if found != ["ok"]:
        raise Mixed(" ".join(found[0].split()) if found else "damaged")
