"""One conversation over many runs.

Owns what a session holds in the store, and whose turn it is. Its files, each importing only from those above it:

    session_log     what a session holds, read from its records
    session_policy  how much of it a model is given
    turn            one run's turn in it

It must never keep anything of a session in memory between two turns. What users call is `runtime/session.py`.
"""
