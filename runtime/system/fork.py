"""What a forked process gets: the memory of all systems, but none of their threads, and no loop that runs.

Owns: the hooks around a fork. They hold every lock of the runtime while it happens, so that nothing is in the middle of something in the child;
and there they make each system say that it cannot be used, and forget it everywhere else.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

import pykka

from ..actor import current as directory
from . import registry

if TYPE_CHECKING:
    from .system import ActorSystem

__all__ = ["watch"]

_systems: weakref.WeakSet[ActorSystem] = weakref.WeakSet()
_one_at_a_time = threading.Lock()
_held: list[Any] = []  # the locks that are held while a fork is under way, in the order of their taking


def watch(system: ActorSystem) -> None:
    """Have the system know of forks, as long as it exists."""
    with _one_at_a_time:
        _systems.add(system)


def _before() -> None:
    _one_at_a_time.acquire()
    # The outermost first: the default system is made under a lock, and takes all the others.
    _held.extend((*directory.locks(), pykka.ActorRegistry._actor_refs_lock))
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
