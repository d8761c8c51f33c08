"""The hooks around a fork.

A forked process has the memory of all systems, but none of their threads and no running loop. The
hooks hold every lock of the runtime during the fork, so that the child finds no half-made change.
In the child they mark each system as unusable, and remove it everywhere else. They change nothing
in the parent.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

from ..actor import current as directory
from . import full_collections, registry

if TYPE_CHECKING:
    from .system import ActorSystem

__all__ = ["starting", "watch"]

_systems: weakref.WeakSet[ActorSystem] = weakref.WeakSet()
_watching = threading.Lock()  # held while a system is added, and during a fork
starting = threading.RLock()
"""Held while a run is started, because two threads may both be the first to use it.

One lock for all runs is enough: a start from another thread is quick.
"""
_held: list[Any] = []  # the locks held during a fork, in the order in which they were taken


def watch(system: ActorSystem) -> None:
    """Include the system in the hooks, as long as it exists."""
    with _watching:
        _systems.add(system)


def _before() -> None:
    # The outermost first: the first lock guards the start of a run, the second the creation and
    # registration of the default system, and both take the others. The first one also prevents two
    # concurrent forks.
    for lock in (
        starting,
        *directory.locks(),
        _watching,
        registry.lock(),
        full_collections.process.lock,
    ):
        _hold(lock)
    for system in _systems:
        for lock in system.locks():
            _hold(lock)


def _hold(lock: Any) -> None:
    lock.acquire()
    _held.append(lock)


def _release() -> None:
    held = _held.copy()
    _held.clear()  # while the first lock excludes other forks
    for lock in reversed(held):
        lock.release()


def _after_in_child() -> None:
    for system in _systems:
        system.workers.forget()
        if system.is_running:
            system.fault = (
                f"{system!r} was made before this process was forked (now process "
                f"{os.getpid()}): its event loop and threads do not exist here. "
                "Make a system of its own in each process, after the fork."
            )
            system.dispatcher.thread = 0  # the child's only thread may have the ident of the loop's
    directory.forget()
    registry.forget()
    full_collections.process.forget()
    _release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_after_in_child)
