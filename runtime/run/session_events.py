"""The events of all turns of a session, in any process, as they happen."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from ..clock import sleep
from ..data.events import AgentEvent
from ..data.run_result import RunStatus
from ..durability.run_labels import session_text
from ..errors import CheckpointNotFound, UsageError
from ..stores.run_entries import RunEntry, RunQuery

if TYPE_CHECKING:
    from ..durability.store_access import StoreAccess
    from .run import Run

__all__ = ["follow_session"]

_LOOK_SECONDS: Final = 0.25
"""Seconds between two looks for another turn."""
_PAGE: Final = 1_000
_STATUSES: Final = tuple(status.value for status in RunStatus)


async def follow_session(
    access: StoreAccess,
    session_id: str,
    attach: Callable[[str, int], Run[Any]],
    after: tuple[str, int] | None,
) -> AsyncIterator[AgentEvent]:
    """Yield the events of the turns of a session, in order; without `after`, from the first turn.

    `attach` follows one run, after the event of that number.
    """
    access.require_list("follow()")
    since, run_id, last = await _start(access, session_id, after)
    followed: set[str] = set()  # runs that started at `since`
    waiting: dict[str, int] = {}  # runs that wait for an answer, with their last events
    while True:
        rows = [row for row in await _rows(access, session_id, since) if row.key not in followed]
        for number, row in [
            *[(waiting[key], row) for key in waiting if (row := await _resumed(access, key))],
            *[(last if row.key == run_id else 0, row) for row in rows],
        ]:
            seen = number
            async with aclosing(attach(row.key, number).__aiter__()) as events:
                async for event in events:
                    seen = max(seen, event.seq)
                    yield event
            found = await access.run_entry(row.key)
            if found is not None and found.status == RunStatus.INTERRUPTED.value:
                waiting[row.key] = seen
            else:
                waiting.pop(row.key, None)
            if row.started > since:
                since, followed = row.started, set()
            if row.started == since:
                followed.add(row.key)
        await sleep(_LOOK_SECONDS)


async def _start(
    access: StoreAccess, session_id: str, after: object
) -> tuple[int, str | None, int]:
    """Return when the first run to follow started, and of the cursor the run and the event."""
    if after is None:
        return 0, None, 0
    match after:
        case (str() as run_id, int() as number) if number >= 0:
            row = await access.run_entry(run_id)
            if row is not None and row.session == session_text(session_id):
                return row.started, run_id, number
            msg = (
                f"follow(): after={after!r} names a run that session {session_id!r} does not have. "
                "Pass (event.run_id, event.seq) of the last event that you have, or leave it out."
            )
            raise CheckpointNotFound(msg, run=run_id)
    msg = f"follow(): after must be a pair of a run's id and an event's number, got {after!r:.80}."
    raise UsageError(msg)


async def _resumed(access: StoreAccess, run_id: str) -> RunEntry | None:
    """Return the row of a run that no longer waits for an answer."""
    row = await access.run_entry(run_id)
    return None if row is None or row.status == RunStatus.INTERRUPTED.value else row


async def _rows(access: StoreAccess, session_id: str, since: int) -> list[RunEntry]:
    """Return the runs of a session that started then or later, the first ones first."""
    query = RunQuery(_STATUSES, session=session_text(session_id), since=since, limit=_PAGE)
    return list(reversed(await access.run_entries(query)))
