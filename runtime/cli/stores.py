"""Opens a store by its address."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..environment import environment
from ..errors import UsageError
from ..stores import MemoryStore, PostgresStore, RedisStore, SQLiteStore, encrypted

if TYPE_CHECKING:
    from ..stores import JournalStore

__all__ = [
    "DEFAULT_STORE",
    "KEYS_VARIABLE",
    "VARIABLE",
    "chosen_address",
    "existing_store_at",
    "plain_store_at",
    "schema_of",
    "sqlite_path",
    "store_at",
]

VARIABLE: Final = "OFFBOOK_STORE"
"""The environment variable with the address of the store, if `--store` is missing."""

KEYS_VARIABLE: Final = "OFFBOOK_KEYS"
"""The variable with the keys of an encrypted store, separated by commas.

The first key encrypts.
"""

DEFAULT_STORE: Final = "offbook.db"


def chosen_address(address: str | None) -> str:
    """Return the store's address: `--store`, the environment variable, or the default file."""
    return address or environment().get(VARIABLE, "").strip() or DEFAULT_STORE


def existing_store_at(address: str | None) -> JournalStore:
    """Open a store that must exist: a missing file is an error, and is not created."""
    chosen = chosen_address(address)
    path = sqlite_path(chosen)
    if path is not None and not Path(path).is_file():
        named = f"--store {address}" if address else chosen
        msg = (
            f"{named}: file not found. Pass --store URL (a file, redis://… or "
            f"postgresql://…), or set {VARIABLE}."
        )
        raise UsageError(msg)
    return store_at(chosen)


def sqlite_path(address: str) -> str | None:
    """Return the path of the file, if it is one."""
    scheme, colon, rest = address.partition(":")
    if scheme.lower() == "sqlite" and colon and rest:
        return (
            rest.removeprefix("//").replace("/", "", 1)
            if rest.startswith("///") and not rest.startswith("////")
            else rest.removeprefix("//")
        )
    return (
        None
        if "://" in address
        or not address
        or (
            colon
            and scheme.lower() in ("memory", "redis", "rediss", "unix", "postgresql", "postgres")
        )
        else address
    )


def store_at(address: str) -> JournalStore:
    """Return the store at that address; encrypted, if the environment has keys."""
    keys = [key for key in environment().get(KEYS_VARIABLE, "").replace(",", " ").split() if key]
    store = plain_store_at(address)
    return encrypted(store, keys=keys, accept_plain=True) if keys else store


def plain_store_at(address: str) -> JournalStore:
    """Return a store: `memory:`, `redis://…`, `postgresql://…`, `sqlite:PATH`, or a file's path."""
    scheme, colon, _ = address.partition(":")
    match scheme.lower():
        case "memory" if colon:
            return MemoryStore()
        case "redis" | "rediss" | "redis+sentinel" | "unix" if colon:
            return RedisStore(address)
        case "postgresql" | "postgres" if colon:
            return PostgresStore(address)
    path = sqlite_path(address)
    if path is None:
        msg = (
            f"--store must be redis://…, postgresql://…, memory: or the path of an SQLite file, "
            f"got {address!r}."
        )
        raise UsageError(msg)
    return SQLiteStore(path)


def schema_of(address: str, role: str | None, schema: str | None, prefix: str) -> str:
    """Return the SQL that creates the tables of a PostgreSQL store."""
    if address.partition(":")[0].lower() not in ("postgresql", "postgres"):
        msg = (
            f"{address!r}: only a PostgreSQL store has tables that you can create yourself. "
            "Pass postgresql://…"
        )
        raise UsageError(msg)
    with PostgresStore(address, schema=schema, prefix=prefix) as store:
        return store.schema_sql(role)
