"""The current system, for pykka's way of starting actors, which names no system.

The module stores the running systems of this process, by loop and by thread. This is global state,
because `MyActor.start()` has no other source; only `registry.py` and `fork.py` have more of it. The
module starts no system except the default one, on demand.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from .host import Host

__all__ = [
    "current_system",
    "enter_loop",
    "enter_scope",
    "enter_thread",
    "entered_system",
    "forget",
    "leave_loop",
    "leave_scope",
    "locks",
    "thread_wait",
]

Wait: TypeAlias = Callable[[threading.Event, Callable[[], bool], float | None], bool]

_lock = threading.Lock()
_making_default = threading.Lock()  # held while the default system is entered, which takes `_lock`
_by_loop: dict[asyncio.AbstractEventLoop, Host] = {}
_scopes: list[Host] = []  # open `with ActorSystem.in_thread()` blocks, the innermost last
_of_thread = threading.local()
_default: Host | None = None


def enter_loop(loop: asyncio.AbstractEventLoop, system: Host) -> Host | None:
    """Make this the system of the loop.

    Returns the existing system instead, if the loop has one.
    """
    with _lock:
        found = _by_loop.setdefault(loop, system)
        return None if found is system else found


def leave_loop(loop: asyncio.AbstractEventLoop, system: Host) -> bool:
    """Return True if this was the loop's system.

    A system that is only bound to the loop, and was never entered, is not.
    """
    with _lock:
        if _by_loop.get(loop) is not system:
            return False
        del _by_loop[loop]
        return True


def enter_scope(system: Host) -> None:
    with _lock:
        _scopes.append(system)


def leave_scope(system: Host) -> None:
    with _lock:
        _scopes.remove(system)


def enter_thread(system: Host, wait: Wait) -> None:
    """Mark the calling thread as that of a thread actor.

    It waits with `wait`, because it may need to decide about children meanwhile.
    """
    _of_thread.system = system
    _of_thread.wait = wait


def thread_wait() -> Wait:
    """Return the calling thread's function to wait for an event."""
    wait: Wait = getattr(_of_thread, "wait", _just_wait)
    return wait


def _just_wait(event: threading.Event, done: Callable[[], bool], timeout: float | None) -> bool:
    return event.wait(timeout) or done()


def entered_system(loop: asyncio.AbstractEventLoop) -> Host | None:
    """Return the system entered on this loop with `async with ActorSystem()`, or None."""
    with _lock:
        return _by_loop.get(loop)


def current_system() -> Host:
    """Return the current system.

    That is the system of the running loop, of the calling thread actor, of the innermost open
    `in_thread()`, or the default one.
    """
    global _default  # noqa: PLW0603 -- see above
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        loop = None
    with _lock:
        if loop is not None and loop in _by_loop:
            return _by_loop[loop]
        of_thread: Host | None = getattr(_of_thread, "system", None)
        if of_thread is not None:
            return of_thread
        if _scopes:
            return _scopes[-1]
    with _making_default:
        if _default is None or not _default.is_running:
            from ..system.threaded import ThreadedSystem  # noqa: PLC0415 -- imports this package

            threaded = ThreadedSystem.named("default")
            _default = threaded.open()
            atexit.register(threaded.close)
        return _default


def locks() -> tuple[threading.Lock, ...]:
    """Return all locks of this module, the outermost first."""
    return _making_default, _lock


def forget() -> None:
    """Forget all systems in a forked process, because none of them exists there."""
    global _default  # noqa: PLW0603 -- see above
    _by_loop.clear()
    _scopes.clear()
    _of_thread.__dict__.clear()
    _default = None
