"""A store, as runs use it: whatever object the user gave.

Owns: what is done where a store has only the three methods of a checkpoint store, or no owners. What such a store cannot do between processes is then done
within this one. It must never keep anything of a run itself.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

from ..errors import CheckpointError, StoreError, UsageError, WriteRefused, text_of
from ..stores import Append, MemoryStore, PostgresStore, Put, RedisStore, Remove, SQLiteStore
from ..stores.run_entries import DropEntry, RunEntry, RunQuery
from ..stores.watching import Watch
from ..stores.writes import Claim, Ending, Expect, Write
from .store_keys import PREEMPT, RESERVED, session_key
from .store_owner import is_gone

__all__ = ["StoreAccess"]

# What stores without owners do not have, for as long as such a store lives: who works on what.
_beside: Final[WeakKeyDictionary[Any, MemoryStore]] = WeakKeyDictionary()

# The owners that systems of this process have in a store.
_entered: Final[WeakKeyDictionary[Any, set[str]]] = WeakKeyDictionary()

_ANSWER_SECONDS: Final = 60.0
"""After which a store that does not answer has failed: a run that waits for it must not wait for ever."""

_OURS: Final = (MemoryStore, SQLiteStore, RedisStore, PostgresStore)

_LEAST: Final = ("get", "set")
_JOURNAL: Final = ("append", "read", "keys")
_OWNERS: Final = ("keep_alive", "revoke", "claim", "commit", "holder", "orphans")
_LIST: Final = ("run_entry", "run_entries")


class StoreAccess:
    """One store."""

    __slots__ = ("_deletes", "_is_ours", "_owners", "answers_at_once", "answers_in_order", "has_journals", "is_fenced", "lists_runs", "store")

    def __init__(self, store: Any) -> None:
        missing = _missing(store, _LEAST)
        if missing or isinstance(store, type):
            what = f"has no {', '.join(missing)}" if missing else "is a class"
            msg = f"Runner(store={store!r}): it {what}. Give a store, such as MemoryStore() or SQLiteStore('runs.db'), or an object with get, set and delete."
            raise UsageError(msg)
        self.store = store
        self._is_ours = type(store) in _OURS  # these have limits of their own
        self._deletes = not _missing(store, ("delete",))
        self.has_journals = not _missing(store, _JOURNAL)
        self.is_fenced = self.has_journals and not _missing(store, _OWNERS)
        self.lists_runs = self.is_fenced and not _missing(store, _LIST)
        self._owners: Any = store if self.is_fenced else _beside_of(store)
        self.answers_at_once = type(store) is MemoryStore
        """Whether it never lets a caller wait."""
        self.answers_in_order = type(store) in (MemoryStore, SQLiteStore)
        """Whether it never does what it is asked for before what it was asked for earlier."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreAccess) and other.store is self.store

    def __hash__(self) -> int:
        return id(self.store)

    def require_fences(self, what: str) -> None:
        """Raise, if the store cannot look, in the step in which it writes, whether the writer still owns what it writes."""
        if self.is_fenced:
            return
        missing = [*_missing(self.store, _JOURNAL), *_missing(self.store, _OWNERS)]
        msg = (
            f"{what} needs a store that keeps journals and refuses the writes of an owner that has lost a run; {type(self.store).__name__} has no "
            f"{', '.join(missing)}. Give SQLiteStore('runs.db'), RedisStore(url), PostgresStore(dsn) or MemoryStore(), or add these methods as "
            "understudy.runtime.JournalStore describes them: claim() and commit() look at the owner, its epoch and the journal's position, and write, in one "
            "atomic operation."
        )
        raise UsageError(msg)

    def require_list(self, what: str) -> None:
        """Raise, if the store keeps no list of its runs."""
        self.require_fences(what)
        if not self.lists_runs:
            msg = (
                f"{what} needs a store that lists its runs; {type(self.store).__name__} has no {', '.join(_missing(self.store, _LIST))}. Give "
                "SQLiteStore('runs.db'), RedisStore(url), PostgresStore(dsn) or MemoryStore(), or add these methods as understudy.runtime.stores.ListsRuns "
                "describes them: claim() and commit() are given RunEntry and DropEntry then, and write them in the same step as the rest."
            )
            raise UsageError(msg)

    # --- values and journals ---

    async def get(self, key: str) -> bytes | None:
        found = await self._do(self.store.get, key)
        if found is not None and not isinstance(found, bytes | bytearray | memoryview):
            msg = f"the store {self.store!r} returned a {type(found).__name__} for {key!r}: a store returns the bytes that it was given, or None."
            raise StoreError(msg)
        return None if found is None or (not found and not self._deletes) else bytes(found)

    async def get_both(self, one: str, two: str) -> tuple[bytes | None, bytes | None]:
        """Two values, in the time of one where that is long."""
        if self.answers_at_once:
            return await self.get(one), await self.get(two)
        found = await asyncio.gather(self.get(one), self.get(two))
        return found[0], found[1]

    async def set(self, key: str, value: bytes) -> None:
        await self._do(self.store.set, key, value)

    async def delete(self, key: str) -> None:
        """Remove a value. A store that has only `get` and `set` keeps an empty one, which is none."""
        if self._deletes:
            await self._do(self.store.delete, key)
        else:
            await self._do(self.store.set, key, b"")

    async def read(self, key: str, after: int = 0) -> list[bytes]:
        return list(await self._do(self.store.read, key, after))

    async def keys(self, prefix: str) -> list[str]:
        return list(await self._do(self.store.keys, prefix))

    async def run_entry(self, run_id: str) -> RunEntry | None:
        found: RunEntry | None = await self._do(self.store.run_entry, run_id)
        return found

    async def run_entries(self, query: RunQuery) -> list[RunEntry]:
        return list(await self._do(self.store.run_entries, query))

    def watch(self, keys: Sequence[str], changed: Callable[[], None]) -> Watch | None:
        """Be told of their changes. None: this store tells of none."""
        if _missing(self.store, ("watch",)):
            return None
        watch: Watch = self.store.watch(keys, changed)
        return watch

    # --- owners ---

    async def keep_alive(self, owner: str, seconds: float, *, first: bool = False) -> bool:
        if first and _can_be_key(self._owners):  # else what its lost owners had is free when their time is over
            _entered.setdefault(self._owners, set()).add(owner)
        return bool(await self._do(self._owners.keep_alive, owner, seconds, first=first))

    async def revoke(self, owner: str) -> None:
        await self._do(self._owners.revoke, owner)

    async def claim(self, key: str, owner: str, writes: Sequence[Write] = (), former: str | None = None) -> Claim | None:
        """Take a key; also one of an owner that is known to be gone, and has not given it back."""
        if not self.is_fenced and writes:
            claim = await self.claim(key, owner, (), former)
            if claim is not None:
                await self.commit(claim, writes)
            return claim
        while True:
            taken: Claim | None = await self._do(self._owners.claim, key, owner, writes, former=former)
            if taken is not None:
                return taken
            holder = await self._do(self._owners.holder, key)
            if holder is None or not is_gone(holder):
                return None
            await self.revoke(holder)

    def commit(self, claim: Claim | None, writes: Sequence[Write], *, then: Ending = "keep") -> Coroutine[Any, Any, None]:
        return self._do(self.store.commit, claim, writes, then=then) if self.is_fenced else self._commit_unfenced(claim, writes, then)

    async def _commit_unfenced(self, claim: Claim | None, writes: Sequence[Write], then: Ending) -> None:
        # One after the other, in an order in which what stands last says that the rest is there.
        if claim is not None:
            await self._do(self._owners.commit, claim, ())
        for write in writes:
            await self._write(write)
        if claim is not None and then != "keep":
            await self._do(self._owners.commit, claim, (), then=then)

    async def _write(self, write: Write) -> None:
        match write:
            case Put():
                await self.set(write.key, write.value)
            case Remove():
                await self.delete(write.key)
            case Append():
                await self._do(self.store.append, write.key, list(write.records))
            case RunEntry() | DropEntry():
                pass  # only a store that is fenced lists its runs
            case Expect():
                if (await self.get(write.key) or None) != write.value:
                    msg = f"nothing was written for {write.key!r}: its value is another one by now."
                    raise WriteRefused(msg, reason="value", key=write.key)

    async def holder(self, key: str) -> str | None:
        found: str | None = await self._do(self._owners.holder, key)
        return found

    async def orphans(self, prefix: str, limit: int | None = None) -> list[str]:
        """Also those of owners of this process that are known to be gone: their loop has ended, and could not tell the store."""
        entered = _entered.get(self._owners, set()) if _can_be_key(self._owners) else set()
        for owner in [owner for owner in entered if is_gone(owner)]:
            await self.revoke(owner)
            entered.discard(owner)
        return list(await self._do(self._owners.orphans, prefix, limit))

    async def wanted_sessions(self) -> list[tuple[str, str]]:
        """What another process wants to have at once, such as turns of sessions: the keys of the leases, and of what says so.

        A mark names a session, or the key of the lease itself, which begins as no id of a user's may.
        """
        named = [(key.removeprefix(PREEMPT), key) for key in await self.keys(PREEMPT)]
        return [(name if name.startswith(RESERVED) else session_key(name), key) for name, key in named]

    async def _do(self, method: Any, *args: Any, **options: Any) -> Any:
        """Call the store. What it raises is a StoreError, unless it is one of ours that says more."""
        limit: asyncio.Timeout | None = None
        try:
            if self._is_ours:
                return await method(*args, **options)
            answer = method(*args, **options)
            if not inspect.isawaitable(answer):
                return answer
            async with asyncio.timeout(_ANSWER_SECONDS) as limit:
                return await answer
        except (CheckpointError, asyncio.CancelledError):
            raise
        except Exception as error:
            name = getattr(method, "__name__", "a method")
            what = f" for {args[0]!r}" if args and isinstance(args[0], str) else ""
            late = limit is not None and limit.expired()
            why = f"it has not answered within {_ANSWER_SECONDS:g} s" if late else f"{type(error).__name__}: {text_of(error)}"
            msg = f"the store {type(self.store).__name__} failed at {name}{what}: {why}"
            raise StoreError(msg) from error


def _can_be_key(store: object) -> bool:
    try:
        hash(store)
        ref(store)
    except TypeError:
        return False
    return True


def _missing(store: object, names: Sequence[str]) -> list[str]:
    return [name for name in names if not callable(getattr(store, name, None))]


def _beside_of(store: Any) -> MemoryStore:
    try:
        return _beside.setdefault(store, MemoryStore())
    except TypeError:  # it cannot be a key: two Runners that use it know nothing of one another
        return MemoryStore()
