"""`offbook hold`, `release`: copies of stores."""

from tests.doubles.commands import command

__all__ = ["command"]


def test_a_store_that_is_held_can_be_looked_at_and_begins_nothing(command):
    waits = (
        command("run", "clerks.py", "book it", "--store", "runs.db")
        .stderr.split("offbook resume ")[1]
        .split()[0]
    )
    held = command("hold", "runs.db")
    assert held.exit_code == 0
    assert (
        "runs.db is held: no run is started, continued or recovered in it until `offbook "
        "release runs.db`" in held.stdout
    )
    assert "0 unfinished, 1 waiting for an answer" in held.stdout
    assert "is held since" in command("hold", "runs.db").stdout

    refused = command("run", "clerks.py", "hello", "--store", "runs.db")
    assert refused.exit_code == 1
    assert "is held since" in refused.stdout + refused.stderr
    assert command("runs", "--store", "runs.db").stdout.startswith(waits)
    assert "interrupted" in command("show", waits, "--store", "runs.db").stdout
    assert command("forget", waits, "--store", "runs.db").exit_code == 0

    assert command("release", "runs.db").stdout == "runs.db is released\n"
    again = command("release", "runs.db")
    assert (again.exit_code, again.stderr) == (
        1,
        "offbook: runs.db is not held, so there is nothing to release.\n",
    )
    assert command("run", "clerks.py", "hello", "--store", "runs.db").exit_code == 0


def test_a_copy_is_released_into_another_environment(command, monkeypatch):
    monkeypatch.setenv("OFFBOOK_ENV", "production")
    assert command("run", "clerks.py", "hello", "--store", "runs.db").exit_code == 0
    monkeypatch.setenv("OFFBOOK_ENV", "staging")
    refused = command("run", "clerks.py", "hello", "--store", "runs.db")
    assert refused.exit_code == 1
    assert (
        "belongs to the environment 'production', and this process runs in 'staging'"
        in refused.stdout + refused.stderr
    )
    assert (
        command("release", "runs.db", "--env", "staging").stdout
        == "runs.db is released; it belongs to the environment 'staging'\n"
    )
    assert command("run", "clerks.py", "hello", "--store", "runs.db").exit_code == 0


def test_a_file_that_is_not_there_is_not_made(command, tmp_path):
    done = command("hold", "nowhere.db")
    assert done.exit_code == 1
    assert "file not found" in done.stderr
    assert not list(tmp_path.rglob("nowhere.db"))


def test_a_file_is_backed_up_and_not_written_over(command, tmp_path):
    waits = (
        command("run", "clerks.py", "book it", "--store", "runs.db")
        .stderr.split("offbook resume ")[1]
        .split()[0]
    )
    assert command("backup", "runs.db", "copy.db").stdout.startswith("copy.db: a copy of runs.db, ")
    assert command("runs", "--store", "copy.db").stdout.startswith(waits)
    again = command("backup", "runs.db", "copy.db")
    assert again.exit_code == 1
    assert "already exists and is not overwritten" in again.stderr
    server = command("backup", "redis://127.0.0.1:1/0", "copy2.db")
    assert server.exit_code == 1
    assert "copies SQLite files only" in server.stderr


def test_runs_are_exported_and_imported(command):
    waits = (
        command("run", "clerks.py", "book it", "--store", "runs.db")
        .stderr.split("offbook resume ")[1]
        .split()[0]
    )
    refused = command("export", "runs.db", "runs.export")
    assert (refused.exit_code, "offbook hold STORE" in refused.stderr) == (1, True)
    command("hold", "runs.db")
    done = command("export", "runs.db", "runs.export")
    assert done.stdout.startswith("runs.export: 1 runs, ")
    assert "Do not release runs.db" in done.stdout
    assert command("import", "other.db", "runs.export").stdout.startswith("other.db: 1 runs, ")
    assert command("runs", "--store", "other.db").stdout.startswith(waits)
    what = next(
        line
        for line in command("show", waits, "--store", "other.db").stdout.splitlines()
        if line.startswith("as ")
    )[3:]
    assert (
        "So: booked Paris."
        in command("resume", what, "clerks.py", "--store", "other.db", "--yes").stdout
    )
    assert "already has different data" in command("import", "other.db", "runs.export").stderr


def test_a_store_that_is_encrypted_is_read_with_its_keys(command, monkeypatch):
    monkeypatch.setenv("OFFBOOK_KEYS", "A" * 43)
    waits = (
        command("run", "clerks.py", "book it", "--store", "runs.db")
        .stderr.split("offbook resume ")[1]
        .split()[0]
    )
    assert "Clerk wants to call book" in command("runs", "--store", "runs.db").stdout
    assert command("backup", "runs.db", "copy.db").exit_code == 0
    monkeypatch.setenv("OFFBOOK_KEYS", f"{'B' * 42}A,{'A' * 43}")
    assert "Clerk wants to call book" in command("show", waits, "--store", "copy.db").stdout
    monkeypatch.setenv("OFFBOOK_KEYS", f"{'B' * 42}A")
    assert "was encrypted with another key" in command("show", waits, "--store", "copy.db").stderr
