"""One actor system as the metrics see it: its actors, its mailboxes, the interrupts in its stores.

The module keeps the meters that observe only this system's runs, and caches the latest readings. It
never blocks the system's loop.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from threading import get_ident
from time import monotonic, time
from typing import TYPE_CHECKING, Final
from weakref import ref

from ..durability.run_row import read_entry
from ..errors import OffbookError
from ..log import loggers
from ..stores.run_entries import RunQuery
from ..telemetry.switch import switch

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..agent.run_context import RunContext
    from ..durability.store_access import StoreAccess
    from ..telemetry.meters import Meters
    from ..telemetry.run_telemetry import RunTelemetry

__all__ = ["WatchedSystem", "watch_of", "watched_system"]

_MOST: Final = 10_000
"""The largest number of waiting runs that one reading counts."""
_FRESH: Final = 0.5
"""Seconds for which a reading is reused, because a collector reads each metric separately."""
_PATIENCE: Final = 5.0
"""Seconds that a collector's thread waits for a store."""


class WatchedSystem:
    """The metrics of one system. Each observed system has one."""

    def __init__(self, system: Host) -> None:
        self._system = ref(system)
        self.name = system.name
        self.meters: tuple[Meters, ...] = ()  # for this system alone
        self._stores: dict[StoreAccess, None] = {}
        self._read = (-_FRESH, dict[str, float]())
        self._waits = (-_FRESH, (0, 0.0))

    def add(self, meters: Meters) -> None:
        """Let `meters` observe the runs that start from now on."""
        self.meters = (*self.meters, meters)

    def waits_in(self, access: StoreAccess) -> None:
        """Note that runs of this system are stored in `access`."""
        if access.lists_runs:
            self._stores[access] = None

    def gauges(self) -> dict[str, float]:
        """Return the current gauges. From any thread."""
        system = self._system()
        if system is not None and monotonic() - self._read[0] >= _FRESH:
            stats = system.stats()
            deepest = stats.deepest[0][1] if stats.deepest else 0
            own = {"actors": stats.actors, "queued": stats.queued, "deepest": deepest}
            self._read = (
                monotonic(),
                {
                    **own,
                    "handled": stats.handled,
                    "restarts": stats.restarts,
                    "dead_letters": stats.dead_letters,
                },
            )
        return self._read[1]

    def waiting(self) -> tuple[int, float]:
        """Return the number of waiting interrupts, and the age of the oldest one in seconds.

        From any thread; on the loop itself, returns the latest reading.
        """
        system = self._system()
        stale = monotonic() - self._waits[0] >= _FRESH
        if (
            stale
            and system is not None
            and self._stores
            and system.is_running
            and get_ident() != system.dispatcher.thread
            and not system.loop.is_closed()
        ):
            look = self.look()
            try:
                looking = asyncio.run_coroutine_threadsafe(look, system.loop)
            except RuntimeError:
                look.close()  # the loop was closed at this moment: use the latest reading
                return self._waits[1]
            try:
                looking.result(_PATIENCE)
            except (concurrent.futures.TimeoutError, concurrent.futures.CancelledError):
                # the store does not answer, or the loop ends: use the latest reading
                looking.cancel()
        return self._waits[1]

    async def look_from_anywhere(self) -> tuple[int, float]:
        """Return the same as `waiting`, on any loop."""
        system = self._system()
        if system is None or not self._stores or not system.is_running:
            return self._waits[1]
        if get_ident() == system.dispatcher.thread:
            return await self.look()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.look(), system.loop))

    async def look(self) -> tuple[int, float]:
        """Return the same as `waiting`, on the system's loop."""
        count, since = 0, time()
        for access in tuple(self._stores):
            try:
                entries = await access.run_entries(RunQuery(("interrupted",), limit=_MOST))
            except (OffbookError, OSError) as error:
                loggers.telemetry.info(
                    "The waiting interrupts of a store could not be counted: %s", error
                )
                continue
            for entry in entries:
                info = read_entry(entry)
                count += len(info.waiting)
                since = min(since, info.updated.timestamp())
        self._waits = monotonic(), (count, time() - since if count else 0.0)
        return self._waits[1]


def watched_system(system: Host) -> WatchedSystem:
    """Return the metrics of `system`; creates them on first use."""
    found = system.belongings.get(WatchedSystem)
    if not isinstance(found, WatchedSystem):
        found = system.belongings[WatchedSystem] = WatchedSystem(system)
    return found


def watch_of(system: Host, run: RunContext, agent: str) -> RunTelemetry | None:
    """Return the observer for a run that is created in `system`."""
    own = system.belongings.get(WatchedSystem)
    return switch.watch(
        run, agent, system, watched_system, own.meters if isinstance(own, WatchedSystem) else ()
    )
