"""Stores, behind one protocol: where runs leave what must outlive them.

    protocol                            what a store is
    writes                              what it writes in one step, and on whose behalf
    arguments                           what may be asked of it
    memory                              the one in this process
    store_thread, threaded_store        the thread in which a client blocks; what stores with one have in common
    sqlite, sqlite_tables               a file; what is in it
    redis, redis_scripts                a Redis; what runs inside of it
    postgres, postgres_errors           a PostgreSQL; what its errors mean
    postgres_tables, postgres_functions what is in it; what runs inside of it
    postgres_batch, postgres_arrays     many operations as one message; how its lists stand on the line

It must never import the client of a database before a store of it is made.
"""

from .memory import MemoryStore
from .postgres import PostgresStore
from .protocol import JournalStore, Store
from .redis import RedisStore
from .sqlite import SQLiteStore
from .writes import Append, Claim, Expect, Put, Remove

__all__ = ["Append", "Claim", "Expect", "JournalStore", "MemoryStore", "PostgresStore", "Put", "RedisStore", "Remove", "SQLiteStore", "Store"]
