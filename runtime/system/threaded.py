"""A system on a separate loop in a daemon thread, for programs without an event loop.

The thread runs the loop, and enters and leaves an ordinary `ActorSystem` on it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from ..actor import current as directory
from ..errors import UsageError
from ..greenlets import refuse_greenlets
from .system import ActorSystem

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["ThreadedSystem"]


class ThreadedSystem:
    """The result of `ActorSystem.in_thread()`: its `with` block returns the system.

    Inside the block, `MyActor.start()` spawns in that system.
    """

    def __init__(
        self,
        system: ActorSystem,
        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    ) -> None:
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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        directory.leave_scope(self._system)
        self.close()

    def open(self) -> ActorSystem:
        """Start the thread, and return the system when it is running."""
        if self._thread is not None:
            msg = (
                f"{self._system!r} has been entered already. Use it without entering it, or make "
                "another one."
            )
            raise UsageError(msg)
        refuse_greenlets(f"The event loop of {self._system!r}")
        started: Future[None] = Future()
        self._thread = threading.Thread(
            target=self._main, args=(started,), name=f"{self._system.name}-loop", daemon=True
        )
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
            msg = (
                f"{self._system!r} cannot be left from its own event loop, because it would wait "
                "for itself. Leave it in the thread that entered it."
            )
            raise UsageError(msg)
        self._system.on_loop(leave.set)
        thread.join()
        self._thread = None

    def _main(self, started: Future[None]) -> None:
        try:
            runner = asyncio.Runner(loop_factory=self._loop_factory)
            try:
                # Before the coroutine is created, which would never be awaited if this failed.
                runner.get_loop()
                runner.run(self._live(started))
            finally:
                _close(runner)
        except BaseException as error:
            if started.done():
                if "interpreter shutdown" in str(error):
                    # Nothing of the system is left, and the loop had no thread to wait for its
                    # default executor.
                    return
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
    """Close the loop.

    While Python is exiting, it starts no thread, not even the one in which asyncio waits for the
    loop's own worker threads.
    """
    try:
        runner.close()
    except RuntimeError:
        if threading.main_thread().is_alive():
            raise  # otherwise those threads have ended before, and the loop is closed
