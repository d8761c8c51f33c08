"""`Swarm.run` blocks its caller; the run, on another thread's loop, calls back into the caller's thread for anything that blocks.

Owns: the way between the thread that waits and that loop. So functions and a synchronous client are called where Swarm calls them, in the caller's thread:
they can use what belongs to that thread, such as a connection to SQLite; and of any number of callers, none waits for a thread. It must never know what is
called, or what a piece of a run says.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from threading import get_ident
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from ...runtime.actor.current import current_system
from ...runtime.agent.session_values import SessionValues, bind_session, current_session
from ...runtime.errors import RunCancelled
from ...runtime.system.system import ActorSystem

__all__ = ["CallerThread", "wait_for"]

P = TypeVar("P")
T = TypeVar("T")

# Seconds after which a thread that waits looks whether the loop is still there.
_LOOK_AGAIN: Final = 0.5


class _Shown(NamedTuple, Generic[P]):
    """A piece for the caller, and the future that is resolved when the caller asks for the next one."""

    piece: P
    taken: asyncio.Future[None]


_Blocking: TypeAlias = Callable[[], None]  # calls a function, and hands its result to the loop


class CallerThread(Generic[P]):
    """The connection between one caller and the run that it waits for."""

    __slots__ = ("_inbox", "_loop", "_task", "_thread")

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[_Blocking | _Shown[P] | None] = queue.SimpleQueue()  # None: the run has ended
        self._loop: asyncio.AbstractEventLoop
        self._task: asyncio.Task[None]
        self._thread = 0  # of the loop, once the run has begun

    # --- on the loop ---

    async def do(self, session: SessionValues, function: Callable[..., T], *args: object) -> T:
        """Have the caller's thread call a function, which must not raise. The values of the run are the current ones there."""
        done: asyncio.Future[T] = self._loop.create_future()
        self._inbox.put(lambda: self._resolve(done, _in_session(session, function, args)))
        return await done

    def _begin(self, pieces: Callable[[], AsyncGenerator[P]]) -> None:
        self._thread = get_ident()
        self._task = self._loop.create_task(self._show(pieces()))
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # marks it as retrieved: the caller may have left
        self._inbox.put(None)

    async def _show(self, pieces: AsyncGenerator[P]) -> None:
        """Show each piece, and ask for the next one when the caller does."""
        async with contextlib.aclosing(pieces):
            async for piece in pieces:
                taken: asyncio.Future[None] = self._loop.create_future()
                self._inbox.put(_Shown(piece, taken))
                await taken

    # --- in the caller's thread ---

    def attend(self, pieces: Callable[[], AsyncGenerator[P]]) -> Generator[P]:
        """Start the run that gives these pieces, make the calls that it asks for, and yield the pieces. Whenever this ends, the run has ended."""
        with _another_loop() as self._loop:
            self._loop.call_soon_threadsafe(self._begin, pieces)
            ended = False
            try:
                while (found := self._next()) is not None:
                    if isinstance(found, _Shown):
                        yield found.piece
                        self._resolve(found.taken, None)
                    else:
                        found()
                ended = True
            finally:
                if not ended:
                    self._give_up()
            if self._task.cancelled():
                raise RunCancelled("the event loop that the run of this Swarm lived on is ending.")
            self._task.result()

    def _next(self) -> _Blocking | _Shown[P] | None:
        while True:
            with contextlib.suppress(queue.Empty):
                return self._inbox.get(timeout=_LOOK_AGAIN)
            if self._loop.is_closed():  # a loop that is stopped and closed runs no callback, so `_ended` is never called
                raise RunCancelled("the run of this Swarm was not at its end when the event loop that it lived on was closed.")

    def _resolve(self, future: asyncio.Future[T], value: T) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: `_next` says so
            self._loop.call_soon_threadsafe(_set, future, value)

    def _give_up(self) -> None:
        """The caller leaves before the end: cancel the run, and wait until it has ended."""
        with contextlib.suppress(RuntimeError, RunCancelled):
            self._loop.call_soon_threadsafe(self._cancel)
            while get_ident() != self._thread and self._next() is not None:
                pass  # the calls that the run still asks for are not made

    def _cancel(self) -> None:
        self._task.cancel()


def wait_for(awaitable: Awaitable[T]) -> T:
    """The result of an awaitable, in a thread that can only block; an event loop may be running in it."""

    async def result() -> T:
        return await awaitable

    with _another_loop() as loop:
        return asyncio.run_coroutine_threadsafe(result(), loop).result()


@contextlib.contextmanager
def _another_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """An event loop of another thread than this one: that of the current system, or of a system that is made here and ends with the block."""
    system = current_system()
    if system.dispatcher.thread != get_ident():
        yield system.loop
        return
    threaded = ActorSystem.in_thread("swarm")
    try:
        yield threaded.open().loop
    finally:
        threaded.close()


def _in_session(session: SessionValues, function: Callable[..., T], args: tuple[object, ...]) -> T:
    before = current_session()
    bind_session(session)
    try:
        return function(*args)
    finally:
        bind_session(before)


def _set(future: asyncio.Future[T], value: T) -> None:
    if not future.done():
        future.set_result(value)
