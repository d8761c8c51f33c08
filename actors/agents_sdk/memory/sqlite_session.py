"""Sessions in a file of SQLite.

Owns: `SQLiteSession`. Its tables are the SDK's: a file that a program has is read and written on. It must never block the event loop.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar

from ..coercion import as_settings
from .session import SessionABC
from .session_settings import SessionSettings, session_limit

__all__ = ["SQLiteSession"]

T = TypeVar("T")

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS {sessions} (
    session_id TEXT PRIMARY KEY,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE IF NOT EXISTS {messages} (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    message_data TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES {sessions} (session_id) ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS idx_{messages}_session_id ON {messages} (session_id, id);
"""
_WAIT: Final = 5.0
"""Seconds that other processes may hold the file."""


class SQLiteSession(SessionABC):
    """A session in a file; or in memory, if there is no path. `close` gives the file back."""

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        db_path: str | Path = ":memory:",
        sessions_table: str = "agent_sessions",
        messages_table: str = "agent_messages",
        session_settings: SessionSettings | dict[str, Any] | None = None,
    ) -> None:
        self.session_id = session_id
        self.session_settings = SessionSettings() if session_settings is None else as_settings(session_settings, SessionSettings, "session_settings")
        self.db_path = db_path
        self.sessions_table = sessions_table
        self.messages_table = messages_table
        self._lock = threading.RLock()
        self._closed = False
        self._connection = sqlite3.connect(str(db_path), timeout=_WAIT, check_same_thread=False)
        try:
            self._prepare()
        except BaseException:
            self._connection.close()
            raise

    def _prepare(self) -> None:
        self._connection.execute(f"PRAGMA busy_timeout={int(_WAIT * 1000)}")
        try:
            self._connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:  # another process is changing it to the same, right now
            if "locked" not in str(error).lower():
                raise
        self._connection.executescript(_SCHEMA.format(sessions=self.sessions_table, messages=self.messages_table))
        self._connection.commit()

    @contextmanager
    def _held(self) -> Iterator[sqlite3.Connection]:
        """The connection. What was written is undone, if anything raises."""
        with self._lock:
            self._check_open()
            try:
                yield self._connection
            except BaseException:
                try:
                    self._connection.rollback()
                except BaseException:
                    # What was written can be neither kept nor undone: the connection goes, and the transaction with it.
                    self._closed = True
                    with suppress(sqlite3.Error):
                        self._connection.close()
                    raise
                raise

    def _check_open(self) -> None:
        if self._closed:
            msg = "SQLiteSession is closed"
            raise RuntimeError(msg)

    async def get_items(self, limit: int | None = None) -> list[Any]:
        most = session_limit(limit, self.session_settings)

        def read() -> list[Any]:
            with self._held() as connection:
                if most is not None and most <= 0:  # as SQLite has it: none of them, or all
                    rows = connection.execute(self._sql("ORDER BY id DESC LIMIT ?"), (self.session_id, most)).fetchall()
                    return list(self._read(reversed(rows)))
                found: list[Any] = []
                for row in connection.execute(self._sql("ORDER BY id DESC"), (self.session_id,)):
                    found.extend(self._read([row]))
                    if len(found) == most:
                        break
                return found[::-1]

        return await asyncio.to_thread(read)

    def _sql(self, rest: str) -> str:
        return f"SELECT message_data FROM {self.messages_table} WHERE session_id = ? {rest}"  # noqa: S608 -- the program's own names

    @staticmethod
    def _read(rows: Any) -> Iterator[Any]:
        """The items of rows. A row that is no JSON is left out."""
        for (text,) in rows:
            with suppress(json.JSONDecodeError, TypeError):
                yield json.loads(text)

    async def add_items(self, items: list[Any]) -> None:
        self._check_open()
        if not items:
            return

        def add() -> None:
            with self._held() as connection:
                connection.execute(f"INSERT OR IGNORE INTO {self.sessions_table} (session_id) VALUES (?)", (self.session_id,))  # noqa: S608
                rows = [(self.session_id, json.dumps(item)) for item in items]
                connection.executemany(f"INSERT INTO {self.messages_table} (session_id, message_data) VALUES (?, ?)", rows)  # noqa: S608
                connection.execute(f"UPDATE {self.sessions_table} SET updated_at = CURRENT_TIMESTAMP WHERE session_id = ?", (self.session_id,))  # noqa: S608
                connection.commit()

        await _to_the_end(add)

    async def pop_item(self) -> Any | None:
        table = self.messages_table
        last = f"DELETE FROM {table} WHERE id = (SELECT id FROM {table} WHERE session_id = ? ORDER BY id DESC LIMIT 1) RETURNING message_data"  # noqa: S608

        def pop() -> Any | None:
            with self._held() as connection:
                while True:
                    row = connection.execute(last, (self.session_id,)).fetchone()
                    connection.commit()
                    if row is None:
                        return None
                    for item in self._read([row]):
                        return item

        return await _to_the_end(pop)

    async def clear_session(self) -> None:
        def clear() -> None:
            with self._held() as connection:
                for table in (self.messages_table, self.sessions_table):
                    connection.execute(f"DELETE FROM {table} WHERE session_id = ?", (self.session_id,))  # noqa: S608 -- the program's own names
                connection.commit()

        await _to_the_end(clear)

    def close(self) -> None:
        """Give the file back."""
        with self._lock:
            self._closed = True
            self._connection.close()


async def _to_the_end(work: Callable[[], T]) -> T:
    """Do the work in a thread. A caller that is cancelled meanwhile waits until it is done: it can not be stopped, and has to be known."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
    if cancelled is not None:
        task.exception()
        raise cancelled
    return task.result()
