"""Owners, names, versions, clients and nodes on a real Ray: one program, told once, for all."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(460)]

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "tests/programs/cluster_owners.py"


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What came of each story."""
    folder = tmp_path_factory.mktemp("owners")
    env = {**os.environ, "STORE": str(folder / "runs.db"), "LEDGER": str(folder / "ledger")}
    env |= {"STEP_SECONDS": "0.01", "PYTHONPATH": str(ROOT)}
    env.pop("RAY_ADDRESS", None)
    done = subprocess.run(
        [sys.executable, PROGRAM],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=450,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == 0, f"after {[one['story'] for one in lines]}: {done.stderr[-4000:]}"
    return {one.pop("story"): one for one in lines}


def test_a_pinned_run_waits_for_its_version_and_a_runner_has_its_clusters(told):
    found = told["pinned"]
    assert found["unfinished"] == 20, "the roll has left no host of their version"
    assert found["told"] == {"completed": 20}
    assert found["by_new"] == 0
    assert "version must be that of its Runner, got '1' and '7'" in found["refused"]


def test_g13_a_second_ray_cluster_of_that_name_is_refused_while_the_first_lives(told):
    found = told["claimed"]
    assert "another Ray cluster runs the cluster 'claimed' in this store" in found["refused"]
    assert found["first"] == found["second"] == "done: 1 hi"
    assert found["same"], "the first was not revoked"


def test_of_two_programs_one_owns_the_cluster_and_a_detached_one_stays(told):
    found = told["owned"]
    assert found["owns"] == [False, True]
    assert found["after"] == found["stays"] == "done: 1 hi"
    assert "cluster 'owned' not found" in found["gone"]


def test_two_hundred_clients_are_served_and_one_over_the_limit_is_told(told):
    found = told["clients"]
    assert found["texts"] == {"done: 1 hi": 200}
    assert found["again"] == {"done: 1 hi": 201}
    assert "has 202 clients, which is its limit" in found["refused"]
    assert found["seconds"] < 15


def test_the_command_says_what_to_do_without_ray_and_does_what_errors_advise(told):
    found = told["commands"]
    assert (found["nowhere"], found["advice"]) == (2, True)
    assert found["up"]
    assert found["report"] == [True]
    statuses = [found[name] for name in ("started", "status", "drained", "stopped", "gone")]
    assert statuses == [0, 0, 0, 0, 2]
    assert found["said"]


def test_an_sqlite_file_is_refused_by_a_host_on_a_node_that_joins_later(told):
    found = told["second_node"]
    assert "is on another node than the starter" in found["refused"]
    assert found["hosts"] == ["one-node/0"], "the host that is refused is not left"
    assert found["before"] == found["after"] == "done: 1 hi"


def test_nothing_is_left_of_it(told):
    assert told["left"]["hosts"] == []
