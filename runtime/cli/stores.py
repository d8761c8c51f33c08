"""A store by its address, as commands take it.

Owns: which address means which store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import UsageError
from ..stores import MemoryStore, PostgresStore, RedisStore, SQLiteStore

if TYPE_CHECKING:
    from ..stores import JournalStore

__all__ = ["store_at"]


def store_at(address: str) -> JournalStore:
    """`memory:`, `redis://…`, `postgresql://…`, `sqlite:PATH`, or the path of an SQLite file."""
    scheme, colon, rest = address.partition(":")
    match scheme.lower():
        case "memory" if colon:
            return MemoryStore()
        case "redis" | "rediss" | "unix" if colon:
            return RedisStore(address)
        case "postgresql" | "postgres" if colon:
            return PostgresStore(address)
        case "sqlite" if colon and rest:
            return SQLiteStore(
                rest.removeprefix("//").replace("/", "", 1) if rest.startswith("///") and not rest.startswith("////") else rest.removeprefix("//")
            )
    if "://" in address or not address:
        msg = f"--store {address!r}: give redis://…, postgresql://…, memory:, or the path of an SQLite file."
        raise UsageError(msg)
    return SQLiteStore(address)
