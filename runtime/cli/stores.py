"""A store by its address, as commands take it.

Owns: which address means which store.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..environment import environment
from ..errors import UsageError
from ..stores import MemoryStore, PostgresStore, RedisStore, SQLiteStore

if TYPE_CHECKING:
    from ..stores import JournalStore

__all__ = ["DEFAULT_STORE", "VARIABLE", "chosen_address", "existing_store_at", "sqlite_path", "store_at"]

VARIABLE: Final = "UNDERSTUDY_STORE"
"""The variable of the environment that says where runs are kept, where `--store` does not."""

DEFAULT_STORE: Final = "understudy.db"


def chosen_address(address: str | None) -> str:
    """Where runs are kept: `--store`, or the variable of the environment, or the file of this folder."""
    return address or environment().get(VARIABLE, "").strip() or DEFAULT_STORE


def existing_store_at(address: str | None) -> JournalStore:
    """The same, for who only looks: a file that is not there is none, and is not made."""
    chosen = chosen_address(address)
    path = sqlite_path(chosen)
    if path is not None and not Path(path).is_file():
        named = f"--store {address}" if address else chosen
        msg = f"{named}: there is no such file. Give --store URL: a file, redis://… or postgresql://…; or set {VARIABLE}."
        raise UsageError(msg)
    return store_at(chosen)


def sqlite_path(address: str) -> str | None:
    """The path of the file, if it is one."""
    scheme, colon, rest = address.partition(":")
    if scheme.lower() == "sqlite" and colon and rest:
        return rest.removeprefix("//").replace("/", "", 1) if rest.startswith("///") and not rest.startswith("////") else rest.removeprefix("//")
    return None if "://" in address or not address or (colon and scheme.lower() in ("memory", "redis", "rediss", "unix", "postgresql", "postgres")) else address


def store_at(address: str) -> JournalStore:
    """`memory:`, `redis://…`, `postgresql://…`, `sqlite:PATH`, or the path of an SQLite file."""
    scheme, colon, _ = address.partition(":")
    match scheme.lower():
        case "memory" if colon:
            return MemoryStore()
        case "redis" | "rediss" | "unix" if colon:
            return RedisStore(address)
        case "postgresql" | "postgres" if colon:
            return PostgresStore(address)
    path = sqlite_path(address)
    if path is None:
        msg = f"--store {address!r}: give redis://…, postgresql://…, memory:, or the path of an SQLite file."
        raise UsageError(msg)
    return SQLiteStore(path)
