"""The store in a file.

    state       its own time, and the counter of epochs
    known       what one connection knows of the file, as long as no other has written
    rows        what a transaction has to write, table by table
    entries     the list of runs
    schema      its tables, and those of the version before
    tables      what is written and read
    owners      by whom: owners, claims, and what is refused
    files       what is beside it: permissions, and the proof that a process lives
    listening   how it is noticed that another process has written
    store       the store itself, and its connection

It must never judge an owner by the time on the wall.
"""

from .store import SQLiteStore

__all__ = ["SQLiteStore"]
