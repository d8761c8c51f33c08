"""What the errors of `psycopg` mean: whom each concerns, and what to do about it.

Owns: that table. It never imports the client, because it is read before there is a connection.
"""

from __future__ import annotations

from typing import Final

from ..store_thread import Trouble

__all__ = ["Newer", "concerns", "is_lock_timeout", "said_of"]

# Codes of errors, the most specific first, each with whom it concerns and what to do.
_CODES: Final = (
    ("28", Trouble.BATCH, "it refuses the user or the password of the dsn: correct it"),
    ("3D000", Trouble.BATCH, "there is no such database: make it, or correct the dsn"),
    ("3F000", Trouble.BATCH, "there is no such schema: make it, or correct the argument schema"),
    ("42501", Trouble.BATCH, "the user of the dsn may not do that: grant it"),
    ("25006", Trouble.BATCH, "it is a standby, or set to read-only: give the dsn of the primary"),
    ("53100", Trouble.BATCH, "its disk is full: free some room; nothing of this operation was written"),
    ("53300", Trouble.LOST, "it has no connection left: raise max_connections, or close some"),
    ("53", Trouble.BATCH, "it has run out of something that it needs: see its log"),
    ("25P03", Trouble.LOST, "it has ended the connection, which was idle within a transaction: try again"),
    ("40", Trouble.LOST, "it was in the way of others again and again: try again"),
    ("57P", Trouble.LOST, "it is starting, stopping, or has ended the connection: try again when it runs"),
    ("08", Trouble.LOST, "it cannot be reached: see that it runs, and that the dsn names its host and port"),
    ("57014", Trouble.OPERATION, "it took longer than statement_timeout: raise that"),
    ("55P03", Trouble.OPERATION, "another process holds what it needs for longer than lock_timeout: raise that, or see what that one does"),
)


class Newer(Exception):
    """The tables were made by a newer version."""


def concerns(error: Exception) -> Trouble:
    """Whom it concerns."""
    known = _entry(error)
    if known is not None:
        return known[1]
    if isinstance(error, Newer) or _is_refusal(error) or _is(error, "ProgrammingError"):
        return Trouble.BATCH
    return Trouble.LOST if _is(error, "OperationalError") and _state(error) is None else Trouble.OPERATION


def said_of(error: Exception) -> str:
    """What the server or the client has said, and what to do."""
    known = _entry(error)
    advice = known[2] if known is not None else None
    if isinstance(error, Newer):
        advice = "they were made by a newer version of understudy: update this one, or give the store another prefix"
    elif advice is None and _is(error, "OperationalError"):
        advice = "see that it runs, and that the dsn names its host and port, a user and the password"
    said = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
    what = " ".join(said.split()).rstrip(".") or type(error).__name__
    return f"{what}{f' ({advice})' if advice else ''}."


def is_lock_timeout(error: Exception) -> bool:
    return _state(error) == "55P03"


def _state(error: BaseException) -> str | None:
    """The code that the server has given an error, if it has."""
    state = getattr(error, "sqlstate", None)
    return state if isinstance(state, str) else None


def _entry(error: BaseException) -> tuple[str, Trouble, str] | None:
    state = _state(error)
    return None if state is None else next((entry for entry in _CODES if state.startswith(entry[0])), None)


def _is_refusal(error: BaseException) -> bool:
    """Whether the server has turned a connection away after it was told who wants it: that has no code, and is not different the next time."""
    connection = getattr(error, "pgconn", None)
    return _state(error) is None and connection is not None and bool(connection.used_password)


def _is(error: BaseException, name: str) -> bool:
    """Whether it is of the client's class of that name, which is not imported for that."""
    return any(cls.__name__ == name and cls.__module__.startswith("psycopg") for cls in type(error).__mro__)
