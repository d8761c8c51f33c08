"""Whoever calls `Swarm.run` waits there, and does himself what blocks: the run lives on an event loop in another thread, and sends him on errands.

Owns: the way between the thread that waits and that loop. So functions and a synchronous client are called where Swarm calls them, in the thread of
the caller: what belongs to that thread, such as a connection to SQLite, can be used; and of any number of callers, none waits for a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from threading import get_ident
from typing import Any, Final, NamedTuple, TypeVar

from ...runtime.actor.current import current_system
from ...runtime.agent.session_values import SessionValues, bind_session, current_session
from ...runtime.errors import RunCancelled
from ...runtime.system.system import ActorSystem

__all__ = ["CallerThread", "wait_for"]

T = TypeVar("T")

# Seconds after which a thread that waits looks whether the loop is still there.
_LOOK_AGAIN: Final = 0.5

_END: Final = object()


class _Errand(NamedTuple):
    """Something to be done, and what is told when it is."""

    function: Callable[[], Any]
    done: asyncio.Future[Any]


class _Shown(NamedTuple):
    """Something for the caller to see, and what is told when he comes back for more."""

    piece: Any
    taken: asyncio.Future[None]


class CallerThread:
    """What is between one caller and his run."""

    __slots__ = ("_inbox", "_loop", "_task", "_thread")

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop
        self._task: asyncio.Task[None]
        self._thread = 0  # of the loop, once the run has begun

    # --- on the loop ---

    async def do(self, session: SessionValues, function: Callable[..., T], *args: Any) -> T:
        """Have the caller's thread call a function, which must not raise. The values of the run are the current ones there."""
        done: asyncio.Future[T] = self._loop.create_future()
        self._inbox.put(_Errand(lambda: _in_session(session, function, args), done))
        return await done

    def _begin(self, pieces: Callable[[], AsyncGenerator[Any]]) -> None:
        self._thread = get_ident()
        self._task = self._loop.create_task(self._show(pieces()))
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # whether or not the caller is still there to look at it
        self._inbox.put(_END)

    async def _show(self, pieces: AsyncGenerator[Any]) -> None:
        """Show each piece, and ask for the next one when the caller does."""
        async with contextlib.aclosing(pieces):
            async for piece in pieces:
                taken: asyncio.Future[None] = self._loop.create_future()
                self._inbox.put(_Shown(piece, taken))
                await taken

    # --- in the caller's thread ---

    def attend(self, pieces: Callable[[], AsyncGenerator[Any]]) -> Generator[Any]:
        """Let the run begin that gives these pieces, do what it wants to be done, and pass the pieces on. When this is left, nothing of the run is."""
        with _another_loop() as self._loop:
            self._loop.call_soon_threadsafe(self._begin, pieces)
            ended = False
            try:
                while (found := self._next()) is not _END:
                    if isinstance(found, _Errand):
                        self._resolve(found.done, found.function())
                    else:
                        yield found.piece
                        self._resolve(found.taken, None)
                ended = True
            finally:
                if not ended:
                    self._give_up()
            if self._task.cancelled():
                raise RunCancelled("the event loop that the run of this Swarm lived on is ending.")
            self._task.result()

    def _next(self) -> Any:
        while True:
            with contextlib.suppress(queue.Empty):
                return self._inbox.get(timeout=_LOOK_AGAIN)
            if self._loop.is_closed():  # one that is stopped and closed tells nobody
                raise RunCancelled("the run of this Swarm was not at its end when the event loop that it lived on was closed.")

    def _resolve(self, future: asyncio.Future[Any], value: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: `_next` says so
            self._loop.call_soon_threadsafe(_set, future, value)

    def _give_up(self) -> None:
        """The caller goes away before the end: he takes the run along."""
        with contextlib.suppress(RuntimeError, RunCancelled):
            self._loop.call_soon_threadsafe(self._cancel)
            while get_ident() != self._thread and self._next() is not _END:
                pass  # what it still wants is not done

    def _cancel(self) -> None:
        self._task.cancel()


def wait_for(awaitable: Any) -> Any:
    """The result of something that can be awaited, in a thread that can do nothing but wait; an event loop may be running in it."""

    async def result() -> Any:
        return await awaitable

    with _another_loop() as loop:
        return asyncio.run_coroutine_threadsafe(result(), loop).result()


@contextlib.contextmanager
def _another_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop that runs in another thread than this one: that of the system that there is, or one of its own, which ends with the block."""
    system = current_system()
    if system.dispatcher.thread != get_ident():
        yield system.loop
        return
    threaded = ActorSystem.in_thread("swarm")
    try:
        yield threaded.open().loop
    finally:
        threaded.close()


def _in_session(session: SessionValues, function: Callable[..., T], args: tuple[Any, ...]) -> T:
    before = current_session()
    bind_session(session)
    try:
        return function(*args)
    finally:
        bind_session(before)


def _set(future: asyncio.Future[Any], value: Any) -> None:
    if not future.done():
        future.set_result(value)
