"""A store as runs use it, wrapped around any object that the user passes.

This module supplies what is missing in a store that has only the methods of a checkpoint store, or
no owners. Such a store is then coordinated within this process only.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final
from weakref import WeakKeyDictionary, ref

from ..data.run_result import RunStatus
from ..errors import CheckpointError, StoreError, UsageError, WriteRefused, text_of
from ..log import loggers
from ..stores import Append, MemoryStore, PostgresStore, Put, RedisStore, Remove, SQLiteStore
from ..stores.marks import HELD
from ..stores.run_entries import DropEntry, ExpectEntry, RunEntry, RunQuery
from ..stores.watching import Watch
from ..stores.writes import Claim, Ending, Expect, Write
from ..tasks import all_at_once
from .copies.store_marks import refusal
from .rows_as_values import as_values, read_value
from .store_keys import (
    PREEMPT,
    RESERVED,
    journal_key,
    open_key,
    session_key,
    stuck_key,
    stuck_prefix,
)
from .store_owner import is_gone

__all__ = ["StoreAccess"]

# The leases for stores without owners, for as long as such a store lives.
_beside: Final[WeakKeyDictionary[Any, MemoryStore]] = WeakKeyDictionary()

# The owners that systems of this process have in a store.
_entered: Final[WeakKeyDictionary[Any, set[str]]] = WeakKeyDictionary()

_ANSWER_SECONDS: Final = 60.0
"""Seconds after which a store that does not answer has failed.

