"""Opening a run that involves a store: find out where the run starts before an agent runs.

An opening waits for the run's turn in its session, finds its checkpoint, and records its start. It
starts no agent.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from ..agent.invocation import walk
from ..agent.run_messages import CancelRun
from ..data.agent_input import AgentInput
from ..data.run_result import RunResult, RunStatus
from ..durability.answers import Answers
from ..durability.kept_outcome import belongs_to
from ..durability.last_lives import last_lives_of
from ..durability.recovery import Recovery, Search, is_beyond_recovery, take_unfinished
from ..durability.run_row import read_run
from ..durability.run_store import RunStore
from ..durability.store_access import StoreAccess
from ..durability.store_keys import open_key
from ..durability.unfinished_run import UnfinishedRun, why_foreign
from ..errors import ResumeError, UsageError
from ..sessions.inbox import Inbox
from ..sessions.turn import Turn
from .follow.following import Following, pause, show_recorded, wait_until_written

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..agent.run_state import RunState
    from ..agent.tree import Node
    from .event_log import EventLog

__all__ = [
    "Beginning",
    "BeginningOnce",
    "LookingFirst",
    "Opening",
    "RecoveringAlone",
    "Resuming",
    "Rules",
]

Opening: TypeAlias = (
    "Callable[[EventLog, Host, Callable[[CancelRun], object]], Awaitable[RunResult | None]]"
)
"""Finds out where a run starts, and writes that into the run's state.

