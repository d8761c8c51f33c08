"""Time in a file: what has one to live, across steps of the clock and starts of the machine."""

import subprocess
import sys

import pytest

from offbook.runtime.stores.sqlite.state import MachineTime


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
    program = (
        "from offbook.runtime.stores.sqlite.state import "
        "MachineTime\nprint(MachineTime().boottime())"
    )
    said = subprocess.run(
        [*command, sys.executable, "-c", program],
        check=True,
        capture_output=True,
        text=True,
        timeout=20,
    ).stdout
    assert abs(float(said) - MachineTime().boottime()) < 20
