"""What a store is: a place outside of the process, or at least outside of the run, in which a run leaves what it must not lose.

A key is any text that is not empty; a value is bytes, and so is each record of a journal. Value and journal of a key live and expire together; owners and
their claims are things of their own.

Owns: the two protocols. Nothing here knows a backend.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol, runtime_checkable

from .run_entries import RunEntry, RunQuery
from .writes import Claim, Ending, Write

__all__ = ["JournalStore", "ListsRuns", "Store"]


@runtime_checkable
class Store(Protocol):
    """The least: any object with these three methods, `def` or `async def`, keeps checkpoints.

    Their parameters may have any names. What `set` and `delete` return is not used; if it can be awaited, it is.
    """

    def get(self, key: str, /) -> Awaitable[bytes | None] | bytes | None:
        """The value, or None if there is none."""

    def set(self, key: str, value: bytes, /) -> object:
        """Write the value, whatever was there."""

    def delete(self, key: str, /) -> object:
        """Remove the value, and the journal of that key. If there is nothing, nothing happens."""


@runtime_checkable
class JournalStore(Store, Protocol):
    """What a run needs that is recorded step by step, that is a turn of a session, or that is to be found again by another process."""

    async def get(self, key: str) -> bytes | None:
        """The value, or None if there is none."""

    async def set(self, key: str, value: bytes) -> None:
        """Write the value, whatever was there."""

    async def delete(self, key: str) -> None:
        """Remove the value, and the journal of that key. If there is nothing, nothing happens."""

    async def append(self, key: str, records: Sequence[bytes]) -> int:
        """Add records to the journal of that key, in this order, all of them or none. Returns how many it holds now."""
        ...

    async def read(self, key: str, after: int = 0) -> list[bytes]:
        """The records of the journal that stand behind the first `after` ones."""
        ...

    async def keys(self, prefix: str = "") -> list[str]:
        """The keys of all values and journals that begin with exactly that text, sorted. Claims are not among them."""
        ...

    async def create(self, key: str, value: bytes) -> bool:
        """Write the value if there is neither value nor journal of that key. Returns whether it has. Of several that try, one succeeds."""
        ...

    # --- owners ---

    async def keep_alive(self, owner: str, seconds: float, *, first: bool = False) -> bool:
        """Let an owner be alive for so long from now on; `first` makes it. Returns False if there is no such owner, or it was revoked.

        An owner whose time is over, and which was not revoked, is alive again by this: what others took from it meanwhile stays theirs.
        """
        ...

    async def revoke(self, owner: str) -> None:
        """End an owner: it never writes anything again, and all that it has claimed is free, at once."""

    async def claim(self, key: str, owner: str, writes: Sequence[Write] = (), *, former: str | None = None) -> Claim | None:
        """Take a key for an owner, and write, in one step. Returns None, and has written nothing, if another owner has claimed it and may be alive.

        A key that the owner has claimed already is claimed anew. Raises `WriteRefused` if the owner is not alive or one of the writes is refused; nothing is
        taken then. `former` is the key of the lease by which earlier versions of this library hold the same thing: while that lasts, the key is not free.
        """
        ...

    async def commit(self, claim: Claim | None, writes: Sequence[Write], *, then: Ending = "keep") -> None:
        """Write all that, in this order, in one step, unless it is refused: then nothing is written, and `WriteRefused` is raised.

        It is refused if the key has been claimed anew, the owner is not alive, a journal is not where an `Append` says, or a value is not what an `Expect`
        says. What there is counts as of before the first of the writes. Without a claim, only journals and values are looked at.
        """

    async def holder(self, key: str) -> str | None:
        """The owner that has claimed a key, if it may be alive."""

    async def orphans(self, prefix: str = "", limit: int | None = None) -> list[str]:
        """The keys of values that begin with that text and that no living owner has claimed: those with the fewest attempts first, then sorted."""
        ...

    async def prune(self, older_than: float | None = None) -> int:
        """Remove what has expired, and values and journals that have not been written for so many seconds. Returns of how many keys."""
        ...

    async def aclose(self) -> None:
        """Do what has been asked for, and let go of the backend. Afterwards the store cannot be used any more."""


@runtime_checkable
class ListsRuns(Protocol):
    """What a `JournalStore` may have besides: a list of the runs that it keeps, for `Runner.runs()`.

    To one that has both methods, `claim` and `commit` are given `RunEntry` and `DropEntry`, too, which it writes in the same step as all others.
    """

    async def run_entry(self, run_id: str) -> RunEntry | None:
        """What is listed of that run."""

    async def run_entries(self, query: RunQuery) -> list[RunEntry]:
        """The entries that are wanted, the newest first. Of 1,000,000, a hundred are to come at once: it has indexes for what may be asked."""
        ...
