"""PostgreSQL settings that can lose data. They are reported, and never changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psycopg import Connection
    from psycopg.rows import TupleRow

__all__ = ["note_of_role", "risks_of"]

_ASK = b"SELECT current_setting('fsync'), current_setting('synchronous_commit')"
_ROLE = (
    b"SELECT current_user, current_schema(), current_schema() IS NOT NULL AND "
    b"has_schema_privilege(current_schema(), 'CREATE')"
)


def risks_of(connection: Connection[TupleRow]) -> list[str]:
    """Return a sentence for each risk, as it applies to this role and database."""
    row = connection.execute(_ASK).fetchone()
    assert row is not None
    found = []
    if row[0] == "off":
        found.append(
            "its fsync is off: when its machine goes down, all of the database can be lost. "
            "Set fsync = on."
        )
    if row[1] == "off":
        found.append(
            "its synchronous_commit is off: when the server goes down, the last commits are "
            "lost, and "
            "calls that were made then are made again. Set synchronous_commit = on for this role."
        )
    return found


def note_of_role(connection: Connection[TupleRow]) -> str | None:
    """Return the consequence if the role of this connection cannot create tables; None: it can."""
    row = connection.execute(_ROLE).fetchone()
    if row is None or row[2]:
        return None
    return (
        f"the role {row[0]!r} cannot create tables in the schema {row[1]!r}: those of "
        "offbook have to be made, "
        "and updated with a newer version, by a role that can"
    )
