"""The store in a Redis.

    scripts     what runs inside of it: a batch of operations
    entries     the list of runs
    searches    what goes through many keys, step by step
    layout      where its data is, and how that of the version before comes there
    wire        how operations are put for it, and its answers
    listening   how it is noticed that another process has written
    store       the store itself, and its client

It must never write by more than one step what belongs together.
"""

from .store import RedisStore

__all__ = ["RedisStore"]
