"""The end of the process: calls in worker threads that are still under way get as much time as when their system is left, and are then left behind.

Owns: the hook, and which workers have had a thread. It is global by nature: systems that only a run has made are left by nothing else. It must never wait
without a limit.
"""

from __future__ import annotations

import atexit
import contextlib
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .workers import Workers

__all__ = ["watch"]

_workers: weakref.WeakSet[Workers] = weakref.WeakSet()


def watch(workers: Workers) -> None:
    """Include them in the hook, as long as they exist."""
    _workers.add(workers)


# Hooks are called in the opposite order: this one after that which ends the default system, and with it the runs that live there.
@atexit.register
def _leave() -> None:
    with contextlib.suppress(KeyboardInterrupt):  # a second Ctrl-C ends the waiting, and no more is left to be ended
        for workers in tuple(_workers):
            workers.leave_in_thread()
