"""The end of the process: a last wait for running calls in worker threads.

The calls get as much time as when their system stops, and are then abandoned. The hook is global,
because nothing else stops the systems that were created only for runs. Its wait is always limited.
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
    """Include `workers` in the hook, as long as they exist."""
    _workers.add(workers)


# Hooks run in reverse order: this one runs after the hook that ends the default system, and with it
# the runs that live there.
@atexit.register
def _leave() -> None:
    # A second Ctrl-C ends the wait, and nothing else remains to be ended.
    with contextlib.suppress(KeyboardInterrupt):
        for workers in tuple(_workers):
            workers.leave_in_thread()
