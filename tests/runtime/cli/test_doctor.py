"""`offbook doctor`: a line for each thing that agents need."""

import psycopg
import pytest

from offbook.runtime.cli.doctor import _without_password
from offbook.runtime.stores.redis.store import _Server
from tests.doubles.commands import Terminal, command

__all__ = ["command"]


def line(done, name):
    (found,) = [line for line in done.stdout.splitlines() if line.split()[1] == name]
    return found


def test_each_thing_has_a_line_and_what_is_only_missing_is_no_failure(command):
    done = command("doctor")
    assert [one.split()[1] for one in done.stdout.splitlines()] == [
        "versions",
        "extras",
        "clock",
        "keys",
        "model",
        "store",
    ]
    assert (done.exit_code, done.stderr) == (0, "")
    assert line(done, "versions").startswith("✓ versions offbook ")
    assert line(done, "keys").startswith("· keys")
    assert "offbook.db does not exist yet" in line(done, "store")


def test_all_extras_have_their_word_and_an_agent_is_counted_in_words_that_fit(command):
    found = line(command("doctor", "clerks.py"), "extras")
    for name in ("fast", "redis", "postgres", "a2a", "mcp", "otel", "console", "realtime", "ray"):
        assert f" {name}" in found
    assert line(command("doctor", "clerks.py"), "agent").endswith("clerks.py: Clerk")


def test_a_store_is_written_and_read(command):
    command("run", "clerks.py", "hello", "--store", "runs.db")
    assert "runs.db: wrote, read and deleted a value in" in line(
        command("doctor", "--store", "runs.db"), "store"
    )


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_a_server_is_asked_and_its_clock_compared(command, store_recipe, kind):
    address = store_recipe(kind)[1][0]
    if kind == "postgres":
        of = dict(part.split("=", 1) for part in address.split())
        address = (
            f"postgresql://{of['user']}:{of['password']}@{of['host']}:{of['port']}/{of['dbname']}"
        )
    done = command("doctor", "--store", address)
    assert "wrote, read and deleted a value" in line(done, "store")
    risks = [one for one in done.stdout.splitlines() if one.split()[1] == "risk"]
    assert len(risks) == {"redis": 0, "postgres": 2}[kind], (
        "the server of the tests does not wait for the disk"
    )
    assert done.exit_code == 0


def test_a_role_that_makes_no_tables_is_told(command, postgres_server):
    of = dict(part.split("=", 1) for part in postgres_server.dsn.split())
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS looked_at CASCADE")
        connection.execute("DROP ROLE IF EXISTS looker")
        connection.execute("CREATE ROLE looker LOGIN PASSWORD 'pw'")
        connection.execute("CREATE SCHEMA looked_at")
        connection.execute("GRANT USAGE ON SCHEMA looked_at TO looker")
    place = f"{of['host']}:{of['port']}/{of['dbname']}?options=-csearch_path%3Dlooked_at"
    asked = f"postgresql://{of['user']}:{of['password']}@{place}"
    assert command("doctor", "--store", asked).exit_code == 0  # makes the tables
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute("GRANT ALL ON ALL TABLES IN SCHEMA looked_at TO looker")
        connection.execute("GRANT ALL ON ALL SEQUENCES IN SCHEMA looked_at TO looker")
    done = command("doctor", "--store", f"postgresql://looker:pw@{place}")
    assert "the role 'looker' cannot create tables in the schema 'looked_at'" in done.stdout
    assert done.exit_code == 0


def test_a_store_that_is_held_or_of_another_environment_is_told_and_not_changed(
    command, monkeypatch
):
    command("run", "clerks.py", "hello", "--store", "runs.db")
    command("hold", "runs.db")
    assert "is held since" in line(command("doctor", "--store", "runs.db"), "store")
    command("release", "runs.db")
    monkeypatch.setenv("OFFBOOK_ENV", "staging")
    assert "belongs to the environment ''" in line(command("doctor", "--store", "runs.db"), "store")
    command("doctor", "--store", "sqlite:empty.db")
    monkeypatch.delenv("OFFBOOK_ENV")
    assert "wrote, read and deleted a value" in line(
        command("doctor", "--store", "runs.db"), "store"
    )


def test_what_is_wrong_is_told_in_its_line_and_ends_with_1(command, tmp_path):
    (tmp_path / "notes.db").write_text(
        "this is no database, and is long enough to be looked at as one" * 20
    )
    done = command("doctor", "nothing.py", "--store", "notes.db", "--ask")
    assert done.exit_code == 1
    assert line(done, "store").startswith("✗ store")
    assert "file not found" in line(done, "agent")
    assert line(done, "model").startswith("✗ model")
    assert len(done.stdout.splitlines()) == 7


@pytest.mark.slow
def test_a_server_that_is_not_there_is_told(command):
    assert "✗ store" in command("doctor", "--store", "redis://127.0.0.1:1/0").stdout


def test_a_terminal_of_80_columns_shows_all_of_it_with_what_is_to_be_done(command, tmp_path):
    terminal = Terminal(
        tmp_path,
        "doctor",
        TERM="dumb",
        NO_COLOR="1",
        OPENAI_MODEL="",
        ARK_CHAT_MODEL="",
        OFFBOOK_STORE="missing.db",
    )
    try:
        shown = terminal.until("missing.db does not exist yet: the first stored run creates it")
    finally:
        terminal.close()
    assert "in the environment or in a .env file." in " ".join(shown.split())
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_keys_and_passwords_are_never_shown(command, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_MODEL", "gpt-x")
    monkeypatch.setattr(_Server, "patience", 0.1)  # nothing listens there
    done = command("doctor", "clerks.py", "--store", "redis://me:hidden@127.0.0.1:1/0")
    assert "sk-secret" not in done.stdout
    assert "gpt-x" in line(done, "model")
    assert "hidden" not in done.stdout
    assert _without_password("postgresql://me:p@ss@host/db") == "postgresql://host/db"
    assert line(done, "agent").endswith("clerks.py: Clerk")
