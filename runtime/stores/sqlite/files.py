"""The files of a `SQLiteStore`: how they are made, whether they are still the same, and those by which a process shows that it lives.

An owner's process holds a lock on a file of its own beside the database. The kernel lets go of it when the process has ended, and not before: a lock that can
be had is the proof that the process is gone. It is no proof that a file is missing. A forked process shares the lock of its parent; then, and where there are
no such locks, only the time of the owner counts.

Owns: these files. It must never open the file of the database: closing it again would end SQLite's own locks on it.
"""

from __future__ import annotations

import os
import threading
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
    """Make the file of a database, if there is none, with exactly these permissions. SQLite makes those beside it alike."""
    # Another thread that finds the new file must not lock it before it is closed here. A lock that a fork has left behind is not waited for.
    locked = _MAKING.acquire(timeout=1)
    try:
        with suppress(FileExistsError):
            os.close(_make(path, mode))
    finally:
        if locked:
            _MAKING.release()


class Watch:
    """Which files there were when the database had been opened."""

    def __init__(self, path: str) -> None:
        self._files = [(path + part, found) for part in _PARTS if (found := _identity(path + part)) is not None]

    def look(self) -> None:
        """Raise, if one of them was deleted or replaced."""
        for path, was in self._files:
            found = _identity(path)
            if found != was:
                msg = f"{path!r} was {'deleted' if found is None else 'replaced by another file'}"
                raise Replaced(msg)


class Proofs:
    """The locked files of the owners that live here, and a look at those of others."""

    def __init__(self, path: str | None, mode: int) -> None:
        self._beside = None if path is None or fcntl is None else f"{path}-owner-"
        self._mode = mode
        self._held: dict[bytes, tuple[str, int]] = {}  # of each owner that lives here: its file, and the descriptor that is locked
        # What becomes of them depends on how the transaction ends.
        self._made: list[bytes] = []
        self._gone: list[str] = []

    def make(self, owner: bytes) -> tuple[str, str] | None:
        """Make and lock a file for an owner. Returns what finds it again; None, if that cannot be."""
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
        """Whether the process that made that file is proven to have ended."""
        if self._beside is None or not name.isalnum() or any(name == own for own, _ in self._held.values()):
            return False
        try:
            descriptor = os.open(self._beside + name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two that look at once do not disturb each other
            return str(os.fstat(descriptor).st_ino) == inode == str(Path(self._beside + name).stat().st_ino)
        except OSError:
            return False
        finally:
            os.close(descriptor)

    def end(self, name: str | None) -> None:
        """Remove the file of an owner that has ended, when the transaction is done."""
        if name is not None and self._beside is not None:
            self._gone.append(name)

    def sweep(self, known: set[str]) -> None:
        """Remove, when the transaction is done, the files of ended processes that belong to no owner. It is one that writes, as those that make files are."""
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
        """Let the files be as the transaction has left the rows."""
        made, gone, self._made, self._gone = self._made, self._gone, [], []
        if not done:
            for owner in made:
                self._drop(owner)
            return
        for name in gone:
            for owner in [owner for owner, (own, _) in self._held.items() if own == name]:
                self._drop(owner)
            # That of an owner which lives elsewhere, and was revoked, is removed there.
            with suppress(OSError):
                if self.is_dead(name, str(Path(f"{self._beside}{name}").stat().st_ino)):
                    self._remove(name)

    def close(self) -> None:
        """Remove what is held here. The owners are not proven dead by that: another store of this process may keep them alive."""
        for owner in tuple(self._held):
            self._drop(owner)

    def _drop(self, owner: bytes) -> None:
        held = self._held.pop(owner, None)
        if held is not None:
            name, descriptor = held
            self._remove(name)  # first: what can be locked and is still there would be taken for a proof
            os.close(descriptor)

    def _remove(self, name: str) -> None:
        with suppress(OSError):
            Path(f"{self._beside}{name}").unlink()


def _make(path: str, mode: int) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), mode)
    if hasattr(os, "fchmod"):
        os.fchmod(descriptor, mode)  # the process's mask has taken something away, perhaps
    return descriptor


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)  # noqa: PTH116 -- after each transaction: three times as fast
    except OSError:
        return None
    return found.st_dev, found.st_ino
