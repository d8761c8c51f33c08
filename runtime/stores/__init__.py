"""Stores, behind one protocol: where runs leave what must outlive them.

    protocol                            what a store is
    writes                              what it writes in one step, and on whose behalf
    arguments                           what may be asked of it
    memory                              the one in this process
    store_thread, threaded_store        the thread in which a client blocks; what stores with one have in common
    sqlite                              a file
    sqlite_schema, sqlite_state         its tables, and those of the version before; its time, and the counter of epochs
    sqlite_tables, sqlite_owners        what is written and read; by whom
    sqlite_files                        what is beside it: permissions, and the proof that a process lives
    redis, redis_scripts                a Redis; what runs inside of it
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
