"""The protocols of a store: storage outside the process, or at least outside the run.

A key is any non-empty string; a value is bytes, and so is each record of a journal. The value and
the journal of a key live and expire together; owners and their claims are independent of them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol, runtime_checkable

from .run_entries import RunEntry, RunQuery
from .writes import Claim, Ending, Write

__all__ = ["JournalStore", "ListsRuns", "Store"]


@runtime_checkable
class Store(Protocol):
    """The minimum: an object with these three methods, `def` or `async def`, can store checkpoints.

    Their parameters may have any names. The results of `set` and `delete` are ignored, after being
    awaited if they are awaitable.
    """

    def get(self, key: str, /) -> Awaitable[bytes | None] | bytes | None:
        """Return the value, or None if it does not exist."""

    def set(self, key: str, value: bytes, /) -> object:
        """Write the value, replacing any other."""

    def delete(self, key: str, /) -> object:
        """Remove the value and the journal of that key. If neither exists, nothing happens."""


@runtime_checkable
class JournalStore(Store, Protocol):
    """The store for runs recorded step by step, for sessions, and for runs that must be findable.

    Findable means: by another process, after this one was lost.
    """

    async def get(self, key: str) -> bytes | None:
        """Return the value, or None if it does not exist."""

    async def set(self, key: str, value: bytes) -> None:
        """Write the value, replacing any other."""

    async def delete(self, key: str) -> None:
        """Remove the value and the journal of that key. If neither exists, nothing happens."""

    async def append(self, key: str, records: Sequence[bytes]) -> int:
        """Append records to the journal of that key, in this order, all of them or none.

        Returns the number of records it holds now.
        """
        ...

    async def read(self, key: str, after: int = 0) -> list[bytes]:
        """Return the records of the journal after the first `after` ones."""
        ...

    async def keys(self, prefix: str = "") -> list[str]:
        """Return the keys of all values and journals with exactly that prefix, sorted.

        Claims are not included.
        """
        ...

    async def create(self, key: str, value: bytes) -> bool:
        """Write the value if the key has neither value nor journal.

        Returns whether it was written. Of several concurrent callers, one succeeds.
        """
        ...

    # --- owners ---

    async def keep_alive(self, owner: str, seconds: float, *, first: bool = False) -> bool:
        """Keep an owner alive for `seconds` from now on; `first` creates it.

        Returns False if there is no such owner, or it was revoked.

        This revives an owner that expired and was not revoked: what others took from it in the
        meantime remains theirs.
        """
        ...

    async def revoke(self, owner: str) -> None:
        """End an owner: it never writes again, and everything it has claimed is free at once."""

    async def claim(self, key: str, owner: str, writes: Sequence[Write] = ()) -> Claim | None:
        """Claim a key for an owner, and write, in one step.

        Returns None, and writes nothing, if another owner has claimed it and may be alive.

        A key that the owner has claimed already is claimed again, with a new epoch. Raises
        `WriteRefused`, and claims nothing, if the owner is not alive or one of the writes is
        refused.
        """
        ...

    async def commit(
        self, claim: Claim | None, writes: Sequence[Write], *, then: Ending = "keep"
    ) -> None:
        """Do all writes, in this order, in one step.

        If one is refused, nothing is written, and `WriteRefused` is raised. This happens if the key
        has been claimed again, the owner is not alive, a journal is not at the position of an
        `Append`, or a value is not that of an `Expect`. These checks see the state before the first
        of the writes. Without a claim, only journals and values are checked.
        """

    async def holder(self, key: str) -> str | None:
        """Return the owner that has claimed a key, if it may be alive."""

    async def orphans(self, prefix: str = "", limit: int | None = None) -> list[str]:
        """Return the keys with that prefix that no living owner has claimed.

        These are the keys of values, and the claims of entries. Those with the fewest attempts come
        first, then in order of the keys.
        """
        ...

    async def prune(self, older_than: float | None = None) -> int:
        """Remove expired data. Returns the number of removed keys.

        `older_than`: also remove values and journals that were last written at least that many
        seconds ago.
        """
        ...

    async def aclose(self) -> None:
        """Finish all pending operations, and close the backend.

        Afterwards the store can no longer be used.
        """


@runtime_checkable
class ListsRuns(Protocol):
    """An optional feature of a `JournalStore`: a row for each of its runs, for `Runner.runs()`.

    A store that has both methods also receives `RunEntry`, `DropEntry` and `ExpectEntry` in `claim`
    and `commit`, and handles them in the same step as all others. The claims of its entries are
    among its `orphans`, and a watcher of a run's id is told of each change of its entry.
    """

    async def run_entry(self, run_id: str) -> RunEntry | None:
        """Return the entry of that run."""

    async def run_entries(self, query: RunQuery) -> list[RunEntry]:
        """Return the matching entries, the newest first.

        It needs indexes for all queries: the first hundred of 1,000,000 must be returned
        immediately.
        """
        ...
