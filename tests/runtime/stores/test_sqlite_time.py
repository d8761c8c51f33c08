"""Time in a file: what has one to live, across steps of the clock and starts of the machine; and the files of the version before."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from understudy.runtime import StoreError
from understudy.runtime.stores import Append, Put
from understudy.runtime.stores.sqlite.state import MachineTime

OLD = (Path(__file__).parents[2] / "fixtures" / "stores_v1.sql").read_text()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "runs.db"


@pytest.mark.parametrize("step", [-(10**8), -3600, 3600, 10**8])
def test_a_time_to_live_survives_steps_of_the_clock_on_the_wall(run, on, machine, step):
    async def main():
        store = on(ttl=100)
        await store.set("key", b"v")
        machine.at += step
        machine.passes(90)
        assert await store.get("key") == b"v"
        assert await store.prune(older_than=95) == 0
        machine.passes(11)
        assert await store.get("key") is None

    run(main())


@pytest.mark.parametrize(("off", "there"), [(50, True), (-500, True), (150, False)])
def test_a_time_to_live_goes_on_while_the_machine_is_down(run, on, machine, off, there):
    async def main():
        store = on(ttl=100)
        await store.set("first", b"v")
        machine.at += 10**8  # a step, long before
        machine.passes(120)
        await store.set("key", b"v")
        machine.starts_again(after=off)
        again = on(ttl=100)
        for _ in range(2):
            assert await again.get("key") == (b"v" if there else None)
            await again.set("other", b"v")
        machine.passes(101)
        assert await again.keys() == []

    run(main())


def test_a_namespace_of_time_does_not_deceive(run, path, tmp_path):
    command = ["unshare", "--time", "--boottime", "100000", "--monotonic", "100000", "--fork"]
    try:
        subprocess.run([*command, "true"], check=True, capture_output=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        pytest.skip("this machine lets no namespace of time be made")
    program = "from understudy.runtime.stores.sqlite.state import MachineTime\nprint(MachineTime().boottime())"
    said = subprocess.run([*command, sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=20).stdout
    assert abs(float(said) - MachineTime().boottime()) < 20


def old_file(path, machine):
    file = sqlite3.connect(path, isolation_level=None)
    file.execute("PRAGMA journal_mode = WAL")
    file.executescript(OLD)
    now = machine.at
    file.execute(
        "INSERT INTO entries VALUES (1, ?, 2, ?, NULL), (2, ?, 0, ?, ?), (3, ?, 0, ?, ?)", (b"run", now - 10, b"ttl", now, now + 50, b"over", now, now - 1)
    )
    file.execute("INSERT INTO contents VALUES (1, ?), (2, ?), (3, ?)", (b"mark", b"t", b"o"))
    file.execute("INSERT INTO records VALUES (1, 1, ?), (1, 2, ?)", (b"r1", b"r2"))
    file.execute("INSERT INTO leases VALUES (?, ?, ?)", (b"lease:run", b"an old owner", now + 20))
    return file


def test_g13_a_file_of_the_version_before_is_read_and_its_leases_are_respected(run, on, path, machine):
    async def main():
        old = old_file(path, machine)
        store = on()
        assert (await store.get("run"), await store.read("run"), await store.keys()) == (b"mark", [b"r1", b"r2"], ["run", "ttl"])
        assert await store.orphans("run") == ["run"]
        await store.keep_alive("me", 600, first=True)
        assert await store.claim("run", "me", [Put("x", b"x")], former="lease:run") is None
        machine.at += 10**6  # which proves nothing
        assert await store.claim("run", "me", former="lease:run") is None
        for statement in (
            "UPDATE leases SET until = until + 30",
            "INSERT INTO entries (key, records, written) VALUES (x'00', 0, 0)",
            "UPDATE entries SET records = 3",
        ):
            with pytest.raises(sqlite3.OperationalError, match="no such table"):
                old.execute(statement)  # a process of that version does not go on beside this one
        old.close()
        machine.passes(21)
        claim = await store.claim("run", "me", [Append("run", (b"r3",), 2)], former="lease:run")
        assert (claim.epoch, claim.attempts, await store.get("x")) == (1, 1, None)
        machine.passes(30)
        assert await store.keys() == ["run"]
        assert await store.prune() == 2
        count = store._worker()._backend._opened.connection.execute("SELECT count(*) FROM former_leases").fetchone()
        assert count == (0,)

    run(main())


def test_a_file_that_cannot_be_brought_over_stays_as_it_was(run, on, path, machine):
    async def main():
        old_file(path, machine).close()
        blocker = sqlite3.connect(path, isolation_level=None)
        blocker.execute("CREATE TABLE claims (key)")
        store = on()
        with pytest.raises(StoreError):
            await store.get("run")
        assert blocker.execute("SELECT count(*) FROM entries").fetchone() == (3,)
        assert blocker.execute("PRAGMA user_version").fetchone() == (1,)
        blocker.execute("DROP TABLE claims")
        blocker.close()
        assert await store.get("run") == b"mark"

    run(main())
