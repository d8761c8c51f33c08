"""The runs of a store, a page at a time, and how many there are.

Owns: which of them are wanted, and how they are read: one that this process cannot read whole, because it waits for something of a type that is not known here,
is listed all the same. It must never read all runs: what is counted is counted up to a bound.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, NamedTuple

from ..data.run_info import RunInfo
from ..data.run_result import RunStatus
from ..durability.run_listing import checked_labels, label_text, read_entry, session_text
from ..durability.store_access import StoreAccess
from ..errors import CheckpointError, CheckpointNotFound, UsageError
from ..stores.run_entries import RunEntry, RunQuery

__all__ = ["STATUSES", "Count", "RunList", "Wanted"]

STATUSES: Final = tuple(status.value for status in RunStatus if status is not RunStatus.PENDING)
_AT_ONCE: Final = 100
COUNTED: Final = 1_000
"""Up to so many runs are counted; of more, it is said that there are more."""


class Wanted(NamedTuple):
    """Which runs. All of what is given has to hold."""

    statuses: Sequence[str] = STATUSES
    agent: str | None = None
    session_id: str | None = None
    labels: Mapping[str, str] | None = None
    since: float | None = None
    until: float | None = None


class Count(NamedTuple):
    """How many there are."""

    number: int
    more: bool
    """There are more than that."""


class RunList:
    """The list of one store."""

    def __init__(self, access: StoreAccess | None) -> None:
        self._access = access

    def problem(self) -> str | None:
        """Why there is no list; None if there is one."""
        try:
            self.access()
        except UsageError as error:
            return str(error)
        return None

    def access(self) -> StoreAccess:
        """The store. Raises, if there is none that lists its runs."""
        if self._access is None:
            raise UsageError("the Runner has no store, so no runs are kept that could be looked at. Give it one: store=SQLiteStore('runs.db').")
        self._access.require_list("the console's list of runs")
        return self._access

    async def page(self, wanted: Wanted, limit: int, after: str | None = None) -> list[RunInfo]:
        """So many of them at most, the newest first, behind the one with that id."""
        access = self.access()
        found = await access.run_entries(_query(wanted, limit, after))
        if not found and after is not None and await access.run_entry(after) is None:
            msg = f"the run {after!r:.80}, behind which the next page begins, is not listed any more. Begin with the first page."
            raise CheckpointNotFound(msg, run=after)
        runs: list[RunInfo] = []
        for entry in found:
            runs.append(_read(entry))
            if len(runs) % _AT_ONCE == 0:
                await asyncio.sleep(0)  # the service goes on meanwhile
        return runs

    async def one(self, run_id: str) -> RunInfo:
        """What the list says of a run."""
        entry = await self.access().run_entry(run_id)
        if entry is None:
            msg = f"the store lists no run {run_id!r:.200}: none was begun there that is kept, or it has ended and is not kept any more."
            raise CheckpointNotFound(msg, run=run_id)
        return _read(entry)

    async def count(self, status: str) -> Count:
        """How many runs have that status."""
        found = await self.access().run_entries(_query(Wanted((status,)), COUNTED + 1, None))
        return Count(min(len(found), COUNTED), len(found) > COUNTED)


def _query(wanted: Wanted, limit: int, after: str | None) -> RunQuery:
    for status in wanted.statuses:
        if status not in STATUSES:
            msg = f"status={status!r:.40}: give one or several of {', '.join(STATUSES)}."
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
        shown = RunInfo(entry.key, entry.agent, entry.session or None, entry.key, RunStatus(entry.status), started, started)
        return replace(shown, error=f"What it waits for cannot be read here: {error}")
