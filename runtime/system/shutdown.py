"""The end of a system: how its actors are stopped, and what happens to those that do not stop.

Owns: the wait for the roots to end, its time limit, and giving up the rest after that. When it is done, every asker has been answered, even if a thread or
a hook could not be ended. It must never wait without a limit.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..actor import lifecycle
from ..actor.messages import Stopped
from ..log import loggers

if TYPE_CHECKING:
    from ..actor.cell import Cell
    from .system import ActorSystem

__all__ = ["Shutdown"]

# So many roots are told to stop before other work on the loop has its turn.
_CHUNK = 256


class Shutdown:
    """The end of one system."""

    def __init__(self, system: ActorSystem, timeout: float) -> None:
        self._system = system
        self._timeout = timeout  # for hooks and threads that do not end
        self._roots_gone: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle

    async def let_end(self) -> None:
        """Let those roots come to their end which were asked to before: as long as hooks may take, and not longer."""
        ending: list[asyncio.Future[None]] = []
        for root in tuple(self._system.roots):
            end = getattr(type(root.actor), "__end_if_wanted__", None)  # what a user's actor says of attributes that it has not is nothing to go by
            if end is not None and (ended := end(root.actor)) is not None:
                ending.append(ended)
        if ending:
            await asyncio.wait(ending, timeout=self._timeout)

    async def stop_all(self) -> None:
        """Stop all actors, children before parents, and wait for that until the time limit."""
        system = self._system
        for cell in tuple(system.running):
            cell.interrupt()
        # By the loop's own time: leaving must end, even if the system's clock stands still.
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
                loggers.system.error("%s, and is given up after %g s.", task.get_name(), self._timeout)
        await system.workers.leave()

    def roots_are_gone(self) -> None:
        """End the wait for the roots."""
        if self._roots_gone is not None and not self._roots_gone.done():
            self._roots_gone.set_result(None)

    def _cancel_stragglers(self) -> None:
        """Cancel the hooks and handlers that are still under way at the time limit."""
        for cell in self._stragglers():
            loggers.system.error("%s does not stop: after %g s, it is still in %s. It is cancelled.", cell.path, self._timeout, cell.handling)
            cell.cut_off()
        # Cancelled hooks need some turns of the loop to end.
        self._timer = self._system.loop.call_later(min(1.0, self._timeout), self._give_up_stragglers)

    def _give_up_stragglers(self) -> None:
        """Give up the actors that cancelling did not end. Those that only waited for them then continue with their own end."""
        stragglers = self._stragglers()
        for cell in stragglers:
            self._give_up(cell)
        if stragglers:
            self._timer = self._system.loop.call_later(self._timeout, self._cancel_stragglers)
        else:
            self.roots_are_gone()  # no actor does anything, and yet the roots do not end

    def _stragglers(self) -> list[Cell]:
        """The actors with a handler or hook under way, children before parents. All others only wait for their descendants."""
        return [cell for cell in reversed(self._system.cells()) if cell.handling is not None]

    def _give_up(self, cell: Cell) -> None:
        if cell.handling is not None:
            goes_on = " Its thread goes on until that returns." if cell.holds_thread() else ""
            loggers.system.error("%s is given up: it is still in %s.%s", cell.path, cell.handling, goes_on)
        if cell.task is not None:
            cell.task.cancel()
        cell.end_task()
        cell.end(Stopped())

    def give_up_rest(self) -> None:
        """End all actors that have not ended, without waiting for them, children before parents."""
        system = self._system
        for cell in reversed(system.cells()):
            self._give_up(cell)
        for task in system.tasks:
            task.cancel()
        system.workers.leave_behind()
