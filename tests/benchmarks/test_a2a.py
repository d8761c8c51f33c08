"""The benchmark of a served agent: that it measures both servers, and writes every round down."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_both_servers_are_measured_in_turns(tmp_path):
    output = tmp_path / "a2a.json"
    command = [sys.executable, "-m", "benchmarks", "a2a", "--quick", "--output", str(output)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=100
    )
    assert done.returncode == 0, done.stderr
    rounds = json.loads(output.read_text())["rounds"]
    assert {what.split(",")[0] for what in rounds} == {"unary", "streams"}
    for by in rounds.values():
        assert {name: len(figures) for name, figures in by.items()} == {"ours": 1, "sdk": 1}
        assert all(figures[0]["rate"] > 0 and figures[0]["cpu_us"] > 0 for figures in by.values())
    assert "unary, 16 clients" in done.stdout
