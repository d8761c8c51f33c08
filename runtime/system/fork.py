"""Forks: a forked process has the memory of all systems, but none of their threads, and no running loop.

Owns: the hooks around a fork. They hold every lock of the runtime during the fork, so that the child finds no half-made change. In the child they mark
each system as unusable, and forget it everywhere else. They must never change anything in the parent.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

from ..actor import current as directory
from . import registry

if TYPE_CHECKING:
    from .system import ActorSystem

__all__ = ["watch"]

_systems: weakref.WeakSet[ActorSystem] = weakref.WeakSet()
_one_at_a_time = threading.Lock()
_held: list[Any] = []  # the locks held during a fork, in the order in which they were taken


def watch(system: ActorSystem) -> None:
    """Include the system in the hooks, as long as it exists."""
    with _one_at_a_time:
        _systems.add(system)


def _before() -> None:
    _one_at_a_time.acquire()
    # The outermost first: the default system is made under the first lock, and takes all the others.
    _held.extend((*directory.locks(), registry.lock()))
    for system in _systems:
        _held.extend(system.locks())
    for lock in _held:
        lock.acquire()


def _release() -> None:
    for lock in reversed(_held):
        lock.release()
    _held.clear()
    _one_at_a_time.release()


def _after_in_child() -> None:
    for system in _systems:
        system.workers.forget()
        if system.is_running:
            system.fault = (
                f"{system!r} was made before this process was forked (now process {os.getpid()}): its event loop and threads do not exist here. "
                "Make a system of its own in each process, after the fork."
            )
    directory.forget()
    registry.forget()
    _release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_release, after_in_child=_after_in_child)
