"""Planned changes on a real Ray, while messages and answers are on their way: nothing lost, nothing
out of order, nobody told to send again.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="Ray is not installed")
pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[3]
PROGRAM = ROOT / "tests/programs/cluster_changes.py"


def told(folder, names, seconds, **numbers):
    """What came of each repetition of these stories."""
    env = {**os.environ, "STORE": str(folder / "runs.db"), "LEDGER": str(folder / "ledger")}
    env |= {"STEP_SECONDS": "0.02", "PYTHONPATH": str(ROOT)}
    env.pop("RAY_ADDRESS", None)
    env.update({name: str(number) for name, number in numbers.items()})
    done = subprocess.run(
        [sys.executable, PROGRAM, *names],
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found = {name: [one for one in lines if one["story"] == name] for name in (*names, "left")}
    assert done.returncode == 0, f"after {[one['story'] for one in lines]}: {done.stderr[-4000:]}"
    assert [one["hosts"] for one in found["left"]] == [[]]
    return found


def check_order(repetitions, sessions, messages, runs):
    """Every message once in the history, in order; each caller has an answer; no run begins
    twice.
    """
    assert repetitions
    for one in repetitions:
        completed = sessions * messages + 2 * runs  # each run is awaited, and followed
        assert one["told"] == {"completed": completed}, "nobody is told to send again"
        assert (one["swapped"], one["missing"], one["repeated"]) == (0, 0, 0)
        assert one["begun_twice"] == 0


def check_answers(repetitions, answers):
    for one in repetitions:
        assert one["told"] == {"completed": answers}, "an answer that is sent again is taken once"


@pytest.mark.slow
def test_g14_g17_two_hosts_are_drained_under_load_and_answers_survive_a_kill(tmp_path):
    numbers = {"SESSIONS": 4, "MESSAGES": 15, "RUNS": 6, "ANSWERS": 15}
    found = told(tmp_path, ["drain", "answers_kill"], 120, **numbers)
    check_order(found["drain"], 4, 15, 6)
    check_answers(found["answers_kill"], 15)


@pytest.mark.slow
def test_g14_g17_every_planned_change_a_kill_and_a_stop_under_more_load(tmp_path):
    changes = ["drain", "scale", "roll", "kill", "stop"]
    numbers = {"SESSIONS": 12, "MESSAGES": 60, "RUNS": 20, "STEPS": 60, "ANSWERS": 60}
    names = [*changes, "answers_drain", "answers_kill"]
    found = told(tmp_path, names, 580, REPEAT=2, **numbers)
    for name in changes:
        assert len(found[name]) == 2
        check_order(found[name], 12, 60, 20)
    for name in ("answers_drain", "answers_kill"):
        check_answers(found[name], 60)


@pytest.mark.slow
def test_g18_calls_are_bounded_and_runs_go_on_while_the_head_of_ray_is_away(tmp_path):
    (found,) = told(tmp_path, ["headless"], 120)["headless"]
    assert found["run"] == found["after"] == "completed"
    assert found["up"] == ["up", "up"]
    assert "Its head node is probably down" in found["scale"]
    assert found["resolved_within"] < 2
    assert found["stats_within"] < 15
