"""A store, as runs use it: whatever object the user gave.

Owns: the keys under which things lie, and what is done where a store has only the three methods of a checkpoint store. What such a store cannot do
between processes is then done within this one. It must never keep anything of a run itself.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Sequence
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from ..errors import CheckpointError, StoreError, UsageError, text_of
from ..stores import MemoryStore, PostgresStore, RedisStore, SQLiteStore
from .lease_owner import LEASE_SECONDS, is_gone

__all__ = ["RESERVED", "StoreAccess", "answered_key", "history_key", "journal_key", "lease_key", "open_key", "open_prefix", "preempt_key", "session_key"]

T = TypeVar("T")

RESERVED: Final = "understudy:"
"""No id of a user's may begin so: the keys of everything but checkpoints do."""


def answered_key(run_id: str, number: int) -> str:
    """Under which it says that somebody goes on from that save of the run. Another run may have the same checkpoint id some day."""
    return f"{RESERVED}answered:{run_id}@{number}"


def journal_key(run_id: str) -> str:
    """Under which the steps of a run are."""
    return f"{RESERVED}journal:{run_id}"


def history_key(run_id: str) -> str:
    """Under which the long part of its history is, where the steps are not kept."""
    return f"{RESERVED}history:{run_id}"


def open_prefix(agent_name: str) -> str:
    """What the keys begin with of the runs of an agent that are not finished."""
    return f"{RESERVED}open:{len(agent_name)}:{agent_name}:"


def open_key(agent_name: str, run_id: str) -> str:
    """Under which it says that a run is not finished."""
    return open_prefix(agent_name) + run_id


def lease_key(run_id: str) -> str:
    """The lease of whoever has a run under way."""
    return f"{RESERVED}run:{run_id}"


def session_key(session_id: str) -> str:
    """Under which the turns of a session are, and the lease of whoever has one under way."""
    return f"{RESERVED}session:{session_id}"


def preempt_key(session_id: str) -> str:
    """Under which it says that somebody wants the turn of that holder to end at once."""
    return _PREEMPT + session_id


_PREEMPT: Final = f"{RESERVED}preempt:"

# What stores of three methods do not have, for as long as such a store lives: who works on what, and what was created.
_beside: Final[WeakKeyDictionary[Any, MemoryStore]] = WeakKeyDictionary()

_ANSWER_SECONDS: Final = 60.0
"""After which a store that does not answer has failed: whoever waits for it must not wait for ever."""

_OURS: Final = (MemoryStore, SQLiteStore, RedisStore, PostgresStore)

_LEAST: Final = ("get", "set", "delete")
_JOURNAL: Final = ("append", "read", "keys")
_LEASES: Final = ("acquire", "renew", "release", "holder")


class StoreAccess:
    """One store."""

    __slots__ = ("_leases", "_own", "has_journals", "store")

    def __init__(self, store: Any) -> None:
        missing = [name for name in _LEAST if not callable(getattr(store, name, None))]
        if missing or isinstance(store, type):
            what = f"has no {', '.join(missing)}" if missing else "is a class"
            msg = f"Runner(store={store!r}): it {what}. Give a store, such as MemoryStore() or SQLiteStore('runs.db'), or an object with get, set and delete."
            raise UsageError(msg)
        self.store = store
        self._own = type(store) in _OURS  # which have limits of their own
        self.has_journals = all(callable(getattr(store, name, None)) for name in _JOURNAL)
        self._leases: Any = store if all(callable(getattr(store, name, None)) for name in _LEASES) else _lease_store_beside(store)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreAccess) and other.store is self.store

    def __hash__(self) -> int:
        return id(self.store)

    async def get(self, key: str) -> bytes | None:
        found = await self._do(self.store.get, key)
        if found is not None and not isinstance(found, bytes | bytearray | memoryview):
            msg = f"the store {self.store!r} returned a {type(found).__name__} for {key!r}: a store returns the bytes that it was given, or None."
            raise StoreError(msg)
        return None if found is None else bytes(found)

    async def get_both(self, one: str, two: str) -> tuple[bytes | None, bytes | None]:
        """Two values, in the time of one where that is long."""
        if type(self.store) is MemoryStore:
            return await self.get(one), await self.get(two)
        found = await asyncio.gather(self.get(one), self.get(two))
        return found[0], found[1]

    async def set(self, key: str, value: bytes) -> None:
        await self._do(self.store.set, key, value)

    async def delete(self, key: str) -> None:
        await self._do(self.store.delete, key)

    async def append(self, key: str, records: Sequence[bytes]) -> None:
        await self._do(self.store.append, key, records)

    async def read(self, key: str, after: int = 0) -> list[bytes]:
        return list(await self._do(self.store.read, key, after))

    async def keys(self, prefix: str) -> list[str]:
        return list(await self._do(self.store.keys, prefix))

    async def create(self, key: str, value: bytes) -> bool:
        """Set, if there is nothing yet. Whoever calls it has the lease of what it is about."""
        if callable(getattr(self.store, "create", None)):
            return bool(await self._do(self.store.create, key, value))
        if await self.get(key) is not None:
            return False
        await self.set(key, value)
        return True

    async def acquire(self, key: str, owner: str) -> bool:
        """Take a lease; also one whose holder is known to be gone, and has not given it back."""
        if await self._do(self._leases.acquire, key, owner, LEASE_SECONDS):
            return True
        holder = await self._do(self._leases.holder, key)
        if holder is not None and not is_gone(holder, key):
            return False
        if holder is not None:
            await self._do(self._leases.release, key, holder)
        return bool(await self._do(self._leases.acquire, key, owner, LEASE_SECONDS))

    async def renew(self, keys: list[str], owner: str) -> list[str]:
        return list(await self._do(self._leases.renew, keys, owner, LEASE_SECONDS))

    async def holder(self, key: str) -> str | None:
        found: str | None = await self._do(self._leases.holder, key)
        return found

    async def wanted_sessions(self) -> list[tuple[str, str]]:
        """Which turns of sessions somebody wants to end at once: the keys of their leases, and of what says so."""
        return [(session_key(key.removeprefix(_PREEMPT)), key) for key in await self.keys(_PREEMPT)]

    async def release(self, key: str, owner: str) -> None:
        await self._do(self._leases.release, key, owner)

    async def _do(self, method: Any, *args: Any) -> Any:
        """Call the store. What it raises is a StoreError, unless it is one of ours."""
        limit: asyncio.Timeout | None = None
        try:
            if self._own:
                return await method(*args)
            answer = method(*args)
            if not inspect.isawaitable(answer):
                return answer
            async with asyncio.timeout(_ANSWER_SECONDS) as limit:
                return await answer
        except (CheckpointError, UsageError, asyncio.CancelledError):
            raise
        except Exception as error:
            name = getattr(method, "__name__", "a method")
            what = f" for {args[0]!r}" if args and isinstance(args[0], str) else ""
            late = limit is not None and limit.expired()
            why = f"it has not answered within {_ANSWER_SECONDS:g} s" if late else f"{type(error).__name__}: {text_of(error)}"
            msg = f"the store {type(self.store).__name__} failed at {name}{what}: {why}"
            raise StoreError(msg) from error


def _lease_store_beside(store: Any) -> MemoryStore:
    try:
        return _beside.setdefault(store, MemoryStore())
    except TypeError:  # it cannot be a key: whoever uses it with two Runners is on his own
        return MemoryStore()
