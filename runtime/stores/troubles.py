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
    Entry("28", _REFUSED, "it rejects the user or the password of the dsn: correct the dsn"),
    Entry("3D000", _REFUSED, "the database does not exist: create it, or correct the dsn"),
    Entry("3F000", _REFUSED, "the schema does not exist: create it, or correct schema="),
    Entry(
        "42501",
        _REFUSED,
        "the user of the dsn lacks a permission: grant it; `offbook schema` prints the SQL for a "
        "role that creates the tables",
    ),
    Entry(
        "25006",
        _WAITED_FOR,
        "it is a standby, or set to read-only: pass the dsn of the primary, or all hosts",
    ),
    Entry(
        "53100",
        _REFUSED,
        "its disk is full: free some space; nothing of this operation was written",
    ),
    Entry(
        "53200",
        _OPERATION,
        "it has no memory left for that: check its log; nothing of this operation was written",
    ),
    Entry(
        "53300",
        _WAITED_FOR,
        "all its connections are in use: raise max_connections or the limit of the user or the "
        "database, or close some",
    ),
    Entry("53", _REFUSED, "it has run out of a resource: check its log"),
    Entry(
        "54000",
        _OPERATION,
        "the value is larger than the server accepts: store it elsewhere, and its name here",
        is_content=True,
    ),
    Entry(
        "25P03",
        _WAITED_FOR,
        "it closed the connection, which was idle within a transaction: try again",
    ),
    Entry("40", _WAITED_FOR, "it conflicted with other transactions repeatedly: try again"),
    Entry("57014", _OPERATION, "it took longer than statement_timeout: raise statement_timeout"),
    Entry(
        "57P",
        _WAITED_FOR,
        "it is starting or stopping, or closed the connection: try again when it runs",
    ),
    Entry(
        "08",
        _WAITED_FOR,
        "it cannot be reached: check that it runs, and that the dsn has its host and port",
    ),
    Entry(
        "55P03",
        _OPERATION,
        "another process held a lock that it needs for longer than lock_timeout: raise "
        "lock_timeout, or check that process",
    ),
)
"""By a prefix of the SQLSTATE, the most specific first."""

REDIS: Final = (
    Entry("WRONGPASS", _REFUSED, "it rejects the user or the password of the url: correct the url"),
    Entry("NOAUTH", _REFUSED, "it requires a password: add it to the url"),
    Entry("NOPERM", _REFUSED, "the user of the url lacks a permission: extend its ACL"),
    Entry("LOADING", _WAITED_FOR, "it is still loading its data: try again when it has"),
    Entry(
        "READONLY",
        _WAITED_FOR,
        "it is a read-only replica: pass the url of the primary",
    ),
    Entry(
        "MASTERDOWN",
        _WAITED_FOR,
        "it is a replica that has lost its primary: pass the url of the primary",
    ),
    Entry(
        "NOREPLICAS", _WAITED_FOR, "it has too few replicas to accept writes: check that they run"
    ),
    Entry("TRYAGAIN", _WAITED_FOR, "it is being reconfigured: try again"),
    Entry("BUSY", _WAITED_FOR, "it is busy with another client's script: check its log"),
    Entry(
        "OOM",
        _OPERATION,
        "it has no memory left: prune the store, or raise maxmemory; nothing of this "
        "operation was written",
    ),
    Entry("MISCONF", _OPERATION, "it cannot save its data, so it accepts no writes: check its log"),
    Entry(
        "WRONGTYPE",
        _OPERATION,
        "the key is in use for other data: pass a prefix= that no other program uses",
    ),
    Entry("MOVED", _REFUSED, "it is a Redis Cluster: pass the url of a single server or a primary"),
    Entry(
        "CROSSSLOT", _REFUSED, "it is a Redis Cluster: pass the url of a single server or a primary"
    ),
    Entry(
        "CLUSTERDOWN",
        _REFUSED,
        "it is a Redis Cluster: pass the url of a single server or a primary",
    ),
    Entry(
        "TimeoutError",
        _WAITED_FOR,
        "it did not answer in time, and the operation may have been done: check that it is not "
        "overloaded",
    ),
    Entry(
        "ConnectionError",
        _WAITED_FOR,
        "it cannot be reached: check that it runs, and that the url has its host and port",
    ),
    Entry("ResponseError", _OPERATION, "it refused the command: check its log"),
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
        "the file cannot be opened: check that its folder exists, and that this user may write "
        "in it",
    ),
    Entry(
        "SQLITE_NOTADB",
        _REFUSED,
        "the file is not an SQLite database: pass another path, or move the file away",
    ),
    Entry(
        "SQLITE_READONLY",
        _REFUSED,
        "it is not writable: check that this user may write the file and its folder, and that "
        "the file system is not read-only",
    ),
    Entry(
        "SQLITE_PERM",
        _REFUSED,
        "it is not writable: check that this user may write the file and its folder",
    ),
    Entry(
        "SQLITE_FULL",
        _OPERATION,
        "the disk is full: free some space; nothing of this operation was written",
    ),
    Entry(
        "SQLITE_IOERR",
        _REFUSED,
        "the disk has failed or is full: check the system log",
    ),
    Entry(
        "SQLITE_CORRUPT", _REFUSED, "the file is damaged: restore it from a backup, or move it away"
    ),
    Entry(
        "SQLITE_TOOBIG",
        _OPERATION,
        "the value is larger than SQLite accepts: store it elsewhere, and its name here",
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
