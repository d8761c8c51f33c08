"""Queries about the runs in a Runner's store, whichever process started them, and their removal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final, TypeAlias

from ...data.run_info import RunInfo
from ...data.run_result import RunStatus
from ...durability.run_labels import checked_labels, label_text, session_text
from ...durability.run_row import read_entry
from ...durability.store_access import StoreAccess
from ...errors import CheckpointNotFound, UsageError
from ...stores.run_entries import RunQuery
from ...system.loop_bridge import LoopBridge
from ...system.system import ActorSystem
from ..follow.live_runs import live_run_anywhere
from .forgetting import forget_run

__all__ = [
    "PAGE",
    "StatusLike",
    "fenced",
    "forget_stored",
    "list_runs",
    "listing",
    "run_info",
]

PAGE: Final = 1_000
"""The number of runs that `pending` reads at once."""
_MOST: Final = 10_000
_LISTED: Final = tuple(RunStatus)

StatusLike: TypeAlias = RunStatus | str | Iterable[RunStatus | str] | None


def fenced(access: StoreAccess | None, call: str) -> StoreAccess:
    """Return the access to a store that refuses the writes of lost owners, or raise."""
    if access is None:
        msg = (
            f"{call} needs a Runner with a store: SQLiteStore('runs.db'), RedisStore(url), "
            "PostgresStore(dsn) or MemoryStore()."
        )
        raise UsageError(msg)
    access.require_fences(call)
    return access


def listing(access: StoreAccess | None, call: str) -> StoreAccess:
    """Return the access to a store that also lists its runs, or raise."""
    access = fenced(access, call)
    access.require_list(call)
    return access


async def list_runs(
    access: StoreAccess,
    status: StatusLike,
    session_id: str | None,
    agent: str | None,
    labels: Mapping[str, str] | None,
    since: datetime | float | None,
    until: datetime | float | None,
    limit: int,
    after: str | None,
) -> list[RunInfo]:
    """Return the runs that match all filters: see `Runner.runs`."""
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


async def run_info(access: StoreAccess, run_id: str) -> RunInfo:
    """Return the store's information about a run."""
    entry = await access.run_entry(run_id)
    if entry is None and (live := live_run_anywhere(access, run_id)) is not None:
        # Requested a moment ago.
        await LoopBridge(live.system, "info()").call(live.progress.wait_accepted)
        entry = await access.run_entry(run_id)
    if entry is None:
        msg = (
            f"the store has no run {run_id!r}: it was never stored there, or its retention is "
            "over. Check the id and the store."
        )
        raise CheckpointNotFound(msg, run=run_id)
    return read_entry(entry)


async def forget_stored(
    access: StoreAccess, system: ActorSystem, agent: str, run_id: str, *, only_failed: bool
) -> None:
    """Remove everything that the store holds of a run. `agent` is used if it is not listed."""
    entry = await access.run_entry(run_id) if access.lists_runs else None
    info = None if entry is None else read_entry(entry)
    await forget_run(
        access,
        system,
        agent if info is None else info.agent,
        run_id,
        run_id if info is None else info.checkpoint_id,
        listed=info is not None,
        only_failed=only_failed,
    )


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
