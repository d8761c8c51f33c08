"""The files of a `SQLiteStore`: their creation, the detection of replaced ones, and lock files that
prove that a process is alive.

An owner's process holds a lock on its own file next to the database. The kernel releases the lock
when the process has ended, and not before: a lock that can be acquired proves that the process is
gone. A missing file proves nothing. A forked process releases its parent's locks at once. Where
such locks do not exist, only the expiry of the owner counts. This module never opens the database
file: closing it would release SQLite's own locks on it.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["Proofs", "Replaced", "Watch", "make_file"]

_PARTS: Final = ("", "-wal", "-shm")
_MAKING: Final = threading.Lock()


class Replaced(Exception):
    """A file of the database is no longer the one that was opened."""


def make_file(path: str, mode: int) -> None:
    """Create the file of a database, if it is missing, with exactly these permissions.

    SQLite gives the files next to it the same permissions.
    """
    # Another thread that finds the new file must not lock it before it is closed here. A fork
    # cannot leave the lock held: the store's thread is paused then.
    with _MAKING, suppress(FileExistsError):
        os.close(_make(path, mode))


class Watch:
    """The identities of the files when the database was opened."""

    def __init__(self, path: str) -> None:
        self._files = [
            (path + part, found) for part in _PARTS if (found := _identity(path + part)) is not None
        ]

    def look(self) -> None:
        """Raise if one of them was deleted or replaced."""
        self._look(self._files)

    def look_at_database(self) -> None:
        """Check the database file alone: SQLite removes the others when no connection is open."""
        self._look(self._files[:1])

    def _look(self, files: Sequence[tuple[str, tuple[int, int]]]) -> None:
        for path, was in files:
            found = _identity(path)
            if found != was:
                msg = f"{path!r} was {'deleted' if found is None else 'replaced by another file'}"
                raise Replaced(msg)


class Proofs:
    """The lock files of the owners in this process, and checks of those of other processes."""

    def __init__(self, path: str | None, mode: int) -> None:
        self._beside = None if path is None or fcntl is None else f"{path}-owner-"
        self._mode = mode
        # For each owner in this process: its file, and the locked descriptor.
        self._held: dict[bytes, tuple[str, int]] = {}
        # Applied or reverted at the end of the transaction.
        self._made: list[bytes] = []
        self._gone: list[str] = []

    def any_alive(self) -> bool:
        """Return whether the lock on its file proves an owner alive, in this process or another
        one.
        """
        if self._held:
            return True
        if self._beside is None:
            return False
        folder, begin = Path(self._beside).parent, Path(self._beside).name
        with suppress(OSError):
            return any(
                path.name.startswith(begin) and self._is_locked(path) for path in folder.iterdir()
            )
        return False

    @staticmethod
    def _is_locked(path: Path) -> bool:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False

    def make(self, owner: bytes) -> tuple[str, str] | None:
        """Create and lock a file for an owner.

        Returns its name and inode; None if it cannot be created.
        """
        self._drop(owner)
        if self._beside is None:
            return None
        name = os.urandom(8).hex()
        try:
            descriptor = _make(self._beside + name, self._mode)
        except OSError:
            return None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            inode = str(os.fstat(descriptor).st_ino)
        except OSError:  # a file system without locks
            self._remove(name)
            os.close(descriptor)
            return None
        self._held[owner] = (name, descriptor)
        self._made.append(owner)
        return name, inode

    def is_dead(self, name: str, inode: str) -> bool:
        """Return whether the process that made that file has provably ended."""
        if (
            self._beside is None
            or not name.isalnum()
            or any(name == own for own, _ in self._held.values())
        ):
            return False
        try:
            descriptor = os.open(self._beside + name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            # Shared: two concurrent checks do not disturb each other.
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return (
                str(os.fstat(descriptor).st_ino)
                == inode
                == str(Path(self._beside + name).stat().st_ino)
            )
        except OSError:
            return False
        finally:
            os.close(descriptor)

    def end(self, name: str | None) -> None:
        """Remove the file of an owner that has ended, when the transaction is done."""
        if name is not None and self._beside is not None:
            self._gone.append(name)

    def sweep(self, known: set[str]) -> None:
        """Remove, when the transaction is done, the files of ended processes that belong to no
        owner.

        The transaction must be one that writes, as those that create files are.
        """
        if self._beside is None:
            return
        folder, begin = Path(self._beside).parent, Path(self._beside).name
        for path in folder.iterdir():
            name = path.name.removeprefix(begin)
            if name != path.name and name not in known:
                with suppress(OSError):
                    if self.is_dead(name, str(path.lstat().st_ino)):
                        self._gone.append(name)

    def settle(self, *, done: bool) -> None:
        """Apply or revert the changes of files, as the transaction did with its rows."""
        made, gone, self._made, self._gone = self._made, self._gone, [], []
        if not done:
            for owner in made:
                self._drop(owner)
            return
        for name in gone:
            for owner in [owner for owner, (own, _) in self._held.items() if own == name]:
                self._drop(owner)
            # The file of a revoked owner in another process is removed there.
            with suppress(OSError):
                if self.is_dead(name, str(Path(f"{self._beside}{name}").stat().st_ino)):
                    self._remove(name)

    def close(self) -> None:
        """Remove all lock files of this process.

        This does not prove the owners dead: another store of this process may keep them alive.
        """
        for owner in tuple(self._held):
            self._drop(owner)

    def descriptors(self) -> list[int]:
        """Return the locked descriptors.

        A process that has closed all of its own does not hold the lock.
        """
        return [descriptor for _, descriptor in self._held.values()]

    def _drop(self, owner: bytes) -> None:
        held = self._held.pop(owner, None)
        if held is not None:
            name, descriptor = held
            # Removed first: an existing file that can be locked would count as a proof.
            self._remove(name)
            os.close(descriptor)

    def _remove(self, name: str) -> None:
        with suppress(OSError):
            Path(f"{self._beside}{name}").unlink()


def _make(path: str, mode: int) -> int:
    descriptor = os.open(
        path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), mode
    )
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, mode)  # the umask may have removed permissions
    return descriptor


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 -- after each transaction: three times as fast
    except OSError:
        return None
    return found.st_dev, found.st_ino
