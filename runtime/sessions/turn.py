"""One turn of a session: only the run with the turn works in the session, across all processes.

The turn loads the session for its run, and adds the run's part to the session. Everything is in the
store; memory between two turns is only a cache. A turn's part is written completely or not at all,
and never after another process has taken the turn.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..agent.history import complete_calls
from ..agent.run_messages import LOST, CancelRun
from ..codec.kept_values import kept_value
from ..data.agent_input import AgentInput
from ..data.run_path import names_of
from ..data.run_result import RunStatus
from ..durability.lease import Lease
from ..durability.leases import Busy, SystemLeases, leases_of
from ..durability.run_labels import session_text
from ..durability.store_access import StoreAccess
from ..durability.store_keys import preempt_key, session_key
from ..errors import SessionBusy, UsageError, WriteRefused
from ..stores.run_entries import RunQuery
from ..stores.writes import Append, Ending, Remove
from ..tasks import start_task
from .inbox import HeardPosts, Inbox, Stored
from .known_sessions import KnownSessions, known_sessions_of
from .session_log import SessionLog, note_record, turn_record, waiting_calls
from .session_policy import KeepAll, SessionPolicy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from ..actor.host import Host
    from ..agent.run_state import RunState
    from ..data.posts import Post

__all__ = ["NothingToHear", "Start", "Turn"]

Start: TypeAlias = Literal["root", "last"]
"""The agent that starts a turn: the root of the tree, or the agent that ended the last turn."""

_MISSING: Final = object()
_UNFINISHED: Final = (RunStatus.RUNNING.value, RunStatus.DRAINED.value)


class NothingToHear(UsageError):
    """A turn that posts start has found none: another turn has heard them, or they wait."""


class Turn:
    """The turn of one run."""

    __slots__ = (
        "_access",
        "_before",
        "_busy",
        "_inbox",
        "_known",
        "_lease",
        "_leases",
        "_log",
        "_policy",
        "_records",
        "_start",
        "_with",
        "_written",
        "heard",
        "is_pending",
        "session_id",
        "starts_with_posts",
    )

    def __init__(
        self,
        store_access: StoreAccess,
        session_id: str,
        busy: Busy,
        policy: SessionPolicy | None,
        start: Start = "root",
        inbox: Inbox | None = None,
        *,
        starts_with_posts: bool = False,
    ) -> None:
        self._access = store_access
        self._busy = busy
        self._policy = policy  # None for a resumed run, which already has its input
        self._with = start
        self._inbox = inbox
        # True if the turn has no other input than posts, and does not start without one.
        self.starts_with_posts = starts_with_posts
        self.heard: HeardPosts | None = None  # the inbox, once the turn has come
        self._leases: SystemLeases | None = None
        self._lease: Lease | None = None  # held during the turn
        self._known: KnownSessions | None = None
        self._log: SessionLog | None = None  # the session at the start of the turn
        self._written: list[bytes] = []  # records written since
        self._records = 0  # number of records in the session
        self._before: dict[
            str, Any
        ] = {}  # the earlier values of the session, as `kept_value` returns them
        # Number of the run's messages in the session; None until known.
        self._start: int | None = None
        self.session_id = session_id
        # True if the run's part must be in the session before the run counts as completed.
        self.is_pending = False

    async def begin(
        self,
        state: RunState,
        system: Host,
        stop: Callable[[CancelRun], object],
        on_queued: Callable[[], Coroutine[object, None, None]] | None = None,
    ) -> None:
        """Wait for this run's turn, and load the session into its input.

        `on_queued` is called if another run has the turn.
        """
        await self._take(system, stop, on_queued)
        log, stored = await self._read_with_posts(system)
        posts = await self._hear(state, log, stored)
        state.session_records_before = log.count
        state.begins_with = log.last_agent if self._with == "last" else None
        self.is_pending = True
        new = (*(post.message for post in posts), *state.input.messages)
        policy, given = self._policy, log.messages
        assert policy is not None
        if type(policy) is not KeepAll:
            bounded, note, usage = await policy.bound(given.copy(), log.note)  # may call user code
            if note is not None:
                await self._write(note_record(note))
            if usage is not None:
                state.context.usage += usage
            given = complete_calls(list(bounded), log.waiting)
        elif not log.is_complete:
            given = complete_calls(given, log.waiting)
        state.input = AgentInput((*given, *new), state.input.streaming)
        state.new_input_count = len(new)
        state.context.session.put_under(log.values)
        self._start = 0

    async def _read_with_posts(self, system: Host) -> tuple[SessionLog, list[Stored]]:
        """Read the session and its inbox, at the same time if the store is slow."""
        if self._inbox is None or not await self._inbox.may_have_posts():
            return await self._read(system), []
        # The store's worker does both in one batch; a task for each would take longer than that.
        reading = start_task(self._inbox.stored(), "an inbox")
        try:
            return await self._read(system), await reading
        finally:
            reading.cancel()

    async def _hear(
        self, state: RunState, log: SessionLog | None, stored: list[Stored]
    ) -> list[Post]:
        """Take the posts that the turn starts with. `log` is None for a turn that resumes."""
        lease = self._lease
        if self._inbox is None or lease is None:
            return []
        self.heard = state.context.inbox = HeardPosts(self._inbox, lease.commit)
        if not stored or log is None or await self._come_later(log):
            posts = []
        else:
            posts = await self.heard.at_turn(stored)
        if self.starts_with_posts and not posts:
            msg = f"session {self.session_id!r} has no posts that a turn may start with now."
            raise NothingToHear(msg)
        state.posts = tuple([(post.message, self.heard.posted(post)) for post in posts])
        for _, posted in state.posts:
            self.heard.hear(posted)
        return posts

    async def _come_later(self, log: SessionLog) -> bool:
        """Return whether the posts wait for an earlier run of the session.

        A run of a lost process has heard earlier posts, and hears these when it is recovered.
        """
        assert self._inbox is not None
        if self.starts_with_posts and self._inbox.waits_for_answers and log.waiting:
            return True
        return self._access.lists_runs and bool(
            await self._access.run_entries(
                RunQuery(
                    _UNFINISHED,
                    self._inbox.agent_name,  # those of other agents hear other inboxes
                    session=session_text(self.session_id),
                    limit=1,
                )
            )
        )

    async def go_on(
        self, state: RunState, system: Host, stop: Callable[[CancelRun], object]
    ) -> None:
        """Wait for the turn of a run that resumes in the middle of it."""
        await self._take(system, stop)
        records = await self._read_records()
        log = SessionLog(self.session_id, records)
        self._found(log, system)
        await self._hear(state, None, [])
        self.is_pending = True
        self._start = log.told_of(state.context.run_id)
        # If a part of the run is already in the session, the run's values are those of the session,
        # as it or later turns have left them. Otherwise it was lost on its way: its own changes
        # apply, and unchanged values are as later turns have left them.
        base = (
            None
            if self._start
            else SessionLog(self.session_id, records[: state.session_records_before or 0]).values
        )
        values, last = state.context.session, log.values
        for name in values.to_dict().keys() | last.keys():
            if base is None or _same(values.get(name, _MISSING), base.get(name, _MISSING)):
                if name in last:
                    values[name] = last[name]
                else:
                    values.delete(name)

    async def _take(
        self,
        system: Host,
        stop: Callable[[CancelRun], object],
        on_queued: Callable[[], Coroutine[object, None, None]] | None = None,
    ) -> None:
        session_id, busy = self.session_id, self._busy
        key = session_key(session_id)
        leases = leases_of(system)
        lease = Lease(
            key,
            f"the turn of session {session_id!r}",
            partial(stop, LOST),
            partial(
                stop, CancelRun("a newer message of its session goes first", begins_first=True)
            ),
            preempts=busy == "preempt",
        )
        lease.on_queued = on_queued
        if not await leases.take_turn(self._access, lease, preempt_key(session_id), busy):
            instead = "Send this one later, or open the session with busy='queue' or 'preempt'."
            msg = f"session {session_id!r} is running another turn, or its queue is full. {instead}"
            raise SessionBusy(msg)
        self._leases, self._lease = leases, lease

    async def _read(self, system: Host) -> SessionLog:
        """Return the current session. Of a cached one, only new records are read."""
        log = known_sessions_of(system).take(self._access, self.session_id)
        if log is not None:
            records = await self._read_records(log.count - 1)
            if records and records[0] == log.last:
                log.read(records[1:])
            else:
                log = None  # it was cleared or rolled back
        if log is None:
            log = SessionLog(self.session_id, await self._read_records())
        self._found(log, system)
        return log

    async def _read_records(self, after: int = 0) -> list[bytes]:
        return await self._access.read(session_key(self.session_id), after)

    def _found(self, log: SessionLog, system: Host) -> None:
        self._known, self._log, self._records = known_sessions_of(system), log, log.count
        self._before = dict(log.kept)

    async def end(self, state: RunState, *, keep: bool, waits: bool = False) -> None:
        """Add the run's part to the session, and release the turn.

        `waits`: the run was interrupted, and can be resumed.
        """
        try:
            if (
                keep
                and self._start is not None
                and state.new_input_count is not None
                and self._lease is not None
            ):
                given = state.input.messages
                said = (
                    *given[len(given) - state.new_input_count :],
                    *(entry.message for entry in state.lane.entries),
                )[self._start :]
                speakers = (
                    *(None for _ in range(state.new_input_count)),
                    *(entry.agent_name or None for entry in state.lane.entries),
                )[self._start :]
                waiting, ended_with = waiting_calls(state.root) if waits else {}, _last_agent(state)
                record = turn_record(
                    state.context.run_id,
                    self._start,
                    said,
                    self._before,
                    state.context.session.to_dict(),
                    waiting,
                    ended_with,
                    speakers,
                )
                if record is not None:
                    await self._write(record, is_last=True)
                if self._known is not None and self._log is not None:
                    self._known.keep(self._access, self.session_id, self._log, self._written)
            self.is_pending = False
        finally:
            await self.release()

    async def _write(self, record: bytes, *, is_last: bool = False) -> None:
        """Add a record to the session, if this run still has the turn."""
        lease, leases = self._lease, self._leases
        assert lease is not None
        assert leases is not None
        # The last record releases the turn in the same step, unless another run of this system
        # takes over.
        then: Ending = "forget" if is_last and not leases.is_wanted_here(lease) else "keep"
        heard = self.heard.writes() if self.heard is not None and is_last else []
        await lease.commit([Append(lease.key, (record,), self._records), *heard], then=then)
        if self.heard is not None and heard:
            self.heard.written(heard)
        self._records += 1
        self._written.append(record)

    async def forget_all(
        self, system: Host, also: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        """Wait for the turn, then remove everything in the session, after calling `also`."""
        await self._take(system, _ignore)
        try:
            assert self._lease is not None
            known_sessions_of(system).take(self._access, self.session_id)
            if also is not None:
                await also()
            while True:
                posts = [] if self._inbox is None else await self._inbox.removal()
                try:
                    await self._lease.commit([Remove(self._lease.key), *posts])
                except WriteRefused as refused:
                    if self._inbox is None or refused.key != self._inbox.number_key:
                        raise
                else:
                    break  # otherwise a post was stored at this moment
        finally:
            await self.release()

    async def release(self) -> None:
        """Release the turn."""
        lease, self._lease = self._lease, None
        if self.heard is not None:
            self.heard.end()
        if lease is not None and self._leases is not None:
            await self._leases.give_back(lease)
        has_begun = self._start is not None or not self.starts_with_posts
        if lease is not None and self._inbox is not None and has_begun:
            # Otherwise the posts are as they were: two attending actors would wake each other.
            self._inbox.turn_is_free()

    def abandon(self) -> None:
        """Release the turn, without waiting."""
        lease, self._lease = self._lease, None
        if self.heard is not None:
            self.heard.end()
        if lease is not None and self._leases is not None:
            self._leases.abandon(lease)


def _last_agent(state: RunState) -> str | None:
    """Return the agent that ended the run after all transfers, but no agent that another called."""
    names = () if state.root is None else names_of(state.root.names)
    return names[-1] if names else None


def _same(one: Any, two: Any) -> bool:
    if one is _MISSING or two is _MISSING:
        return one is two
    kept, known = kept_value(one), kept_value(two)
    return type(kept) is type(known) and bool(kept == known)


def _ignore(_request: CancelRun) -> None:
    """Ignore a stop request: clearing a session is a single step, which cannot be stopped."""
