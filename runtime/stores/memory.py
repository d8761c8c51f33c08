"""The store that is as long there as the process: for tests, and for runs that need not outlive it.

Owns: its dictionaries, and the lock around each look at them. Nothing is awaited in it, so it may be used from any loop and any thread.
"""

from __future__ import annotations

import os
import threading
import time as clock
from collections import OrderedDict
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from ..errors import UsageError
from .arguments import count, key_bytes, key_list, owner_name, record_list, span, text, time_to_live, value_bytes

__all__ = ["MemoryStore"]


class _Entry:
    """What there is of a key."""

    __slots__ = ("expires", "records", "value", "written")

    def __init__(self) -> None:
        self.value: bytes | None = None
        self.records: list[bytes] = []
        self.written = 0.0
        self.expires = 0.0  # means something only where there is a time to live


class MemoryStore:
    """A store in the memory of this process.

    `ttl`: the seconds for which a key is there after it was last written; None: for ever. `time` is where the time comes from. A forked process gets a copy.
    """

    def __init__(self, *, ttl: float | None = None, time: Callable[[], float] = clock.time) -> None:
        self._ttl = time_to_live("MemoryStore", ttl)
        self._time = time
        # In the order of their last writing, if there is a time to live: those that have expired are in front.
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._leases: dict[str, tuple[str, float]] = {}
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

    async def delete(self, key: str) -> None:
        key_bytes("MemoryStore.delete", key)
        with self._lock("delete"):
            self._entries.pop(key, None)

    async def append(self, key: str, records: Sequence[bytes]) -> int:
        key_bytes("MemoryStore.append", key)
        listed = record_list("MemoryStore.append", records)
        with self._lock("append"):
            if not listed:
                entry = self._find(key)
                return 0 if entry is None else len(entry.records)
            journal = self._written(key).records
            journal.extend(listed)
            return len(journal)

    async def read(self, key: str, after: int = 0) -> list[bytes]:
        key_bytes("MemoryStore.read", key)
        count("MemoryStore.read", after)
        with self._lock("read"):
            entry = self._find(key)
            return [] if entry is None else entry.records[after:]

    async def keys(self, prefix: str = "") -> list[str]:
        text("MemoryStore.keys", prefix)
        with self._lock("keys"):
            now = self._time() if self._ttl is not None else 0.0
            # Looked at one by one: a clock that was put back has mixed up their order.
            found = [key for key, entry in self._entries.items() if key.startswith(prefix) and (self._ttl is None or entry.expires > now)]
        found.sort()
        return found

    async def create(self, key: str, value: bytes) -> bool:
        key_bytes("MemoryStore.create", key)
        value_bytes("MemoryStore.create", value)
        with self._lock("create"):
            if self._find(key) is not None:
                return False
            self._written(key).value = value
            return True

    async def acquire(self, key: str, owner: str, seconds: float) -> bool:
        key_bytes("MemoryStore.acquire", key)
        owner_name("MemoryStore.acquire", owner)
        span("MemoryStore.acquire", seconds)
        with self._lock("acquire"):
            now = self._time()
            lease = self._leases.get(key)
            if lease is not None and lease[0] != owner and lease[1] > now:
                return False
            self._leases[key] = (owner, now + seconds)
            return True

    async def renew(self, keys: Sequence[str], owner: str, seconds: float) -> list[str]:
        listed = key_list("MemoryStore.renew", keys)
        owner_name("MemoryStore.renew", owner)
        span("MemoryStore.renew", seconds)
        with self._lock("renew"):
            now = self._time()
            own = [key for key in listed if (lease := self._leases.get(key)) is not None and lease[0] == owner and lease[1] > now]
            for key in own:
                self._leases[key] = (owner, now + seconds)
            return own

    async def release(self, key: str, owner: str) -> None:
        key_bytes("MemoryStore.release", key)
        owner_name("MemoryStore.release", owner)
        with self._lock("release"):
            lease = self._leases.get(key)
            if lease is not None and lease[0] == owner:
                del self._leases[key]

    async def holder(self, key: str) -> str | None:
        key_bytes("MemoryStore.holder", key)
        with self._lock("holder"):
            lease = self._leases.get(key)
            return lease[0] if lease is not None and lease[1] > self._time() else None

    async def prune(self, older_than: float | None = None) -> int:
        if older_than is not None:
            span("MemoryStore.prune", older_than, name="older_than", zero=True)
        with self._lock("prune"):
            now = self._time()
            gone = {key for key, (_owner, until) in self._leases.items() if until <= now}
            for key in gone:
                del self._leases[key]
            for key, entry in list(self._entries.items()):
                if (self._ttl is not None and entry.expires <= now) or (older_than is not None and entry.written <= now - older_than):
                    del self._entries[key]
                    gone.add(key)
            return len(gone)

    async def aclose(self) -> None:
        self.close()

    def close(self) -> None:
        """As `aclose()`, for code without a loop. What it held is gone."""
        if not self._closed:
            with self._lock("close"):
                self._closed = True
                self._entries.clear()
                self._leases.clear()

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

    def _find(self, key: str) -> _Entry | None:
        """What there is of that key now."""
        entry = self._entries.get(key)
        if entry is not None and self._ttl is not None and entry.expires <= self._time():
            del self._entries[key]
            return None
        return entry

    def _written(self, key: str) -> _Entry:
        """The entry of that key, which is written now."""
        now = self._time()
        if self._ttl is not None:
            self._sweep(now)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
        entry.written = now
        if self._ttl is not None:
            entry.expires = now + self._ttl
            self._entries.move_to_end(key)
        return entry

    def _sweep(self, now: float) -> None:
        """Forget what has expired, so that a store with a time to live does not grow for ever."""
        if self._ttl is not None:
            entries = self._entries
            while entries:
                key = next(iter(entries))
                if entries[key].expires > now:
                    return
                del entries[key]
