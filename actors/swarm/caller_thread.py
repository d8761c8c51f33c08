"""The connection between a thread blocked in `Swarm.run` and the run's event loop.

The run, on another thread's event loop, calls back into the caller's thread for every blocking
call. So functions and a synchronous client are called in the caller's thread, as in Swarm, and can
use objects bound to that thread, such as a connection to SQLite. Any number of callers can run
without waiting for a worker thread.
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
from ...runtime.tasks import start_task

__all__ = ["CallerThread", "wait_for"]

P = TypeVar("P")
T = TypeVar("T")

# Seconds after which a waiting thread checks whether the event loop still exists.
_LOOK_AGAIN: Final = 0.5


class _Shown(NamedTuple, Generic[P]):
    """A delta for the caller, and the future to resolve when the caller requests the next one."""

    piece: P
    taken: asyncio.Future[None]


# calls a function, and passes its result to the event loop
_Blocking: TypeAlias = Callable[[], None]


class CallerThread(Generic[P]):
    """The connection between one caller and the run that it waits for."""

    __slots__ = ("_inbox", "_loop", "_task", "_thread")

    def __init__(self) -> None:
        # None: the run has ended.
        self._inbox: queue.SimpleQueue[_Blocking | _Shown[P] | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop
        self._task: asyncio.Task[None]
        self._thread = 0  # of the event loop, once the run has started

    # --- on the event loop ---

    async def do(self, session: SessionValues, function: Callable[..., T], *args: object) -> T:
        """Have the caller's thread call a function, which must not raise.

        The session values of the run are current during the call.
        """
        done: asyncio.Future[T] = self._loop.create_future()
        self._inbox.put(lambda: self._resolve(done, _in_session(session, function, args)))
        return await done

    def _begin(self, pieces: Callable[[], AsyncGenerator[P]]) -> None:
        self._thread = get_ident()
        self._task = start_task(self._show(pieces()), "a client of Swarm", loop=self._loop)
        self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled():
            task.exception()  # marks it as retrieved: the caller may have left
        self._inbox.put(None)

    async def _show(self, pieces: AsyncGenerator[P]) -> None:
        """Show each delta, and request the next one when the caller does."""
        async with contextlib.aclosing(pieces):
            async for piece in pieces:
                taken: asyncio.Future[None] = self._loop.create_future()
                self._inbox.put(_Shown(piece, taken))
                await taken

    # --- in the caller's thread ---

    def attend(self, pieces: Callable[[], AsyncGenerator[P]]) -> Generator[P]:
        """Start the run, make the calls that it requests, and yield its deltas.

        When this generator ends, the run has ended.
        """
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
                raise RunCancelled(
                    "the event loop of this Swarm's run is ending, so the run was cancelled. "
                    "Keep the loop running until the call returns."
                )
            self._task.result()

    def _next(self) -> _Blocking | _Shown[P] | None:
        while True:
            with contextlib.suppress(queue.Empty):
                return self._inbox.get(timeout=_LOOK_AGAIN)
            # A stopped and closed loop runs no callback, so `_ended` is never called.
            if self._loop.is_closed():
                raise RunCancelled(
                    "the run of this Swarm had not ended when its event loop was closed. Keep "
                    "the loop running until the call returns."
                )

    def _resolve(self, future: asyncio.Future[T], value: T) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed, which `_next` reports
            self._loop.call_soon_threadsafe(_set, future, value)

    def _give_up(self) -> None:
        """Cancel the run and wait until it has ended, because the caller leaves early."""
        with contextlib.suppress(RuntimeError, RunCancelled):
            self._loop.call_soon_threadsafe(self._cancel)
            while get_ident() != self._thread and self._next() is not None:
                pass  # the calls that the run still requests are not made

    def _cancel(self) -> None:
        self._task.cancel()


def wait_for(awaitable: Awaitable[T]) -> T:
    """Return the result of an awaitable, blocking this thread, which may run an event loop."""

    async def result() -> T:
        return await awaitable

    with _another_loop() as loop:
        return asyncio.run_coroutine_threadsafe(result(), loop).result()


@contextlib.contextmanager
def _another_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Provide an event loop of another thread.

    It is the loop of the current system, or of a system that exists for the block.
    """
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
