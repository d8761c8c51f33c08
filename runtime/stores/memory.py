"""The store in the memory of this process: for tests, and for runs that need not outlive it.

Every access holds a lock and awaits nothing, so the store may be used from any loop and any thread.
Changes are atomic.
"""

from __future__ import annotations

import math
import os
import threading
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from time import time_ns
from types import TracebackType
from typing import Final, Self

from ..clock import boottime
from ..errors import UsageError, WriteRefused
from ..unpicklable import Unpicklable
from .arguments import (
    checked_writes,
    count,
    key_bytes,
    limit_of,
    owner_name,
    record_list,
    span,
    text,
    time_to_live,
    value_bytes,
)
from .marks import AGELESS
from .memory_entries import MemoryEntries
from .run_entries import DropEntry, ExpectEntry, RunEntry, RunQuery, checked_query
from .watching import Watch, Watchers
from .writes import Append, Claim, Ending, Expect, Put, Remove, Write

__all__ = ["MemoryStore"]

_FEW: Final = 64
"""The number of new keys from which sorting all of them takes less than inserting each."""


class _Entry:
    """The value and journal of a key."""

    __slots__ = ("expires", "records", "value", "written")

    def __init__(self) -> None:
        self.value: bytes | None = None
        self.records: list[bytes] = []
        self.written = 0.0
        self.expires = math.inf


class _Holding:
    """The claim of a key; `owner` is empty when it was released."""

    __slots__ = ("attempts", "epoch", "owner")

    def __init__(self) -> None:
        self.owner = ""
        self.epoch = 0
        self.attempts = 0


class _KeyIndex:
    """The keys of a store in order. It is made when keys are listed for the first time."""

    __slots__ = ("_added", "_listed")

    def __init__(self) -> None:
        self._listed: list[str] | None = None  # in order; removed keys may be left
        self._added: list[str] = []  # since then

    def add(self, key: str) -> None:
        """Note a new key."""
        if self._listed is not None:
            self._added.append(key)

    def clear(self) -> None:
        self._listed = None
        self._added.clear()

    def under(self, prefix: str, entries: Mapping[str, object]) -> list[str]:
        """Return those of the entries' keys that have that prefix."""
        listed = self._brought_up_to_date(entries)
        found: dict[str, None] = {}  # a key that was removed and added again is listed twice
        for place in range(bisect_left(listed, prefix), len(listed)):
            key = listed[place]
            if not key.startswith(prefix):
                break
            if key in entries:
                found[key] = None
        return list(found)

    def _brought_up_to_date(self, entries: Mapping[str, object]) -> list[str]:
        listed, added = self._listed, self._added
        most = 2 * len(entries) + _FEW
        if listed is None or len(listed) + len(added) > most:
            listed = self._listed = sorted(entries)
        elif len(added) > _FEW:
            listed += added
            listed.sort()
        else:
            for key in added:
                insort(listed, key)
        added.clear()
        return listed


