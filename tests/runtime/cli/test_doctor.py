"""`understudy doctor`: a line for each thing that agents need."""

import pytest

from tests.doubles.commands import Terminal, command
from understudy.runtime.cli.doctor import _without_password

__all__ = ["command"]


def line(done, name):
    (found,) = [line for line in done.stdout.splitlines() if line.split()[1] == name]
    return found


def test_each_thing_has_a_line_and_what_is_only_missing_is_no_failure(command):
    done = command("doctor")
    assert [one.split()[1] for one in done.stdout.splitlines()] == ["versions", "extras", "clock", "keys", "model", "store"]
    assert (done.exit_code, done.stderr) == (0, "")
    assert line(done, "versions").startswith("✓ versions understudy ")
    assert line(done, "keys").startswith("· keys")
    assert "understudy.db is not there yet" in line(done, "store")


def test_all_extras_have_their_word_and_an_agent_is_counted_in_words_that_fit(command):
    found = line(command("doctor", "clerks.py"), "extras")
    for name in ("fast", "redis", "postgres", "a2a", "mcp", "otel", "console", "realtime", "ray"):
        assert f" {name}" in found
    assert line(command("doctor", "clerks.py"), "agent").endswith("clerks.py: Clerk")


def test_a_store_is_written_and_read(command):
    command("run", "clerks.py", "hello", "--store", "runs.db")
    assert "runs.db: written, read and removed in" in line(command("doctor", "--store", "runs.db"), "store")


@pytest.mark.parametrize("kind", ["redis", "postgres"])
def test_a_server_is_asked_and_its_clock_compared(command, store_recipe, kind):
    address = store_recipe(kind)[1][0]
    if kind == "postgres":
        of = dict(part.split("=", 1) for part in address.split())
        address = f"postgresql://{of['user']}:{of['password']}@{of['host']}:{of['port']}/{of['dbname']}"
    assert "written, read and removed" in line(command("doctor", "--store", address), "store")


def test_what_is_wrong_is_told_in_its_line_and_ends_with_1(command, tmp_path):
    (tmp_path / "notes.db").write_text("this is no database, and is long enough to be looked at as one" * 20)
    done = command("doctor", "nothing.py", "--store", "notes.db", "--ask")
    assert done.exit_code == 1
    assert line(done, "store").startswith("✗ store")
    assert "there is no such file" in line(done, "agent")
    assert line(done, "model").startswith("✗ model")
    assert len(done.stdout.splitlines()) == 7


@pytest.mark.slow
def test_a_server_that_is_not_there_is_told(command):
    assert "✗ store" in command("doctor", "--store", "redis://127.0.0.1:1/0").stdout


def test_a_terminal_of_80_columns_shows_all_of_it_with_what_is_to_be_done(command, tmp_path):
    terminal = Terminal(tmp_path, "doctor", TERM="dumb", NO_COLOR="1", OPENAI_MODEL="", ARK_CHAT_MODEL="", UNDERSTUDY_STORE="missing.db")
    try:
        shown = terminal.until("missing.db is not there yet: the first run that is kept makes it")
    finally:
        terminal.close()
    assert "in the environment or in a .env file." in " ".join(shown.split())
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= 80


def test_keys_and_passwords_are_never_shown(command, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("OPENAI_MODEL", "gpt-x")
    done = command("doctor", "clerks.py", "--store", "redis://me:hidden@127.0.0.1:1/0")
    assert "sk-secret" not in done.stdout
    assert "gpt-x" in line(done, "model")
    assert "hidden" not in done.stdout
    assert _without_password("postgresql://me:p@ss@host/db") == "postgresql://host/db"
    assert line(done, "agent").endswith("clerks.py: Clerk")
