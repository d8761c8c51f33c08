"""The way to a system's event loop, from any thread and from any other loop.

Owns: how a coroutine is run on the loop that something lives on: awaited there, awaited from another loop, or waited for in a thread without one. It must
never block a thread in which an event loop is running.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from collections.abc import Callable, Coroutine
from threading import get_ident
from typing import Final, Protocol, TypeVar

from ..actor.host import Host
from ..errors import UsageError

__all__ = ["LoopDoor", "refuse_on_a_loop", "running_loop"]

T = TypeVar("T")

_LOOK_AGAIN: Final = 0.5
"""Seconds after which a thread that waits looks whether the loop is still there: one that is stopped and closed does not say so."""


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The event loop that is running in this thread."""
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def refuse_on_a_loop(call: str, instead: str, run_id: str | None = None) -> None:
    """Raise, if an event loop is running in this thread: a call that blocks would stop it."""
    if running_loop() is not None:
        msg = f"`{call}` blocks its thread, and an event loop is running in this one. Write `{instead}`."
        raise UsageError(msg, run=run_id)


class Named(Protocol):
    """What belongs to a run, whose id may change when its checkpoint is found."""

    @property
    def run_id(self) -> str: ...


class LoopDoor:
    """The way to one system's loop, for one thing that lives there: errors say which."""

    __slots__ = ("_run", "_what", "system")

    def __init__(self, system: Host, what: str, run: Named | None = None) -> None:
        self.system = system
        self._what = what
        self._run = run

    @property
    def is_here(self) -> bool:
        """Whether this is the loop's own thread."""
        return get_ident() == self.system.dispatcher.thread

    @property
    def _subject(self) -> str:
        return self._what if self._run is None else f"{self._what} {self._run.run_id}"

    @property
    def _run_id(self) -> str | None:
        return None if self._run is None else self._run.run_id

    def check(self) -> None:
        """Raise, if the loop is closed."""
        if self.system.loop.is_closed():
            msg = f"{self._subject} was not at its end when the event loop that it lived on was closed: nothing more will come of it."
            raise UsageError(msg, run=self._run_id)

    async def call(self, work: Callable[[], Coroutine[object, None, T]]) -> T:
        """Do it on the loop, and wait for it on this one."""
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
        """Do it on the loop, and wait for it in this thread. Returns None if the loop has ended meanwhile, and what lives there had ended before."""
        refuse_on_a_loop(call, instead, self._run_id)
        self.check()
        if self.is_here:
            msg = f"`{call}` would wait for ever: {self._subject} lives on this thread's event loop, which is not running. Write `{instead}` in a coroutine."
            raise UsageError(msg, run=self._run_id)
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

    def _wait_for(self, future: concurrent.futures.Future[T], call: str, timeout: float | None, has_ended: Callable[[], bool]) -> T | None:
        until = None if timeout is None else time.monotonic() + timeout
        while True:
            try:
                return future.result(_LOOK_AGAIN if until is None else min(_LOOK_AGAIN, max(0.0, until - time.monotonic())))
            except concurrent.futures.TimeoutError:
                if future.done():
                    raise
            if self.system.loop.is_closed():
                self._ended_with_its_loop(has_ended)
                return None
            if until is not None and time.monotonic() >= until:
                msg = f"{call}: {self._subject} has not ended within {timeout:g} s. It goes on: call result() again, or cancel()."
                raise TimeoutError(msg)

    def _ended_with_its_loop(self, has_ended: Callable[[], bool]) -> None:
        if not has_ended():
            self.check()
            msg = f"{self._subject} cannot be waited for any more: the event loop that it lives on is ending."
            raise UsageError(msg, run=self._run_id)
