"""The tables of a `PostgresStore`, their version, and the statements that read them.

`functions.py` has the statements that write. Every operation that reads is one statement. All times
are those of the server, at the moment of the statement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .entries import ENTRY, ENTRY_FUNCTIONS, ENTRY_TABLES, LISTING_NAMES, entries_arguments
from .functions import FUNCTIONS
from .listening import LISTENING
from .pruning import PRUNING

if TYPE_CHECKING:
    from psycopg.rows import TupleRow

    from ..store_thread import Operation

__all__ = [
    "ANSWERED_SECONDS",
    "ANSWER_SECONDS",
    "CANCEL_SECONDS",
    "CONNECT_SECONDS",
    "PATIENCE_SECONDS",
    "VERSION",
    "Statements",
]

CONNECT_SECONDS: Final = 5
"""The time limit for connecting to each host."""
ANSWER_SECONDS: Final = 10.0
"""How long the server may be silent while it owes an answer."""
CANCEL_SECONDS: Final = 1.0
"""The time limit for cancelling a statement that was not answered."""
PATIENCE_SECONDS: Final = 5.0
"""How long a temporary error is retried."""
ANSWERED_SECONDS: Final = 2 * (CONNECT_SECONDS + ANSWER_SECONDS + CANCEL_SECONDS)
"""The time within which each caller has an answer: two attempts, one on a new connection."""

VERSION: Final = 1

# The placeholders in the statements below, alongside the names of tables and functions.
_PARTS: Final = {
    "now": "clock_timestamp()",
    "is_there": "(expires IS NULL OR expires > clock_timestamp())",
    "current": str(VERSION),
    "lists": (
        # For the operations.
        "%s::text[], %s::bytea[], %s::bytea[], %s::bigint[], %s::bigint[], %s::text[], "
        "%s::bigint[], "
        # For their writes.
        "%s::text[], %s::bytea[], %s::bytea[], %s::bigint[], %s::bigint[], %s::bigint[], "
        "%s::bytea[], %s::bigint[]"
    ),
}

_NAMES: Final = (
    *(
        "entries",
        "records",
        "owners",
        "claims",
        "epochs",
        "writers",
        "version",
    ),
    *(
        "watched",
        "prove",
        "lives",
        "look",
        "write",
        "take",
        "own",
        "next_epoch",
        "perform",
        "prune",
    ),
    *("entries_by_end", *LISTING_NAMES),
)

_TABLES: Final = (
    "entries",
    "records",
    "owners",
    "claims",
    "writers",
    "version",
    "watched",
    "runs",
    "run_labels",
    "run_list",
    "label_list",
)

# Keys and owners are UTF-8 stored as bytes: bytes sort the same everywhere, and may contain what
# the server does not accept as text.
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
    # The answers to a writer's last batch, by its number.
    """CREATE TABLE {writers} (
        id bytea PRIMARY KEY,
        batch bigint NOT NULL,
        at timestamptz NOT NULL,
        words text[],
        ones bigint[],
        twos bigint[],
        names bytea[]
    )""",
    # `proof` is the lock that `backend`, a session of the server that was started at `since`, holds
    # as long as the owner's process lives.
    """CREATE TABLE {owners} (
        owner bytea PRIMARY KEY,
        until timestamptz NOT NULL,
        proof bigint,
        backend integer,
        since timestamptz
    )""",
    """CREATE TABLE {claims} (
        key bytea PRIMARY KEY,
        owner bytea,
        epoch bigint NOT NULL,
        attempts integer NOT NULL
    )""",
    "CREATE SEQUENCE {epochs}",
    *ENTRY_TABLES,
    *ENTRY_FUNCTIONS,
    *FUNCTIONS,
    "CREATE TABLE {version} (version integer NOT NULL)",
    "INSERT INTO {version} VALUES ({current})",
)

_SQL: Final = {
    "get": "SELECT value FROM {entries} WHERE key = %s AND {is_there}",
    # For no records: all others are writes.
    "append": "SELECT records FROM {entries} WHERE key = %s AND {is_there}",
    "read": (
        "SELECT record FROM {records} JOIN {entries} ON entry = id WHERE key = %s AND {is_there} "
        "AND number > %s ORDER BY number"
    ),
    "keys": "SELECT key FROM {entries} WHERE key >= %s AND key < %s AND {is_there} ORDER BY key",
    "holder": "SELECT owner FROM {claims} WHERE key = %s AND owner IS NOT NULL AND {lives}(owner)",
    "orphans": """
        WITH alive AS MATERIALIZED (SELECT owner FROM {owners} WHERE {lives}(owner)), bounds AS (SELECT %s::bytea AS first, %s::bytea AS behind),
        found AS (
            SELECT key FROM {entries}, bounds WHERE key >= first AND key < behind AND value IS NOT NULL AND {is_there}
            UNION ALL SELECT claim FROM {runs}, bounds WHERE claim >= first AND claim < behind AND {is_there}
        )
        SELECT f.key FROM found AS f LEFT JOIN {claims} AS c ON c.key = f.key
        WHERE NOT EXISTS (SELECT FROM alive WHERE alive.owner = c.owner)
        ORDER BY coalesce(c.attempts, 0), f.key LIMIT %s""",
    "perform": "SELECT * FROM {perform}(%s, %s, %s::float8, %s, %s::integer, {lists})",
    "prune": "SELECT * FROM {prune}(%s::bigint, %s::float8, %s::integer)",
    **PRUNING,
    "prove": "SELECT {prove}(%s::bytea[])",
    **ENTRY,
    **LISTENING,
    "end": "DELETE FROM {writers} WHERE id = %s",
    # Reading a table makes the session notice changes of others since its transaction started;
    # looking up a name alone does not.
    "find": "SELECT to_regclass(%s) IS NOT NULL FROM (SELECT FROM pg_class LIMIT 1) AS heard",
    "version": "SELECT version FROM {version}",
}


class Statements:
    """The statements, with the names of one store's tables in them."""

    def __init__(self, schema: str | None, prefix: str, ttl: float | None) -> None:
        alone = {name: _quoted(prefix + name) for name in _NAMES}
        names = (
            alone
            if schema is None
            else {name: f"{_quoted(schema)}.{text}" for name, text in alone.items()}
        )
        tag = "$offbook$"
        while any(tag in name for name in names.values()):
            tag = f"{tag[:-1]}_$"
        literals = {
            f"{name}_literal": names[name].replace("'", "''")
            for name in ("entries", "epochs", "runs", "run_labels", "watched")
        }
        parts = {
            **_PARTS,
            **names,
            **literals,
            "tag": tag,
            **{f"{name}_alone": text for name, text in alone.items()},
        }
        self.sql = {name: text.format(**parts).encode() for name, text in _SQL.items()}
        self.schema = [text.format(**parts).encode() for text in _SCHEMA]
        self.version_table = names["version"].replace("%%", "%")
        self.watched_table = names["watched"].replace("%%", "%")
        self.ttl = ttl
        self._schema, self._names = schema, names

    def script(self, role: str | None) -> str:
        """Return the SQL that creates the tables in an empty database, and the grants for the
        role.
        """
        made = [*self.schema, self.sql["watched"]]
        lines = [text.decode().replace("%%", "%") for text in made]
        if self._schema is not None:
            lines.insert(0, f"SET LOCAL search_path = {_quoted(self._schema).replace('%%', '%')}")
        if role is not None:
            who = '"' + role.replace('"', '""') + '"'
            if self._schema is not None:
                lines.append(
                    f"GRANT USAGE ON SCHEMA {_quoted(self._schema).replace('%%', '%')} TO {who}"
                )
            tables = ", ".join(self._names[name].replace("%%", "%") for name in _TABLES)
            lines.append(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO {who}")
            lines.append(
                "GRANT USAGE, SELECT, UPDATE ON SEQUENCE "
                f"{self._names['epochs'].replace('%%', '%')} TO {who}"
            )
        return ";\n".join(["BEGIN", *lines, "COMMIT"]) + ";\n"

    def of(self, operation: Operation) -> tuple[bytes, tuple[object, ...]]:
        """Return the statement of an operation that reads, and its parameters."""
        key, arguments = operation.key, operation.arguments
        match operation.name:
            case "append":
                return self.sql["append"], (key,)
            case "keys" | "orphans":
                # The first key after all with the prefix: the last byte of UTF-8 can always be
                # incremented.
                return self.sql[operation.name], (
                    key,
                    key[:-1] + bytes((key[-1] + 1,)) if key else b"\xff",
                    *arguments,
                )
            case "run_entries":
                return self.sql["run_entries"], entries_arguments(arguments[0])
            case _:
                return self.sql[operation.name], (key, *arguments)

    @staticmethod
    def result(operation: Operation, rows: list[TupleRow]) -> object:
        """Return the result of the operation, from the rows that its statement returned."""
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
    """Quote a name for a statement.

    A percent sign would be taken for a placeholder.
    """
    return '"' + name.replace('"', '""').replace("%", "%%") + '"'
