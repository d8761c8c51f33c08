"""The list of runs that a store keeps: a few columns by which runs are found, and a summary that the store does not read.

Owns: these values, and what may be asked. It must never know a backend, nor what the summary says.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..errors import UsageError
from ..quick_init import quick

__all__ = ["DropEntry", "RunEntry", "RunQuery", "checked_query", "entry_size"]

_MOST: Final = 10_000
"""Entries that are returned at once."""

_LONGEST: Final = 1300
"""The bytes that a column may have: an index of every backend takes that, with what stands beside it."""


@quick
@dataclass(frozen=True, slots=True)
class RunEntry:
    """A run, as the store lists it. Written, it takes the place of what was listed of that run; but `agent`, `started` and `labels` stay as they were first."""

    key: str
    """The id of the run."""
    agent: str
    session: str
    """Empty, if the run is in none."""
    status: str
    started: int
    """Microseconds since 1970: entries are listed by it, the newest first."""
    labels: tuple[str, ...]
    """Texts by which it is found, too."""
    value: bytes
    seconds: float | None = None
    """It is forgotten after so long; None: when the store's own time to live is over, if it has one. Not told of one that is read."""


@quick
@dataclass(frozen=True, slots=True)
class DropEntry:
    """List the run no more."""

    key: str


@dataclass(frozen=True, slots=True)
class RunQuery:
    """Which entries are wanted. All of what is given has to hold."""

    statuses: tuple[str, ...]
    """One of these."""
    agent: str | None = None
    session: str | None = None
    labels: tuple[str, ...] = ()
    since: int | None = None
    """Started then or later."""
    until: int | None = None
    """Started before then."""
    limit: int = 100
    after: str | None = None
    """Only those that stand behind the entry of this run, which has to be there."""


def checked_query(call: str, query: object) -> RunQuery:
    """Raise, if it is none."""
    if not isinstance(query, RunQuery):
        msg = f"{call}: {query!r:.80} is a {type(query).__name__}; give a RunQuery."
        raise UsageError(msg)
    if not isinstance(query.limit, int) or isinstance(query.limit, bool) or not 1 <= query.limit <= _MOST:
        msg = f"{call}: limit={query.limit!r}: give a number from 1 to {_MOST:,}."
        raise UsageError(msg)
    return query


def entry_size(call: str, entry: RunEntry) -> int:
    """About how many bytes it has. Raises, if a part of it cannot be kept."""
    agent, session, status, labels, value = entry.agent, entry.session, entry.status, entry.labels, entry.value
    if type(value) is bytes and type(agent) is type(session) is type(status) is str and not labels and type(entry.started) is int:
        size = len(agent) + len(session) + len(status)
        if size * 4 <= _LONGEST:  # as nearly all
            return size + len(value)
    columns = (agent, session, status, *labels)
    size = len(value) if type(value) is bytes else -1
    for column in columns:
        if size < 0 or type(column) is not str or (len(column) * 4 > _LONGEST and len(column.encode("utf-8", "surrogatepass")) > _LONGEST):
            size = -1
            break
        size += len(column)
    if size < 0 or type(entry.started) is not int:
        msg = f"{call}: {entry!r:.200} is no entry: give texts of at most {_LONGEST:,} bytes, whole microseconds, and the value as bytes."
        raise UsageError(msg)
    return size
