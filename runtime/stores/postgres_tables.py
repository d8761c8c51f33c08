"""What is in the database of a `PostgresStore`, and the statement of each operation.

Owns: the tables, their version, and the SQL. Every operation is one statement, so that a batch can be sent without waiting for its parts. Time is that of the
server, at the moment of the statement. It knows nothing of connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from psycopg.rows import TupleRow

    from .store_thread import Operation

__all__ = ["VERSION", "Statements"]

VERSION: Final = 1

# What stands in the statements below in braces, beside the names of the tables.
_PARTS: Final = {
    "now": "clock_timestamp()",
    "later": "clock_timestamp() + make_interval(secs => %s)",
    "is_there": "(expires IS NULL OR expires > clock_timestamp())",
    "current": str(VERSION),
}

# Keys and owners are UTF-8 as bytes: these sort the same everywhere, and may hold what the server takes for no text.
_SCHEMA: Final = (
    """CREATE TABLE {entries} (
        id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        key bytea NOT NULL UNIQUE,
        value bytea,
        records bigint NOT NULL,
        written timestamptz NOT NULL,
        expires timestamptz
    )""",
    """CREATE TABLE {records} (
        entry bigint NOT NULL REFERENCES {entries} ON DELETE CASCADE,
        number bigint NOT NULL,
        record bytea NOT NULL,
        PRIMARY KEY (entry, number)
    )""",
    "CREATE TABLE {leases} (key bytea PRIMARY KEY, owner bytea NOT NULL, until timestamptz NOT NULL)",
    "CREATE TABLE {writers} (id bytea PRIMARY KEY, batch bigint NOT NULL, at timestamptz NOT NULL)",
    "CREATE TABLE {version} (version integer NOT NULL)",
    "INSERT INTO {version} VALUES ({current})",
)

_SQL: Final = {
    "get": "SELECT value FROM {entries} WHERE key = %s AND {is_there}",
    "set": "INSERT INTO {entries} AS e (key, value, records, written, expires) VALUES (%s, %s, 0, {now}, {later})"
    " ON CONFLICT (key) DO UPDATE SET value = excluded.value, written = excluded.written, expires = excluded.expires",
    "create": "INSERT INTO {entries} (key, value, records, written, expires) VALUES (%s, %s, 0, {now}, {later}) ON CONFLICT (key) DO NOTHING RETURNING true",
    "delete": "DELETE FROM {entries} WHERE key = %s",
    "append": """
        WITH entry AS (
            INSERT INTO {entries} AS e (key, records, written, expires) VALUES (%s, %s, {now}, {later})
            ON CONFLICT (key) DO UPDATE SET records = e.records + excluded.records, written = excluded.written, expires = excluded.expires
            RETURNING id, records
        ), added AS (
            INSERT INTO {records} (entry, number, record)
            SELECT id, records - %s + place, record FROM entry, unnest(%s::bytea[]) WITH ORDINALITY AS new (record, place)
        )
        SELECT records FROM entry""",
    "size": "SELECT records FROM {entries} WHERE key = %s AND {is_there}",
    "read": "SELECT record FROM {records} JOIN {entries} ON entry = id WHERE key = %s AND {is_there} AND number > %s ORDER BY number",
    "keys": "SELECT key FROM {entries} WHERE key >= %s AND key < %s AND {is_there} ORDER BY key",
    "acquire": "INSERT INTO {leases} AS l VALUES (%s, %s, {later}) ON CONFLICT (key) DO UPDATE SET owner = excluded.owner, until = excluded.until"
    " WHERE l.owner = excluded.owner OR l.until <= {now} RETURNING true",
    "renew": """
        WITH own AS (SELECT key FROM {leases} WHERE key = ANY(%s::bytea[]) AND owner = %s AND until > {now} ORDER BY key FOR UPDATE)
        UPDATE {leases} AS l SET until = {later} FROM own WHERE l.key = own.key RETURNING l.key""",
    "release": "DELETE FROM {leases} WHERE key = %s AND owner = %s",
    "holder": "SELECT owner FROM {leases} WHERE key = %s AND until > {now}",
    "prune": """
        WITH entry AS (
            DELETE FROM {entries} WHERE expires <= {now} OR written <= {now} - make_interval(secs => %s) RETURNING key
        ), lease AS (
            DELETE FROM {leases} WHERE until <= {now} RETURNING key
        ), writer AS (
            DELETE FROM {writers} WHERE at < {now} - interval '1 day'
        )
        SELECT count(*) FROM (SELECT key FROM entry UNION SELECT key FROM lease) AS gone""",
    # What has expired must be gone before something is written in its place: a statement does not see what another part of it removes.
    "clear": "DELETE FROM {entries} WHERE key = ANY(%s::bytea[]) AND expires <= {now}",
    # Has no row to return if that batch, or a later one, is in the table; and waits for a transaction that has put it there and has not ended yet.
    "begin": "INSERT INTO {writers} AS w VALUES (%s, %s, {now}) ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = excluded.at"
    " WHERE w.batch < excluded.batch RETURNING true",
    "end": "DELETE FROM {writers} WHERE id = %s",
    "find": "SELECT to_regclass(%s) IS NOT NULL",
    "version": "SELECT version FROM {version}",
}


class Statements:
    """The statements, with the names of one store's tables in them."""

    def __init__(self, quoted: Callable[[str], str], ttl: float | None) -> None:
        tables = {name: quoted(name) for name in ("entries", "records", "leases", "writers", "version")}
        self.sql = {name: text.format(**_PARTS, **tables).encode() for name, text in _SQL.items()}
        self.schema = [text.format(**_PARTS, **tables).encode() for text in _SCHEMA]
        self.version_table = tables["version"].replace("%%", "%")
        self._ttl = ttl

    def of(self, operation: Operation) -> tuple[bytes, tuple[object, ...]]:
        """The statement of an operation, and what goes into it."""
        key, arguments = operation.key, operation.arguments
        match operation.name:
            case "set" | "create":
                return self.sql[operation.name], (key, arguments[0], self._ttl)
            case "append":
                records = arguments[0]
                return (self.sql["append"], (key, len(records), self._ttl, len(records), records)) if records else (self.sql["size"], (key,))
            case "keys":
                # The first text behind all that begin with the prefix: no byte of UTF-8 is so large that it could not be one larger.
                return self.sql["keys"], (key, key[:-1] + bytes((key[-1] + 1,)) if key else b"\xff")
            case "acquire" | "release" | "read" | "get" | "delete" | "holder":
                return self.sql[operation.name], (key, *arguments)
            case _:
                return self.sql[operation.name], arguments

    @staticmethod
    def result(operation: Operation, rows: list[TupleRow]) -> object:
        """What the operation is answered with, from the rows that its statement has returned."""
        match operation.name:
            case "read" | "keys" | "renew":
                return [row[0] for row in rows]
            case "create" | "acquire":
                return bool(rows)
            case "append" | "prune":
                return rows[0][0] if rows else 0
            case _:
                return rows[0][0] if rows else None