The last argument ends the run later, from outside. Returns a result if the run belongs to another
process or had already ended: it was followed to its end.
"""


_RESENT_SECONDS: Final = 5.0
"""Seconds that a resent answer waits for the process that received it first."""
_RESENT_LOOK: Final = 0.05


class Beginning:
    """The opening of a new run: waits for its turn, and records its start if steps are stored."""

    __slots__ = ()

    async def __call__(
        self, event_log: EventLog, system: Host, stop: Callable[[CancelRun], object]
    ) -> RunResult | None:
        if event_log.progress.turn is not None:
            await event_log.progress.turn.begin(
                event_log, system, stop, partial(self._queue, event_log, system, stop)
            )
            event_log.stamp_posts()
        if (
            persistence := self._written(event_log, stop)
        ) is not None and not await persistence.begin(event_log, system):
            raise _begun_already(event_log)
        return None

    async def _queue(
        self, event_log: EventLog, system: Host, stop: Callable[[CancelRun], object]
    ) -> None:
        """Record that the run waits for its turn, so that every process can find it."""
        persistence = self._written(event_log, stop)
        if (
            persistence is not None
            and persistence.access.is_fenced
            and not await persistence.queue(event_log, system)
        ):
            raise _begun_already(event_log)
        event_log.progress.accept()

    def _written(self, event_log: EventLog, stop: Callable[[CancelRun], object]) -> RunStore | None:
        """Return the persistence that records the start; None if the start is not recorded."""
        persistence = event_log.persistence
        if persistence is None or (persistence.journal is None and not persistence.keeps_outcome):
            return None
        persistence.when_asked(stop)
        return persistence


class LookingFirst:
    """The opening of a new run that stores nothing before it pauses.

    It still checks, once in each process, that runs may be started in the store.
    """

    __slots__ = ()

    async def __call__(
        self,
        event_log: EventLog,
        system: Host,  # noqa: ARG002 -- an `Opening`
        stop: Callable[[CancelRun], object],  # noqa: ARG002 -- an `Opening`
    ) -> RunResult | None:
        if event_log.persistence is not None:
            await event_log.persistence.access.require_released()
        return None


class Rules(NamedTuple):
    """Which lost runs a Runner continues when a caller passes their `run_id`."""

    max_attempts: int = 3
    is_pinned: bool = False
    """True: only runs that the same version of the program started."""


class BeginningOnce(Beginning):
    """The opening of a run with a `run_id`.

    A run that was started before is followed to its end, or continued if no process is running it.
    """

    __slots__ = ("_root", "_rules")

    def __init__(self, root: Node, rules: Rules) -> None:
        self._root = root
        self._rules = rules

    async def __call__(
        self, event_log: EventLog, system: Host, stop: Callable[[CancelRun], object]
    ) -> RunResult | None:
        if await self._begin_here(event_log, system, stop):
            return None
        persistence = event_log.persistence
        assert persistence is not None
        run, access = persistence.row.run, persistence.access
        await wait_until_written(system, access, run.agent, run.id)
        await self._check(access, run)
        # True if the run has had its turn: its input then contains the session's messages.
        has_waited = event_log.new_input_count is not None
        if (
            not has_waited
            and await self._clear(access, run, system)
            and await self._begin_here(event_log, system, stop)
        ):
            return None
        if (
            event_log.progress.turn is None
            and (recovery := await self._take_over(persistence, system)) is not None
        ):
            await show_recorded(access, run.id, event_log.progress)
            return await Resuming(persistence, None, recovery.image)(event_log, system, stop)
        return await Following(access, run.agent, run.id)(event_log, system, stop)

    async def _take_over(self, persistence: RunStore, system: Host) -> Recovery | None:
        """Claim the run if no process is running it, so its caller need not wait for `recover()`.

        A run on its last attempt waits for its turn in `recover()`.
        """
        access, run = persistence.access, persistence.row.run
        row = await access.row(run.agent, run.id)
        if (
            row is None
            or not row.claim
            or await access.holder(open_key(run.agent, run.id)) is not None
        ):
            return None
        search = Search(self._rules.max_attempts)
        if not (left := read_run(row)).steps or search.is_last_life(left):
            return None
        if self._rules.is_pinned and left.version != run.version:
            return None  # a process of that version continues it; here it is followed
        if why_foreign(left, run.app, run.definitions) is not None:
            return None  # its own program continues it; here it is followed
        return await take_unfinished(persistence, self._root, system, search.max_attempts)

    async def _begin_here(
        self, event_log: EventLog, system: Host, stop: Callable[[CancelRun], object]
    ) -> bool:
        """Start the run when its turn has come. Returns False if it was started before."""
        persistence, turn = event_log.persistence, event_log.progress.turn
        assert persistence is not None
        if turn is not None:
            if await self._is_known(persistence.access, persistence.row.run):
                return False
            try:
                await turn.begin(
                    event_log, system, stop, partial(self._queue, event_log, system, stop)
                )
            except _BegunAlready:
                return False
            event_log.stamp_posts()
        if self._written(event_log, stop) is None or await persistence.begin(event_log, system):
            return True
        if turn is not None:
            await turn.release()
        return False

    async def _clear(self, access: StoreAccess, run: UnfinishedRun, system: Host) -> bool:
        """Remove the remains of a lost run that cannot be continued.

        Returns True if they were removed.
        """
        row = await access.row(run.agent, run.id)
        if (
            row is None
            or not row.claim
            or not await is_beyond_recovery(access, left := read_run(row))
        ):
            return False
        if why_foreign(left, run.app, run.definitions) is not None:
            return False
        recovery = await take_unfinished(
            RunStore(access, self._root, left), self._root, system, sys.maxsize
        )
        if recovery is not None:
            await recovery.persistence.give_back()
        return recovery is None

    async def _is_known(self, access: StoreAccess, run: UnfinishedRun) -> bool:
        """Return True if the run was certainly started: then it need not wait for a turn."""
        row, ended = await access.row_and_outcome(run.agent, run.id)
        return bool(ended) or (row is not None and row.claim != "")

    async def _check(self, access: StoreAccess, run: UnfinishedRun) -> None:
        """Raise if the id belongs to a run of another agent, or with other input."""
        row, ended = await access.row_and_outcome(run.agent, run.id)
        if row is not None and row.status == RunStatus.STUCK.value:
            return  # reported by the following that comes next
        agent, asked = belongs_to(ended) if ended else (run.agent, None)
        if row is not None and row.claim:
            asked = read_run(row).input
        elif not ended:
            agent = None  # there is a journal, and it is not this agent's
        if agent != run.agent:
            msg = (
                f"run: run_id={run.id!r} belongs to a run of "
                f"{'another agent' if agent is None else repr(agent)}. Use a unique id for "
                "each run."
            )
            raise UsageError(msg, run=run.id)
        if asked != run.input:
            msg = (
                f"run: run_id={run.id!r} was started with other messages. The same id means the "
                "same run. Pass another run_id for other messages."
            )
            raise UsageError(msg, run=run.id)


class _BegunAlready(UsageError):
    """The store already has a run with this id."""


def _begun_already(event_log: EventLog) -> _BegunAlready:
    run_id = event_log.context.run_id
    return _BegunAlready(
        f"run {run_id} is already in the store, and a run starts once only. Follow it with "
        "attach().",
        run=run_id,
    )


class Resuming:
    """The opening of a run that resumes from a store."""

    __slots__ = ("_answers", "_image", "_persistence", "_streaming")

    def __init__(
        self,
        persistence: RunStore,
        answers: Answers | None,
        image: dict[str, Any] | None = None,
        *,
        streaming: bool | None = None,
    ) -> None:
        self._persistence = persistence
        self._answers = answers  # None if the run was not interrupted
        self._image = image  # state to continue from, if it is already loaded
        self._streaming = streaming  # None: unchanged

    async def __call__(
        self, event_log: EventLog, system: Host, stop: Callable[[CancelRun], object]
    ) -> RunResult | None:
        persistence, answers = self._persistence, self._answers
        asked = event_log.context.session.to_dict()
        persistence.when_asked(stop)
        image, self._image = self._image, None
        if image is None:
            image = await self._load(system)
        if image is None:
            return await Following(
                persistence.access, persistence.row.run.agent, persistence.run_id
            )(event_log, system, stop)
        persistence.restore(image, event_log)
        if event_log.progress.live is not None:
            event_log.progress.live.known_as(persistence.run_id)
        state, progress = event_log, event_log.progress
        if self._streaming is not None:
            _set_streaming(state, streaming=self._streaming)
        progress.said_before = state.lane.entries[-1].message if state.lane.entries else None
        progress.last_seq = state.seq
        if answers is not None:
            answers.give(
                () if event_log.root is None else walk(event_log.root), persistence.checkpoint_id
            )
        session_id = event_log.context.session_id
        if event_log.new_input_count is not None and session_id is not None:
            inbox = Inbox(persistence.access, persistence.row.run.agent, session_id)
            event_log.progress.turn = turn = Turn(
                persistence.access, session_id, "queue", None, inbox=inbox
            )
            event_log.progress.when_finished(turn.abandon)
            await turn.go_on(state, system, stop)
            event_log.context.session.update(asked)
        progress.goes_on = True
        await persistence.go_on(state)
        return None

    async def _load(self, system: Host) -> dict[str, Any] | None:
        """Return the state that the run continues from.

        None if it already continues with this very answer, which was sent twice.
        """
        persistence, save = self._persistence, None if self._answers is None else self._answers.save
        waits_until = system.clock.monotonic() + _RESENT_SECONDS
        while not await persistence.knows_answer():
            try:
                return await persistence.load(system, save)
            except ResumeError:
                # The process that received the answer first may be about to write it, or may be
                # gone and about to lose its claim.
                if (
                    persistence.answer_id is None
                    or not await persistence.is_claimed()
                    or system.clock.monotonic() > waits_until
                ):
                    raise
                await pause(system, _RESENT_LOOK)
        return None


class RecoveringAlone:
    """The opening of a run on its last attempt: it is claimed only when its turn has come."""

    __slots__ = ("_max_attempts", "_root")

    def __init__(self, root: Node, max_attempts: int) -> None:
        self._root = root
        self._max_attempts = max_attempts

    async def __call__(
        self, event_log: EventLog, system: Host, stop: Callable[[CancelRun], object]
    ) -> RunResult | None:
        persistence = event_log.persistence
        assert persistence is not None
        await last_lives_of(system, persistence.access).wait(persistence.run_id)
        recovery = await take_unfinished(persistence, self._root, system, self._max_attempts)
        if recovery is not None:
            return await Resuming(persistence, None, recovery.image)(event_log, system, stop)
        return await Following(persistence.access, self._root.name, persistence.run_id)(
            event_log, system, stop
        )


def _set_streaming(state: RunState, *, streaming: bool) -> None:
    """Turn streaming on or off for the rest of the run."""
    state.input = AgentInput(state.input.messages, streaming)
    for invocation in () if state.root is None else walk(state.root):
        conversation, input_range = invocation.agent_call.conversation, invocation.input_range
        conversation.input = AgentInput(conversation.input.messages, streaming)
        if input_range.input is not None:
            invocation.input_range = input_range.replace(
                input=AgentInput(input_range.input.messages, streaming)
            )
