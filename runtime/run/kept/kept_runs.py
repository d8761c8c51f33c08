"""Queries about the runs in a Runner's store, whichever process started them, and their removal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from ...data.run_info import RunInfo
from ...data.run_result import RunStatus
from ...durability.checkpoint import check_run_id
from ...durability.recovery import stuck_runs
from ...durability.run_labels import checked_labels, label_text, session_text
from ...durability.run_row import read_entry
from ...durability.store_access import StoreAccess
from ...durability.unfinished_run import UnfinishedRun
from ...errors import CheckpointNotFound, RunLost, UsageError
from ...stores.run_entries import RunQuery
from ...system.loop_bridge import LoopBridge
from ...system.system import ActorSystem
from ..follow.live_runs import live_run_anywhere
from ..run_factory import RunFactory
from .forgetting import forget_run, forget_session
from .kept_life import KeptLife, read_life
from .pruning import prune_unreachable

if TYPE_CHECKING:
    from ...observe.timeline import Timeline

__all__ = ["KeptRuns"]

_MOST: Final = 10_000
_PAGE: Final = 1_000
_LISTED: Final = tuple(RunStatus)

StatusLike: TypeAlias = RunStatus | str | Iterable[RunStatus | str] | None


class KeptRuns:
    """The part of a `Runner` that queries stored runs."""

    def __init__(self, factory: RunFactory, access: StoreAccess | None) -> None:
        self._factory = factory
        self._access = access

    async def runs(
        self,
        status: StatusLike = None,
        session_id: str | None = None,
        agent: str | None = None,
        labels: Mapping[str, str] | None = None,
        since: datetime | float | None = None,
        until: datetime | float | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> list[RunInfo]:
        """List the runs in the store, of all agents and processes, newest first.

        A run must match every filter that is passed: one status or several, the session, the root
        agent, all `labels`, and a start at `since` or later and before `until` (a datetime, or
        seconds since 1970). At most `limit` runs are returned. `after` is the id of the last run of
        the previous page.

        A run is listed from its start with `durability="step"` or a `keep`, and from its first
        pause with `durability="interrupt"` alone. `keep` decides how long it is retained after its
        end. A run whose process crashed is `running` until `recover()` finds it.
        """
        access = self._listing("runs()")
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= _MOST:
            msg = (
                f"runs: limit must be from 1 to {_MOST:,}, got {limit!r}. For more, call it "
                "again with after= the last id."
            )
            raise UsageError(msg)
        for name, text in (("session_id", session_id), ("agent", agent), ("after", after)):
            if text is not None and (not isinstance(text, str) or not text):
                msg = (
                    f"runs: {name} must be a string that is not empty, got {text!r:.80}. Omit it "
                    "to list all."
                )
                raise UsageError(msg)
        query = RunQuery(
            _statuses(status),
            agent,
            None if session_id is None else session_text(session_id),
            tuple(label_text(*label) for label in checked_labels("runs", labels).items()),
            _microseconds("since", since),
            _microseconds("until", until),
            limit,
            after,
        )
        found = await access.run_entries(query)
        if not found and after is not None and await access.run_entry(after) is None:
            msg = (
                f"runs(after={after!r}): that run is no longer listed. Start with the first "
                "page, or pass until= its start time."
            )
            raise CheckpointNotFound(msg, run=after)
        return [read_entry(entry) for entry in found]

    async def info(self, run_id: str) -> RunInfo:
        """Return the store's information about a run, of any agent.

        Raises `CheckpointNotFound` if the run is unknown or no longer retained.
        """
        access = self._listing("info()")
        entry = await access.run_entry(check_run_id(run_id, self._factory.tree.name))
        if entry is None and (live := live_run_anywhere(access, run_id)) is not None:
            # Requested a moment ago.
            await LoopBridge(live.system, "info()").call(live.progress.wait_accepted)
            entry = await access.run_entry(run_id)
        if entry is None:
            msg = (
                f"the store has no run {run_id!r}: it was never stored there, or its retention "
                "is over."
            )
            raise CheckpointNotFound(msg, run=run_id)
        return read_entry(entry)

    async def life(self, run_id: str) -> KeptLife:
        """Return everything that the store has of a run, of any agent: events, pauses and end."""
        access = self._fenced("life()")
        return await LoopBridge(self._factory.choose_system(), "life()").call(
            partial(read_life, access, run_id)
        )

    async def timeline(self, run_id: str) -> Timeline:
        """Return a run's timeline: the work of each process, the waits, and what a crash lost."""
        from ...observe.timeline import timeline_of  # noqa: PLC0415 -- a higher package, which builds it

        return timeline_of(await self.life(run_id), self._factory.tree)

    def choose_system(self) -> ActorSystem:
        """Return the system for a run that is started here."""
        return self._factory.choose_system()

    async def pending(self) -> list[RunInfo]:
        """List all stored runs that wait for an answer, newest first.

        `waiting` holds a run's interrupts, and `updated` the time since when it waits.
        """
        found: list[RunInfo] = []
        while True:
            try:
                page = await self.runs(
                    RunStatus.INTERRUPTED, limit=_PAGE, after=found[-1].id if found else None
                )
            except CheckpointNotFound:  # the run was removed at this moment
                found.clear()
                continue
            found += page
            if len(page) < _PAGE:
                return found

    async def forget(self, run_id: str) -> None:
        """Remove everything that the store holds of a run: steps, checkpoints, result and entry.

        Its messages in a session stay. A running run is not removed: cancel it first. A run that
        waits for an answer, or is stuck, is lost for good.
        """
        await self._forget(run_id)

    async def _forget_failed(self, run_id: str) -> bool:
        """Remove a failed run, so that it can be started again.

        False if another caller has started it again.
        """
        try:
            await self._forget(run_id, only_failed=True)
        except RunLost:
            return False
        return True

    async def _forget(self, run_id: str, *, only_failed: bool = False) -> None:
        check_run_id(run_id, self._factory.tree.name)
        access, system = self._fenced("forget()"), self._factory.choose_system()

        async def forget_it() -> None:
            entry = await access.run_entry(run_id) if access.lists_runs else None
            info = None if entry is None else read_entry(entry)
            agent = self._factory.tree.name if info is None else info.agent
            checkpoint = run_id if info is None else info.checkpoint_id
            await forget_run(
                access,
                system,
                agent,
                run_id,
                checkpoint,
                listed=info is not None,
                only_failed=only_failed,
            )

        await LoopBridge(system, "forget()").call(forget_it)

    async def forget_session(self, session_id: str) -> int:
        """Remove a session: its turns, its values and all of its runs, of any agent.

        Returns the number of runs removed. It waits until the turns sent earlier are done. Runs
        that wait for an answer are lost for good. A run that is running or waits for its turn is
        not removed: a `UsageError` reports it, and the session stays until this is called again.
        The page "Backup and restore" lists the deleted data that a database retains.
        """
        if not isinstance(session_id, str) or not session_id:
            msg = f"forget_session: session_id must be a non-empty string, got {session_id!r:.80}."
            raise UsageError(msg)
        access, system = self._listing("forget_session()"), self._factory.choose_system()
        return await LoopBridge(system, "forget_session()").call(
            partial(forget_session, access, system, session_id)
        )

    async def prune(self, older_than: float | None = None) -> int:
        """Remove expired data from the store, and the data of unreachable runs.

        A run is unreachable if it is not listed, not unfinished, and not waiting. `older_than` is
        passed to `store.prune()`: it also removes everything that was not written for that many
        seconds. Returns the number of keys removed. It reads all checkpoints of the store, so call
        it only occasionally.
        """
        access = self._listing("prune()")
        pruned = int(await access.store.prune(older_than))
        return pruned + await LoopBridge(self._factory.choose_system(), "prune()").call(
            partial(prune_unreachable, access)
        )

    async def stuck(self) -> list[UnfinishedRun]:
        """List this agent's stuck runs: each crashed its process too often, and was quarantined."""
        return await stuck_runs(self._fenced("stuck()"), self._factory.tree.name)

    def _fenced(self, call: str) -> StoreAccess:
        if self._access is None:
            msg = (
                f"{call} needs a Runner with a store: SQLiteStore('runs.db'), RedisStore(url), "
                "PostgresStore(dsn) or MemoryStore()."
            )
            raise UsageError(msg)
        self._access.require_fences(call)
        return self._access

    def _listing(self, call: str) -> StoreAccess:
        access = self._fenced(call)
        access.require_list(call)
        return access


def _statuses(status: StatusLike) -> tuple[str, ...]:
    if status is None:
        return tuple(one.value for one in _LISTED)
    wanted = (status,) if isinstance(status, str) else tuple(status)
    for one in wanted:
        if one not in _LISTED:
            msg = (
                "runs: status must be one or several of "
                f"{', '.join(repr(known.value) for known in _LISTED)}."
            )
            raise UsageError(msg)
    return tuple(dict.fromkeys(RunStatus(one).value for one in wanted))


def _microseconds(name: str, moment: datetime | float | None) -> int | None:
    if moment is None:
        return None
    if isinstance(moment, bool) or not isinstance(moment, datetime | int | float):
        msg = f"runs: {name} must be a datetime or seconds since 1970, got {moment!r:.80}."
        raise UsageError(msg)
    seconds = moment.timestamp() if isinstance(moment, datetime) else moment
    if not 0 <= seconds <= _LATEST:
        msg = f"runs: {name} must be between 1970 and 2255, got {moment!r:.80}."
        raise UsageError(msg)
    return round(seconds * 1e6)


_LATEST: Final = 9e9
