"""Fork hooks, so that no child process uses or closes a connection of its parent.

SQLite tracks its locks per process and file in memory. A child gets a copy of that memory without
the locks: a connection shared by both processes lets each of them corrupt the file. So a connection
to a file is closed before a fork, and reopened when it is next used. A connection to a server stays
open in the parent, because other processes take the end of a PostgreSQL session for the end of its
owner; the child's copy of its socket is redirected to /dev/null. The hooks never change the
behaviour of the parent process.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterable
from typing import Final, Protocol

from ..log import loggers

__all__ = ["SECONDS", "Forking", "disconnect", "watch"]

SECONDS: Final = 1.0
"""Seconds for which a fork waits until a connection to a server is idle.

A server that does not answer must not delay the fork for longer.
"""


class Forking(Protocol):
    """A thread of a store that has a connection."""

    def before_fork(self) -> None:
        """Wait until the connection is idle, if using it during a fork does harm, and block its
        use.
        """

    def after_fork(self) -> None:
        """In the parent: continue."""

    def after_fork_in_child(self) -> None:
        """In the child, which has no such thread: release the inherited connection.

        This must not wait for any lock, nor call a client.
        """


_watched: Final[weakref.WeakSet[Forking]] = weakref.WeakSet()
_lock: Final = threading.Lock()
_held: Final[list[Forking]] = []  # blocked until the fork is over


def watch(forking: Forking) -> None:
    """Include it in the hooks, as long as it exists."""
    with _lock:
        _watched.add(forking)


def disconnect(descriptors: Iterable[int]) -> None:
    """Redirect these descriptors to /dev/null, in this process alone.

    Closing them later closes nothing else.
    """
    nowhere = os.open(os.devnull, os.O_RDWR)
    try:
        for descriptor in descriptors:
            if descriptor >= 0:
                os.dup2(nowhere, descriptor, inheritable=False)
    finally:
        os.close(nowhere)


def _before() -> None:
    _lock.acquire()
    for forking in tuple(_watched):
        try:
            forking.before_fork()
        except Exception:  # noqa: BLE001 -- whatever a client raises, the fork cannot be prevented
            loggers.stores.exception("A connection of a store could not be closed before a fork")
        _held.append(forking)


def _after() -> None:
    while _held:
        _held.pop().after_fork()
    _lock.release()


def _after_in_child() -> None:
    import ctypes  # noqa: PLC0415 -- only a forked process needs it

    while _held:
        forking = _held.pop()
        try:
            forking.after_fork_in_child()
        except Exception:  # noqa: BLE001 -- an open connection is never used here
            loggers.stores.exception(
                "A forked process could not release a connection of its parent"
            )
        # Its client is never collected here: that could wait for a lock, or write to the server.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(forking))
    _watched.clear()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after_in_child)
