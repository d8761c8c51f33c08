"""The store in a SQLite file. It never judges an owner by the wall clock.

state       the store's own time, and the counter of epochs
known       a connection's cache of the file, valid until another connection writes
rows        the pending rows of a transaction, table by table
entries     the rows of runs
schema      the tables and their version
tables      values and journals
owners      owners and claims
files       permissions, and lock files that prove that a process is alive
risks       names by which the file can be damaged
copying     backups, and detection of a copy that replaced the file
listening   detection of changes by other processes
store       the store itself, and its connection
"""

from .store import SQLiteStore

__all__ = ["SQLiteStore"]
