"""Protection against running the same work twice from a copy of a store.

store_marks     whether a store is held, or belongs to another environment
transfer        export and import of runs and sessions, to move them to another store
"""
