"""What is in the database of a `PostgresStore`, and the statements by which it is read; what writes is in `postgres_functions.py`.

Owns: the tables, their version, how those of before become them, and the SQL. Every operation that reads is one statement. Time is that of the server,
at the moment of the statement. It knows nothing of connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .entries import ENTRY, ENTRY_FUNCTIONS, ENTRY_TABLES, LISTING_NAMES, entries_arguments
from .functions import FUNCTIONS
from .listening import LISTENING

if TYPE_CHECKING:
    from psycopg.rows import TupleRow

    from ..store_thread import Operation

__all__ = ["VERSION", "Statements"]

VERSION: Final = 3

# What stands in the statements below in braces, beside the names of tables and functions.
_PARTS: Final = {
    "now": "clock_timestamp()",
    "is_there": "(expires IS NULL OR expires > clock_timestamp())",
    "current": str(VERSION),
    "lists": (
        "%s::text[], %s::bytea[], %s::bytea[], %s::bytea[], %s::bigint[], %s::bigint[], %s::text[], %s::bigint[], "  # of the operations
        "%s::text[], %s::bytea[], %s::bytea[], %s::bigint[], %s::bigint[], %s::bigint[], %s::bytea[]"  # of their writes
    ),
}

_NAMES: Final = (
    *("entries", "records", "owners", "claims", "epochs", "former_leases", "leases", "writers", "version"),
    *("watched", "prove", "lives", "look", "write", "take", "own", "perform", "prune"),
    *("entries_by_end", *LISTING_NAMES),
)

# Keys and owners are UTF-8 as bytes: these sort the same everywhere, and may hold what the server takes for no text.
_OF_VERSION_1: Final = (
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
    "INSERT INTO {version} VALUES (1)",
)

_FROM_1_TO_2: Final = (
    # A process of version 1 that still runs fails when it next prolongs a lease. Until that one's time is over, what it holds is not free.
    "ALTER TABLE {leases} RENAME TO {former_leases_alone}",
    # `proof` is the lock that `backend`, a session of the server that was started at `since`, holds as long as the owner's process lives.
    "CREATE TABLE {owners} (owner bytea PRIMARY KEY, until timestamptz NOT NULL, proof bigint, backend integer, since timestamptz)",
    "CREATE TABLE {claims} (key bytea PRIMARY KEY, owner bytea, epoch bigint NOT NULL, attempts integer NOT NULL)",
    "CREATE SEQUENCE {epochs}",
    "ALTER TABLE {writers} ADD words text[], ADD ones bigint[], ADD twos bigint[], ADD names bytea[]",
)

# Runs of version 2 are listed when something is next written of them. A process of it that still runs lists none.
_FROM_2_TO_3: Final = (
    *ENTRY_TABLES,
    # It takes one list more from now on.
    "DROP FUNCTION IF EXISTS {write}(bigint, bigint, text[], bytea[], bytea[], bigint[], bigint[], bytea[], float8, timestamptz)",
    *ENTRY_FUNCTIONS,
    *FUNCTIONS,
    "UPDATE {version} SET version = {current}",
)

_SQL: Final = {
    "get": "SELECT value FROM {entries} WHERE key = %s AND {is_there}",
    "append": "SELECT records FROM {entries} WHERE key = %s AND {is_there}",  # of nothing: all others are written
    "read": "SELECT record FROM {records} JOIN {entries} ON entry = id WHERE key = %s AND {is_there} AND number > %s ORDER BY number",
    "keys": "SELECT key FROM {entries} WHERE key >= %s AND key < %s AND {is_there} ORDER BY key",
    "holder": "SELECT owner FROM {claims} WHERE key = %s AND owner IS NOT NULL AND {lives}(owner)",
    "orphans": """
        WITH alive AS MATERIALIZED (SELECT owner FROM {owners} WHERE {lives}(owner))
        SELECT e.key FROM {entries} AS e LEFT JOIN {claims} AS c ON c.key = e.key
        WHERE e.key >= %s AND e.key < %s AND e.value IS NOT NULL AND {is_there} AND NOT EXISTS (SELECT FROM alive WHERE alive.owner = c.owner)
        ORDER BY coalesce(c.attempts, 0), e.key LIMIT %s""",
    "perform": "SELECT * FROM {perform}(%s, %s, %s::float8, %s, %s::integer, {lists})",
    "prune": "SELECT * FROM {prune}(%s::bigint, %s::float8, %s::integer)",
    "prove": "SELECT {prove}(%s::bytea[])",
    **ENTRY,
    **LISTENING,
    "end": "DELETE FROM {writers} WHERE id = %s",
    # Reading a table makes the session hear of what others have made since its transaction began; looking for a name alone does not.
    "find": "SELECT to_regclass(%s) IS NOT NULL FROM (SELECT FROM pg_class LIMIT 1) AS heard",
    "version": "SELECT version FROM {version}",
}


class Statements:
    """The statements, with the names of one store's tables in them."""

    def __init__(self, schema: str | None, prefix: str, ttl: float | None) -> None:
        alone = {name: _quoted(prefix + name) for name in _NAMES}
        names = alone if schema is None else {name: f"{_quoted(schema)}.{text}" for name, text in alone.items()}
        tag = "$understudy$"
        while any(tag in name for name in names.values()):
            tag = f"{tag[:-1]}_$"
        literals = {f"{name}_literal": names[name].replace("'", "''") for name in ("entries", "epochs", "runs", "run_labels")}
        parts = {**_PARTS, **names, **literals, "tag": tag, **{f"{name}_alone": text for name, text in alone.items()}}
        self.sql = {name: text.format(**parts).encode() for name, text in _SQL.items()}
        self.schema = [text.format(**parts).encode() for text in _OF_VERSION_1]
        self.upgrades = [[text.format(**parts).encode() for text in texts] for texts in (_FROM_1_TO_2, _FROM_2_TO_3)]
        """To version 2, and from there on."""
        self.version_table = names["version"].replace("%%", "%")
        self.watched_table = names["watched"].replace("%%", "%")
        self.ttl = ttl

    def of(self, operation: Operation) -> tuple[bytes, tuple[object, ...]]:
        """The statement of an operation that reads, and what goes into it."""
        key, arguments = operation.key, operation.arguments
        match operation.name:
            case "append":
                return self.sql["append"], (key,)
            case "keys" | "orphans":
                # The first text behind all that begin with the prefix: no byte of UTF-8 is so large that it could not be one larger.
                return self.sql[operation.name], (key, key[:-1] + bytes((key[-1] + 1,)) if key else b"\xff", *arguments)
            case "run_entries":
                return self.sql["run_entries"], entries_arguments(arguments[0])
            case _:
                return self.sql[operation.name], (key, *arguments)

    @staticmethod
    def result(operation: Operation, rows: list[TupleRow]) -> object:
        """What the operation is answered with, from the rows that its statement has returned."""
        match operation.name:
            case "read" | "keys" | "orphans":
                return [row[0] for row in rows]
            case "append":
                return rows[0][0] if rows else 0
            case "run_entries":
                return rows
            case "run_entry":
                return rows[0] if rows else None
            case _:
                return rows[0][0] if rows else None


def _quoted(name: str) -> str:
    """As it stands in a statement. A percent sign would be taken for a place where something goes in."""
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'
