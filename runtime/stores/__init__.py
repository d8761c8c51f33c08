"""Stores, behind one protocol: where runs leave what must outlive them.

    run_entries                         the runs that a store lists, and what may be asked of that list
    writes                              what it writes in one step, and on whose behalf
    protocol                            what a store is
    arguments                           what may be asked of it
    memory_entries                      the list of runs of the next one
    memory                              the one in this process
    watching, listening                 who is told of changes; the thread that hears of them
    store_thread, threaded_store        the thread in which a client blocks; what stores with one have in common
    sqlite, redis, postgres             a file, a Redis, a PostgreSQL: a package each

It must never import the client of a database before a store of it is made.
"""

from .memory import MemoryStore
from .postgres import PostgresStore
from .protocol import JournalStore, ListsRuns, Store
from .redis import RedisStore
from .run_entries import DropEntry, RunEntry, RunQuery
from .sqlite import SQLiteStore
from .watching import Watch, Watches
from .writes import Append, Claim, Expect, Put, Remove

__all__ = [
    "Append",
    "Claim",
    "DropEntry",
    "Expect",
    "JournalStore",
    "ListsRuns",
    "MemoryStore",
    "PostgresStore",
    "Put",
    "RedisStore",
    "Remove",
    "RunEntry",
    "RunQuery",
    "SQLiteStore",
    "Store",
    "Watch",
    "Watches",
]
