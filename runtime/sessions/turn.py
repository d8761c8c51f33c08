"""One turn of a session: the run that has it is the only one that works in the session, in any process.

Owns: that turns come one after the other, what a run is given of the session, and what of the run is put into it. All of that is in the store: what is in
memory between two turns is only what need not be read again. It must never put half of a turn's part into the session, nor write by a turn that another
process has by now.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..agent.history import complete_calls
from ..agent.run_messages import LOST, CancelRun
from ..codec.kept_values import kept_value
from ..data.agent_input import AgentInput
from ..data.run_path import names_of
from ..durability.lease import Lease
from ..durability.leases import Busy, SystemLeases, leases_of
from ..durability.store_access import StoreAccess
from ..durability.store_keys import preempt_key, session_key
from ..errors import SessionBusy
from ..stores.writes import Append, Ending, Remove
from .known_sessions import KnownSessions, known_sessions_of
from .session_log import SessionLog, note_record, turn_record, waiting_calls
from .session_policy import KeepAll, SessionPolicy

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..actor.host import Host
    from ..agent.run_state import RunState

__all__ = ["Start", "Turn"]

Start: TypeAlias = Literal["root", "last"]
"""With whom a turn begins: with the root of the tree, or with the agent with whom the last turn ended."""

_MISSING: Final = object()


class Turn:
    """The turn of one run."""

    __slots__ = (
        "_access",
        "_before",
        "_busy",
        "_known",
        "_lease",
        "_leases",
        "_log",
        "_policy",
        "_records",
        "_start",
        "_with",
        "_written",
        "is_pending",
        "session_id",
    )

    def __init__(self, store_access: StoreAccess, session_id: str, busy: Busy, policy: SessionPolicy | None, start: Start = "root") -> None:
        self._access = store_access
        self._busy = busy
        self._policy = policy  # None: for one that goes on, and has been given all that it needs
        self._with = start
        self._leases: SystemLeases | None = None
        self._lease: Lease | None = None  # while it is its turn
        self._known: KnownSessions | None = None
        self._log: SessionLog | None = None  # the session, as it was when the turn began
        self._written: list[bytes] = []  # behind that
        self._records = 0  # how many the session holds
        self._before: dict[str, Any] = {}  # the values of the session as they were, as `kept_value` gives them
        self._start: int | None = None  # how much of the run is in the session; None until that is known
        self.session_id = session_id
        self.is_pending = False  # whether what comes of the run has to be in the session before it counts as completed

    async def begin(self, state: RunState, system: Host, stop: Callable[[CancelRun], object]) -> None:
        """Wait until it is this run's turn, and give it what was said before."""
        await self._take(system, stop)
        log = await self._read(system)
        state.session_records_before = log.count
        state.begins_with = log.last_agent if self._with == "last" else None
        self.is_pending = True
        policy, new, given = self._policy, state.input.messages, log.messages
        assert policy is not None
        if type(policy) is not KeepAll:
            bounded, note, usage = await policy.bound(given.copy(), log.note)  # it may be the user's code
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

    async def go_on(self, state: RunState, system: Host, stop: Callable[[CancelRun], object]) -> None:
        """The same, for a run that goes on in the middle of its turn."""
        await self._take(system, stop)
        records = await self._read_records()
        log = SessionLog(self.session_id, records)
        self._found(log, system)
        self.is_pending = True
        self._start = log.told_of(state.context.run_id)
        # Once something of it is in the session, that has its values as they were when it stopped, or as later turns have left them. Before that, it was
        # lost on its way, and has its own; what it has not changed is as later turns have left it.
        base = None if self._start else SessionLog(self.session_id, records[: state.session_records_before or 0]).values
        values, last = state.context.session, log.values
        for name in values.to_dict().keys() | last.keys():
            if base is None or _same(values.get(name, _MISSING), base.get(name, _MISSING)):
                if name in last:
                    values[name] = last[name]
                else:
                    values.delete(name)

    async def _take(self, system: Host, stop: Callable[[CancelRun], object]) -> None:
        session_id, busy = self.session_id, self._busy
        key = session_key(session_id)
        leases = leases_of(system)
        lease = Lease(
            key,
            f"the turn of session {session_id!r}",
            partial(stop, LOST),
            partial(stop, CancelRun("a newer message of its session goes first", begins_first=True)),
            former=key,
            preempts=busy == "preempt",
        )
        if not await leases.take_turn(self._access, lease, preempt_key(session_id), busy):
            instead = "Send this one later, or open the session with busy='queue' or 'preempt'."
            msg = f"session {session_id!r} is at work on another message, or too many wait. {instead}"
            raise SessionBusy(msg)
        self._leases, self._lease = leases, lease

    async def _read(self, system: Host) -> SessionLog:
        """The session as it is. Of one that this system knows, what is new."""
        log = known_sessions_of(system).take(self._access, self.session_id)
        if log is not None:
            records = await self._read_records(log.count - 1)
            if records and records[0] == log.last:
                log.read(records[1:])
            else:
                log = None  # it was cleared, or the store has taken something back
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
        """Put what came of it into the session, and let the next one have the turn. `waits`: the run was interrupted, and can go on."""
        try:
            if keep and self._start is not None and state.new_input_count is not None and self._lease is not None:
                given = state.input.messages
                said = (*given[len(given) - state.new_input_count :], *(entry.message for entry in state.lane.entries))[self._start :]
                waiting, ended_with = waiting_calls(state.root) if waits else {}, _last_agent(state)
                record = turn_record(state.context.run_id, self._start, said, self._before, state.context.session.to_dict(), waiting, ended_with)
                if record is not None:
                    await self._write(record, is_last=True)
                if self._known is not None and self._log is not None:
                    self._known.keep(self._access, self.session_id, self._log, self._written)
            self.is_pending = False
        finally:
            await self.release()

    async def _write(self, record: bytes, *, is_last: bool = False) -> None:
        """Add a record to the session, if it is still this run's turn."""
        lease, leases = self._lease, self._leases
        assert lease is not None
        assert leases is not None
        # The last one gives the turn back in the same step, unless another run of this system takes it over.
        then: Ending = "forget" if is_last and not leases.is_wanted_here(lease) else "keep"
        await lease.commit([Append(lease.key, (record,), self._records)], then=then)
        self._records += 1
        self._written.append(record)

    async def forget_all(self, system: Host) -> None:
        """When it is this one's turn: remove what the session holds."""
        await self._take(system, _ignore)
        try:
            assert self._lease is not None
            known_sessions_of(system).take(self._access, self.session_id)
            await self._lease.commit([Remove(self._lease.key)])
        finally:
            await self.release()

    async def release(self) -> None:
        """Let the next one have the turn."""
        lease, self._lease = self._lease, None
        if lease is not None and self._leases is not None:
            await self._leases.give_back(lease)

    def abandon(self) -> None:
        """The same, where there is no time to wait."""
        lease, self._lease = self._lease, None
        if lease is not None and self._leases is not None:
            self._leases.abandon(lease)


def _last_agent(state: RunState) -> str | None:
    """The agent with which the run has ended, after all that the agents have handed over to one another; not one that another one has cast."""
    names = () if state.root is None else names_of(state.root.names)
    return names[-1] if names else None


def _same(one: Any, two: Any) -> bool:
    if one is _MISSING or two is _MISSING:
        return one is two
    kept, known = kept_value(one), kept_value(two)
    return type(kept) is type(known) and bool(kept == known)


def _ignore(_request: CancelRun) -> None:
    """What only clears a session does so in one step, and cannot be asked to end."""
