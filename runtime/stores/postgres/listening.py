"""Notifications for a `PostgresStore` about writes of other processes: by NOTIFY, and only for
watched keys.

A commit that notifies waits for every other one that does, so nothing is notified without a
listener: each process lists its watched keys in a table alongside the store's own, and the
statement that writes checks it. The table is not part of the stored data: it is unlogged, a
restarted server has it empty, and versions that do not know it write without notifying.

A statement that was already running when a key was added to that table does not see it, and does
not notify. Each statement that notifies holds a lock on the table from before it reads it until it
is committed; so a key is armed when the statements that held such a lock at that moment have ended.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ..listening import wait_for_any
from ..watching import Watchers

if TYPE_CHECKING:
    from .client import BoundedConnection
    from .tables import Statements

__all__ = ["LISTENING", "Notifications", "see_to_watched"]

_LASTS: Final = 180.0
"""Seconds for which a process is listed as listening for a key, unless it renews the entry."""

_BETWEEN_LOOKS: Final = 0.02
"""Seconds between two checks for statements that have not ended."""
# seconds for which the server may be silent while a connection is closed
_CLOSING_SECONDS: Final = 1.0

LISTENING: Final = {
    "watched": "CREATE UNLOGGED TABLE IF NOT EXISTS {watched} (key bytea, listener bytea, until timestamptz NOT NULL, PRIMARY KEY (key, listener))",
    "perform_and_tell": """
        SELECT told.*, (
            SELECT count(pg_notify('offbook_' || '{entries_literal}'::regclass::oid, encode(key, 'hex')))
            FROM (SELECT DISTINCT key FROM {watched} WHERE key = ANY(%s::bytea[]) AND until > clock_timestamp()) AS listened
        ) FROM {perform}(%s, %s, %s::float8, %s, %s::integer, {lists}) AS told""",
    "channel": "SELECT 'offbook_' || '{entries_literal}'::regclass::oid",
    "follow": "INSERT INTO {watched} (key, listener, until) SELECT key, %s, clock_timestamp() + make_interval(secs => %s) FROM unnest(%s::bytea[]) AS key"
    " ON CONFLICT (key, listener) DO UPDATE SET until = excluded.until",
    "leave": "DELETE FROM {watched} WHERE listener = %s AND key = ANY(%s::bytea[])",
    "telling": "SELECT virtualtransaction FROM pg_locks WHERE locktype = 'relation' AND relation = '{watched_literal}'::regclass"
    " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    " AND mode = 'AccessShareLock' AND granted AND pid <> pg_backend_pid()",
    "stay": "UPDATE {watched} SET until = clock_timestamp() + make_interval(secs => %s) WHERE listener = %s AND until > clock_timestamp()",
    "left": "DELETE FROM {watched} WHERE listener = %s OR until < clock_timestamp()",
}


def see_to_watched(connection: BoundedConnection, statements: Statements) -> bool:
    """Create the table of watched keys, if it is missing. Returns whether it exists: if it may not
    be created, watchers poll.
    """
    find = statements.sql["find"], (statements.watched_table,)
    found = connection.execute(*find).fetchone()
    if found is None or not found[0]:
        from psycopg import Error  # noqa: PLC0415 -- an extra, which only who uses it needs

        # Two create it at once, or this user may not: the next query shows which.
        with suppress(Error):
            connection.execute(statements.sql["watched"], ())
        found = connection.execute(*find).fetchone()
    return found is not None and bool(found[0])


class Notifications:
    """One connection that listens for all watched keys."""

    def __init__(
        self, watchers: Watchers, connect: Callable[[], BoundedConnection], statements: Statements
    ) -> None:
        self._watchers = watchers
        self._connect = connect
        self._statements, self._sql = statements, statements.sql
        self._listener = os.urandom(16)
        self._connection: BoundedConnection | None = None
        self._again = 0.0
        self._told: set[bytes] = set()
        self._followed: set[bytes] = set()
        # With the statements that may write them without notifying.
        self._unarmed: dict[bytes, set[str]] = {}

    def open(self) -> None:
        from psycopg import sql  # noqa: PLC0415 -- an extra, which only who uses it needs

        connection = self._connection = self._connect()
        for keys in (self._told, self._followed, self._unarmed):
            keys.clear()
        connection.add_notify_handler(lambda notify: self._told.add(bytes.fromhex(notify.payload)))
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        if row is None or row[0] != connection.info.backend_pid:
            msg = (
                "the connection goes through a pooler in transaction mode, which does not pass "
                "notifications on. Connect to PostgreSQL directly, or use session mode"
            )
            raise ConnectionError(msg)
        connection.execute("SET default_transaction_isolation = 'read committed'")
        found = connection.execute(self._sql["channel"], ()).fetchone()
        assert found is not None
        connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(found[0])))
        see_to_watched(connection, self._statements)
        connection.execute(self._sql["left"], (self._listener,))
        self._again = time.monotonic() + _LASTS / 3

    def follow(self, added: Collection[bytes], gone: Collection[bytes]) -> None:
        connection = self._connection
        assert connection is not None
        if gone:
            connection.execute(self._sql["leave"], (self._listener, list(gone)))
            self._followed.difference_update(gone)
            for key in gone:
                self._unarmed.pop(key, None)
        if added:
            connection.execute(self._sql["follow"], (self._listener, _LASTS, list(added)))
            self._followed.update(added)
            self._arm(dict.fromkeys(added, self._telling()))

    def wait(self, wake: socket.socket, seconds: float) -> None:
        connection = self._connection
        assert connection is not None
        if not self._told:  # the socket does not show notifications that came with an answer
            wait_for_any(
                [connection.fileno(), wake],
                min(seconds, _BETWEEN_LOOKS) if self._unarmed else seconds,
            )
            connection.pgconn.consume_input()
            while (notify := connection.pgconn.notifies()) is not None:
                self._told.add(bytes.fromhex(notify.extra.decode()))
        told, self._told = self._told, set()
        self._watchers.tell(told)
        if self._unarmed:
            telling = self._telling()
            self._arm({key: before & telling for key, before in self._unarmed.items()})
        if time.monotonic() > self._again:
            if connection.execute(self._sql["stay"], (_LASTS, self._listener)).rowcount < len(
                self._followed
            ):
                msg = "this process was paused for so long that the server has expired its watches"
                raise ConnectionError(msg)
            self._again = time.monotonic() + _LASTS / 3

    def _telling(self) -> set[str]:
        """Return the statements that currently write and notify."""
        assert self._connection is not None
        return {name for (name,) in self._connection.execute(self._sql["telling"], ())}

    def _arm(self, keys: dict[bytes, set[str]]) -> None:
        """Arm the keys for which no statement is left that may write them without notifying; the
        others later.
        """
        for key, before in keys.items():
            if before:
                self._unarmed[key] = before
            else:
                self._unarmed.pop(key, None)
        self._watchers.arm([key for key, before in keys.items() if not before])

    def before_fork(self) -> None:
        """Do nothing: the connection stays as it is."""

    def after_fork(self) -> None:
        """Do nothing: it was usable all the time."""

    def descriptors(self) -> list[int]:
        return [] if self._connection is None else [self._connection.pgconn.socket]

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        connection.patience = _CLOSING_SECONDS
        from psycopg import Error  # noqa: PLC0415 -- an extra, which only who uses it needs

        with suppress(Error):  # it is lost: the entries in the table expire
            connection.execute(self._sql["left"], (self._listener,))
        connection.close()
