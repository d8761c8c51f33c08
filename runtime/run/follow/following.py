"""Following a run from outside, in another process or for a second caller of the same `run_id`.

A follower reads the run's events and its end from the store as they arrive. It writes nothing: the
process that has claimed the run does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ...agent.run_messages import CancelMode, CancelRun
from ...data.events import AgentEvent
from ...data.run_result import RunResult, RunStatus
from ...durability.kept_outcome import read_outcome
from ...durability.leases import leases_of
from ...durability.recovery import is_beyond_recovery
from ...durability.replay import EventReader
from ...durability.run_row import read_entry, read_run
from ...durability.store_access import StoreAccess
from ...durability.store_keys import journal_key, open_key
from ...durability.unfinished_run import lost_text
from ...durability.wanted import ask_to_stop
from ...errors import CheckpointError, CheckpointNotFound, RunCancelled, RunLost
from .live_runs import LiveRun, live_run

if TYPE_CHECKING:
    from ...actor.host import Host
    from ...durability.unfinished_run import UnfinishedRun
    from ...stores.run_entries import RunEntry
    from ...stores.watching import Watch
    from ..event_log import EventLog
    from ..run_progress import RunProgress

__all__ = ["Following", "pause", "show_recorded", "wait_until_written"]

_FIRST_LOOK: Final = 0.005
_LAST_LOOK: Final = 0.05
"""Seconds between two reads of a store without change notifications.

The second value also bounds how late an event is seen.
"""
_BATCH: Final = 64
_IN_ANY_CASE: Final = 60.0
"""Seconds between two reads of a store with change notifications."""
_PROCESS_LOOK: Final = 1.0
"""Seconds between two checks for the process of a run that no other process can continue.

