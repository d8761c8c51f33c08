"""The benchmark of agents works; what its figures are is no test's business."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

AGENTS = Path(__file__).parents[2] / "benchmarks" / "agents.py"


def run_quickly(output, *options):
    # Without the peers, which are not the project's, and which take long to import.
    command = [
        sys.executable,
        str(AGENTS),
        "--quick",
        "--no-plot",
        "--output",
        str(output),
        *options,
        "--against",
        "offbook",
        "bare",
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(output.read_text()), done.stdout


def test_one_workload_is_measured_alone(tmp_path):
    document, shown = run_quickly(tmp_path / "turns.json", "--only", "W2")
    assert {(one["measure"], one["contender"]) for one in document["series"]} == {
        (measure, contender)
        for measure in ("turn", "turns_at_once", "turns_alive")
        for contender in ("offbook", "bare")
    }
    assert all(
        one["per_second"]["median"] > 0 and one["cpu_seconds_per_operation"] > 0
        for one in document["series"]
    )
    assert not document["sessions"]
    assert "W2 one turn" in shown


def test_a_workload_that_there_is_not_is_refused_by_name(tmp_path):
    command = [
        sys.executable,
        str(AGENTS),
        "--only",
        "W99",
        "--output",
        str(tmp_path / "none.json"),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "--only W99" in done.stderr


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_quick_run_measures_everything_and_judges_it_by_the_budgets(tmp_path):
    document, shown = run_quickly(tmp_path / "agents.json")
    assert {one["measure"] for one in document["series"]} == set(document["loads"])
    assert {(one["contender"], one["own_tool"]) for one in document["definitions"]} == {
        ("offbook", False),
        ("offbook", True),
    }
    assert {one["contender"] for one in document["sessions"]} == {"offbook", "bare"}
    assert [one["what"] for one in document["objects"]] == ["idle session", "run waiting over HTTP"]
    for one in document["objects"]:
        assert 0 < sum(one["by_type"].values()) <= one["tracked"] * 1.2
    assert {one["module"] for one in document["imports"]} == {
        "offbook.actors",
        "openai",
        "pydantic",
    }
    judged = {budget["what"].partition(" ")[0] for budget in document["budgets"]}
    assert {"W1", "W2", "W2c", "W3", "W4", "W7", "W8"} <= judged
    assert "Budgets" in shown


@pytest.mark.slow
def test_what_it_costs_to_keep_runs_is_measured(tmp_path):
    output = tmp_path / "durable.json"
    command = [
        sys.executable,
        str(AGENTS.with_name("durable.py")),
        "--quick",
        "--output",
        str(output),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    figures = json.loads(output.read_text())["figures"]
    durabilities = [f"runs, durability={name!r}" for name in ("none", "interrupt", "step")]
    assert {one["what"] for one in figures} == {
        *durabilities,
        "sessions woken",
        "unfinished runs recovered",
    }
    assert {one["store"] for one in figures} == {"memory", "sqlite"}
    assert all(rate > 0 for one in figures for rate in one["rounds"])
