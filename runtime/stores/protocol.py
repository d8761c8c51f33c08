"""What a store is: a place outside of the process, or at least outside of the run, in which a run leaves what it must not lose.

A key is any text that is not empty; a value is bytes, and so is each record of a journal. Value and journal of a key live and expire together; a lease is a
thing of its own.

Owns: the two protocols. Nothing here knows a backend.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol, runtime_checkable

__all__ = ["JournalStore", "Store"]


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
        """The keys of all values and journals that begin with exactly that text, sorted. Leases are not among them."""
        ...

    async def create(self, key: str, value: bytes) -> bool:
        """Write the value if there is neither value nor journal of that key. Returns whether it has. Of several that try, one succeeds."""
        ...

    async def acquire(self, key: str, owner: str, seconds: float) -> bool:
        """Take a lease from now on for so long, or set one's own anew. Returns False if somebody else has it, and it has not expired."""
        ...

    async def renew(self, keys: Sequence[str], owner: str, seconds: float) -> list[str]:
        """Set those of these leases anew that are still one's own, all at once. Returns which."""
        ...

    async def release(self, key: str, owner: str) -> None:
        """Give a lease back, if it is one's own."""

    async def holder(self, key: str) -> str | None:
        """Who has the lease now."""

    async def prune(self, older_than: float | None = None) -> int:
        """Remove what has expired, and values and journals that have not been written for so many seconds. Returns of how many keys."""
        ...

    async def aclose(self) -> None:
        """Do what has been asked for, and let go of the backend. Afterwards the store cannot be used any more."""
