"""Two processes that open one new file at the same instant: what one has made meanwhile is not
taken for somebody else's.
"""

import sqlite3
from contextlib import closing

import pytest

from offbook.runtime.stores.sqlite.schema import prepare
from offbook.runtime.stores.sqlite.state import MachineTime, State


def make(connection):
    prepare(connection, State(connection, MachineTime()))


class Between:
    """A connection; before a statement that begins so is run the first time, another one makes the
    tables.
    """

    def __init__(self, path, statement):
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._path = path
        self._statement = statement

    def execute(self, statement, *args):
        if self._statement is not None and statement.startswith(self._statement):
            self._statement = None
            with closing(sqlite3.connect(self._path, isolation_level=None, timeout=0.01)) as other:
                make(other)
        return self._connection.execute(statement, *args)

    def __getattr__(self, name):
        return getattr(self._connection, name)


@pytest.mark.parametrize(
    "statement",
    ["PRAGMA application_id", "PRAGMA user_version", "SELECT count(*)", "BEGIN IMMEDIATE"],
)
def test_tables_that_another_one_makes_meanwhile_are_known(tmp_path, statement):
    path = tmp_path / "a.db"
    sqlite3.connect(path).execute("PRAGMA journal_mode = WAL").connection.close()
    connection = Between(path, statement)
    if statement == "SELECT count(*)":
        # Here the other one has to wait for us, and cannot.
        connection.execute("PRAGMA busy_timeout = 10")
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            make(connection)
    else:
        make(connection)
        assert connection.execute("SELECT count(*) FROM items").fetchone() == (0,)
    connection.close()
