"""One conversation over many runs.

The package reads and writes a session's records, and manages its turns. The public API is
`runtime/session.py`. A session in memory is never trusted between two turns without a check against
the store. Each module imports only from the modules above it:

    session_log     the content of a session, read from its records
    session_policy  the part of it that a model sees
    known_sessions  a cache of long sessions
    inbox           posts that no turn has heard
    turn            the turn of one run in the session
"""
