"""The tables in the file of a `SQLiteStore`, their version, and how those of an earlier version become those of this one.

Version 2 had no list of runs; its runs are listed when something is next written of them.
Version 1 had leases of keys, by the clock on the wall, and did not look at them when it wrote. What it left is read and respected. A process of it that still
has the file open finds its tables gone, and fails: it does not write beside this version.

Owns: the schema. It must never touch what another program has made, or a newer version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .entries import SCHEMA
from .state import STATE, State

if TYPE_CHECKING:
    import sqlite3

__all__ = ["VERSION", "Foreign", "Newer", "look", "prepare"]

VERSION: Final = 3
_APPLICATION: Final = 0x75647374  # "udst", in the header of the file: tells it from a database of some other program

# The value has a table of its own, because a row is written as a whole: otherwise every record would write the value again.
_KEPT: Final = (
    """CREATE TABLE items (
        id INTEGER PRIMARY KEY,
        key BLOB NOT NULL UNIQUE,
        records INTEGER NOT NULL,
        written REAL NOT NULL,
        expires REAL
    )""",
    "CREATE TABLE contents (entry INTEGER PRIMARY KEY, value BLOB NOT NULL)",
    "CREATE TABLE records (entry INTEGER NOT NULL, number INTEGER NOT NULL, record BLOB NOT NULL, PRIMARY KEY (entry, number)) WITHOUT ROWID",
    "CREATE TABLE former_leases (key BLOB PRIMARY KEY, owner BLOB NOT NULL, until REAL NOT NULL) WITHOUT ROWID",
)
"""What version 1 had as well: items were called entries, and former leases were leases."""

_ADDED: Final = (
    STATE,
    """CREATE TABLE owners (
        name BLOB PRIMARY KEY,
        until REAL NOT NULL,
        seconds REAL NOT NULL,
        boot TEXT NOT NULL,
        file TEXT,
        inode TEXT
    ) WITHOUT ROWID""",
    "CREATE TABLE claims (key BLOB PRIMARY KEY, owner BLOB NOT NULL, epoch INTEGER NOT NULL, attempts INTEGER NOT NULL) WITHOUT ROWID",
)

_SINCE_3: Final = (*SCHEMA, "CREATE INDEX items_by_end ON items (expires) WHERE expires IS NOT NULL")

_RENAMED: Final = ("ALTER TABLE entries RENAME TO items", "ALTER TABLE leases RENAME TO former_leases")


class Newer(Exception):
    """The tables were made by a newer version."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(f"version {found}")
        self.found = found
        self.known = known


class Foreign(Exception):
    """The database is some other program's."""


def prepare(connection: sqlite3.Connection, state: State) -> None:
    """See that the tables are there, and that they are those which this version knows."""
    if _said(connection) == (_APPLICATION, VERSION):
        return
    connection.execute("BEGIN IMMEDIATE")  # no other process makes them while it is looked at what there is
    try:
        found = _found(connection)
        if found < VERSION:  # another process may have been quicker
            before = () if found == 2 else (*(_KEPT if found == 0 else _RENAMED), *_ADDED)  # noqa: PLR2004 -- a version
            for statement in (*before, *_SINCE_3, f"PRAGMA application_id = {_APPLICATION}", f"PRAGMA user_version = {VERSION}"):
                connection.execute(statement)
            if before:
                state.make()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def look(connection: sqlite3.Connection) -> None:
    """See, in a transaction, that no newer version has changed the tables since."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != VERSION:
        raise Newer(version, VERSION)


def _said(connection: sqlite3.Connection) -> tuple[int, int]:
    """Whose tables they are, and of which version."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version


def _found(connection: sqlite3.Connection) -> int:
    """The version of the tables that are there; 0, if there are none."""
    application, version = _said(connection)
    if application == _APPLICATION and version > VERSION:
        raise Newer(version, VERSION)
    if application == _APPLICATION and version > 0:
        return version
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application or version or tables:
        raise Foreign
    return 0