class MemoryStore(Unpicklable):
    """A store in the memory of this process.

    `ttl`: the lifetime of a key in seconds, since it was last written; None: forever. `time`
    returns the current time and must be monotonic. A forked process cannot use it, because its copy
    would share nothing with the parent's store.
    """

    __why_not_pickled__ = (
        "its data is in the memory of this process. For several processes, use SQLiteStore, "
        "RedisStore or PostgresStore, and make it in each."
    )

    _is_copied = False  # whether a forked process may use its copy

    def __init__(self, *, ttl: float | None = None, time: Callable[[], float] = boottime) -> None:
        self._ttl = time_to_live("MemoryStore", ttl)
        self._time = time
        # In the order of their last write if there is a time to live: expired ones come first.
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._short: dict[str, _Entry] = {}  # entries that have their own time to live
        self._index = _KeyIndex()
        self._owners: dict[str, float] = {}  # the expiry time of each owner
        self._claims: dict[str, _Holding] = {}
        self._runs = MemoryEntries()
        self._watchers = Watchers(always=True)
        self._epoch = 0
        self._closed = False
        self._made_in = os.getpid()
        # One for each process: a lock that another thread held during a fork is never released in
        # the child.
        self._locks = {self._made_in: threading.Lock()}

    def __repr__(self) -> str:
        return f"<MemoryStore of {len(self._entries)} keys>"

    async def get(self, key: str) -> bytes | None:
        key_bytes("MemoryStore.get", key)
        with self._lock("get"):
            entry = self._find(key)
            return None if entry is None else entry.value

    async def set(self, key: str, value: bytes) -> None:
        key_bytes("MemoryStore.set", key)
        value_bytes("MemoryStore.set", value)
        with self._lock("set"):
            self._written(key).value = value
        self._tell((key,))

    async def delete(self, key: str) -> None:
        key_bytes("MemoryStore.delete", key)
        with self._lock("delete"):
            self._entries.pop(key, None)
        self._tell((key,))

    async def append(self, key: str, records: Sequence[bytes]) -> int:
        key_bytes("MemoryStore.append", key)
        listed = record_list("MemoryStore.append", records)
        with self._lock("append"):
            if not listed:
                entry = self._find(key)
                return 0 if entry is None else len(entry.records)
            journal = self._written(key).records
            journal.extend(listed)
            held = len(journal)
        self._tell((key,))
        return held

    async def read(self, key: str, after: int = 0) -> list[bytes]:
        key_bytes("MemoryStore.read", key)
        count("MemoryStore.read", after)
        with self._lock("read"):
            entry = self._find(key)
            return [] if entry is None else entry.records[after:]

    async def keys(self, prefix: str = "") -> list[str]:
        text("MemoryStore.keys", prefix)
        with self._lock("keys"):
            return self._under(prefix)

    async def create(self, key: str, value: bytes) -> bool:
        key_bytes("MemoryStore.create", key)
        value_bytes("MemoryStore.create", value)
        with self._lock("create"):
            if self._find(key) is not None:
                return False
            self._written(key).value = value
        self._tell((key,))
        return True

    async def keep_alive(self, owner: str, seconds: float, *, first: bool = False) -> bool:
        owner_name("MemoryStore.keep_alive", owner)
        span("MemoryStore.keep_alive", seconds)
        with self._lock("keep_alive"):
            if not first and owner not in self._owners:
                return False
            self._owners[owner] = self._time() + seconds
            return True

    async def revoke(self, owner: str) -> None:
        owner_name("MemoryStore.revoke", owner)
        with self._lock("revoke"):
            self._owners.pop(owner, None)

    async def claim(self, key: str, owner: str, writes: Sequence[Write] = ()) -> Claim | None:
        key_bytes("MemoryStore.claim", key)
        owner_name("MemoryStore.claim", owner)
        with self._lock("claim"):
            holding = self._claims.get(key)
            now = self._time()
            if (
                holding is not None
                and holding.owner != owner
                and self._is_alive(holding.owner, now)
            ):
                checked_writes("MemoryStore.claim", writes)
                return None
            is_alive = self._owners.get(owner, -math.inf) > now
            self._check(
                "MemoryStore.claim",
                writes,
                now,
                or_raise=None
                if is_alive
                else _refused("owner", key, f"owner {owner!r} is not alive"),
            )
            if holding is None:
                holding = self._claims[key] = _Holding()
            # The wall clock, so that a store made after this one returns larger epochs.
            self._epoch = max(self._epoch + 1, time_ns() // 1000)
            holding.owner, holding.epoch = owner, self._epoch
            holding.attempts += 1
            self._do(writes, now)
            claim = Claim(key, owner, holding.epoch, holding.attempts)
        if self._watchers.by_key:
            self._tell([write.key for write in writes])
        return claim

    async def commit(
        self, claim: Claim | None, writes: Sequence[Write], *, then: Ending = "keep"
    ) -> None:
        with self._lock("commit"):
            now = self._time()
            refused = None
            if claim is not None:
                holding = self._claims.get(claim.key)
                if holding is None or holding.epoch != claim.epoch or holding.owner != claim.owner:
                    by = (
                        "no owner"
                        if holding is None or not holding.owner
                        else f"owner {holding.owner!r}"
                    )
                    refused = _refused("epoch", claim.key, f"its claim now belongs to {by}")
                elif self._owners.get(claim.owner, -math.inf) <= now:
                    refused = _refused("owner", claim.key, f"owner {claim.owner!r} is not alive")
            self._check("MemoryStore.commit", writes, now, or_raise=refused)
            self._do(writes, now)
            if claim is not None and then == "forget":
                del self._claims[claim.key]
            elif claim is not None and then == "release":
                holding = self._claims[claim.key]
                holding.owner, holding.attempts = "", 0
        if self._watchers.by_key:
            self._tell([write.key for write in writes])

    async def holder(self, key: str) -> str | None:
        key_bytes("MemoryStore.holder", key)
        with self._lock("holder"):
            holding = self._claims.get(key)
            return holding.owner if holding is not None and self._is_alive(holding.owner) else None

    async def orphans(self, prefix: str = "", limit: int | None = None) -> list[str]:
        text("MemoryStore.orphans", prefix)
        limit_of("MemoryStore.orphans", limit)
        with self._lock("orphans"):
            found: list[tuple[int, str]] = []
            now = self._time()
            for key in (
                *(key for key in self._under(prefix) if self._entries[key].value is not None),
                *(key for key in self._runs.claims(now) if key.startswith(prefix)),
            ):
                holding = self._claims.get(key)
                if holding is None or not self._is_alive(holding.owner, now):
                    found.append((0 if holding is None else holding.attempts, key))
        found.sort()
        return [key for _, key in found[:limit]]

    async def prune(self, older_than: float | None = None) -> int:
        if older_than is not None:
            span("MemoryStore.prune", older_than, name="older_than", zero=True)
        with self._lock("prune"):
            now = self._time()
            self._runs.prune(now, older_than)
            gone: set[str] = set()
            for key, entry in list(self._entries.items()):
                if entry.expires <= now or (
                    older_than is not None
                    and entry.written <= now - older_than
                    and not AGELESS < entry.expires - now < math.inf
                ):
                    self._forget(key)
                    gone.add(key)
            for owner in [owner for owner, until in self._owners.items() if until <= now]:
                del self._owners[owner]
            for key in [
                key
                for key, holding in self._claims.items()
                if key not in self._entries
                and holding.owner not in self._owners
                and not self._runs.has_claim(key)
            ]:
                del self._claims[key]
                gone.add(key)
            return len(gone)

    async def run_entry(self, run_id: str) -> RunEntry | None:
        key_bytes("MemoryStore.run_entry", run_id)
        with self._lock("run_entry"):
            return self._runs.find(run_id, self._time())

    async def run_entries(self, query: RunQuery) -> list[RunEntry]:
        checked_query("MemoryStore.run_entries", query)
        with self._lock("run_entries"):
            return self._runs.list(query, self._time())

    def watch(self, keys: Sequence[str], changed: Callable[[], None]) -> Watch:
        """Call `changed`, in the writing thread, after a write to one of these keys; see
        `Watches`.
        """
        return self._watchers.add([key_bytes("MemoryStore.watch", key) for key in keys], changed)

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        """Close the store without an event loop, as `aclose()` does. Its data is discarded."""
        if os.getpid() != self._made_in:
            self._closed = True  # it belongs to the parent
        elif not self._closed:
            with self._lock("close"):
                self._closed = True
                self._runs.clear()
                self._index.clear()
                for table in (self._entries, self._short, self._owners, self._claims):
                    table.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _lock(self, operation: str) -> threading.Lock:
        if self._closed:
            msg = (
                f"MemoryStore.{operation}: the store is closed, and its data is gone. Make "
                "another one."
            )
            raise UsageError(msg)
        process = os.getpid()
        if process != self._made_in and not self._is_copied:
            msg = (
                f"MemoryStore.{operation}: this store belongs to the parent process, which "
                "forked this one. Make a new one after the fork, or use a store that both "
                "can share, such as SQLiteStore('runs.db')."
            )
            raise UsageError(msg)
        return self._locks.get(process) or self._locks.setdefault(process, threading.Lock())

    def _tell(self, keys: Sequence[str]) -> None:
        if self._watchers:
            self._watchers.tell([key.encode("utf-8", "surrogatepass") for key in keys])

    # --- under the lock ---

    def _is_alive(self, owner: str, now: float | None = None) -> bool:
        until = self._owners.get(owner)
        return until is not None and until > (self._time() if now is None else now)

    def _check(
        self, call: str, writes: Sequence[Write], now: float, or_raise: WriteRefused | None
    ) -> None:
        """Raise if one of the writes is invalid, or must be refused in the state before all of
        them.
        """
        checked_writes(call, writes)
        if or_raise is not None:
            raise or_raise
        entries = self._entries
        for write in writes:
            kind = type(write)
            if type(write) is ExpectEntry:
                row = self._runs.find(write.key, now)
                if (
                    row is not None and row.claim
                    if write.entry is None
                    else row is None or row.value != write.entry.value
                ):
                    raise _refused(
                        "value", write.key, "the row of that run has changed in the meantime"
                    )
            if kind is not Append and kind is not Expect:
                continue
            entry = entries.get(write.key)
            if entry is not None and entry.expires <= now:
                self._forget(write.key)
                entry = None
            if type(write) is Append:
                held = 0 if entry is None else len(entry.records)
                if held != write.after:
                    raise _refused(
                        "position",
                        write.key,
                        f"its journal has {held} records, expected {write.after}",
                    )
            elif type(write) is Expect and (
                (entry is not None)
                if write.value is None
                else (entry is None or entry.value != write.value)
            ):
                raise _refused("value", write.key, "its value has changed in the meantime")

    def _do(self, writes: Sequence[Write], now: float) -> None:
        if writes:
            self._sweep_if_due(now)
        entries, short = self._entries, self._short
        for write in writes:
            kind = type(write)
            if kind is Put or (type(write) is Append and write.records):
                key = write.key
                entry = entries.get(key)
                if entry is None or self._ttl is not None or key in short:
                    entry = self._entry_of(key, now)
                else:
                    entry.written = now
                if type(write) is Append:
                    entry.records.extend(write.records)
                elif type(write) is Put:
                    entry.value = write.value
                    if write.seconds is not None:
                        entry.expires = now + write.seconds
                        short[key] = entry
            elif kind is Remove:
                self._forget(write.key)
            elif type(write) is RunEntry:
                self._runs.put(write, now, self._ttl)
            elif kind is DropEntry:
                self._runs.drop(write.key)

    def _under(self, prefix: str) -> list[str]:
        """Return the keys with that prefix, in order."""
        now, entries = self._time(), self._entries
        return [key for key in self._index.under(prefix, entries) if entries[key].expires > now]

    def _find(self, key: str) -> _Entry | None:
        """Return the current entry of that key."""
        entry = self._entries.get(key)
        if entry is not None and entry.expires != math.inf and entry.expires <= self._time():
            self._forget(key)
            return None
        return entry

    def _forget(self, key: str) -> None:
        self._entries.pop(key, None)
        self._short.pop(key, None)

    def _written(self, key: str) -> _Entry:
        """Return the entry of that key, marked as written now."""
        now = self._time()
        self._sweep_if_due(now)
        return self._entry_of(key, now)

    def _sweep_if_due(self, now: float) -> None:
        if self._ttl is not None or (
            self._short and next(iter(self._short.values())).expires <= now
        ):
            self._sweep(now)

    def _entry_of(self, key: str, now: float) -> _Entry:
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
            self._index.add(key)
        entry.written = now
        if self._short and key in self._short:
            del self._short[key]
            entry.expires = math.inf
        if self._ttl is not None:
            entry.expires = now + self._ttl
            self._entries.move_to_end(key)
        return entry

    def _sweep(self, now: float) -> None:
        """Remove expired entries, so that a store with a time to live does not grow forever."""
        for entries in (self._short, self._entries if self._ttl is not None else {}):
            while entries:
                key = next(iter(entries))
                if entries[key].expires > now:
                    break
                self._forget(key)


def _refused(reason: str, key: str, why: str) -> WriteRefused:
    return WriteRefused(f"nothing was written for {key!r}: {why}.", reason=reason, key=key)
