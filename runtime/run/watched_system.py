"""One system, as measures have it: its actors and mailboxes, and what waits in the stores of its runs.

Owns: which meters look on at the runs of one system alone, and what was read last of its stores. It must never block the system's loop.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from threading import get_ident
from time import monotonic, time
from typing import TYPE_CHECKING, Final
from weakref import ref

from ..durability.run_listing import read_entry
from ..errors import UnderstudyError
from ..log import loggers
from ..stores.run_entries import RunQuery
from ..telemetry.switch import switch

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..agent.run_context import RunContext
    from ..durability.store_access import StoreAccess
    from ..telemetry.meters import Meters
    from ..telemetry.watch import RunWatch

__all__ = ["WatchedSystem", "watch_of", "watched_system"]

_MOST: Final = 10_000
"""Runs that wait, which are looked at."""
_FRESH: Final = 0.5
"""Seconds for which what was read is not read again: a collector asks for each measure by itself."""
_PATIENCE: Final = 5.0
"""Seconds that a collector's thread waits for a store."""


class WatchedSystem:
    """One of these belongs to each system at which measures look."""

    def __init__(self, system: Host) -> None:
        self._system = ref(system)
        self.name = system.name
        self.meters: tuple[Meters, ...] = ()  # of this system alone
        self._stores: dict[StoreAccess, None] = {}
        self._read = (-_FRESH, dict[str, float]())
        self._waits = (-_FRESH, (0, 0.0))

    def add(self, meters: Meters) -> None:
        """Have these look on at the runs that begin from now on."""
        self.meters = (*self.meters, meters)

    def waits_in(self, access: StoreAccess) -> None:
        """Runs of this system are kept there."""
        if access.lists_runs:
            self._stores[access] = None

    def gauges(self) -> dict[str, float]:
        """From any thread."""
        system = self._system()
        if system is not None and monotonic() - self._read[0] >= _FRESH:
            stats = system.stats()
            deepest = stats.deepest[0][1] if stats.deepest else 0
            own = {"actors": stats.actors, "queued": stats.queued, "deepest": deepest}
            self._read = monotonic(), {**own, "handled": stats.handled, "restarts": stats.restarts, "dead_letters": stats.dead_letters}
        return self._read[1]

    def waiting(self) -> tuple[int, float]:
        """How many interrupts wait, and the seconds for which the oldest one has. From any thread; on the loop itself, what was read last."""
        system = self._system()
        stale = monotonic() - self._waits[0] >= _FRESH
        if stale and system is not None and self._stores and system.is_running and get_ident() != system.dispatcher.thread and not system.loop.is_closed():
            look = self.look()
            try:
                looking = asyncio.run_coroutine_threadsafe(look, system.loop)
            except RuntimeError:
                look.close()  # the loop was closed at this moment: what was read last has to do
                return self._waits[1]
            try:
                looking.result(_PATIENCE)
            except (concurrent.futures.TimeoutError, concurrent.futures.CancelledError):
                looking.cancel()  # the store does not answer, or the loop ends: as above
        return self._waits[1]

    async def look_from_anywhere(self) -> tuple[int, float]:
        """The same, on any loop."""
        system = self._system()
        if system is None or not self._stores or not system.is_running:
            return self._waits[1]
        if get_ident() == system.dispatcher.thread:
            return await self.look()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.look(), system.loop))

    async def look(self) -> tuple[int, float]:
        """The same, on the loop."""
        count, since = 0, time()
        for access in tuple(self._stores):
            try:
                entries = await access.run_entries(RunQuery(("interrupted",), limit=_MOST))
            except (UnderstudyError, OSError) as error:
                loggers.telemetry.info("What waits in a store could not be looked up: %s", error)
                continue
            for entry in entries:
                info = read_entry(entry)
                count += len(info.waiting)
                since = min(since, info.updated.timestamp())
        self._waits = monotonic(), (count, time() - since if count else 0.0)
        return self._waits[1]


def watched_system(system: Host) -> WatchedSystem:
    """That of a system; made when it is first asked for."""
    found = system.belongings.get(WatchedSystem)
    if not isinstance(found, WatchedSystem):
        found = system.belongings[WatchedSystem] = WatchedSystem(system)
    return found


def watch_of(system: Host, run: RunContext, agent: str) -> RunWatch | None:
    """What looks on at a run that is made there."""
    own = system.belongings.get(WatchedSystem)
    return switch.watch(run, agent, system, watched_system, own.meters if isinstance(own, WatchedSystem) else ())
