"""Timers in a store: what has to happen at some time, in whichever process is attending then.

A timer is a row among those of the runs, with the status "timer" and the time as its start, so that
a store with a million of them finds the due ones at once. Whoever makes the effect of a timer
happen removes the row in the same step, so the effect happens once. An effect that starts something
with an id of its own may be tried again instead, until the row is removed.

A timer holds what is needed to act on it, and no reference to a process.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..codec.packing import pack, unpack
from ..data.chat import new_id
from ..data.interrupt import InterruptContext
from ..data.value import Value
from ..errors import CheckpointError
from ..log import loggers
from ..stores.run_entries import TIMER, DropEntry, ExpectEntry, RunEntry, RunQuery
from ..stores.writes import Put, Write
from .run_labels import session_text
from .store_keys import arrivals_key, deadline_key, task_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .store_access import StoreAccess

__all__ = [
    "Timer",
    "TimerKind",
    "deadline_timer",
    "due_task",
    "due_timers",
    "read_timer",
    "timers_of",
]

_FORMAT: Final = 1
_AT_ONCE: Final = 200
_MOST_PAGES: Final = 500
"""The pages that a look goes back to find the timers that are due first."""
_PAGE: Final = 1_000

TimerKind: TypeAlias = Literal["deadline", "reminder", "occurrence", "task"]


class Timer(Value, frozen=True):
    """One timer."""

    key: str
    kind: TimerKind
    agent_name: str
    session_id: str | None
    at: datetime
    content: Any
    """What the kind needs: plain data, and registered types."""
    row: RunEntry | None = None
    """The row, if it was read from the store."""

    def entry(self) -> RunEntry:
        """Return the row."""
        now = _microseconds(datetime.now(UTC))
        return RunEntry(
            self.key,
            self.agent_name,
            "" if self.session_id is None else session_text(self.session_id),
            TIMER,
            _microseconds(self.at),
            (),
            pack([_FORMAT, self.kind, self.session_id, self.content]),
            updated=now,
        )

    def removal(self) -> list[Write]:
        """Return the writes that remove the timer, once: they are refused if it is gone."""
        return [ExpectEntry(self.key, "", self.row), DropEntry(self.key)]


def deadline_timer(
    run_id: str,
    agent_name: str,
    session_id: str | None,
    number: int,
    checkpoint_id: str,
    contexts: Sequence[InterruptContext],
) -> Timer | None:
    """Return the timer for the interrupts of a save; None if none of them has a deadline."""
    found = [context for context in contexts if context.deadline is not None]
    if not found:
        return None
    return Timer(
        deadline_key(run_id, number),
        "deadline",
        agent_name,
        session_id,
        min(context.deadline for context in found if context.deadline is not None),
        [checkpoint_id, [[one.id, one.deadline, one.default] for one in found]],
    )


async def due_task(access: StoreAccess, task_id: str) -> list[Write]:
    """Return the writes that make the timer of a task due, because its run ends or asks."""
    row = await access.run_entry(task_key(task_id))
    if row is None:
        return []  # it is no task, or its outcome is reported
    timer = read_timer(row)
    parent, _, until, told, _ = timer.content
    now = datetime.now(UTC)
    # With another content: whoever reads the old row at this moment does not replace this one.
    due = timer.replace(
        at=now if until is None else max(now, until),
        content=[parent, task_id, until, told, new_id()],
    )
    arrival = Put(arrivals_key(timer.agent_name), pack(task_id))
    return [DropEntry(timer.key), due.entry(), arrival]


async def due_timers(
    access: StoreAccess, agent_name: str, left: set[RunEntry] | None = None
) -> list[Timer]:
    """Return timers of that agent that are due: the first ones first, and at most some hundreds.

    The rows of `left` are left out. One that cannot be read is left out, too, and added to them, so
    that it does not hold back the others.
    """
    left = set() if left is None else left
    query = RunQuery(
        (TIMER,), agent_name, until=_microseconds(datetime.now(UTC)) + 1, limit=_AT_ONCE
    )
    # A store lists the last ones first: after a time in which nobody attended, there are more.
    page = await access.run_entries(query)
    rows = [row for row in page if row not in left]
    for _ in range(_MOST_PAGES):
        if len(page) < _AT_ONCE:
            break
        page = await access.run_entries(replace(query, after=page[-1].key))
        rows = [*rows, *(row for row in page if row not in left)][-_AT_ONCE:]
    found = []
    for row in reversed(rows):
        try:
            found.append(read_timer(row))
        except CheckpointError as problem:
            left.add(row)
            loggers.durability.warning("Timer %r is left in the store: %s", row.key, problem)
    return found


async def timers_of(access: StoreAccess, agent_name: str, session_id: str) -> list[Timer]:
    """Return the timers of a session, the first ones first."""
    query = RunQuery((TIMER,), agent_name, session=session_text(session_id), limit=_PAGE)
    rows = page = await access.run_entries(query)
    while len(page) == _PAGE:
        page = await access.run_entries(replace(query, after=page[-1].key))
        rows = [*rows, *page]
    return [read_timer(row) for row in reversed(rows)]


def read_timer(row: RunEntry) -> Timer:
    """Decode a row."""
    try:
        form, kind, session_id, content = unpack(row.value)
    except (TypeError, ValueError) as problem:
        msg = f"the stored timer {row.key!r} is damaged: {problem}."
        raise CheckpointError(msg) from problem
    if form != _FORMAT:
        msg = f"the stored timer {row.key!r} was written by a newer version of offbook. Update it."
        raise CheckpointError(msg)
    at = datetime.fromtimestamp(row.started / 1e6, UTC)
    return Timer(row.key, kind, row.agent, session_id, at, content, row)


def _microseconds(at: datetime) -> int:
    return int(at.timestamp() * 1e6)
