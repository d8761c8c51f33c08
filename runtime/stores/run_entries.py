"""The rows of runs: one for each run, with columns to search runs by, and an opaque rest.

A row also says whether a process has to continue the run, so it is written in the step in which
the run begins, pauses or ends, and nothing else in the store has the status of a run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ..data.value import Value
from ..errors import UsageError

__all__ = [
    "NUMBERS",
    "TEXTS",
    "TIMER",
    "DropEntry",
    "ExpectEntry",
    "RunEntry",
    "RunQuery",
    "checked_query",
    "entry_size",
    "numbers_of",
    "texts_of",
]

TIMER: Final = "timer"
"""The status of a row that is no run: something has to happen at the time of its start."""
TEXTS: Final = ("agent", "session", "status", "claim", "checkpoint", "last_agent", "error")
"""The columns of an entry that are texts, but for its key and labels."""
NUMBERS: Final = (
    "started",
    "updated",
    "ended",
    "attempts",
    "steps",
    "input_tokens",
    "output_tokens",
    "cached_tokens",
    "requests",
)
"""The columns of an entry that are numbers, likewise."""

_MOST: Final = 10_000
"""The largest number of entries that are returned at once."""

_LONGEST: Final = 1300
"""The longest searched column, in bytes: it fits an index of every backend with the others."""


class RunEntry(Value, frozen=True):
    """The row of a run.

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
    """The rest, which only this library reads."""
    seconds: float | None = None
    """The lifetime of the entry; None: the store's own time to live, if it has one.

    Not set on entries that are read.
    """
    claim: str = ""
    """The key that the run's owner claims, as long as a process has to continue the run.

    Without a living owner, it is one of the store's `orphans`. Empty if the run waits for an
    answer, is stuck, or has ended.
    """
    checkpoint: str = ""
    last_agent: str = ""
    error: str = ""
    updated: int = 0
    """Microseconds since 1970."""
    ended: int = 0
    """Microseconds since 1970; 0 if the run has not ended."""
    attempts: int = 0
    """The number of processes lost while they ran it, before the current one."""
    steps: int = 0
    """The number of its events."""
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    requests: int = 0
    """The number of its requests to models."""


class DropEntry(Value, frozen=True):
    """Remove the row of the run."""

    key: str
    claim: str = ""
    """The key that the run's owner claims, if the caller knows it."""


class ExpectEntry(Value, frozen=True):
    """Refuse everything, unless the run has this row.

    None: it has no row that says that a process has to continue it.
    """

    key: str
    claim: str
    """The key that the run's owner claims."""
    entry: RunEntry | None = None


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
        msg = f"{call}: query must be a RunQuery, got a {type(query).__name__}: {query!r:.80}."
        raise UsageError(msg)
    if (
        not isinstance(query.limit, int)
        or isinstance(query.limit, bool)
        or not 1 <= query.limit <= _MOST
    ):
        msg = f"{call}: query.limit must be from 1 to {_MOST:,}, got {query.limit!r}."
        raise UsageError(msg)
    return query


def texts_of(entry: RunEntry) -> tuple[str, ...]:
    """Return the columns in `TEXTS`."""
    return (
        entry.agent,
        entry.session,
        entry.status,
        entry.claim,
        entry.checkpoint,
        entry.last_agent,
        entry.error,
    )


def numbers_of(entry: RunEntry) -> tuple[int, ...]:
    """Return the columns in `NUMBERS`."""
    return (
        entry.started,
        entry.updated,
        entry.ended,
        entry.attempts,
        entry.steps,
        entry.input_tokens,
        entry.output_tokens,
        entry.cached_tokens,
        entry.requests,
    )


def entry_size(call: str, entry: RunEntry) -> int:
    """Return the approximate size of an entry. Raises UsageError if it cannot be stored."""
    searched = (entry.agent, entry.session, entry.status, *entry.labels)
    texts = (*texts_of(entry), *entry.labels)
    if (
        type(entry.value) is bytes
        and {type(text) for text in texts} == {str}
        and {type(number) for number in numbers_of(entry)} == {int}
        and max(map(_size_of, searched)) <= _LONGEST
    ):
        return len(entry.value) + sum(map(len, texts))
    msg = (
        f"{call}: a row must have strings of at most {_LONGEST:,} bytes, times in whole "
        f"microseconds, and a value of bytes, got {entry!r:.200}."
    )
    raise UsageError(msg)


def _size_of(text: str) -> int:
    """Return the bytes of a text, or an upper bound if it is short."""
    most = 4 * len(text)
    return most if most <= _LONGEST else len(text.encode("utf-8", "surrogatepass"))
