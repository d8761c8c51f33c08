"""A connection to PostgreSQL with a deadline: if a server is silent for too long, the operation is
cancelled and the connection is closed.

TCP does not detect a server that is stopped, whose disk hangs, or that waits for a missing standby:
its kernel continues to acknowledge. Imported when a connection is made, because it imports the
client.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.rows import TupleRow

from .tables import ANSWER_SECONDS, CANCEL_SECONDS, CONNECT_SECONDS

__all__ = ["BoundedConnection", "connect"]

# Detects a server that disappeared silently, for which TCP alone would wait for minutes.
_SILENCE: Final = {
    "connect_timeout": CONNECT_SECONDS,
    "tcp_user_timeout": CONNECT_SECONDS * 1000,
    "keepalives_idle": CONNECT_SECONDS,
    "keepalives_interval": 1,
    "keepalives_count": 3,
}


class BoundedConnection(psycopg.Connection[TupleRow]):
    """A connection whose server may be silent for `patience` seconds."""

    patience = ANSWER_SECONDS

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        return super().wait(self._bounded(gen), *args, **options)

    def _bounded(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """Run a generator of the client with the deadline.

        While no byte is transferred, the client resumes it with nothing ten times a second.
        """
        deadline = 0.0  # the clock is read only if there is something to wait for
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if ready:
                    deadline = 0.0
                elif not deadline:
                    deadline = time.monotonic() + self.patience
                elif time.monotonic() >= deadline:
                    self._give_up()
                wanted = gen.send(ready)
        except StopIteration as end:
            return end.value

    def _give_up(self) -> None:
        # The current statement may continue, and hold its locks: ask the server to stop it, if it
        # still listens.
        with suppress(Exception):
            if psycopg.capabilities.has_cancel_safe():  # otherwise cancelling could hang as well
                self.cancel_safe(timeout=CANCEL_SECONDS)
        self.pgconn.finish()
        msg = f"the server sent no answer for {self.patience:g} s"
        raise psycopg.OperationalError(msg)


def connect(dsn: str | Callable[[], str]) -> BoundedConnection:
    """Connect. Of several hosts, choose a writable one."""
    given: dict[str, Any] = conninfo_to_dict(dsn if isinstance(dsn, str) else dsn())
    settings: dict[str, Any] = _SILENCE | given | {"client_encoding": "UTF8"}
    if any("," in str(given.get(name) or "") for name in ("host", "hostaddr")):
        settings.setdefault("target_session_attrs", "read-write")
    return BoundedConnection.connect(make_conninfo("", **settings), autocommit=True)
