"""How a run is opened that has to do with a store: before an agent plays, it is found out from where it starts.

Owns: the order in which a turn of a session is waited for, a checkpoint is found, and the run is written down as begun. It must never start an agent.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

from ..agent.invocation import walk
from ..agent.run_messages import CancelRun
from ..data.agent_input import AgentInput
from ..data.run_result import RunResult
from ..durability.answers import Answers
from ..durability.kept_outcome import belongs_to
from ..durability.last_lives import last_lives_of
from ..durability.open_mark import UnfinishedRun, read_mark
from ..durability.persistence import RunPersistence
from ..durability.recovery import Recovery, Search, is_beyond_recovery, stuck_run, take_unfinished
from ..durability.store_access import StoreAccess
from ..durability.store_keys import journal_key, open_key
from ..errors import UsageError
from ..sessions.turn import Turn
from .following import Following, show_recorded, wait_until_written

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..agent.run_state import RunState
    from ..agent.tree import Node
    from .event_log import EventLog

__all__ = ["Beginning", "BeginningOnce", "Opening", "RecoveringAlone", "Resuming"]

Opening: TypeAlias = "Callable[[EventLog, Host, Callable[[CancelRun], object]], Awaitable[RunResult | None]]"
"""Finds out from where a run starts, and writes that into its state. The last argument is what ends the run later on, from outside.

Returns a result if the run is another process's, or has ended before: it was looked at until its end."""


class Beginning:
    """Of a new run: its turn has come, and where each step is kept, so is that it has begun."""

    __slots__ = ()

    async def __call__(self, event_log: EventLog, system: Host, stop: Callable[[CancelRun], object]) -> RunResult | None:
        if event_log.record.turn is not None:
            await event_log.record.turn.begin(event_log, system, stop)
        if (persistence := self._written(event_log, stop)) is not None and not await persistence.begin(event_log, system):
            run_id = event_log.context.run_id
            msg = f"run {run_id} is in the store already: a run is begun once."
            raise UsageError(msg, run=run_id)
        return None

    def _written(self, event_log: EventLog, stop: Callable[[CancelRun], object]) -> RunPersistence | None:
        """By what the run is written down as begun, if it is."""
        persistence = event_log.persistence
        if persistence is None or (persistence.journal is None and not persistence.keeps_outcome):
            return None
        persistence.own.when_asked(stop)
        return persistence


class BeginningOnce(Beginning):
    """Of a run that the caller has named: if it was begun before, it is followed to its end, or continued, if no process works on it."""

    __slots__ = ("_root",)

    def __init__(self, root: Node) -> None:
        self._root = root

    async def __call__(self, event_log: EventLog, system: Host, stop: Callable[[CancelRun], object]) -> RunResult | None:
        if await self._begin_here(event_log, system, stop):
            return None
        persistence = event_log.persistence
        assert persistence is not None
        run, access = persistence.mark.run, persistence.access
        await wait_until_written(system, access, run.agent, run.id)
        await self._check(access, run)
        has_waited = event_log.new_input_count is not None  # for its turn, and was given what was said before
        if not has_waited and await self._clear(access, run, system) and await self._begin_here(event_log, system, stop):
            return None
        if event_log.record.turn is None and (recovery := await self._take_over(persistence, system)) is not None:
            await show_recorded(access, run.id, event_log.record)
            return await Resuming(persistence, None, recovery.image)(event_log, system, stop)
        return await Following(access, run.agent, run.id)(event_log, system, stop)

    async def _take_over(self, persistence: RunPersistence, system: Host) -> Recovery | None:
        """Take it, if no process works on it: who asks for it by its name need not wait for a `recover()`. On its last life, it waits for its turn there."""
        access, run = persistence.access, persistence.mark.run
        mark = await access.get(open_key(run.agent, run.id))
        if mark is None or await access.holder(open_key(run.agent, run.id)) is not None:
            return None
        if not (left := read_mark(run.agent, run.id, mark)).steps or Search().is_last_life(left):
            return None
        return await take_unfinished(persistence, self._root, system, Search().max_attempts)

    async def _begin_here(self, event_log: EventLog, system: Host, stop: Callable[[CancelRun], object]) -> bool:
        """Begin it, when its turn has come. Returns False if it was begun before."""
        persistence, turn = event_log.persistence, event_log.record.turn
        assert persistence is not None
        if turn is not None:
            if await self._is_known(persistence.access, persistence.mark.run):
                return False
            await turn.begin(event_log, system, stop)
        if self._written(event_log, stop) is None or await persistence.begin(event_log, system):
            return True
        if turn is not None:
            await turn.release()
        return False

    async def _clear(self, access: StoreAccess, run: UnfinishedRun, system: Host) -> bool:
        """Remove what a lost process has left of it, if none of that can be continued. Returns whether that is so."""
        mark = await access.get(open_key(run.agent, run.id))
        if mark is None or not await is_beyond_recovery(access, left := read_mark(run.agent, run.id, mark)):
            return False
        recovery = await take_unfinished(RunPersistence(access, self._root, left), self._root, system, sys.maxsize)
        if recovery is not None:
            await recovery.persistence.own.give_back()
        return recovery is None

    async def _is_known(self, access: StoreAccess, run: UnfinishedRun) -> bool:
        """Whether it certainly was begun: then no turn of its session is waited for."""
        ended, mark = await access.get_both(journal_key(run.id), open_key(run.agent, run.id))
        return bool(ended) or mark is not None

    async def _check(self, access: StoreAccess, run: UnfinishedRun) -> None:
        """Raise, if that id belongs to a run of another agent, or with other input."""
        ended, mark = await access.get_both(journal_key(run.id), open_key(run.agent, run.id))
        if await stuck_run(access, run.agent, run.id) is not None:
            return  # which is said of it
        agent, asked = belongs_to(ended) if ended else (run.agent, None)
        if mark is not None:
            asked = read_mark(run.agent, run.id, mark).input
        elif not ended:
            agent = None  # there is a journal, and it is not this agent's
        if agent != run.agent:
            msg = f"run(run_id={run.id!r}): this id belongs to a run of {'another agent' if agent is None else repr(agent)}. Give each run an id of its own."
            raise UsageError(msg, run=run.id)
        if asked != run.input:
            msg = f"run(run_id={run.id!r}): this run was begun with other messages. The same id means the same run: give another id for another question."
            raise UsageError(msg, run=run.id)


