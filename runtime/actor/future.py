"""A reply that has not arrived yet, for any thread and any event loop.

It holds one value or exception, set once, and the callbacks of its waiters. It never blocks the
thread of the loop that must produce the reply: there, `get()` raises an error that names the
alternative.
"""

from __future__ import annotations

import asyncio
import functools
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pykka

from ..errors import AskTimeout, UsageError
from .current import thread_wait

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["LOOK_AT_LOOP", "ActorFuture", "waker"]

_SET_TWICE = "This future already has its value, or is derived from other futures."

# In seconds. A loop that is closed before its system has stopped cannot wake other threads and
# loops: they check for that this often.
LOOK_AT_LOOP = 0.5

T = TypeVar("T")
J = TypeVar("J")
M = TypeVar("M")
R = TypeVar("R")

_ExcInfo = tuple[type[BaseException] | None, BaseException | None, "TracebackType | None"]


class ActorFuture(pykka.Future[T]):
    """The result of `ask(block=False)` and of proxies.

    `await` it on any loop, or call `get()` in any thread except the loop's own.
    """

    def __init__(
        self, loop_thread: int | None = None, look_at_loop: Callable[[], None] | None = None
    ) -> None:
        super().__init__()
        # Thread of the loop that must stay free for the reply; None if unknown.
        self._loop_thread = loop_thread
        self._look_at_loop = look_at_loop  # answers everything if that loop has been closed
        self._lock = threading.Lock()
        self._done = False
        self._value: object = None
        self._error: BaseException | None = None
        self._traceback: TracebackType | None = None
        self._callbacks: list[Callable[[], object]] = []  # emptied when the future is done

    def __repr__(self) -> str:
        return f"<ActorFuture {'done' if self._done else 'pending'}>"

    def done(self) -> bool:
        """Return True if `get()` would return at once."""
        return self._done

    # --- setting ---

    def set(self, value: T | None = None) -> None:
        """Set the value. Setting it a second time is a `UsageError`."""
        if not self.resolve(value):
            raise UsageError(_SET_TWICE)

    def set_exception(self, exc_info: _ExcInfo | BaseException | None = None) -> None:
        """Set an exception, or the one in a `sys.exc_info()`.

        The default is the exception that is being handled.
        """
        error = exc_info if isinstance(exc_info, BaseException) else (exc_info or sys.exc_info())[1]
        if error is None:
            msg = (
                "set_exception() without an argument must be called while an exception is "
                "handled. Pass the exception."
            )
            raise UsageError(msg)
        if not self.resolve(error=error):
            raise UsageError(_SET_TWICE)

    def set_get_hook(self, func: Callable[[float | None], T]) -> None:
        """Make `get()` call this function instead, for derived futures."""
        with self._lock:
            if self._done:
                raise UsageError(_SET_TWICE)
            super().set_get_hook(func)

    def resolve(self, value: object = None, *, error: BaseException | None = None) -> bool:
        """Set a value or an exception, unless the future is already done.

        Returns True if it was set.
        """
        with self._lock:
            if self._done or self._get_hook is not None:
                return False
            self._value = value
            self._error = error
            self._traceback = error.__traceback__ if error is not None else None
            self._done = True
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()
        return True

    # --- getting ---

    def get(self, *, timeout: float | None = None) -> T:
        """Block until the value arrives, and return or raise it.

        Raises `AskTimeout` after `timeout` seconds, and `UsageError` on the thread of the loop that
        must produce the reply.
        """
        if self._get_hook is not None:
            return super().get(timeout=timeout)
        if not self._done:
            self._block(timeout)
        return self._result()

    def __await__(self) -> Generator[Any, None, T]:
        return self._wait().__await__()

    __iter__ = __await__

    async def _wait(self) -> T:
        if self._get_hook is not None:
            return super().get()
        if not self._done:
            loop = asyncio.get_running_loop()
            woken: asyncio.Future[None] = loop.create_future()
            wake = waker(loop, woken)
            if self._add_callback(wake):
                try:
                    if self._look_at_loop is None or self._loop_thread == threading.get_ident():
                        await woken
                    else:
                        while not woken.done():
                            await asyncio.wait((woken,), timeout=LOOK_AT_LOOP)
                            self._look_at_loop()
                finally:
                    self._remove_callback(wake)
        return self._result()

    def _block(self, timeout: float | None) -> None:
        if self._loop_thread == threading.get_ident():
            msg = (
                "get() or a blocking call on the event loop's own thread would block the "
                "loop that must deliver the reply. Write `await future`, or `await "
                "ref.request(message)`."
            )
            raise UsageError(msg)
        event = threading.Event()
        if self._add_callback(event.set):
            try:
                self._wait_for(event, timeout)
            finally:
                self._remove_callback(event.set)

    def _wait_for(self, event: threading.Event, timeout: float | None) -> None:
        wait = thread_wait()
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = (
                LOOK_AT_LOOP
                if deadline is None
                else min(LOOK_AT_LOOP, max(0.0, deadline - time.monotonic()))
            )
            if wait(event, self.done, left):
                return
            if deadline is not None and time.monotonic() >= deadline:
                msg = (
                    f"No reply within {timeout} seconds. Pass a larger timeout, or check why the "
                    "actor is slow."
                )
                raise AskTimeout(msg)
            if self._look_at_loop is not None:
                self._look_at_loop()

    def _result(self) -> T:
        if self._error is not None:
            raise self._error.with_traceback(self._traceback)
        return cast("T", self._value)

    def _add_callback(self, callback: Callable[[], object]) -> bool:
        with self._lock:
            if self._done:
                return False
            self._callbacks.append(callback)
            return True

    def _remove_callback(self, callback: Callable[[], object]) -> None:
        with self._lock:
            if callback in self._callbacks:
                self._callbacks.remove(callback)

    # --- deriving: as in pykka, and awaitable too ---

    def map(self, func: Callable[[T], M]) -> ActorFuture[M]:
        """Return a future of `func(value)`."""

        async def wait() -> M:
            return func(await self)

        return DerivedFuture((self,), lambda timeout: func(self.get(timeout=timeout)), wait)

    def filter(
        self: ActorFuture[Iterable[J]], func: Callable[[J], bool]
    ) -> ActorFuture[Iterable[J]]:
        """Return a future of the items for which `func(item)` is true."""
        return self.map(lambda items: [item for item in items if func(item)])

    def reduce(
        self: ActorFuture[Iterable[J]], func: Callable[[R, J], R], *args: R
    ) -> ActorFuture[R]:
        """Return a future of `functools.reduce(func, value, *args)`."""
        return self.map(lambda items: functools.reduce(func, items, *args))

    def join(self, *futures: pykka.Future[Any]) -> ActorFuture[Iterable[Any]]:
        """Return a future of the list of all values, this one's first."""
        sources = (self, *futures)

        def get(timeout: float | None) -> list[Any]:
            deadline = None if timeout is None else time.monotonic() + timeout
            return [
                f.get(timeout=None if deadline is None else max(0.0, deadline - time.monotonic()))
                for f in sources
            ]

        async def wait() -> list[Any]:
            return [await f for f in sources]

        return DerivedFuture(sources, get, wait)


