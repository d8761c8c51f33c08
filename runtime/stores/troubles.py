"""The errors of the stores' servers and files, in one table: whether each is retried, and advice.

Errors are identified by their codes and names; the clients of databases are not imported.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import Final, NamedTuple

__all__ = [
    "POSTGRES",
    "REDIS",
    "SQLITE",
    "Entry",
    "Newer",
    "Trouble",
    "Unusable",
    "beginning_of",
    "named",
]


class Trouble(Enum):
    """The handling of an error."""

    WAITED_FOR = auto()
    """It is temporary.

    The connection is closed, and the batch is repeated with its number: the work of an earlier
    attempt is not done twice.
    """
    REFUSED = auto()
    """All operations of the batch fail with it, at once."""
    OPERATION = auto()
    """It concerns one operation, and nothing of its batch was done: each is tried by itself."""


class Entry(NamedTuple):
    """One row of the table."""

    code: str
    trouble: Trouble
    advice: str
    is_content: bool = False
    """Whether the server refuses the content of the operation: a retry would fail again."""


class Newer(Exception):
    """The data was written by a newer version."""


class Unusable(Exception):
    """This store cannot work with the server it was connected to.

    The text gives the reason and advice.
    """


_WAITED_FOR, _REFUSED, _OPERATION = Trouble.WAITED_FOR, Trouble.REFUSED, Trouble.OPERATION

POSTGRES: Final = (
    Entry("28", _REFUSED, "it refuses the user or the password of the dsn: correct it"),
    Entry("3D000", _REFUSED, "there is no such database: make it, or correct the dsn"),
    Entry("3F000", _REFUSED, "there is no such schema: make it, or correct the argument schema"),
    Entry(
        "42501",
        _REFUSED,
        "the user of the dsn may not do that: grant it; `offbook schema` prints the SQL for "
        "a role that makes the tables",
    ),
    Entry(
        "25006",
        _WAITED_FOR,
        "it is a standby, or set to read-only: give the dsn of the primary, or all hosts",
    ),
    Entry(
        "53100", _REFUSED, "its disk is full: free some room; nothing of this operation was written"
    ),
    Entry(
        "53200",
        _OPERATION,
        "it has no memory left for that: see its log; nothing of this operation was written",
    ),
    Entry(
        "53300",
        _WAITED_FOR,
        "it has no connection left: raise max_connections or the limit of the user or the "
        "database, or close some",
    ),
    Entry("53", _REFUSED, "it has run out of something that it needs: see its log"),
    Entry(
        "54000",
        _OPERATION,
        "the value is larger than the server takes: store it elsewhere, and its name here",
        is_content=True,
    ),
    Entry(
        "25P03",
        _WAITED_FOR,
        "it has ended the connection, which was idle within a transaction: try again",
    ),
    Entry("40", _WAITED_FOR, "it was in the way of others again and again: try again"),
    Entry("57014", _OPERATION, "it took longer than statement_timeout: raise that"),
    Entry(
        "57P",
        _WAITED_FOR,
        "it is starting, stopping, or has ended the connection: try again when it runs",
    ),
    Entry(
        "08",
        _WAITED_FOR,
        "it cannot be reached: see that it runs, and that the dsn names its host and port",
    ),
    Entry(
        "55P03",
        _OPERATION,
        "another process holds what it needs for longer than lock_timeout: raise that, or "
        "see what that one does",
    ),
)
"""By a prefix of the SQLSTATE, the most specific first."""

REDIS: Final = (
    Entry("WRONGPASS", _REFUSED, "it refuses the user or the password of the url: correct it"),
    Entry("NOAUTH", _REFUSED, "it wants a password: put it into the url"),
    Entry("NOPERM", _REFUSED, "the user of the url may not do that: see its ACL"),
    Entry("LOADING", _WAITED_FOR, "it is still loading its data: try again when it has"),
    Entry(
        "READONLY",
        _WAITED_FOR,
        "it is a replica, which cannot be written: give the url of the primary",
    ),
    Entry(
        "MASTERDOWN",
        _WAITED_FOR,
        "it is a replica that has lost its primary: give the url of the primary",
    ),
    Entry("NOREPLICAS", _WAITED_FOR, "it has too few replicas to take anything: see that they run"),
    Entry("TRYAGAIN", _WAITED_FOR, "it is being changed: try again"),
    Entry("BUSY", _WAITED_FOR, "it is busy running a script of somebody else: see its log"),
    Entry(
        "OOM",
        _OPERATION,
        "it has no memory left: prune the store, or raise maxmemory; nothing of this "
        "operation was written",
    ),
    Entry("MISCONF", _OPERATION, "it cannot save its data, and so takes no more: see its log"),
    Entry(
        "WRONGTYPE",
        _OPERATION,
        "something else is there under that key: give the store a prefix of its own",
    ),
    Entry("MOVED", _REFUSED, "it is a Redis Cluster: give the url of a single server or a primary"),
    Entry(
        "CROSSSLOT", _REFUSED, "it is a Redis Cluster: give the url of a single server or a primary"
    ),
    Entry(
        "CLUSTERDOWN",
        _REFUSED,
        "it is a Redis Cluster: give the url of a single server or a primary",
    ),
    Entry(
        "TimeoutError",
        _WAITED_FOR,
        "it does not answer in time, and whether anything was written is not known: see that "
        "it is not overloaded",
    ),
    Entry(
        "ConnectionError",
        _WAITED_FOR,
        "it cannot be reached: see that it runs, and that the url names its host and port",
    ),
    Entry("ResponseError", _OPERATION, "it refused that: see its log"),
)
"""By the first word of the server's answer, or by the class of the client's error."""

SQLITE: Final = (
    Entry(
        "SQLITE_BUSY",
        _REFUSED,
        "another process holds its lock: let that one finish, or raise busy_timeout",
    ),
    Entry(
        "SQLITE_LOCKED",
        _REFUSED,
        "another process holds its lock: let that one finish, or raise busy_timeout",
    ),
    Entry(
        "SQLITE_CANTOPEN",
        _REFUSED,
        "the file cannot be opened: see that its folder exists, and that this user may write in it",
    ),
    Entry(
        "SQLITE_NOTADB",
        _REFUSED,
        "the file is no SQLite database: give another path, or move it away",
    ),
    Entry(
        "SQLITE_READONLY",
        _REFUSED,
        "it cannot be written: see that this user may write the file and its folder, and "
        "that the file system is not read-only",
    ),
    Entry(
        "SQLITE_PERM",
        _REFUSED,
        "it cannot be written: see that this user may write the file and its folder",
    ),
    Entry(
        "SQLITE_FULL",
        _OPERATION,
        "there is no room left: free some on the disk; nothing of this operation was written",
    ),
    Entry(
        "SQLITE_IOERR",
        _REFUSED,
        "the disk has failed, or has no room left: see what the system says of it",
    ),
    Entry(
        "SQLITE_CORRUPT", _REFUSED, "the file is damaged: restore it from a backup, or move it away"
    ),
    Entry(
        "SQLITE_TOOBIG",
        _OPERATION,
        "the value is larger than SQLite takes: store it elsewhere, and its name here",
        is_content=True,
    ),
    Entry("SQLITE_PROTOCOL", _REFUSED, "too many processes have opened it at once: try again"),
)
"""By the primary code.

SQLite itself waits for a locked file, for `busy_timeout`.
"""


def named(table: tuple[Entry, ...], code: str | None) -> Entry | None:
    """Return the row of exactly that code."""
    return next((entry for entry in table if entry.code == code), None)


def beginning_of(table: tuple[Entry, ...], code: str) -> Entry | None:
    """Return the first row that is a prefix of that code."""
    return next((entry for entry in table if code.startswith(entry.code)), None)
