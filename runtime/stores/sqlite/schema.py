"""The tables in the file of a `SQLiteStore`, and their version.

Tables of another program, or of a newer version, are never changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .entries import SCHEMA
from .state import STATE, State

if TYPE_CHECKING:
    import sqlite3

__all__ = ["VERSION", "Foreign", "Newer", "look", "prepare"]

VERSION: Final = 1
# "offb", in the header of the file: distinguishes it from databases of other programs.
_APPLICATION: Final = 0x6F666662

_SCHEMA: Final = (
    # The value has a separate table, because a row is written as a whole: otherwise every record
    # would write the value again.
    """CREATE TABLE items (
        id INTEGER PRIMARY KEY,
        key BLOB NOT NULL UNIQUE,
        records INTEGER NOT NULL,
        written REAL NOT NULL,
        expires REAL
    )""",
    "CREATE INDEX items_by_end ON items (expires) WHERE expires IS NOT NULL",
    "CREATE TABLE contents (entry INTEGER PRIMARY KEY, value BLOB NOT NULL)",
    """CREATE TABLE records (
        entry INTEGER NOT NULL,
        number INTEGER NOT NULL,
        record BLOB NOT NULL,
        PRIMARY KEY (entry, number)
    ) WITHOUT ROWID""",
    STATE,
    """CREATE TABLE owners (
        name BLOB PRIMARY KEY,
        until REAL NOT NULL,
        seconds REAL NOT NULL,
        boot TEXT NOT NULL,
        file TEXT,
        inode TEXT
    ) WITHOUT ROWID""",
    """CREATE TABLE claims (
        key BLOB PRIMARY KEY,
        owner BLOB NOT NULL,
        epoch INTEGER NOT NULL,
        attempts INTEGER NOT NULL
    ) WITHOUT ROWID""",
    *SCHEMA,
)


class Newer(Exception):
    """The tables were made by a newer version."""

    def __init__(self, found: int, known: int) -> None:
        super().__init__(f"version {found}")
        self.found = found
        self.known = known


class Foreign(Exception):
    """The database belongs to some other program."""


def prepare(connection: sqlite3.Connection, state: State) -> None:
    """Create the tables if they are missing, and check that their version is known."""
    if _said(connection) == (_APPLICATION, VERSION):
        return
    # No other process can create them during the check.
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _found(connection) == 0:  # another process may have been faster
            for statement in (
                *_SCHEMA,
                f"PRAGMA application_id = {_APPLICATION}",
                f"PRAGMA user_version = {VERSION}",
            ):
                connection.execute(statement)
            state.make()
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def look(connection: sqlite3.Connection) -> None:
    """Check, in a transaction, that no newer version has changed the tables since."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version != VERSION:
        raise Newer(version, VERSION)


def _said(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the application id and the version of the tables."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version


def _found(connection: sqlite3.Connection) -> int:
    """Return the version of the existing tables; 0 if there are none."""
    application, version = _said(connection)
    if application == _APPLICATION and version > VERSION:
        raise Newer(version, VERSION)
    if application == _APPLICATION and version > 0:
        return version
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if application or version or tables:
        raise Foreign
    return 0
