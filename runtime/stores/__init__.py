"""Stores, behind one protocol: where runs leave what must outlive them.

    protocol                            what a store is
    arguments                           what may be asked of it
    memory                              the one in this process
    store_thread, threaded_store        the thread in which a client blocks; what stores with one have in common
    sqlite, sqlite_tables               a file; what is in it
    redis, redis_scripts                a Redis; what runs inside of it
    postgres, postgres_tables           a PostgreSQL; what is in it

It must never import the client of a database before a store of it is made.
"""

from .memory import MemoryStore
from .postgres import PostgresStore
from .protocol import JournalStore, Store
from .redis import RedisStore
from .sqlite import SQLiteStore

__all__ = ["JournalStore", "MemoryStore", "PostgresStore", "RedisStore", "SQLiteStore", "Store"]