Without that process, nobody would write the run's end.
"""


class Following:
    """The opening of a run that only follows another run.

    It ends when that run has ended or, unless it `waits`, when that run is interrupted.
    """

    __slots__ = (
        "_access",
        "_after",
        "_agent_name",
        "_asked",
        "_events",
        "_live",
        "_loop",
        "_problem",
        "_run_id",
        "_shown",
        "_stop",
        "_waits",
        "_woken",
    )

    def __init__(
        self,
        access: StoreAccess,
        agent_name: str,
        run_id: str,
        after: int = 0,
        *,
        waits: bool = False,
    ) -> None:
        self._access = access
        self._agent_name = agent_name
        self._run_id = run_id
        self._after = after
        self._waits = waits
        self._events: list[AgentEvent] = []  # all so far, without deltas
        self._shown = 0  # number of the last event shown
        self._live: LiveRun | None = None  # the run, while its events come from this process
        self._problem: Exception | None = None  # why a run of this process did not start
        self._stop: tuple[CancelMode, float | None] | None = None  # set if the run was asked to end
        self._asked: str | None = None  # the last owner that received this request
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def stop(self, mode: CancelMode, timeout: float | None) -> None:
        """Ask the process that runs it to end the run. On the loop."""
        self._stop, self._asked = (mode, timeout), None
        self._woken.set()
        if self._live is not None:
            self._live.stop(_stop_request(mode, timeout))

    def _changed(self) -> None:
        """Handle the store's change notification, in any thread."""
        if self._loop is not None and not self._woken.is_set():
            with suppress(RuntimeError):  # the loop is closed: its consumer has gone
                self._loop.call_soon_threadsafe(self._woken.set)

    async def __call__(
        self, event_log: EventLog, system: Host, _stop: Callable[[CancelRun], object]
    ) -> RunResult:
        progress = event_log.progress
        progress.follows = True
        event_log.context.rename(self._run_id)
        if progress.live is not None:
            progress.live.end()  # the follower is not the run itself
            progress.live = None
        if live_run(self._access, self._run_id) is None:
            await wait_until_written(system, self._access, self._agent_name, self._run_id)
        progress.accept()
        self._loop = asyncio.get_running_loop()
        keys = (
            journal_key(self._run_id),
            self._run_id,  # of its row; of a store without rows, the value instead of one
            open_key(self._agent_name, self._run_id),
        )
        watch = self._access.watch(keys, self._changed)
        try:
            return await self._follow(progress, system, watch)
        finally:
            if watch is not None:
                watch.close()

    async def _follow(self, progress: RunProgress, system: Host, watch: Watch | None) -> RunResult:
        reader, position, delay, next_look = (
            EventReader(),
            0,
            _FIRST_LOOK,
            system.clock.monotonic() + _PROCESS_LOOK,
        )
        while True:
            self._woken.clear()  # before the read, so that a change during it causes another one
            if (live := live_run(self._access, self._run_id)) is not None:
                if (result := await self._follow_here(progress, live)) is not None:
                    return result
                reader, position, delay = EventReader(), 0, _FIRST_LOOK
                continue
            row, ended = await self._access.row_and_outcome(self._agent_name, self._run_id)
            is_open = row is not None and row.claim != ""
            for data in await self._access.read(journal_key(self._run_id), position):
                position += 1
                delay = _FIRST_LOOK
                await self._show(progress, [event for event in reader.read(data) if event.seq])
            result = await self._unless_open(ended, position) if ended or not is_open else None
            if result is not None:
                await self._show(progress, result.events)
                if not (self._waits and result.status is RunStatus.INTERRUPTED):
                    return result
            run = read_run(row) if row is not None and is_open else None
            steps = run is not None and run.steps and not run.queued
            if (
                run is not None
                and row is not None
                and not steps
                and system.clock.monotonic() >= next_look
            ):
                await self._look_for_its_process(run, row)
                next_look = system.clock.monotonic() + _PROCESS_LOOK
            if self._stop is not None:
                await self._tell(system, *self._stop)
            if result is not None:  # an interrupted run may wait for days
                delay = _IN_ANY_CASE if watch is not None and watch.is_live else _PROCESS_LOOK
            await pause(
                system,
                min(delay, self._longest(watch, steps=steps, waits=result is not None)),
                self._woken,
            )
            delay = _FIRST_LOOK if result is not None else 2 * delay

    async def _follow_here(self, progress: RunProgress, live: LiveRun) -> RunResult | None:
        """Show the events of a run of this process as they happen.

        Returns None if the run continues elsewhere or later, or if the store must tell how it
        ended.
        """
        since, so_far, coming = live.follow()
        self._live, last_words = live, list[AgentEvent]()
        if self._stop is not None:
            live.stop(_stop_request(*self._stop))
        try:
            reader = EventReader()
            written = [
                event
                for data in await self._access.read(journal_key(self._run_id))
                for event in reader.read(data)
                if 0 < event.seq <= since
            ]
            numbers = {event.seq for event in written}
            await self._show(
                progress,
                sorted(
                    [*written, *(event for event in so_far if event.seq not in numbers)],
                    key=_number,
                ),
            )
            while more := await coming.take(_BATCH):
                last_words += (event for event in more if not event.invocation_id)
                await self._show(progress, [event for event in more if event.invocation_id])
        finally:
            self._live = None
            live.leave(coming)
        self._problem, result = live.progress.problem, live.progress.result
        if (
            result is None
            or result.status is RunStatus.DRAINED
            or isinstance(result.error, RunLost)
        ):
            return None  # its last events concern its process, not the run
        await self._show(progress, last_words)
        if live.progress.follows or (self._waits and result.status is RunStatus.INTERRUPTED):
            return None
        return result.replace(events=tuple(self._events))

    def _longest(self, watch: Watch | None, *, steps: bool, waits: bool) -> float:
        """Return the longest time to wait before the next read.

        While a stop is pending, the wait is short: the next process to claim the run must receive
        it, and claiming writes nothing that would wake the follower.
        """
        if waits and self._stop is None:
            return _IN_ANY_CASE
        if watch is None or not watch.is_live or self._stop is not None:
            return _LAST_LOOK
        return _IN_ANY_CASE if steps else _PROCESS_LOOK

    async def _tell(self, system: Host, mode: CancelMode, timeout: float | None) -> None:
        """Send the stop request to the process that runs the run, once to each owner.

        If no process has the run now, the next one receives the request.
        """
        key = open_key(self._agent_name, self._run_id)
        holder = await self._access.holder(key)
        if holder is None or holder == self._asked:
            return
        self._asked = holder
        if not leases_of(system).stop_here(self._access, key, _stop_request(mode, timeout)):
            await ask_to_stop(self._access, holder, key, mode, timeout)

    async def _look_for_its_process(self, run: UnfinishedRun, row: RunEntry) -> None:
        """Raise if the run's process is gone and no other can continue it, lacking its steps."""
        if (
            await is_beyond_recovery(self._access, run)
            and await self._access.row(self._agent_name, self._run_id) == row
        ):
            raise RunLost(lost_text(run), run=self._run_id)

    async def _show(self, progress: RunProgress, more: Sequence[AgentEvent]) -> None:
        """Show the new events.

        An event that is shown to no consumer has the number of the event before it.
        """
        for event in more:
            if event.seq > self._shown:
                self._shown = event.seq
                if event.delta is None:
                    self._events.append(event)
                if event.seq > self._after:
                    progress.show(event)
                    if not progress.has_room:
                        await progress.wait_for_room()

    async def _unless_open(self, ended: bytes | None, position: int) -> RunResult | None:
        """Return the stored result, or what the run's row reports; None if the run is running.

        The run may have started or ended since the previous reads.
        """
        row = await self._access.row(self._agent_name, self._run_id)
        if not ended and row is not None and row.claim:
            return None
        ended = ended or await self._access.get(journal_key(self._run_id))
        events = tuple(self._events)
        if ended:
            return read_outcome(self._run_id, ended, events)
        last = events[-1].agent_name if events else ""
        message = next(
            (event.message for event in reversed(events) if event.message is not None), None
        )
        if row is not None and row.status == RunStatus.STUCK.value:
            return RunResult(
                RunStatus.STUCK, None, message, None, events, last_agent=last, run_id=self._run_id
            )
        info = None if row is None else read_entry(row)
        if info is not None and info.status is RunStatus.INTERRUPTED:
            return RunResult(
                info.status,
                None,
                message,
                None,
                events,
                info.waiting,
                info.usage,
                last_agent=last,
                run_id=self._run_id,
            )
        if info is not None and info.status in (RunStatus.CANCELLED, RunStatus.FAILED):
            text = info.error or f"the run was {info.status}"
            error = (
                RunCancelled(text, run=self._run_id)
                if info.status is RunStatus.CANCELLED
                else RunLost(text, run=self._run_id)
            )
            return RunResult(
                info.status,
                error,
                message,
                None,
                events,
                usage=info.usage,
                last_agent=last,
                run_id=self._run_id,
            )
        if self._problem is not None:
            raise self._problem
        if not position:
            msg = (
                f"run {self._run_id!r} of {self._agent_name!r} is not in the store: it was never "
                "stored there, or its retention is over. Check the id and the store."
            )
            raise CheckpointNotFound(msg, run=self._run_id)
        msg = (
            f"run {self._run_id!r} has ended, or waits for an answer, and its result was "
            "not retained. Pass keep='all', or a number of seconds, to its Runner."
        )
        raise CheckpointError(msg, run=self._run_id)


