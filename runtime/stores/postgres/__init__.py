"""The store in a PostgreSQL.

    entries     the list of runs
    tables      what is in it
    functions   what runs inside of it
    arrays      how lists stand on the line
    batch       many operations as one message
    errors      what its errors mean
    listening   how it is noticed that another process has written
    store       the store itself, and its connection

It must never hold rows for longer than a message takes.
"""

from .store import PostgresStore

__all__ = ["PostgresStore"]
