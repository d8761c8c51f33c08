"""The end of a system: stopping its actors, and abandoning those that do not stop.

The wait for the roots has a time limit, after which the rest is abandoned. At the end, every asker
has been answered, even if a thread or a hook could not be ended.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ..actor import lifecycle
from ..actor.messages import Stopped
from ..log import loggers
from ..tasks import start_task

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from ..actor.cell import Cell
    from .system import ActorSystem

__all__ = ["Shutdown"]

# The number of roots to stop before other work on the loop gets its turn.
_CHUNK = 256


class Shutdown:
    """The end of one system."""

    def __init__(self, system: ActorSystem, timeout: float) -> None:
        self._system = system
        self._timeout = timeout  # for hooks and threads that do not end
        self._roots_gone: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle

    async def let_end(self) -> None:
        """Let the roots finish that were asked to end earlier, within the time limit for hooks."""
        ending: list[asyncio.Future[None]] = []
        for root in tuple(self._system.roots):
            # Looked up on the class, because a user's `__getattr__` could answer anything.
            end = getattr(type(root.actor), "__end_if_wanted__", None)
            if end is not None and (ended := end(root.actor)) is not None:
                ending.append(ended)
        if ending:
            await asyncio.wait(ending, timeout=self._timeout)

    async def stop_all(self) -> None:
        """Stop all actors, children before parents, and wait up to the time limit."""
        system = self._system
        for cell in tuple(system.running):
            cell.interrupt()
        # By the loop's own time: stopping must end, even if the system's clock stands still.
        self._timer = system.loop.call_later(self._timeout, self._cancel_stragglers)
        try:
            for index, root in enumerate(tuple(system.roots), start=1):
                lifecycle.request_stop(root)
                if index % _CHUNK == 0:
                    await asyncio.sleep(0)
            if system.roots:
                self._roots_gone = system.loop.create_future()
                await self._roots_gone
        finally:
            self._timer.cancel()
            self._roots_gone = None
        for task in tuple(system.tasks):
            task.cancel()
        if system.tasks:
            _, hanging = await asyncio.wait(system.tasks, timeout=self._timeout)
            for task in hanging:
                loggers.system.error(
                    "%s, and is abandoned after %g s.", task.get_name(), self._timeout
                )
        await system.workers.leave()

    async def call_last(self, callbacks: list[Callable[[], Coroutine[Any, Any, None]]]) -> None:
        """Run the final callbacks concurrently, within the time limit for hooks."""
        if callbacks:
            calls = [start_task(callback(), "the end of a system") for callback in callbacks]
            callbacks.clear()
            _, hanging = await asyncio.wait(calls, timeout=self._timeout)
            for call in hanging:
                loggers.system.error(
                    "%r does not end, and is abandoned after %g s.", call.get_coro(), self._timeout
                )
                call.cancel()
            for call in set(calls) - hanging:
                if not call.cancelled() and (error := call.exception()) is not None:
                    loggers.system.error(
                        "At the end of %r: %s", self._system, error, exc_info=error
                    )

    def roots_are_gone(self) -> None:
        """End the wait for the roots."""
        if self._roots_gone is not None and not self._roots_gone.done():
            self._roots_gone.set_result(None)

    def _cancel_stragglers(self) -> None:
        """Cancel the hooks and handlers that are still running at the time limit."""
        for cell in self._stragglers():
            loggers.system.error(
                "%s does not stop: after %g s, it is still in %s. It is cancelled.",
                cell.path,
                self._timeout,
                cell.handling,
            )
            cell.cut_off()
        # Cancelled hooks need some turns of the loop to end.
        self._timer = self._system.loop.call_later(
            min(1.0, self._timeout), self._give_up_stragglers
        )

    def _give_up_stragglers(self) -> None:
        """Abandon the actors that cancellation did not end.

        Actors that only waited for them then continue with their own end.
        """
        stragglers = self._stragglers()
        for cell in stragglers:
            self._give_up(cell)
        if stragglers:
            self._timer = self._system.loop.call_later(self._timeout, self._cancel_stragglers)
        else:
            self.roots_are_gone()  # no actor is running anything, and yet the roots do not end

    def _stragglers(self) -> list[Cell]:
        """Return the actors with a running handler or hook, children before parents.

        All others only wait for their descendants.
        """
        return [cell for cell in reversed(self._system.cells()) if cell.handling is not None]

    def _give_up(self, cell: Cell) -> None:
        if cell.handling is not None:
            goes_on = " Its thread goes on until that returns." if cell.holds_thread() else ""
            loggers.system.error(
                "%s is abandoned: it is still in %s.%s", cell.path, cell.handling, goes_on
            )
        if cell.task is not None:
            cell.task.cancel()
        cell.end_task()
        cell.end(Stopped())

    def give_up_rest(self) -> None:
        """End the remaining actors without waiting for them, children before parents."""
        system = self._system
        for cell in reversed(system.cells()):
            self._give_up(cell)
        for task in system.tasks:
            task.cancel()
        system.workers.leave_behind()
