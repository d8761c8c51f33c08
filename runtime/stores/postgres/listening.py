"""How a `PostgresStore` hears of what other processes write: by NOTIFY, and only of keys that are watched.

A commit that notifies waits for every other one that does, so that nothing is notified for which there is no listener: what each process watches stands in a
table beside the store's own, and the statement that writes looks into it. The table is no part of what the store keeps: it is not logged, a server that was
started anew has it empty, and versions that do not know it write without telling.

Owns: that table, the statement that writes and tells, and the listener's connection. It must never read what was written.
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
    from psycopg import Connection
    from psycopg.rows import TupleRow

    from .tables import Statements

__all__ = ["LISTENING", "Notifications", "see_to_watched"]

_LASTS: Final = 180.0
"""Seconds for which it stands in the table that a process listens for a key, unless it says so again."""

LISTENING: Final = {
    "watched": "CREATE UNLOGGED TABLE IF NOT EXISTS {watched} (key bytea, listener bytea, until timestamptz NOT NULL, PRIMARY KEY (key, listener))",
    "perform_and_tell": """
        SELECT told.*, (
            SELECT count(pg_notify('understudy_' || '{entries_literal}'::regclass::oid, encode(key, 'hex')))
            FROM (SELECT DISTINCT key FROM {watched} WHERE key = ANY(%s::bytea[]) AND until > clock_timestamp()) AS listened
        ) FROM {perform}(%s, %s, %s::float8, %s, %s::integer, {lists}) AS told""",
    "channel": "SELECT 'understudy_' || '{entries_literal}'::regclass::oid",
    "follow": "INSERT INTO {watched} (key, listener, until) SELECT key, %s, clock_timestamp() + make_interval(secs => %s) FROM unnest(%s::bytea[]) AS key"
    " ON CONFLICT (key, listener) DO UPDATE SET until = excluded.until",
    "leave": "DELETE FROM {watched} WHERE listener = %s AND key = ANY(%s::bytea[])",
    "stay": "UPDATE {watched} SET until = clock_timestamp() + make_interval(secs => %s) WHERE listener = %s",
    "left": "DELETE FROM {watched} WHERE listener = %s OR until < clock_timestamp()",
}


def see_to_watched(connection: Connection[TupleRow], statements: Statements) -> bool:
    """Make the table of what is watched, if it is missing. Returns whether it is there: where it may not be made, those who watch look for themselves."""
    find = statements.sql["find"], (statements.watched_table,)
    found = connection.execute(*find).fetchone()
    if found is None or not found[0]:
        from psycopg import Error  # noqa: PLC0415 -- an extra, which only who uses it needs

        with suppress(Error):  # two make it at once, or this user may not: which of them, is asked next
            connection.execute(statements.sql["watched"], ())
        found = connection.execute(*find).fetchone()
    return found is not None and bool(found[0])


class Notifications:
    """One connection that listens for all keys that are watched."""

    def __init__(self, watchers: Watchers, connect: Callable[[], Connection[TupleRow]], statements: Statements) -> None:
        self._watchers = watchers
        self._connect = connect
        self._statements, self._sql = statements, statements.sql
        self._listener = os.urandom(16)
        self._connection: Connection[TupleRow] | None = None
        self._again = 0.0
        self._told: set[bytes] = set()

    def open(self) -> None:
        from psycopg import sql  # noqa: PLC0415 -- an extra, which only who uses it needs

        connection = self._connection = self._connect()
        self._told.clear()
        connection.add_notify_handler(lambda notify: self._told.add(bytes.fromhex(notify.payload)))
        row = connection.execute("SELECT pg_backend_pid()").fetchone()
        if row is None or row[0] != connection.info.backend_pid:
            msg = "a pooler that shares connections stands before the server, and hands no notifications on"
            raise ConnectionError(msg)
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
        if added:
            connection.execute(self._sql["follow"], (self._listener, _LASTS, list(added)))
            self._watchers.arm(added)

    def wait(self, wake: socket.socket, seconds: float) -> None:
        connection = self._connection
        assert connection is not None
        if not self._told:  # what came with an answer is not seen by the socket
            wait_for_any([connection.fileno(), wake], seconds)
            connection.pgconn.consume_input()
            while (notify := connection.pgconn.notifies()) is not None:
                self._told.add(bytes.fromhex(notify.extra.decode()))
        told, self._told = self._told, set()
        self._watchers.tell(told)
        if time.monotonic() > self._again:
            connection.execute(self._sql["stay"], (_LASTS, self._listener))
            self._again = time.monotonic() + _LASTS / 3

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is None:
            return
        from psycopg import Error  # noqa: PLC0415 -- an extra, which only who uses it needs

        with suppress(Error):  # it is lost: what stands in the table is over some time
            connection.execute(self._sql["left"], (self._listener,))
        connection.close()
