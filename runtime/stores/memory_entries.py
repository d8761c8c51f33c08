"""The rows of runs of a `MemoryStore`.

It is used under the store's lock, and never waits for anything.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from typing import Final

from .run_entries import RunEntry, RunQuery

__all__ = ["MemoryEntries"]

_SWEPT: Final = 4
"""Entries that are checked for expiry with each write.

More than one, so that the number of expired entries stays small.
"""


class MemoryEntries:
    """The entries of runs, with their expiry."""

    __slots__ = ("_claims", "_ending", "_entries")

    def __init__(self) -> None:
        # With the time of its last write and its expiry.
        self._entries: dict[str, tuple[RunEntry, float, float]] = {}
        # Expiry times, in the order in which they were set.
        self._ending: dict[str, float] = {}
        # The runs that a process has to continue, by the keys that their owners claim.
        self._claims: dict[str, str] = {}

    def put(self, entry: RunEntry, now: float, ttl: float | None) -> None:
        key = entry.key
        for soonest in self._ending.values():
            if soonest <= now:
                self._sweep(now)
            break
        held = self._entries.get(key)
        first = None if held is None or held[2] <= now else held[0]
        if first is not None and (first.started, first.agent, first.labels) != (
            entry.started,
            entry.agent,
            entry.labels,
        ):
            entry = entry.replace(agent=first.agent, started=first.started, labels=first.labels)
        if held is not None and held[0].claim:
            self._claims.pop(held[0].claim, None)
        if entry.claim:
            self._claims[entry.claim] = key
        lasts = ttl if entry.seconds is None else entry.seconds
        self._ending.pop(key, None)
        if lasts is not None:
            self._ending[key] = now + lasts
        self._entries[key] = (entry, now, math.inf if lasts is None else now + lasts)

    def drop(self, key: str) -> None:
        held = self._entries.pop(key, None)
        if held is not None and held[0].claim:
            self._claims.pop(held[0].claim, None)
        self._ending.pop(key, None)

    def claims(self, now: float) -> list[str]:
        """Return the claims of runs that a process has to continue."""
        return [claim for claim, key in self._claims.items() if self._entries[key][2] > now]

    def has_claim(self, claim: str) -> bool:
        return claim in self._claims

    def find(self, key: str, now: float) -> RunEntry | None:
        held = self._entries.get(key)
        return None if held is None or held[2] <= now else _as_read(held[0])

    def list(self, query: RunQuery, now: float) -> list[RunEntry]:
        return [
            _as_read(entry)
            for entry in heapq.nlargest(query.limit, self._matching(query, now), key=_position)
        ]

    def prune(self, now: float, older_than: float | None) -> None:
        last = -math.inf if older_than is None else now - older_than
        for key in [
            key
            for key, (_, written, expires) in self._entries.items()
            if expires <= now or written <= last
        ]:
            self.drop(key)

    def clear(self) -> None:
        self._entries.clear()
        self._ending.clear()
        self._claims.clear()

    def _matching(self, query: RunQuery, now: float) -> Iterator[RunEntry]:
        after = None if query.after is None else self._entries.get(query.after)
        if query.after is not None and after is None:
            return
        place = None if after is None else _position(after[0])
        for entry, _, expires in self._entries.values():
            if (
                expires > now
                and entry.status in query.statuses
                and (query.agent is None or entry.agent == query.agent)
                and (query.session is None or entry.session == query.session)
                and (query.since is None or entry.started >= query.since)
                and (query.until is None or entry.started < query.until)
                and all(label in entry.labels for label in query.labels)
                and (place is None or _position(entry) < place)
            ):
                yield entry

    def _sweep(self, now: float) -> None:
        for _ in range(_SWEPT):
            key = next(iter(self._ending), None)
            if key is None or self._ending[key] > now:
                break
            self.drop(key)


def _position(entry: RunEntry) -> tuple[int, str]:
    return entry.started, entry.key


def _as_read(entry: RunEntry) -> RunEntry:
    return entry if entry.seconds is None else entry.replace(seconds=None)