class DerivedFuture(ActorFuture[T]):
    """A future that is computed from others on first access: once, unless that fails."""

    def __init__(
        self,
        sources: Sequence[pykka.Future[Any]],
        get: Callable[[float | None], T],
        wait: Callable[[], Awaitable[T]],
    ) -> None:
        super().__init__()
        self._sources = sources
        self._compute = get
        self._compute_waiting = wait

    def done(self) -> bool:
        return self._done or all(
            source.done() for source in self._sources if isinstance(source, ActorFuture)
        )

    def set(self, value: T | None = None) -> None:  # noqa: ARG002 -- all three setters refuse
        raise UsageError(_SET_TWICE)

    def set_exception(self, exc_info: _ExcInfo | BaseException | None = None) -> None:  # noqa: ARG002
        raise UsageError(_SET_TWICE)

    def set_get_hook(self, func: Callable[[float | None], T]) -> None:  # noqa: ARG002
        raise UsageError(_SET_TWICE)

    def get(self, *, timeout: float | None = None) -> T:
        if not self._done:
            self.resolve(self._compute(timeout))
        return self._result()

    async def _wait(self) -> T:
        if not self._done:
            self.resolve(await self._compute_waiting())
        return self._result()


def waker(loop: asyncio.AbstractEventLoop, woken: asyncio.Future[None]) -> Callable[[], None]:
    """Return a callback for any thread that wakes the task awaiting `woken` on this loop.

    On a closed loop, no task is left to wake.
    """
    thread = threading.get_ident()

    def set_it() -> None:
        if not woken.done():
            woken.set_result(None)

    def wake() -> None:
        try:
            if threading.get_ident() == thread:
                set_it()
            else:
                loop.call_soon_threadsafe(set_it)
        except RuntimeError:
            if not loop.is_closed():
                raise

    return wake
