"""Ray's head is killed with its node, and replaced, while clients ask all the time."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "tests/programs/cluster_heads.py"
ROUNDS = 2
BOUNDS = {"runs": 30, "sessions": 30, "stats": 30, "connect": 60, "names": 3}


def test_g18_each_call_is_bounded_and_clients_find_the_cluster_on_the_new_head(tmp_path):
    env = {**os.environ, "STORE": str(tmp_path / "runs.db"), "LEDGER": str(tmp_path / "ledger")}
    env |= {"STEP_SECONDS": "0.01", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, PROGRAM, str(ROUNDS)],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=390,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    rounds = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert done.returncode == 0, f"after {len(rounds)} rounds: {done.stderr[-4000:]}"
    assert rounds.pop() == {"round": "end"}, "no process has ended"
    assert len(rounds) == ROUNDS
    for one in rounds:
        for name, bound in BOUNDS.items():
            for found in (one["away"][name], one["back"][name]):
                assert found["longest"] < bound, f"{name}: {found}"
                assert found["ended"].keys() <= {"done", "ClusterError"}, f"{name}: {found}"
            assert one["back"][name]["ended"]["done"], f"{name} works on the new head"
