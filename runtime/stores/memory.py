"""The store that is as long there as the process: for tests, and for runs that need not outlive it.

Owns: its dictionaries, and the lock around each look at them. Nothing is awaited in it, so it may be used from any loop and any thread. It must never make
a change of which only a part is seen.
"""

from __future__ import annotations

import math
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from ..clock import boottime
from ..errors import UsageError, WriteRefused
from .arguments import checked_writes, count, key_bytes, limit_of, owner_name, record_list, span, text, time_to_live, value_bytes
from .memory_entries import MemoryEntries
from .run_entries import DropEntry, RunEntry, RunQuery, checked_query
from .watching import Watch, Watchers
from .writes import Append, Claim, Ending, Expect, Put, Remove, Write

__all__ = ["MemoryStore"]


class _Entry:
    """What there is of a key."""

    __slots__ = ("expires", "records", "value", "written")

    def __init__(self) -> None:
        self.value: bytes | None = None
        self.records: list[bytes] = []
        self.written = 0.0
        self.expires = math.inf


class _Holding:
    """What there is of a claim: `owner` is empty when it was left for others."""

    __slots__ = ("attempts", "epoch", "owner")

    def __init__(self) -> None:
        self.owner = ""
        self.epoch = 0
        self.attempts = 0


class MemoryStore:
    """A store in the memory of this process.

    `ttl`: the seconds for which a key is there after it was last written; None: for ever. `time` is where the time comes from: a clock that never jumps. A
    forked process gets a copy.
    """

    def __init__(self, *, ttl: float | None = None, time: Callable[[], float] = boottime) -> None:
        self._ttl = time_to_live("MemoryStore", ttl)
        self._time = time
        # In the order of their last writing, if there is a time to live: those that have expired are in front.
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._short: dict[str, _Entry] = {}  # those that were given a time of their own
        self._owners: dict[str, float] = {}  # until when each is alive
        self._claims: dict[str, _Holding] = {}
        self._runs = MemoryEntries()
        self._watchers = Watchers(always=True)
        self._epoch = 0
        self._closed = False
        # One for each process: what another thread held when this process was forked is never released here.
        self._locks = {os.getpid(): threading.Lock()}

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
            return sorted(self._under(prefix))

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

    async def claim(self, key: str, owner: str, writes: Sequence[Write] = (), *, former: str | None = None) -> Claim | None:
        key_bytes("MemoryStore.claim", key)
        owner_name("MemoryStore.claim", owner)
        if former is not None:
            key_bytes("MemoryStore.claim", former, name="former")  # there was no earlier version whose memory this could be
        with self._lock("claim"):
            holding = self._claims.get(key)
            now = self._time()
            if holding is not None and holding.owner != owner and self._is_alive(holding.owner, now):
                checked_writes("MemoryStore.claim", writes)
                return None
            is_alive = self._owners.get(owner, -math.inf) > now
            self._check("MemoryStore.claim", writes, now, or_raise=None if is_alive else _refused("owner", key, f"owner {owner!r} is not alive"))
            if holding is None:
                holding = self._claims[key] = _Holding()
            self._epoch += 1
            holding.owner, holding.epoch = owner, self._epoch
            holding.attempts += 1
            self._do(writes, now)
            claim = Claim(key, owner, holding.epoch, holding.attempts)
        if self._watchers.by_key:
            self._tell([write.key for write in writes])
        return claim

    async def commit(self, claim: Claim | None, writes: Sequence[Write], *, then: Ending = "keep") -> None:
        with self._lock("commit"):
            now = self._time()
            refused = None
            if claim is not None:
                holding = self._claims.get(claim.key)
                if holding is None or holding.epoch != claim.epoch or holding.owner != claim.owner:
                    by = "no owner" if holding is None or not holding.owner else f"owner {holding.owner!r}"
                    refused = _refused("epoch", claim.key, f"it is claimed by {by} by now")
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
            for key in self._under(prefix):
                holding = self._claims.get(key)
                if self._entries[key].value is not None and (holding is None or not self._is_alive(holding.owner, now)):
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
                if entry.expires <= now or (older_than is not None and entry.written <= now - older_than):
                    self._forget(key)
                    gone.add(key)
            for owner in [owner for owner, until in self._owners.items() if until <= now]:
                del self._owners[owner]
            for key in [key for key, holding in self._claims.items() if key not in self._entries and holding.owner not in self._owners]:
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
        """Call `changed`, in the thread that writes, after one of these keys was written: `Watches` says more."""
        return self._watchers.add([key_bytes("MemoryStore.watch", key) for key in keys], changed)

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        """As `aclose()`, for code without a loop. What it held is gone."""
        if not self._closed:
            with self._lock("close"):
                self._closed = True
                self._runs.clear()
                for table in (self._entries, self._short, self._owners, self._claims):
                    table.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()

    def _lock(self, operation: str) -> threading.Lock:
        if self._closed:
            msg = f"MemoryStore.{operation}: the store is closed, and what it held is gone; make another one."
            raise UsageError(msg)
        process = os.getpid()
        return self._locks.get(process) or self._locks.setdefault(process, threading.Lock())

    def _tell(self, keys: Sequence[str]) -> None:
        if self._watchers:
            self._watchers.tell([key.encode("utf-8", "surrogatepass") for key in keys])

    # --- under the lock ---

    def _is_alive(self, owner: str, now: float | None = None) -> bool:
        until = self._owners.get(owner)
        return until is not None and until > (self._time() if now is None else now)

    def _check(self, call: str, writes: Sequence[Write], now: float, or_raise: WriteRefused | None) -> None:
        """Raise, if one of the writes is none, or is to be refused: by what there is before the first of them."""
        checked_writes(call, writes)
        if or_raise is not None:
            raise or_raise
        entries = self._entries
        for write in writes:
            kind = type(write)
            if kind is not Append and kind is not Expect:
                continue
            entry = entries.get(write.key)
            if entry is not None and entry.expires <= now:
                self._forget(write.key)
                entry = None
            if type(write) is Append:
                held = 0 if entry is None else len(entry.records)
                if held != write.after:
                    raise _refused("position", write.key, f"its journal holds {held} records, and not {write.after}")
            elif type(write) is Expect and ((entry is not None) if write.value is None else (entry is None or entry.value != write.value)):
                raise _refused("value", write.key, "its value is another one by now")

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
        """The keys that begin so. Looked at one by one: where some have a time of their own, they are not in the order in which they expire."""
        now = self._time()
        return [key for key, entry in self._entries.items() if key.startswith(prefix) and entry.expires > now]

    def _find(self, key: str) -> _Entry | None:
        """What there is of that key now."""
        entry = self._entries.get(key)
        if entry is not None and entry.expires != math.inf and entry.expires <= self._time():
            self._forget(key)
            return None
        return entry

    def _forget(self, key: str) -> None:
        self._entries.pop(key, None)
        self._short.pop(key, None)

    def _written(self, key: str) -> _Entry:
        """The entry of that key, which is written now."""
        now = self._time()
        self._sweep_if_due(now)
        return self._entry_of(key, now)

    def _sweep_if_due(self, now: float) -> None:
        if self._ttl is not None or (self._short and next(iter(self._short.values())).expires <= now):
            self._sweep(now)

    def _entry_of(self, key: str, now: float) -> _Entry:
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
        entry.written = now
        if self._short and key in self._short:
            del self._short[key]
            entry.expires = math.inf
        if self._ttl is not None:
            entry.expires = now + self._ttl
            self._entries.move_to_end(key)
        return entry

    def _sweep(self, now: float) -> None:
        """Forget what has expired, so that a store with a time to live does not grow for ever."""
        for entries in (self._short, self._entries if self._ttl is not None else {}):
            while entries:
                key = next(iter(entries))
                if entries[key].expires > now:
                    break
                self._forget(key)


def _refused(reason: str, key: str, why: str) -> WriteRefused:
    return WriteRefused(f"nothing was written for {key!r}: {why}.", reason=reason, key=key)
