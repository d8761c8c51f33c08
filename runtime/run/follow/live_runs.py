"""The runs of this process, by store, for followers in the same process.

Such a follower sees events as they happen, including deltas. It never slows the run down: one that
is too slow is disconnected, and reads the rest from the store.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ...agent.run_messages import CancelRun
from ...data.chat import MessageDelta
from ...data.events import AgentEvent
from ..cancellation import stop_run_of
from ..run_progress import RunProgress
from ..stream import EventStream

if TYPE_CHECKING:
    from ...actor.host import Host
    from ...actor.loop_cell import LoopCell
    from ...durability.store_access import StoreAccess

__all__ = ["LiveRun", "live_run", "live_run_anywhere"]

_CAPACITY: Final = 1024
"""The number of events that may wait for one follower. Deltas are merged long before that."""

_live: Final[dict[asyncio.AbstractEventLoop, dict[str, LiveRun]]] = {}


class _Pieces:
    """The deltas of a message that is still streaming.

    There may be thousands. Of most, only the text, the number and the time are stored: a quarter of
    the memory that their events would take.
    """

    __slots__ = ("_events", "_seqs", "_texts", "_times")

    def __init__(self, first: AgentEvent) -> None:
        self._events = [first]  # the first, and those that are more than text
        self._texts: list[str] = []
        self._seqs = array("q")
        self._times = array("d")

    def add(self, event: AgentEvent) -> None:
        delta = event.delta
        assert delta is not None
        if delta.reasoning or delta.tool_calls or type(delta) is not MessageDelta:
            self._events.append(event)
        else:
            self._texts.append(delta.content)
            self._seqs.append(event.seq)
            self._times.append(event.timestamp)

    def events(self) -> Iterator[AgentEvent]:
        """Yield all of them, in no particular order."""
        yield from self._events
        first = self._events[0]
        for text, seq, timestamp in zip(self._texts, self._seqs, self._times, strict=True):
            yield first.replace(delta=MessageDelta(text), seq=seq, timestamp=timestamp)


class LiveRun:
    """One run of this process, with its followers."""

    __slots__ = (
        "_access",
        "_cell",
        "_followers",
        "_older",
        "_pieces",
        "progress",
        "run_id",
        "system",
    )

    def __init__(self, access: StoreAccess, progress: RunProgress, system: Host) -> None:
        self.progress = progress
        self.system = system
        self.run_id = progress.context.run_id
        self._cell: LoopCell | None = None
        self._followers: tuple[EventStream, ...] = ()
        self._pieces: dict[str, _Pieces] = {}  # by invocation
        self._access = access
        # An older run with the same id, in another store or not left yet.
        self._older: LiveRun | None = None
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
            pieces = self._pieces.get(event.invocation_id)
            if pieces is None:
                self._pieces[event.invocation_id] = _Pieces(event)
            else:
                pieces.add(event)
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
        if self.progress.has_ended:
            stream.end()
        else:
            self._followers += (stream,)
        so_far = [
            *self.progress.events,
            *(piece for pieces in self._pieces.values() for piece in pieces.events()),
        ]
        return self.progress.last_seq, sorted(so_far, key=lambda event: event.seq), stream

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
        here = _live.setdefault(loop, {})
        self._older, here[self.run_id] = here.get(self.run_id), self

    def _remove(self) -> None:
        here = _live.get(self.system.loop, {})
        newest = here.get(self.run_id)
        if newest is self:
            if self._older is None:
                del here[self.run_id]
            else:
                here[self.run_id] = self._older
        while newest is not None:
            if newest._older is self:
                newest._older = self._older
            newest = newest._older
        self._older = None
        if not here:
            _live.pop(self.system.loop, None)

    def of_store(self, access: StoreAccess) -> LiveRun | None:
        """Return the newest run with this id in that store."""
        run: LiveRun | None = self
        while run is not None and run._access != access:
            run = run._older
        return run


def live_run(access: StoreAccess, run_id: str) -> LiveRun | None:
    """Return the run with this id on the running event loop."""
    newest = _live.get(asyncio.get_running_loop(), {}).get(run_id)
    return None if newest is None else newest.of_store(access)


def live_run_anywhere(access: StoreAccess, run_id: str) -> LiveRun | None:
    """Return the run with this id on any event loop of this process."""
    for loop, runs in tuple(_live.items()):
        newest = None if loop.is_closed() else runs.get(run_id)
        if newest is not None and (found := newest.of_store(access)) is not None:
            return found
    return None
