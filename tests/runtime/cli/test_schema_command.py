"""`offbook schema`: the SQL that makes a store's tables."""

from tests.doubles.commands import command

__all__ = ["command"]


def test_the_sql_is_printed_with_the_grants_of_a_role(command):
    done = command(
        "schema",
        "postgresql://app@host/database",
        "--role",
        "app",
        "--prefix",
        "shop_",
        "--schema",
        "own",
    )
    assert (done.exit_code, done.stderr) == (0, "")
    assert 'CREATE TABLE "own"."shop_entries"' in done.stdout
    assert 'GRANT USAGE ON SCHEMA "own" TO "app";' in done.stdout
    assert done.stdout.startswith("BEGIN;")
    assert done.stdout.endswith("COMMIT;\n")


def test_other_stores_have_no_tables_to_make(command):
    done = command("schema", "redis://host")
    assert done.exit_code == 1
    assert "only a PostgreSQL store" in done.stderr
