"""Classification of the errors of `psycopg`: the operations that each concerns, and advice.

It never imports the client, because it is imported before there is a connection.
"""

from __future__ import annotations

from typing import Final

from ...errors import StoreError, ValueRefused
from ..troubles import POSTGRES, Entry, Newer, Trouble, Unusable, beginning_of

__all__ = ["concerns", "is_lock_timeout", "said_of"]

# A server that refuses a connection gives its reason only as text. Each row is the English text and
# the matching error code.
_AT_THE_DOOR: Final = (
    ("too many clients", "53300"),
    ("connection slots are reserved", "53300"),
    ("too many connections for", "53300"),
    ("session is read-only", "25006"),
    ("server is in hot standby mode", "25006"),
    ("the database system is", "57P03"),
    ("authentication failed", "28P01"),
    ("no password supplied", "28P01"),
    ("no pg_hba.conf entry", "28000"),
    ("is not permitted to log in", "28000"),
    ("permission denied for database", "42501"),
)
_MISSING: Final = (("role ", "28000"), ("database ", "3D000"))


def concerns(error: Exception) -> Trouble:
    """Return which operations the error concerns."""
    known = _entry(error)
    if known is not None:
        return known.trouble
    if isinstance(error, Newer | Unusable) or _is(error, "ProgrammingError"):
        return Trouble.REFUSED
    if _is(error, "OperationalError") and _state(error) is None:
        return Trouble.WAITED_FOR
    # An operation that the server answered with an error was not done. Any other failure leaves
    # that open.
    return Trouble.OPERATION if _state(error) is not None else Trouble.WAITED_FOR


def said_of(error: Exception, what: str) -> StoreError:
    """Return a StoreError with the message of the server or the client, and advice."""
    known = _entry(error)
    advice = known.advice if known is not None else None
    if isinstance(error, Newer):
        advice = "a newer version of offbook created them: update offbook, or pass another prefix="
    elif advice is None and _is(error, "OperationalError"):
        advice = (
            "check that it runs, and that the dsn has its host and port, a user and the password"
        )
    said = getattr(getattr(error, "diag", None), "message_primary", None) or str(error)
    text = " ".join(said.split()).rstrip(".") or type(error).__name__
    kind = ValueRefused if known is not None and known.is_content else StoreError
    return kind(f"{what}: {text}{f' ({advice})' if advice else ''}.")


def is_lock_timeout(error: Exception) -> bool:
    return _state(error) == "55P03"


def _state(error: BaseException) -> str | None:
    """Return the server's code for an error, if it has one."""
    state = getattr(error, "sqlstate", None)
    return state if isinstance(state, str) else None


def _entry(error: BaseException) -> Entry | None:
    state = _state(error)
    if state is not None:
        if state == "XX000" and "invalid memory alloc request size" in str(error):
            state = "54000"
        return beginning_of(POSTGRES, state)
    if not _is(error, "OperationalError"):
        return None
    text = str(error)
    found = [code for words, code in _AT_THE_DOOR if words in text]
    found += [code for words, code in _MISSING if words in text and "does not exist" in text]
    entries = [entry for code in found if (entry := beginning_of(POSTGRES, code)) is not None]
    # Of several hosts, one may refuse what another one will soon accept.
    return next(
        (entry for entry in entries if entry.trouble is Trouble.WAITED_FOR),
        entries[0] if entries else None,
    )


def _is(error: BaseException, name: str) -> bool:
    """Return whether its class has that name in the client, which is not imported for this."""
    return any(
        cls.__name__ == name and cls.__module__.startswith("psycopg") for cls in type(error).__mro__
    )
