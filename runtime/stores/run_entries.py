"""The list of runs of a store: columns to search runs by, and an opaque summary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..data.value import Value
from ..errors import UsageError

__all__ = ["DropEntry", "RunEntry", "RunQuery", "checked_query", "entry_size"]

_MOST: Final = 10_000
"""The largest number of entries that are returned at once."""

_LONGEST: Final = 1300
"""The longest column, in bytes: it fits an index of every backend with its other columns."""


class RunEntry(Value, frozen=True):
    """A run, as the store lists it.

    Writing it replaces the run's earlier entry, but `agent`, `started` and `labels` keep their
    first values.
    """

    key: str
    """The id of the run."""
    agent: str
    session: str
    """Empty if the run belongs to none."""
    status: str
    started: int
    """Microseconds since 1970; entries are listed by it, the newest first."""
    labels: tuple[str, ...]
    """Additional texts to search the run by."""
    value: bytes
    seconds: float | None = None
    """The lifetime of the entry; None: the store's own time to live, if it has one.

    Not set on entries that are read.
    """


class DropEntry(Value, frozen=True):
    """Remove the run from the list."""

    key: str


@dataclass(frozen=True, slots=True)
class RunQuery:
    """A query for entries. All conditions must hold."""

    statuses: tuple[str, ...]
    """The status must be one of these."""
    agent: str | None = None
    session: str | None = None
    labels: tuple[str, ...] = ()
    since: int | None = None
    """Only runs that started then or later."""
    until: int | None = None
    """Only runs that started before then."""
    limit: int = 100
    after: str | None = None
    """Only entries that come after that of this run, which must exist."""


def checked_query(call: str, query: object) -> RunQuery:
    """Raise UsageError if it is not a valid query."""
    if not isinstance(query, RunQuery):
        msg = f"{call}: {query!r:.80} is a {type(query).__name__}; give a RunQuery."
        raise UsageError(msg)
    if (
        not isinstance(query.limit, int)
        or isinstance(query.limit, bool)
        or not 1 <= query.limit <= _MOST
    ):
        msg = f"{call}: limit={query.limit!r}: give a number from 1 to {_MOST:,}."
        raise UsageError(msg)
    return query


def entry_size(call: str, entry: RunEntry) -> int:
    """Return the approximate size of an entry. Raises UsageError if it cannot be stored."""
    agent, session, status, labels, value = (
        entry.agent,
        entry.session,
        entry.status,
        entry.labels,
        entry.value,
    )
    if (
        type(value) is bytes
        and type(agent) is type(session) is type(status) is str
        and not labels
        and type(entry.started) is int
    ):
        size = len(agent) + len(session) + len(status)
        if size * 4 <= _LONGEST:  # nearly all entries
            return size + len(value)
    columns = (agent, session, status, *labels)
    size = len(value) if type(value) is bytes else -1
    for column in columns:
        if (
            size < 0
            or type(column) is not str
            or (
                len(column) * 4 > _LONGEST
                and len(column.encode("utf-8", "surrogatepass")) > _LONGEST
            )
        ):
            size = -1
            break
        size += len(column)
    if size < 0 or type(entry.started) is not int:
        msg = (
            f"{call}: {entry!r:.200} is no entry: give texts of at most {_LONGEST:,} bytes, "
            "whole microseconds, and the value as bytes."
        )
        raise UsageError(msg)
    return size
