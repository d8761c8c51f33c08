"""The runs that are in a Runner's store, whichever process has begun them: what can be asked of them, and their removal.

Owns: what may be asked for. It must never change what a run does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from ...data.run_info import RunInfo
from ...data.run_result import RunStatus
from ...durability.checkpoint import check_run_id
from ...durability.open_mark import UnfinishedRun
from ...durability.recovery import stuck_runs
from ...durability.run_listing import checked_labels, label_text, read_entry, session_text
from ...durability.store_access import StoreAccess
from ...errors import CheckpointNotFound, UsageError
from ...stores.run_entries import RunQuery
from ...system.loop_door import LoopDoor
from ...system.system import ActorSystem
from ..overriding import Overriding
from ..run_factory import RunFactory
from .forgetting import forget_run
from .kept_life import KeptLife, read_life

if TYPE_CHECKING:
    from ...observe.timeline import Timeline

__all__ = ["KeptRuns"]

_MOST: Final = 10_000
_PAGE: Final = 1_000
_LISTED: Final = tuple(status for status in RunStatus if status is not RunStatus.PENDING)

StatusLike: TypeAlias = RunStatus | str | Iterable[RunStatus | str] | None


class KeptRuns(Overriding):
    """The part of a `Runner` that looks at what is kept of runs."""

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
        """The runs in the store, of all agents and processes, the newest first.

        What is given has to hold, all of it: one status or several, the session, the root agent, each of the `labels`, and that the run was started at `since`
        or later, and before `until` (a datetime, or seconds since 1970). `limit` of them at most; `after` is the id of the last run of the page before.

        Runs are there from their beginning, with `durability="step"` or a `keep`; with `durability="interrupt"` alone, from when they first come to rest. How
        long they stay after their end is said by `keep`. A run that has lost its process is `running` until `recover()` finds it.
        """
        access = self._listing("runs()")
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= _MOST:
            msg = f"runs(limit={limit!r}): give a number from 1 to {_MOST:,}; for more, ask again with after= the id of the last one."
            raise UsageError(msg)
        for name, text in (("session_id", session_id), ("agent", agent), ("after", after)):
            if text is not None and (not isinstance(text, str) or not text):
                msg = f"runs({name}={text!r:.80}): give a text that is not empty, or leave it out."
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
            msg = f"runs(after={after!r}): that run is not listed any more. Begin with the first page, or give until= the time at which it was started."
            raise CheckpointNotFound(msg, run=after)
        return [read_entry(entry) for entry in found]

    async def info(self, run_id: str) -> RunInfo:
        """What the store says of a run, of whichever agent. Raises `CheckpointNotFound`, if there is none of that id, or it is not kept any more."""
        entry = await self._listing("info()").run_entry(check_run_id(run_id, self._factory.tree.name))
        if entry is None:
            msg = f"the store knows no run {run_id!r}: none was begun there that is kept, or it has ended and is not kept any more."
            raise CheckpointNotFound(msg, run=run_id)
        return read_entry(entry)

    async def life(self, run_id: str) -> KeptLife:
        """All that the store has of a run, of whichever agent: its events, when it was at rest, and how it has ended. For those who show it."""
        access = self._fenced("life()")
        return await LoopDoor(self._factory.choose_system(), "life()").call(partial(read_life, access, run_id))

    async def timeline(self, run_id: str) -> Timeline:
        """A picture over time of a run in the store: what each process did of it, when it waited, and what was lost between them."""
        from ...observe.timeline import timeline_of  # noqa: PLC0415 -- a higher room, which makes this of it

        return timeline_of(await self.life(run_id), self._factory.tree)

    def choose_system(self) -> ActorSystem:
        """The system in which a run would live that is started here."""
        return self._factory.choose_system()

    async def pending(self) -> list[RunInfo]:
        """All runs in the store that wait for an answer, the newest first: `waiting` says for what, and `updated` since when."""
        found: list[RunInfo] = []
        while True:
            try:
                page = await self.runs(RunStatus.INTERRUPTED, limit=_PAGE, after=found[-1].id if found else None)
            except CheckpointNotFound:  # it was forgotten at this moment
                found.clear()
                continue
            found += page
            if len(page) < _PAGE:
                return found

    async def forget(self, run_id: str) -> None:
        """Remove all that the store holds of a run: its steps, its saves, how it has ended, and that it was there. What it has said in a session stays there.

        A run that is at work is not forgotten: cancel it first. One that waits, or was set aside, is gone for good.
        """
        check_run_id(run_id, self._factory.tree.name)
        access, system = self._fenced("forget()"), self._factory.choose_system()

        async def forget_it() -> None:
            entry = await access.run_entry(run_id) if access.lists_runs else None
            info = None if entry is None else read_entry(entry)
            agent = self._factory.tree.name if info is None else info.agent
            await forget_run(access, system, agent, run_id, run_id if info is None else info.checkpoint_id, listed=info is not None)

        await LoopDoor(system, "forget()").call(forget_it)

    async def stuck(self) -> list[UnfinishedRun]:
        """The runs of this agent that were set aside, because each has ended its process too often."""
        return await stuck_runs(self._fenced("stuck()"), self._factory.tree.name)

    def _fenced(self, call: str) -> StoreAccess:
        if self._access is None:
            msg = f"{call} needs a Runner with a store: SQLiteStore('runs.db'), RedisStore(url), PostgresStore(dsn) or MemoryStore()."
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
            msg = f"runs(status={one!r:.80}): give one or several of {', '.join(repr(known.value) for known in _LISTED)}."
            raise UsageError(msg)
    return tuple(dict.fromkeys(RunStatus(one).value for one in wanted))


def _microseconds(name: str, moment: datetime | float | None) -> int | None:
    if moment is None:
        return None
    if isinstance(moment, bool) or not isinstance(moment, datetime | int | float):
        msg = f"runs({name}={moment!r:.80}): give a datetime, or seconds since 1970."
        raise UsageError(msg)
    seconds = moment.timestamp() if isinstance(moment, datetime) else moment
    if not 0 <= seconds <= _LATEST:
        msg = f"runs({name}={moment!r:.80}): give a time between 1970 and 2255."
        raise UsageError(msg)
    return round(seconds * 1e6)


_LATEST: Final = 9e9
