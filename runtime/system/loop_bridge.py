"""Access to a system's event loop, from any thread and from any other loop.

A coroutine runs on the system's loop and is awaited there, awaited from another loop, or waited for
in a thread without a loop. A thread with a running event loop is never blocked.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from threading import get_ident
from typing import Final, Protocol, TypeVar

from ..actor.host import Host
from ..errors import UsageError

__all__ = ["LoopBridge", "NotEnded", "refuse_on_a_loop", "refuse_trio", "running_loop"]

T = TypeVar("T")

_LOOK_AGAIN: Final = 0.5
"""Seconds between two checks of a waiting thread that the loop still exists.

A loop that is stopped and closed sends no notification.
"""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """Return the event loop that is running in this thread, or None."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def refuse_on_a_loop(call: str, instead: str, run_id: str | None = None) -> None:
    """Raise if an event loop is running in this thread: a blocking call would stop it."""
    refuse_trio(f"`{call}`")
    if running_loop() is not None:
        msg = (
            f"`{call}` blocks its thread, and an event loop is running in this one. Write "
            f"`{instead}`."
        )
        raise UsageError(msg, run=run_id)


def refuse_trio(what: str) -> None:
    """Raise if trio runs in this thread."""
    trio = sys.modules.get("trio")
    if trio is None:
        return
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        return
    msg = (
        f"{what} needs asyncio, and trio runs in this thread. Use anyio.run(main, "
        "backend='asyncio'), or call the blocking `run.result()` in a worker thread: "
        "`await trio.to_thread.run_sync(...)`."
    )
    raise UsageError(msg)


class NotEnded(TimeoutError):
    """The awaited work has not ended within the timeout, and continues."""


class Named(Protocol):
    """An object that belongs to a run. The run's id may change when its checkpoint is found."""

    @property
    def run_id(self) -> str: ...


class LoopBridge:
    """Access to a system's loop for one object that lives there, which errors name."""

    __slots__ = ("_run", "_what", "system")

    def __init__(self, system: Host, what: str, run: Named | None = None) -> None:
        self.system = system
        self._what = what
        self._run = run

    @property
    def is_here(self) -> bool:
        """True in the loop's own thread."""
        return get_ident() == self.system.dispatcher.thread

    @property
    def _subject(self) -> str:
        return self._what if self._run is None else f"{self._what} {self._run.run_id}"

    @property
    def _run_id(self) -> str | None:
        return None if self._run is None else self._run.run_id

    def check(self) -> None:
        """Raise if the loop is closed, or cannot be reached from here."""
        refuse_trio(self._subject)
        if self.system.loop.is_closed():
            msg = (
                f"{self._subject} had not ended when its event loop was closed, so it has no "
                "result. Keep the loop running until it ends."
            )
            raise UsageError(msg, run=self._run_id)
        self.system.check()  # of a forked process

    async def call(self, work: Callable[[], Coroutine[object, None, T]]) -> T:
        """Run `work` on the system's loop, and await it on this one."""
        if self.is_here:
            return await work()
        self.check()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(), self.system.loop))

    def block(
        self,
        work: Callable[[], Coroutine[object, None, T]],
        call: str,
        instead: str,
        *,
        timeout: float | None = None,
        has_ended: Callable[[], bool] = lambda: False,
    ) -> T | None:
        """Run `work` on the system's loop, and wait for it in this thread.

        Returns None if the loop has ended meanwhile, but the object had ended before.
        """
        refuse_on_a_loop(call, instead, self._run_id)
        self.check()
        if self.is_here:
            msg = (
                f"`{call}` would wait forever: {self._subject} belongs to this thread's event "
                f"loop, which is not running. Write `{instead}` in a coroutine."
            )
            raise UsageError(msg, run=self._run_id)
        with self.system.waiting_for_a_run(call, instead):
            return self._blocked(work, call, timeout, has_ended)

    def _blocked(
        self,
        work: Callable[[], Coroutine[object, None, T]],
        call: str,
        timeout: float | None,
        has_ended: Callable[[], bool],
    ) -> T | None:
        future = asyncio.run_coroutine_threadsafe(work(), self.system.loop)
        try:
            return self._wait_for(future, call, timeout, has_ended)
        except concurrent.futures.CancelledError:
            self._ended_with_its_loop(has_ended)
            return None
        except BaseException:
            if not self.system.loop.is_closed():
                future.cancel()
            raise

    def _wait_for(
        self,
        future: concurrent.futures.Future[T],
        call: str,
        timeout: float | None,
        has_ended: Callable[[], bool],
    ) -> T | None:
        until = None if timeout is None else time.monotonic() + timeout
        # A `TimeoutError` raised by the future would look like one from a signal handler.
        done = threading.Event()
        future.add_done_callback(lambda _: done.set())
        while True:
            if done.wait(
                _LOOK_AGAIN
                if until is None
                else min(_LOOK_AGAIN, max(0.0, until - time.monotonic()))
            ):
                return future.result()
            if self.system.loop.is_closed():
                self._ended_with_its_loop(has_ended)
                return None
            if until is not None and time.monotonic() >= until:
                msg = (
                    f"{call}: {self._subject} has not ended within {timeout:g} s, and "
                    "continues. Call result() again, or cancel()."
                )
                raise NotEnded(msg)

    def _ended_with_its_loop(self, has_ended: Callable[[], bool]) -> None:
        if not has_ended():
            self.check()
            msg = (
                f"{self._subject} can no longer be awaited, because its event loop is ending. "
                "Await it before the loop ends."
            )
            raise UsageError(msg, run=self._run_id)