Without this limit, a run could wait for it forever.
"""

_PAGE: Final = 1_000
_OURS: Final = (MemoryStore, SQLiteStore, RedisStore, PostgresStore)

_LEAST: Final = ("get", "set")
_JOURNAL: Final = ("append", "read", "keys")
_OWNERS: Final = ("keep_alive", "revoke", "claim", "commit", "holder", "orphans")
_LIST: Final = ("run_entry", "run_entries")


class StoreAccess:
    """One store."""

    __slots__ = (
        "_deletes",
        "_is_ours",
        "_owners",
        "answers_at_once",
        "answers_in_order",
        "has_journals",
        "is_fenced",
        "lists_runs",
        "looks_first",
        "store",
    )

    def __init__(self, store: Any) -> None:
        missing = _missing(store, _LEAST)
        if missing or isinstance(store, type):
            what = f"has no {', '.join(missing)}" if missing else "is a class"
            msg = (
                f"Runner: store must be a store, got {store!r}, which {what}. Pass MemoryStore() "
                "or SQLiteStore('runs.db'), or an object with get, set and delete."
            )
            raise UsageError(msg)
        self.store = store
        self._is_ours = type(store) in _OURS  # these have their own timeouts
        self._deletes = not _missing(store, ("delete",))
        self.has_journals = not _missing(store, _JOURNAL)
        self.is_fenced = self.has_journals and not _missing(store, _OWNERS)
        self.lists_runs = self.is_fenced and not _missing(store, _LIST)
        self._owners: Any = store if self.is_fenced else _beside_of(store)
        self.answers_at_once = type(store) is MemoryStore
        """Whether it never makes a caller wait."""
        self.looks_first = self.is_fenced and not self.answers_at_once
        """Whether it is still unknown if runs may start in it.

        Later, this is checked when an owner enters.
        """
        self.answers_in_order = type(store) in (MemoryStore, SQLiteStore)
        """Whether it handles requests strictly in order."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoreAccess) and other.store is self.store

    def __hash__(self) -> int:
        return id(self.store)

    def require_fences(self, what: str) -> None:
        """Raise UsageError if the store cannot check ownership in the step in which it writes."""
        if self.is_fenced:
            return
        missing = [*_missing(self.store, _JOURNAL), *_missing(self.store, _OWNERS)]
        msg = (
            f"{what} needs a store that stores journals and refuses the writes of an owner "
            f"that has lost a run; {type(self.store).__name__} has no "
            f"{', '.join(missing)}. Pass SQLiteStore('runs.db'), RedisStore(url), "
            "PostgresStore(dsn) or MemoryStore(), or add these methods as "
            "offbook.runtime.JournalStore describes them: claim() and commit() check the "
            "owner, its epoch and the journal's position, and write, in one "
            "atomic operation."
        )
        raise UsageError(msg)

    def require_list(self, what: str) -> None:
        """Raise UsageError if the store has no list of its runs."""
        self.require_fences(what)
        if not self.lists_runs:
            msg = (
                f"{what} needs a store that lists its runs; {type(self.store).__name__} has "
                f"no {', '.join(_missing(self.store, _LIST))}. Pass "
                "SQLiteStore('runs.db'), RedisStore(url), PostgresStore(dsn) or "
                "MemoryStore(), or add these methods as offbook.runtime.stores.ListsRuns "
                "describes them: claim() and commit() then receive RunEntry, DropEntry and "
                "ExpectEntry, and handle them in the same step as the rest."
            )
            raise UsageError(msg)

    # --- values and journals ---

    async def get(self, key: str) -> bytes | None:
        found = await self._do(self.store.get, key)
        if found is not None and not isinstance(found, bytes | bytearray | memoryview):
            msg = (
                f"the store {self.store!r} returned a {type(found).__name__} for {key!r}: get() "
                "must return the stored bytes, or None."
            )
            raise StoreError(msg)
        return None if found is None or (not found and not self._deletes) else bytes(found)

    async def get_both(self, one: str, two: str) -> tuple[bytes | None, bytes | None]:
        """Get two values, concurrently if the store is slow."""
        if self.answers_at_once:
            return await self.get(one), await self.get(two)
        found = await all_at_once((self.get(one), self.get(two)), "the store")
        return found[0], found[1]

    async def set(self, key: str, value: bytes) -> None:
        await self._do(self.store.set, key, value)

    async def delete(self, key: str) -> None:
        """Remove a value.

        A store that has only `get` and `set` stores an empty value, which counts as none.
        """
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

    async def row(self, agent: str, run_id: str) -> RunEntry | None:
        """Return the row of a run of that agent; in a store without rows, if it is unfinished or
        stuck.
        """
        if self.lists_runs:
            row = await self.run_entry(run_id)
            if row is not None and row.claim:
                # A row keeps the first agent, also if another agent uses the id of an ended run.
                return row.replace(agent=agent) if row.claim == open_key(agent, run_id) else None
            return None if row is None or row.agent != agent else row
        if self.is_fenced:
            for key in (open_key(agent, run_id), stuck_key(agent, run_id)):
                value = await self.get(key)
                if value is not None:
                    return read_value(key, value)
        return None

    async def row_and_outcome(
        self, agent: str, run_id: str
    ) -> tuple[RunEntry | None, bytes | None]:
        """Return that row, and the stored result, concurrently if the store is slow."""
        if self.answers_at_once:
            return await self.row(agent, run_id), await self.get(journal_key(run_id))
        found: tuple[Any, ...] = tuple(
            await all_at_once((self.row(agent, run_id), self.get(journal_key(run_id))), "the store")
        )
        return found[0], found[1]

    async def stuck_rows(self, agent: str) -> list[RunEntry]:
        """Return the rows of the stuck runs of that agent."""
        if not self.lists_runs:
            keys = await self.keys(stuck_prefix(agent))
            values = [(key, await self.get(key)) for key in keys]
            return [read_value(key, value) for key, value in values if value is not None]
        rows: list[RunEntry] = []
        query = RunQuery((RunStatus.STUCK.value,), agent, limit=_PAGE)
        while page := await self.run_entries(query):
            rows += page
            if len(page) < _PAGE:
                break
            query = replace(query, after=page[-1].key)
        return rows

    def watch(self, keys: Sequence[str], changed: Callable[[], None]) -> Watch | None:
        """Watch for changes of these keys. None: this store cannot report changes."""
        if _missing(self.store, ("watch",)):
            return None
        watch: Watch = self.store.watch(keys, changed)
        return watch

    # --- owners ---

    async def keep_alive(self, owner: str, seconds: float, *, first: bool = False) -> bool:
        # Otherwise everything of its lost owners is free when they expire.
        if first and _can_be_key(self._owners):
            _entered.setdefault(self._owners, set()).add(owner)
        if not await self._do(self._owners.keep_alive, owner, seconds, first=first):
            return False
        # Checked after the owner entered: if the store is held in between, the owner learns of it
        # at its next renewal.
        why = await refusal(self) if self.is_fenced else None
        if why is None:
            self.looks_first = False
            return True
        await self.revoke(owner)
        if first:
            raise StoreError(why)
        loggers.durability.warning("The runs of this process end here. %s", why)
        return False

    async def require_released(self) -> None:
        """Raise StoreError if no run may start or continue in this store.

        Then it is held, or belongs to another environment.
        """
        if self.is_fenced and (why := await refusal(self)) is not None:
            raise StoreError(why)
        self.looks_first = False

    async def commit_if_unchanged(self, writes: Sequence[Write]) -> bool:
        """Do all writes in one step. Returns False, without any effect, if one of them is refused:
        another process has changed what it expects.
        """
        try:
            await self.commit(None, writes)
        except WriteRefused:
            return False
        return True

    async def is_held(self) -> bool:
        """Return whether the store is held: no process may start or continue anything in it."""
        return self.is_fenced and await self.get(HELD) is not None

    async def revoke(self, owner: str) -> None:
        await self._do(self._owners.revoke, owner)
        if _can_be_key(self._owners):
            _entered.get(self._owners, set()).discard(owner)

    def revoke_soon(self, owner: str) -> None:
        """Revoke it without waiting for the store, if the store supports that."""
        if not _missing(self.store, ("revoke_soon",)):
            self.store.revoke_soon(owner)

    async def claim(self, key: str, owner: str, writes: Sequence[Write] = ()) -> Claim | None:
        """Claim a key, even one of an owner that is known to be gone and has not returned it."""
        if not self.is_fenced and writes:
            claim = await self.claim(key, owner)
            if claim is not None:
                await self.commit(claim, writes)
            return claim
        while True:
            taken: Claim | None = await self._do(
                self._owners.claim, key, owner, self._as_stored(writes)
            )
            if taken is not None:
                return taken
            holder = await self._do(self._owners.holder, key)
            if holder is None or not is_gone(holder):
                return None
            await self.revoke(holder)

    def commit(
        self, claim: Claim | None, writes: Sequence[Write], *, then: Ending = "keep"
    ) -> Coroutine[Any, Any, None]:
        return (
            self._do(self.store.commit, claim, self._as_stored(writes), then=then)
            if self.is_fenced
            else self._commit_unfenced(claim, writes, then)
        )

    def _as_stored(self, writes: Sequence[Write]) -> Sequence[Write]:
        return writes if self.lists_runs else as_values(writes)

    async def _commit_unfenced(
        self, claim: Claim | None, writes: Sequence[Write], then: Ending
    ) -> None:
        # One after the other, in an order in which the last write confirms the rest.
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
            case RunEntry() | DropEntry() | ExpectEntry():
                pass  # only a fenced store can be searched for runs
            case Expect():
                if (await self.get(write.key) or None) != write.value:
                    msg = (
                        f"nothing was written for {write.key!r}: another process has changed its "
                        "value in the meantime. Read it again."
                    )
                    raise WriteRefused(msg, reason="value", key=write.key)

    async def holder(self, key: str) -> str | None:
        found: str | None = await self._do(self._owners.holder, key)
        return found

    async def orphans(self, prefix: str, limit: int | None = None) -> list[str]:
        """Return the orphaned keys.

        Includes those of owners of this process whose loop has ended without telling the store.
        """
        entered = _entered.get(self._owners, set()) if _can_be_key(self._owners) else set()
        for owner in [owner for owner in entered if is_gone(owner)]:
            await self.revoke(owner)
        return list(await self._do(self._owners.orphans, prefix, limit))

    async def wanted_sessions(self) -> list[tuple[str, str]]:
        """Return what another process wants at once, such as turns of sessions: the keys of the
        leases and of the requests.

        A mark names a session, or the key of the lease itself, which starts with a reserved prefix.
        """
        named = [(key.removeprefix(PREEMPT), key) for key in await self.keys(PREEMPT)]
        return [
            (name if name.startswith(RESERVED) else session_key(name), key) for name, key in named
        ]

    async def _do(self, method: Any, *args: Any, **options: Any) -> Any:
        """Call the store.

        Its errors become StoreErrors, except those of this library that say more.
        """
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
            why = (
                f"it has not answered within {_ANSWER_SECONDS:g} s"
                if late
                else f"{type(error).__name__}: {text_of(error)}"
            )
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


class _Beside(MemoryStore):
    """A store's leases in this process. After a fork, the child's copy owns nothing."""

    _is_copied = True


def _beside_of(store: Any) -> MemoryStore:
    try:
        return _beside.setdefault(store, _Beside())
    except TypeError:  # it cannot be a key: two Runners that use it do not know of each other
        return _Beside()
