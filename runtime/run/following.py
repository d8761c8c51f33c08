"""A run that is looked at from outside: by another process, or by a second caller of the same `run_id`.

Owns: reading its events from the store as they come, and its end. It must never write, nor work on the run: the process that has it does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ..agent.run_messages import CancelMode, CancelRun
from ..data.events import AgentEvent
from ..data.run_result import RunResult, RunStatus
from ..durability.journal import EventReader
from ..durability.kept_outcome import read_outcome
from ..durability.leases import leases_of
from ..durability.open_mark import read_mark
from ..durability.recovery import is_beyond_recovery
from ..durability.store_access import StoreAccess
from ..durability.store_keys import journal_key, open_key, stuck_key
from ..durability.wanted import ask_to_stop
from ..errors import CheckpointError, CheckpointNotFound, RunLost

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..stores.watching import Watch
    from .event_log import EventLog
    from .run_record import RunRecord

__all__ = ["Following", "show_recorded", "wait_until_written"]

_FIRST_LOOK: Final = 0.005
_LAST_LOOK: Final = 0.05
"""Seconds between two looks into a store that tells of no changes: the second is also how late an event may be seen."""
_IN_ANY_CASE: Final = 60.0
"""Seconds between two looks into one that does."""
_PROCESS_LOOK: Final = 1.0
"""Seconds between two looks for the process of a run that no other can go on with: none would write its end."""


class Following:
    """The opening of a run that only looks on: it ends when that run has ended."""

    __slots__ = ("_access", "_after", "_agent_name", "_asked", "_loop", "_run_id", "_stop", "_woken")

    def __init__(self, access: StoreAccess, agent_name: str, run_id: str, after: int = 0) -> None:
        self._access = access
        self._agent_name = agent_name
        self._run_id = run_id
        self._after = after
        self._stop: tuple[CancelMode, float | None] | None = None  # whether it is to end, and how
        self._asked: str | None = None  # the owner that was told so last
        self._woken = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def stop(self, mode: CancelMode, timeout: float | None) -> None:
        """Ask the process that has the run to end it. On the loop."""
        self._stop, self._asked = (mode, timeout), None
        self._woken.set()

    def _changed(self) -> None:
        """The store says that there is something new, in whichever thread."""
        if self._loop is not None and not self._woken.is_set():
            with suppress(RuntimeError):  # the loop is closed: no consumer looks on there any more
                self._loop.call_soon_threadsafe(self._woken.set)

    async def __call__(self, event_log: EventLog, system: Host, _stop: Callable[[CancelRun], object]) -> RunResult:
        record = event_log.record
        event_log.context.rename(self._run_id)
        await wait_until_written(system, self._access, self._agent_name, self._run_id)
        self._loop = asyncio.get_running_loop()
        keys = journal_key(self._run_id), open_key(self._agent_name, self._run_id)
        watch = self._access.watch(keys, self._changed)
        try:
            return await self._follow(record, system, watch)
        finally:
            if watch is not None:
                watch.close()

    async def _follow(self, record: RunRecord, system: Host, watch: Watch | None) -> RunResult:
        events: list[AgentEvent] = []
        reader, position, delay, next_look = EventReader(), 0, _FIRST_LOOK, system.clock.monotonic() + _PROCESS_LOOK
        while True:
            self._woken.clear()  # before it is looked: what comes meanwhile is looked for again
            ended, open_mark = await self._access.get_both(journal_key(self._run_id), open_key(self._agent_name, self._run_id))
            for data in await self._access.read(journal_key(self._run_id), position):
                position += 1
                delay = _FIRST_LOOK
                await self._show(record, [event for event in reader.read(data) if event.seq], events)
            if ended:
                result = read_outcome(self._run_id, ended, tuple(events))
                await self._show(record, result.events, events)
                return result
            if open_mark is None:
                return await self._without_mark(events, position)
            steps = read_mark(self._agent_name, self._run_id, open_mark).steps
            if not steps and system.clock.monotonic() >= next_look:
                await self._look_for_its_process(open_mark)
                next_look = system.clock.monotonic() + _PROCESS_LOOK
            if self._stop is not None:
                await self._tell(system, *self._stop)
            delay = min(delay, self._longest(watch, steps=steps))
            await _pause(system, delay, self._woken)
            delay *= 2

    def _longest(self, watch: Watch | None, *, steps: bool) -> float:
        """How long to wait at most for the next look. Who takes over a run that is to end is told so, and nothing is written when it does."""
        if watch is None or not watch.is_live or self._stop is not None:
            return _LAST_LOOK
        return _IN_ANY_CASE if steps else _PROCESS_LOOK

    async def _tell(self, system: Host, mode: CancelMode, timeout: float | None) -> None:
        """Tell who works on the run that it is to end; each one once, if it is taken over meanwhile. One that has no process now is told to the next one."""
        key = open_key(self._agent_name, self._run_id)
        holder = await self._access.holder(key)
        if holder is None or holder == self._asked:
            return
        self._asked = holder
        if not leases_of(system).stop_here(self._access, key, CancelRun("cancel() was called by who looks on", mode, timeout)):
            await ask_to_stop(self._access, holder, key, mode, timeout)

    async def _look_for_its_process(self, open_mark: bytes) -> None:
        """Raise, if it is gone, and no other can go on with the run: where its steps are not kept."""
        run = read_mark(self._agent_name, self._run_id, open_mark)
        if await is_beyond_recovery(self._access, run) and await self._access.get(open_key(self._agent_name, self._run_id)) == open_mark:
            msg = f"the process of run {self._run_id!r} is gone, and nothing of the run was kept: with durability='step' it could be continued."
            raise RunLost(msg, run=self._run_id)

    async def _show(self, record: RunRecord, more: Sequence[AgentEvent], events: list[AgentEvent]) -> None:
        """Those that are new. What is told to no consumer bears the number of the event before it."""
        for event in more:
            if event.seq > (events[-1].seq if events else 0):
                events.append(event)
                if event.seq > self._after:
                    record.show(event)
                    if not record.has_room:
                        await record.wait_for_room()

    async def _without_mark(self, events: list[AgentEvent], position: int) -> RunResult:
        """It is not under way, and it is not kept how it has ended: it may have ended between the two looks, was set aside, or was never there."""
        ended = await self._access.get(journal_key(self._run_id))
        if ended:
            return read_outcome(self._run_id, ended, tuple(events))
        last = events[-1] if events else None
        message = next((event.message for event in reversed(events) if event.message is not None), None)
        if await self._access.get(stuck_key(self._agent_name, self._run_id)) is not None:
            return RunResult(RunStatus.STUCK, None, message, None, tuple(events), last_agent="" if last is None else last.agent_name)
        if not position:
            msg = f"run {self._run_id!r} of {self._agent_name!r} is not in the store: it was never begun there, or has ended and is not kept any more."
            raise CheckpointNotFound(msg, run=self._run_id)
        msg = f"run {self._run_id!r} has ended, or waits for an answer, and it is not kept how: give its Runner keep='all', or so many seconds."
        raise CheckpointError(msg, run=self._run_id)


async def show_recorded(access: StoreAccess, run_id: str, record: RunRecord) -> None:
    """Show what a run that is about to be continued has shown before: a caller who names it need not know that it was begun."""
    reader = EventReader()
    for data in await access.read(journal_key(run_id)):
        for event in reader.read(data):
            if event.seq > record.last_seq:
                record.show(event)
                if not record.has_room:
                    await record.wait_for_room()


async def wait_until_written(system: Host, access: StoreAccess, agent_name: str, run_id: str) -> None:
    """Wait while a run of this system is about to be written down as begun."""
    key = open_key(agent_name, run_id)
    while leases_of(system).is_at_work(access, key) and await access.get(key) is None:
        await _pause(system, _FIRST_LOOK)


async def _pause(system: Host, seconds: float, woken: asyncio.Event | None = None) -> None:
    woken = asyncio.Event() if woken is None else woken
    timer = system.clock.call_later(seconds, woken.set)
    try:
        await woken.wait()
    finally:
        timer.cancel()
