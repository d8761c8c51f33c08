"""File names that can damage a database: SQLite stores the write-ahead log next to the name by
which a process has opened the file.

This module never opens the file.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["risks_of"]

_MOUNTS = Path("/proc/self/mountinfo")


def risks_of(path: str) -> list[str]:
    """Return a sentence for each risk. `path` has no symbolic links."""
    found = []
    if os.stat(path).st_nlink > 1:  # noqa: PTH116 -- a name, as it is everywhere in this package
        found.append(
            "it has more than one name (hard links): processes that open it by different names "
            "do not see each other's -wal, and damage it. Remove the other names."
        )
    if path in _mount_points():
        found.append(
            "it is mounted as a single file, so other containers do not see its -wal, which is "
            "lost with this container. Mount its folder instead."
        )
    return found


def _mount_points() -> set[str]:
    """Return the mount points of this process, where the system reports them."""
    with suppress(OSError):
        lines = _MOUNTS.read_bytes().splitlines()
        return {
            os.fsdecode(line.split()[4].decode("unicode_escape").encode("latin-1"))
            for line in lines
        }
    return set()
