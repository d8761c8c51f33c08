"""A cluster on a real Ray of two nodes: hosts that are killed and stopped, a node that is lost,
scaling under load. One program, told once, for all of them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "tests/programs/cluster_on_ray.py"


def mine(marker):
    """The processes that have this in their environment: those that the program has started,
    however deep.
    """
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (
                marker.encode() in (folder / "environ").read_bytes()
                and int(folder.name) != os.getpid()
            ):
                found.append(int(folder.name))
        except (OSError, ValueError):
            continue
    return found


@pytest.fixture(scope="module")
def told(postgres_server, tmp_path_factory):
    """What came of each story."""
    folder = tmp_path_factory.mktemp("cluster")
    marker = f"CLUSTER_TEST={folder}"
    env = {
        **os.environ,
        "STORE": postgres_server.dsn,
        "LEDGER": str(folder / "ledger"),
        "STEP_SECONDS": "0.1",
        "PYTHONPATH": str(ROOT),
    }
    env.pop("RAY_ADDRESS", None)
    name, _, value = marker.partition("=")
    try:
        done = subprocess.run(
            [sys.executable, PROGRAM],
            env={**env, name: value},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=270,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        left = mine(marker)
    finally:
        for pid in mine(marker):
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                continue
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == 0, f"after {[one['story'] for one in lines]}: {done.stderr[-4000:]}"
    for one in lines:
        print(one["at"], one["story"])  # how long each took, in seconds since the program began
    return {
        one.pop("story"): {name: value for name, value in one.items() if name != "at"}
        for one in lines
    } | {"processes": left}


def whole(count):
    return [*(f"{number}: {count} hi" for number in range(count)), f"done: {count} hi"]


def test_a_session_is_one_from_two_clients_on_hosts_of_two_nodes(told):
    assert told["started"]["nodes"] == 2
    assert told["straight"] == {
        "texts": ["done: 2 hello", "done: 2 again"],
        "said": ["2 hello", "2 again"],
    }


@pytest.mark.parametrize(("story", "count"), [("killed", 20), ("stopped", 20), ("node_lost", 40)])
def test_g16_a_run_goes_on_when_its_host_is_killed_or_stopped_or_its_node_is_lost(
    told, story, count
):
    found = told[story]
    assert found["texts"] == whole(count)
    assert found["in_order"]
    assert found.get("done", count) == count
    assert found.get("twice", 0) <= 1, "only the step under way is made again"


def test_g15_fifty_runs_half_of_them_in_sessions_end_once_when_a_host_is_killed(told):
    found = told["many"]
    assert found["texts"] == ["done: 10 hi"]
    assert found["done"] == 500
    assert found["twice"] <= 50, "of each run only the step under way is made again"


def test_g14_an_actor_hears_in_the_order_told_and_is_gone_with_its_host(told):
    assert told["actors"] == {"reply": 5, "in_order": True, "lost": "HostLost"}


def test_g17_scaling_under_load_loses_no_turn(told):
    assert told["scaled"] == {"whole": True, "hosts": ["shop/0", "shop/1"]}


def test_g17_the_hosts_of_a_node_that_goes_away_are_drained_and_replaced_on_another(told):
    assert told["leaving"] == {"whole": True, "drained": True, "hosts": 2, "there": 0}


def test_nothing_is_left_of_it(told):
    assert told["left"] == {"hosts": []}
    assert told["processes"] == []
