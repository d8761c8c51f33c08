"""One conversation over many runs.

Owns what a session holds in the store, and whose turn it is. Its files, each importing only from those above it:

    session_log     what a session holds, read from its records
    session_policy  how much of it a model is given
    known_sessions  long sessions that need not be read again
    turn            one run's turn in it

It must never believe what it has in memory of a session between two turns without a look at the store. What users call is `runtime/session.py`.
"""