class Resuming:
    """Of a run that comes from a store."""

    __slots__ = ("_answers", "_image", "_persistence", "_streaming")

    def __init__(self, persistence: RunPersistence, answers: Answers | None, image: dict[str, Any] | None = None, *, streaming: bool | None = None) -> None:
        self._persistence = persistence
        self._answers = answers  # None: it was not interrupted
        self._image = image  # from which it continues, if that is known already
        self._streaming = streaming  # None: as before

    async def __call__(self, event_log: EventLog, system: Host, stop: Callable[[CancelRun], object]) -> RunResult | None:
        persistence, answers = self._persistence, self._answers
        asked = event_log.context.session.to_dict()
        persistence.own.when_asked(stop)
        image, self._image = self._image, None
        if image is None:
            image = await persistence.load(system)
        persistence.restore(image, event_log)
        state, record = event_log, event_log.record
        if self._streaming is not None:
            _set_streaming(state, streaming=self._streaming)
        record.said_before = state.lane.entries[-1].message if state.lane.entries else None
        record.last_seq = state.seq
        if answers is not None:
            answers.give(() if event_log.root is None else walk(event_log.root), persistence.checkpoint_id)
        session_id = event_log.context.session_id
        if event_log.new_input_count is not None and session_id is not None:
            event_log.record.turn = turn = Turn(persistence.access, session_id, "queue", None)
            event_log.record.when_finished(turn.abandon)
            await turn.go_on(state, system, stop)
            event_log.context.session.update(asked)
        record.goes_on = True
        await persistence.go_on(state)
        return None


class RecoveringAlone:
    """Of a run that is on its last life: it is taken when its turn has come, and not before."""

    __slots__ = ("_max_attempts", "_root")

    def __init__(self, root: Node, max_attempts: int) -> None:
        self._root = root
        self._max_attempts = max_attempts

    async def __call__(self, event_log: EventLog, system: Host, stop: Callable[[CancelRun], object]) -> RunResult | None:
        persistence = event_log.persistence
        assert persistence is not None
        await last_lives_of(system, persistence.access).wait(persistence.run_id)
        recovery = await take_unfinished(persistence, self._root, system, self._max_attempts)
        if recovery is not None:
            return await Resuming(persistence, None, recovery.image)(event_log, system, stop)
        return await Following(persistence.access, self._root.name, persistence.run_id)(event_log, system, stop)


def _set_streaming(state: RunState, *, streaming: bool) -> None:
    """Let what comes of the run from now on stream, or not."""
    state.input = AgentInput(state.input.messages, streaming)
    for invocation in () if state.root is None else walk(state.root):
        dialogue, window = invocation.assignment.dialogue, invocation.window
        dialogue.input = AgentInput(dialogue.input.messages, streaming)
        if window.input is not None:
            invocation.window = replace(window, input=AgentInput(window.input.messages, streaming))
