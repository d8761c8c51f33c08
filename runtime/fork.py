"""What a forked process gets: the memory of all systems, but none of their threads, and no loop that runs.

Owns: the hooks around a fork. They hold all mailboxes still while it happens, so that none is in the middle of something in the child,
and make each system say there that it cannot be used.
"""

from __future__ import annotations

import os
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .system import ActorSystem

__all__ = ["watch"]

_systems: weakref.WeakSet[ActorSystem] = weakref.WeakSet()
_held: list[ActorSystem] = []  # those whose locks are held while a fork is under way


def watch(system: ActorSystem) -> None:
    """Have the system know of forks, as long as it exists."""
    _systems.add(system)


def _before() -> None:
    _held.extend(_systems)
    for system in _held:
        system.lock.acquire()


def _after_in_parent() -> None:
    for system in _held:
        system.lock.release()
    _held.clear()


def _after_in_child() -> None:
    for system in _held:
        system.lock.release()
        if system.is_running:
            system.fault = (
                f"{system!r} was made before this process was forked (now process {os.getpid()}): its event loop and threads do not exist here. "
                "Make a system of its own in each process, after the fork."
            )
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child)
