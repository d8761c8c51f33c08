"""Which system is where: for pykka's way of starting actors, which names none.

Owns: the systems that are running in this process, by loop and by thread, and what pykka's global registry knows of them. This is the one
place with state that is not a system's own, because `MyActor.start()` and `pykka.ActorRegistry.stop_all()` have nothing else to go by.
It must never start, stop or call into a system, but for the default one, which it makes on demand.
"""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import pykka

if TYPE_CHECKING:
    from .ref import ActorRef
    from .system import ActorSystem

__all__ = ["Roots", "current_system", "enter_loop", "enter_scope", "enter_thread", "leave_loop", "leave_scope", "thread_wait"]

Wait: TypeAlias = Callable[[threading.Event, Callable[[], bool], float | None], bool]

_lock = threading.Lock()
_making_default = threading.Lock()  # held while the default system is entered, which takes the other one
_by_loop: dict[asyncio.AbstractEventLoop, ActorSystem] = {}
_scopes: list[ActorSystem] = []  # `with ActorSystem.in_thread()` blocks that are open, the innermost last
_of_thread = threading.local()
_default: ActorSystem | None = None


def enter_loop(loop: asyncio.AbstractEventLoop, system: ActorSystem) -> ActorSystem | None:
    """The system is the loop's from now on; unless there is one already, which is returned."""
    with _lock:
        found = _by_loop.setdefault(loop, system)
        return None if found is system else found


def leave_loop(loop: asyncio.AbstractEventLoop) -> None:
    with _lock:
        _by_loop.pop(loop, None)


def enter_scope(system: ActorSystem) -> None:
    with _lock:
        _scopes.append(system)


def leave_scope(system: ActorSystem) -> None:
    with _lock:
        _scopes.remove(system)


def enter_thread(system: ActorSystem, wait: Wait) -> None:
    """The calling thread is a thread actor's. `wait` is how it waits for something: there may be decisions to take meanwhile."""
    _of_thread.system = system
    _of_thread.wait = wait


def thread_wait() -> Wait:
    """How the calling thread waits for an event that others set when something is done."""
    wait: Wait = getattr(_of_thread, "wait", _just_wait)
    return wait


def _just_wait(event: threading.Event, done: Callable[[], bool], timeout: float | None) -> bool:
    return event.wait(timeout) or done()


def current_system() -> ActorSystem:
    """The running loop's system; or that of the thread actor whose thread this is; or the innermost open `in_thread()`; or the default one."""
    global _default  # noqa: PLW0603 -- said above
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        loop = None
    with _lock:
        if loop is not None and loop in _by_loop:
            return _by_loop[loop]
        of_thread: ActorSystem | None = getattr(_of_thread, "system", None)
        if of_thread is not None:
            return of_thread
        if _scopes:
            return _scopes[-1]
    with _making_default:
        if _default is None or not _default.is_running:
            from .threaded import ThreadedSystem  # noqa: PLC0415 -- built on what is built on this

            threaded = ThreadedSystem.named("default")
            _default = threaded.open()
            atexit.register(threaded.close)
        return _default


class Roots:
    """The root actors of one system, in pykka's global registry: there, so that `stop_all()` finds them.

    pykka's registry is a list: to remove one of a million from it takes milliseconds. So while it is long, actors that have ended are removed many
    at once: when they are a quarter of it or, if the system has nothing else to do, a hundredth. Up to that many may be found there that are dead.
    """

    __slots__ = ("_ended",)

    _LONG = 512

    def __init__(self) -> None:
        self._ended: dict[int, ActorRef[Any]] = {}  # by identity: comparing refs takes longer

    # Not `ActorRegistry.register()` and `unregister()`: they format two log messages, with a new UUID in them, for each actor.

    def add(self, ref: ActorRef[Any]) -> None:
        with pykka.ActorRegistry._actor_refs_lock:
            pykka.ActorRegistry._actor_refs.append(ref)

    def discard(self, ref: ActorRef[Any]) -> None:
        refs = pykka.ActorRegistry._actor_refs
        with pykka.ActorRegistry._actor_refs_lock:
            if id(ref) in self._ended:
                return
            if len(refs) >= self._LONG or self._ended:
                self._ended[id(ref)] = ref
            elif ref in refs:
                refs.remove(ref)
        self.sweep(4)

    def sweep(self, share: int | None = None) -> None:
        """Remove all that have ended; with `share`, only if they are at least that part of the registry."""
        ended, refs = self._ended, pykka.ActorRegistry._actor_refs
        if not ended or (share is not None and len(ended) * share < len(refs)):
            return
        with pykka.ActorRegistry._actor_refs_lock:
            refs[:] = [ref for ref in refs if id(ref) not in ended]
            ended.clear()
