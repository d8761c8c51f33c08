"""The PostgreSQL store. No row stays locked for longer than one message takes.

entries     the rows of runs
tables      the tables, and the statements that read them
functions   the functions that run in the server
arrays      binary encoding of lists
batch       many operations as one message
errors      classification of its errors
client      a connection with a deadline for each answer
pruning     the removal of expired data, step by step
risks       settings that can lose data
listening   notifications of changes by other processes
store       the store itself, and its connection
"""

from .store import PostgresStore

__all__ = ["PostgresStore"]
