"""One turn over HTTP: a small run of it over real HTTP and TLS, and its tables, on figures that are
known.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.of_http.contenders import CONTENDERS
from benchmarks.of_http.table import as_markdown, median_of
from benchmarks.of_http.workloads import WORKLOADS

ROOT = Path(__file__).parents[2]


def test_the_table_has_figures_ratios_and_reasons():
    figures = {"cpu": 1e-4, "wall": 2e-4, "p50": 1e-3, "p99": 2e-3}
    rounds = {
        ("whole_50", "offbook"): [figures, {**figures, "cpu": 3e-4}, {**figures, "cpu": 2e-4}],
        ("whole_50", "other"): [{**figures, "cpu": 1e-3}],
    }
    text = as_markdown(
        rounds,
        {"offbook": "offbook", "other": "other", "third": "third"},
        {("whole_50", "third"): "it failed"},
        "# Heading",
    )
    assert median_of(rounds, "whole_50", "offbook", "cpu") == 2e-4
    assert "| other | 1,000 (5.0) |" in text
    assert "| third | failed |" in text
    assert "it failed" in text


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_small_run_measures_each_contender_over_http_and_tls(tmp_path):
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "http",
        "--quick",
        "--no-peers",
        "--output",
        str(tmp_path / "http.json"),
    ]
    only = ["whole_50", "stream_50", "tool_50", "history_50", "tls_stream_50", "paced_50"]
    done = subprocess.run(
        [*command, "--only", *only],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = json.loads((tmp_path / "http.json").read_text())
    measured = {(one["workload"], one["contender"]) for one in made["series"]}
    assert {
        (workload, contender)
        for workload in ("whole_50", "stream_50", "tls_stream_50", "history_50")
        for contender in CONTENDERS
    } <= measured
    assert {("tool_50", "offbook"), ("paced_50", "offbook")} <= measured
    assert {one["why"] for one in made["missing"]} == {"it is not asked that"}
    assert all(one["cpu"] > 0 for series in made["series"] for one in series["rounds"])
    assert (tmp_path / "http.md").read_text().startswith("# One turn over HTTP")
    assert (tmp_path / "http.png").stat().st_size > 0


def test_each_workload_has_a_small_form():
    assert all(
        one.shrunk().turns <= one.turns and one.shrunk().width <= one.width
        for one in WORKLOADS.values()
    )
