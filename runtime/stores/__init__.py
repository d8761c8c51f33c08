"""Stores: the storage backends for runs and sessions, behind one protocol.

    run_entries                         the rows of runs, and queries on them
    writes                              the writes of one step, and claims
    marks                               the marks that hold a store or bind it to an environment
    protocol                            the protocols of a store
    arguments                           validation of the methods' arguments
    memory_entries                      the rows of runs of the memory store
    memory                              the store in the memory of this process
    risks                               warnings about server settings that can lose data
    forks                               handling of connections when the process is forked
    watching, listening                 watchers of keys; the thread that receives changes
    troubles                            a table of backend errors: retried, fatal, or of one
                                        operation
    store_thread, threaded_store        the worker thread for blocking clients; the base class of
                                        stores with one
    sqlite, redis, postgres             a package each: a file, a Redis server, a PostgreSQL server
    encrypted                           a wrapper that encrypts values and journals

A database client is only imported when a store of that kind is made.
"""

from .encrypted import EncryptedStore, encrypted
from .memory import MemoryStore
from .postgres import PostgresStore
from .protocol import JournalStore, ListsRuns, Store
from .redis import RedisStore
from .run_entries import DropEntry, ExpectEntry, RunEntry, RunQuery
from .sqlite import SQLiteStore
from .watching import Watch, Watches
from .writes import Append, Claim, Expect, Put, Remove

__all__ = [
    "Append",
    "Claim",
    "DropEntry",
    "EncryptedStore",
    "Expect",
    "ExpectEntry",
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
    "encrypted",
]