def _number(event: AgentEvent) -> int:
    return event.seq


def _stop_request(mode: CancelMode, timeout: float | None) -> CancelRun:
    return CancelRun("cancel() was called by who looks on", mode, timeout)


async def show_recorded(access: StoreAccess, run_id: str, progress: RunProgress) -> None:
    """Show the recorded events of a run that is about to continue.

    A caller that passes its `run_id` need not know that the run was started before.
    """
    reader = EventReader()
    for data in await access.read(journal_key(run_id)):
        for event in reader.read(data):
            if event.seq > progress.last_seq:
                progress.show(event)
                if not progress.has_room:
                    await progress.wait_for_room()


async def wait_until_written(
    system: Host, access: StoreAccess, agent_name: str, run_id: str
) -> None:
    """Wait while a run of this system is about to record its start."""
    key = open_key(agent_name, run_id)
    while leases_of(system).is_at_work(access, key):
        row = await access.row(agent_name, run_id)
        if row is not None and row.claim:
            return
        await pause(system, _FIRST_LOOK)


async def pause(system: Host, seconds: float, woken: asyncio.Event | None = None) -> None:
    """Wait by the system's clock, or until `woken` is set."""
    woken = asyncio.Event() if woken is None else woken
    timer = system.clock.call_later(seconds, woken.set)
    try:
        await woken.wait()
    finally:
        timer.cancel()
