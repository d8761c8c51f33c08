"""A system with a loop of its own in a daemon thread: for programs that have no event loop.

Owns: the thread and its loop, on which it enters and leaves an ordinary `ActorSystem`. It must never do anything else with that system.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from ..actor import current as directory
from ..errors import UsageError
from .system import ActorSystem

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["ThreadedSystem"]


class ThreadedSystem:
    """The result of `ActorSystem.in_thread()`: a `with` block around it gets the system. Inside the block, `MyActor.start()` spawns in that system."""

    def __init__(self, system: ActorSystem, loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None) -> None:
        self._system = system
        self._loop_factory = loop_factory
        self._thread: threading.Thread | None = None
        self._leave: asyncio.Event | None = None

    @classmethod
    def named(cls, name: str) -> ThreadedSystem:
        return cls(ActorSystem(name))

    def __enter__(self) -> ActorSystem:
        system = self.open()
        directory.enter_scope(system)
        return system

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        directory.leave_scope(self._system)
        self.close()

    def open(self) -> ActorSystem:
        """Start the thread, and return the system when it runs."""
        if self._thread is not None:
            msg = f"{self._system!r} has been entered already."
            raise UsageError(msg)
        started: Future[None] = Future()
        self._thread = threading.Thread(target=self._main, args=(started,), name=f"{self._system.name}-loop", daemon=True)
        self._thread.start()
        try:
            started.result()
        except BaseException:
            self._thread = None
            raise
        return self._system

    def close(self) -> None:
        """Stop everything, and return when the thread has ended."""
        thread, leave = self._thread, self._leave
        if thread is None or leave is None:
            return
        if thread is threading.current_thread():
            msg = f"{self._system!r} cannot be left by one of its own actors, on its own loop: it would wait for itself."
            raise UsageError(msg)
        self._system.on_loop(leave.set)
        thread.join()
        self._thread = None

    def _main(self, started: Future[None]) -> None:
        try:
            runner = asyncio.Runner(loop_factory=self._loop_factory)
            try:
                runner.get_loop()  # made before the coroutine, which would never be awaited if that failed
                runner.run(self._live(started))
            finally:
                _close(runner)
        except BaseException as error:
            if started.done():
                if "interpreter shutdown" in str(error):
                    return  # nothing of the system is left, and the loop had no thread to wait for its default executor
                raise
            started.set_exception(error)  # raised where the system is entered

    async def _live(self, started: Future[None]) -> None:
        self._leave = asyncio.Event()
        await self._system.start()
        started.set_result(None)
        try:
            await self._leave.wait()
        finally:
            await self._system.stop()


def _close(runner: asyncio.Runner) -> None:
    """Close the loop. While Python is ending, it starts no thread, not even the one in which asyncio waits for the loop's own worker threads."""
    try:
        runner.close()
    except RuntimeError:
        if threading.main_thread().is_alive():
            raise  # else those threads have ended before, and the loop is closed
