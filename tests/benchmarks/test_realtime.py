"""The benchmark of spoken sessions: a small run against the real server in a process of its own,
and its tables, on figures that are known.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.of_realtime.contenders import CONTENDERS
from benchmarks.of_realtime.measures import COMMON, MINE
from benchmarks.of_realtime.page import as_markdown, as_rows, median_of

ROOT = Path(__file__).parents[2]

BARE = {
    "idle": {"bytes": 10_000, "tasks": 1, "threads": 0, "close": 0.1, "count": 1_000},
    "output": {"cpu": 1e-5, "wall": 2e-5},
    "input": {"cpu": 1e-5, "wall": 2e-5},
    "latency": {"p50": 1e-4, "p99": 1e-3},
}
OWN = {
    **BARE,
    "output": {"cpu": 1.5e-5, "wall": 3e-5},
    "input": {"cpu": 2e-5, "wall": 3e-5},
    "crowd": {"p50": 1e-3, "p99": 1e-2, "core": 0.5, "count": 200},
    "barge_in": {"shown": 1e-3, "cut": 4e-3},
    "tools": {"call": 1e-4, "hand": 1e-4},
    "history": {"short": 1e-5, "long": 1e-5},
    "reconnect": {"took": 0.1, "handshake": 0.01},
    "store": {"with": 1e-4, "without": 1e-4},
    "import": {"took": 0.02},
}


def test_a_budget_is_kept_or_missed_by_the_median_of_the_rounds():
    slow = {**OWN, "output": {"cpu": 1.0, "wall": 1.0}}
    rounds = {"bare": [BARE] * 3, "offbook": [OWN, slow, OWN]}
    assert median_of(rounds, "offbook", "output", "cpu") == 1.5e-5
    kept = {one["what"]: one["kept"] for one in as_rows(rounds)}
    assert {what for what, is_kept in kept.items() if not is_kept} == {
        "CPU for an input chunk, beside bare",
        "speech started to the truncation at the server, p99",
    }


def test_the_table_says_which_contender_is_missing():
    text = as_markdown(
        {"bare": [BARE], "offbook": [OWN]},
        {"openai-agents": "`agents` is not installed"},
        ["# Heading"],
    )
    assert "| offbook | 15.0 µs |" in text
    assert "openai-agents is not measured: `agents` is not installed." in text
    assert "beside the SDK" not in text
    assert "| CPU for an output chunk, beside bare | at most 1.60 x | 1.50 x | kept |" in text


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_small_run_measures_each_contender_that_is_installed(tmp_path):
    output = tmp_path / "realtime.json"
    command = [sys.executable, "-m", "benchmarks", "realtime", "--quick", "--output", str(output)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode == 0, done.stderr
    made = json.loads(output.read_text())
    assert {*made["rounds"], *made["missing"]} == set(CONTENDERS)
    assert {"bare", "offbook", "openai"} <= set(made["rounds"])
    for name, rounds in made["rounds"].items():
        assert set(rounds[0]) == {*COMMON, *(MINE if name == "offbook" else ())}
        assert rounds[0]["output"]["cpu"] > 0
    assert output.with_suffix(".md").read_text().startswith("# Spoken sessions")
