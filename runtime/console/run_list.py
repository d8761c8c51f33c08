"""The runs of a store, a page at a time, and their number.

A run with an interrupt of a type that is not known in this process cannot be read completely, but
is still listed. Counting stops at a bound, so that never all runs are read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from ..data.run_info import RunInfo
from ..data.run_result import RunStatus
from ..durability.run_labels import checked_labels, label_text, session_text
from ..durability.run_row import read_entry
from ..durability.store_access import StoreAccess
from ..durability.store_keys import open_key
from ..durability.store_owner import is_gone
from ..errors import CheckpointError, CheckpointNotFound, UsageError
from ..stores.run_entries import RunEntry, RunQuery

__all__ = ["STATUSES", "Count", "RunList", "Wanted"]

STATUSES: Final = tuple(status.value for status in RunStatus if status is not RunStatus.PENDING)
_AT_ONCE: Final = 100
COUNTED: Final = 1_000
"""The largest number of runs that are counted."""


class Wanted(NamedTuple):
    """A filter for runs. All conditions must hold."""

    statuses: Sequence[str] = STATUSES
    agent: str | None = None
    session_id: str | None = None
    labels: Mapping[str, str] | None = None
    since: float | None = None
    until: float | None = None


class Count(NamedTuple):
    """A number of runs."""

    number: int
    more: bool
    """There are more than that."""


class RunList:
    """The list of one store."""

    def __init__(self, access: StoreAccess | None) -> None:
        self._access = access

    def problem(self) -> str | None:
        """Return the reason why there is no list; None if there is one."""
        try:
            self.access()
        except UsageError as error:
            return str(error)
        return None

    def access(self) -> StoreAccess:
        """Return the store. Raises UsageError if there is none that lists its runs."""
        if self._access is None:
            raise UsageError(
                "the Runner has no store, so there are no runs to show. Pass it one: "
                "store=SQLiteStore('runs.db')."
            )
        self._access.require_list("the console's list of runs")
        return self._access

    async def page(self, wanted: Wanted, limit: int, after: str | None = None) -> list[RunInfo]:
        """Return at most `limit` runs, the newest first, after the one with that id."""
        access = self.access()
        found = await access.run_entries(_query(wanted, limit, after))
        if not found and after is not None and await access.run_entry(after) is None:
            msg = (
                f"the last run of the previous page, {after!r:.80}, is no longer listed. Start "
                "with the first page."
            )
            raise CheckpointNotFound(msg, run=after)
        runs: list[RunInfo] = []
        for entry in found:
            runs.append(_read(entry))
            if len(runs) % _AT_ONCE == 0:
                await asyncio.sleep(0)  # lets the service run in between
        return runs

    async def lost(self, runs: Sequence[RunInfo]) -> frozenset[str]:
        """Return the ids of runs that are listed as running but have no process.

        They wait for `recover()`.
        """
        access = self.access()
        if not access.is_fenced:
            return frozenset()  # such a store does not know the work of other processes
        listed = [info for info in runs if info.status is RunStatus.RUNNING]
        holders = await asyncio.gather(
            *(access.holder(open_key(info.agent, info.id)) for info in listed)
        )
        without = [
            info.id
            for info, holder in zip(listed, holders, strict=True)
            if holder is None or is_gone(holder)
        ]
        # Some have ended in the meantime.
        entries = await asyncio.gather(*(access.run_entry(run_id) for run_id in without))
        return frozenset(
            entry.key
            for entry in entries
            if entry is not None and entry.status == RunStatus.RUNNING.value
        )

    async def one(self, run_id: str) -> RunInfo:
        """Return the entry of a run."""
        entry = await self.access().run_entry(run_id)
        if entry is None:
            msg = (
                f"the store lists no run {run_id!r:.200}: it was never stored there, or it has "
                "ended and is no longer retained. Check the id and the store, or set keep= on "
                "the Runner."
            )
            raise CheckpointNotFound(msg, run=run_id)
        return _read(entry)

    async def count(self, status: str) -> Count:
        """Return the number of runs with that status."""
        found = await self.access().run_entries(_query(Wanted((status,)), COUNTED + 1, None))
        return Count(min(len(found), COUNTED), len(found) > COUNTED)


def _query(wanted: Wanted, limit: int, after: str | None) -> RunQuery:
    for status in wanted.statuses:
        if status not in STATUSES:
            msg = f"status must be one or more of {', '.join(STATUSES)}, got {status!r:.40}."
            raise UsageError(msg)
    return RunQuery(
        tuple(wanted.statuses),
        wanted.agent,
        None if wanted.session_id is None else session_text(wanted.session_id),
        tuple(label_text(*label) for label in checked_labels("runs", wanted.labels).items()),
        None if wanted.since is None else round(wanted.since * 1e6),
        None if wanted.until is None else round(wanted.until * 1e6),
        limit,
        after,
    )


def _read(entry: RunEntry) -> RunInfo:
    try:
        return read_entry(entry)
    except CheckpointError as error:
        started = datetime.fromtimestamp(entry.started / 1e6, UTC)
        shown = RunInfo(
            entry.key,
            entry.agent,
            entry.session or None,
            entry.key,
            RunStatus(entry.status),
            started,
            started,
        )
        return shown.replace(error=f"Its interrupts cannot be read here: {error}")
