"""Stores, behind one protocol: where runs leave what must outlive them.

    protocol                            what a store is
    writes                              what it writes in one step, and on whose behalf
    arguments                           what may be asked of it
    memory                              the one in this process
    store_thread, threaded_store        the thread in which a client blocks; what stores with one have in common
    sqlite, sqlite_tables               a file; what is in it
    redis, redis_wire                   a Redis; how operations are put for it
    redis_scripts, redis_searches       what runs inside of it: a batch of operations; what goes through many keys
    redis_layout                        where its data lies, and how that of the version before comes there
    postgres, postgres_tables           a PostgreSQL; what is in it

It must never import the client of a database before a store of it is made.
"""

from .memory import MemoryStore
from .postgres import PostgresStore
from .protocol import JournalStore, Store
from .redis import RedisStore
from .sqlite import SQLiteStore
from .writes import Append, Claim, Expect, Put, Remove

__all__ = ["Append", "Claim", "Expect", "JournalStore", "MemoryStore", "PostgresStore", "Put", "RedisStore", "Remove", "SQLiteStore", "Store"]
