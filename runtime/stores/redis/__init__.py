"""The Redis store. Related changes are always written in one step.

scripts     the scripts that run in the server: a batch of operations
entries     the rows of runs
searches    scripts that go through many keys, step by step
layout      the version of the stored data
wire        encoding of operations and decoding of answers
risks       settings that can lose data
listening   notifications of changes by other processes
store       the store itself, and its client
"""

from .store import RedisStore

__all__ = ["RedisStore"]
