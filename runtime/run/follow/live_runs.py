"""The runs of this process, by store, for followers in the same process.

Such a follower sees events as they happen, including deltas. It never slows the run down: one that
is too slow is disconnected, and reads the rest from the store.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ...agent.run_messages import CancelRun
from ...data.events import AgentEvent
from ..cancellation import stop_run_of
from ..run_record import RunRecord
from ..stream import EventStream

if TYPE_CHECKING:
    from ...actor.host import Host
    from ...actor.loop_cell import LoopCell
    from ...durability.store_access import StoreAccess

__all__ = ["LiveRun", "live_run", "live_run_anywhere"]

_CAPACITY: Final = 1024
"""The number of events that may wait for one follower. Deltas are merged long before that."""

_live: Final[dict[asyncio.AbstractEventLoop, dict[tuple[StoreAccess, str], list[LiveRun]]]] = {}


class LiveRun:
    """One run of this process, with its followers."""

    __slots__ = ("_access", "_cell", "_followers", "_pieces", "record", "run_id", "system")

    def __init__(self, access: StoreAccess, record: RunRecord, system: Host) -> None:
        self.record = record
        self.system = system
        self.run_id = record.context.run_id
        self._cell: LoopCell | None = None
        self._followers: tuple[EventStream, ...] = ()
        self._pieces: dict[
            str, list[AgentEvent]
        ] = {}  # of messages that are still streaming, by invocation
        self._access = access
        self._add()

    def begin(self, cell: LoopCell) -> None:
        """Note that the run's supervisor has started."""
        self._cell = cell

    def known_as(self, run_id: str) -> None:
        """Register the run under the id of the stored run that it continues."""
        if run_id != self.run_id:
            self._remove()
            self.run_id = run_id
            self._add()

    def show(self, event: AgentEvent) -> None:
        """Pass an event to the followers."""
        if event.delta is not None and event.error is None:
            self._pieces.setdefault(event.invocation_id, []).append(event)
            for stream in self._followers:
                if not stream.merge(event):
                    stream.put(event)
            return
        self._pieces.pop(event.invocation_id, None)
        for stream in self._followers:
            stream.put(event)

    def follow(self) -> tuple[int, list[AgentEvent], EventStream]:
        """Start to follow the run.

        Returns the number of the last event, the events in memory, and the stream of later events.
        """
        stream = EventStream(_CAPACITY)
        stream.never_waits()
        if self.record.has_ended:
            stream.end()
        else:
            self._followers += (stream,)
        so_far = [
            *self.record.events,
            *(piece for pieces in self._pieces.values() for piece in pieces),
        ]
        return self.record.last_seq, sorted(so_far, key=lambda event: event.seq), stream

    def leave(self, stream: EventStream) -> None:
        """Remove a follower."""
        stream.discard()
        self._followers = tuple(other for other in self._followers if other is not stream)

    def stop(self, request: CancelRun) -> None:
        """End the run."""
        if self._cell is not None:
            stop_run_of(self._cell, request)

    def end(self) -> None:
        """Disconnect the followers, because the run has ended or follows another one."""
        self._remove()
        self._pieces.clear()
        self._cell = None
        followers, self._followers = self._followers, ()
        for stream in followers:
            stream.end()

    def _add(self) -> None:
        loop = self.system.loop
        if loop not in _live:
            for closed in [
                other for other in tuple(_live) if other.is_closed()
            ]:  # with runs that never ended
                _live.pop(closed, None)
        _live.setdefault(loop, {}).setdefault((self._access, self.run_id), []).append(self)

    def _remove(self) -> None:
        here, key = _live.get(self.system.loop, {}), (self._access, self.run_id)
        runs = here.get(key, [])
        if self in runs:
            runs.remove(self)
        if not runs:
            here.pop(key, None)
        if not here:
            _live.pop(self.system.loop, None)


def live_run(access: StoreAccess, run_id: str) -> LiveRun | None:
    """Return the run with this id on the running event loop."""
    runs = _live.get(asyncio.get_running_loop(), {}).get((access, run_id))
    return runs[-1] if runs else None


def live_run_anywhere(access: StoreAccess, run_id: str) -> LiveRun | None:
    """Return the run with this id on any event loop of this process."""
    for loop, runs in tuple(_live.items()):
        if not loop.is_closed() and (found := runs.get((access, run_id))):
            return found[-1]
    return None
