"""Sessions in other databases: not there.

Owns: the error that says so, and where to read on. It must never do anything else.
"""

from ..missing import nothing_in

__all__: list[str] = []

__getattr__ = nothing_in(__name__, "give the run understudy's StoreSession(store, id), or SQLiteSession")
