"""Peers: the table says what was measured and what could not be, a run goes on where it was, a
contender that fails or hangs is said to.
"""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.contenders.base import Load
from benchmarks.of_peers.book import Book, OtherRun
from benchmarks.of_peers.environments import PEERS, EnvironmentFailed, Peer, prepare
from benchmarks.of_peers.table import as_markdown, cells_of
from benchmarks.of_peers.workloads import WORKLOADS, named
from benchmarks.workers.worker import Worker, WorkerFailed

ROOT = Path(__file__).parents[2]


def figures(seconds, cpu=None, **more):
    return {
        "operations": 10,
        "seconds": seconds,
        "cpu_seconds": cpu or seconds,
        "p50": seconds,
        "p99": seconds * 2,
        **more,
    }


# --- the book ---


def test_a_run_that_was_stopped_goes_on_behind_its_last_round(tmp_path):
    path = tmp_path / "rounds.jsonl"
    book = Book(path, {"quick": True})
    book.add("turn", "agno", figures(1.0))
    book.add("turn", "agno", figures(2.0))
    again = Book(path, {"quick": True})
    assert again.done("turn", "agno") == 2
    assert again.done("turn", "swarm") == 0
    again.add("turn", "agno", figures(3.0))
    assert [one["seconds"] for one in Book(path, {"quick": True}).rounds["turn", "agno"]] == [
        1.0,
        2.0,
        3.0,
    ]


def test_a_line_that_was_torn_by_a_kill_is_dropped_and_its_round_made_again(tmp_path):
    path = tmp_path / "rounds.jsonl"
    Book(path, {"quick": True}).add("turn", "agno", figures(1.0))
    with path.open("a") as file:
        file.write('{"workload": "turn", "conten')
    book = Book(path, {"quick": True})
    assert book.done("turn", "agno") == 1
    book.add("turn", "agno", figures(2.0))
    assert Book(path, {"quick": True}).done("turn", "agno") == 2


def test_rounds_of_other_options_or_versions_are_not_mixed_with_these(tmp_path):
    path = tmp_path / "rounds.jsonl"
    Book(path, {"quick": True, "versions": {"agno": "3.1"}})
    with pytest.raises(OtherRun, match=r"versions differ.*--fresh"):
        Book(path, {"quick": True, "versions": {"agno": "3.2"}})


def test_a_round_that_failed_is_kept_for_its_reason_until_it_succeeds(tmp_path):
    path = tmp_path / "rounds.jsonl"
    Book(path, {}).fail("turn", "agno", "it hung")
    book = Book(path, {})
    assert book.failed == {("turn", "agno"): "it hung"}
    assert book.done("turn", "agno") == 0
    book.add("turn", "agno", figures(1.0))
    assert Book(path, {}).failed == {}


# --- the table ---


def table(rounds, *, missing=None, differs=None, only=("turn",)):
    titles = {"offbook": "offbook 1.0", "agno": "agno 3.1", "swarm": "Swarm 0.1"}
    workloads = [WORKLOADS[key] for key in only]
    return as_markdown(
        cells_of(rounds),
        workloads=workloads,
        titles=titles,
        missing=missing or {},
        differs=differs or {},
        heading="# Peers",
    )


def test_the_table_has_median_spread_cpu_and_the_ratio_to_each_peer():
    shown = table(
        {
            ("turn", "offbook"): [
                figures(1e-4, 0.8e-4),
                figures(1.2e-4, 0.8e-4),
                figures(0.9e-4, 0.8e-4),
            ],
            ("turn", "agno"): [figures(3e-4, 1.6e-4)] * 3,
        },
        missing={("turn", "swarm"): "it failed: no reason"},
        differs={("turn", "agno"): "with a cache"},
    )
    assert (
        "| offbook 1.0 | 10,000/s | 11,111/s to 8,333/s | 80.0 µs | 100 µs | 200 µs |  |  |"
        in shown
    )
    assert (
        "| agno 3.1 [2] | 3,333/s | 3,333/s to 3,333/s | 160 µs | 300 µs | 600 µs | 3.00x | 2.00x |"
        in shown
    )
    assert "| Swarm 0.1 | - [1] |" in shown
    assert "1. it failed: no reason" in shown
    assert "2. with a cache" in shown


def test_the_table_by_cpu_is_beside_that_of_the_clock():
    shown = table({("turn", "offbook"): [figures(1e-3, 1e-4)]})
    clock, cpu = shown.split("## The same by CPU time", maxsplit=1)
    assert "| offbook 1.0 | 1,000 |" in clock
    assert "| offbook 1.0 | 10,000 |" in cpu


def test_what_a_peer_cannot_do_is_said_with_its_reason_and_the_reason_once():
    missing = {
        ("in_sequence", "swarm"): "it is synchronous",
        ("in_parallel", "swarm"): "it is synchronous",
    }
    shown = table(
        {("in_sequence", "offbook"): [figures(0.01)]},
        missing=missing,
        only=("in_sequence", "in_parallel"),
    )
    assert "| Swarm 0.1 | - [1] |" in shown
    assert shown.count("it is synchronous") == 1


def test_where_a_peer_is_better_is_said_in_so_many_words():
    shown = table(
        {
            ("turn", "offbook"): [figures(2e-4)] * 2,
            ("turn", "agno"): [figures(4e-4)] * 2,
            ("turn", "swarm"): [figures(1e-4)] * 2,
        }
    )
    better = shown.split("## Where a peer is better than offbook", maxsplit=1)[1]
    assert "* W2 one turn: Swarm 0.1, 10,000/s to 5,000/s (in every round; by CPU 2.00x)" in better
    assert "agno" not in better
    assert "Nowhere in this run." in table(
        {("turn", "offbook"): [figures(1e-4)], ("turn", "agno"): [figures(2e-4)]}
    )


def test_a_workload_is_named_by_its_number_or_its_key():
    assert [one.key for one in named("W5")] == ["in_sequence", "in_parallel"]
    assert [one.key for one in named("W2")] == ["turn"]
    assert [one.key for one in named("http_whole")] == ["http_whole"]
    assert named("W10") == []


# --- environments ---


@pytest.fixture
def uv(tmp_path, monkeypatch):
    """A program of that name, which writes down how it was called and makes the interpreter that it
    was asked for.
    """
    folder, calls = tmp_path / "bin", tmp_path / "calls"
    folder.mkdir()
    program = folder / "uv"
    program.write_text(
        f'#!/bin/sh\necho "$@" >> {calls}\n'
        'case "$1" in venv) for place; do :; done; mkdir -p "$place/bin"; touch '
        '"$place/bin/python";;\n'
        '*) case "$*" in *broken*) echo "no such package" >&2; exit 3;; esac;; esac\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return lambda: calls.read_text().splitlines() if calls.exists() else []


def test_an_environment_is_made_once_from_names_of_packages_alone(tmp_path, uv):
    peer = Peer("toy", ("toy-agents[openai]",), "toy")
    interpreter = prepare(peer, tmp_path / "environments")
    assert interpreter == prepare(peer, tmp_path / "environments")
    made, installed = uv()
    assert made.startswith("venv --quiet --python ")
    assert installed.endswith("toy-agents[openai] psutil")
    assert "://" not in made + installed


def test_an_environment_that_was_not_finished_is_made_again(tmp_path, uv):
    broken = Peer("toy", ("broken",), "toy")
    for _ in range(2):
        with pytest.raises(
            EnvironmentFailed,
            match=r"(?s)The environment of toy could not be made.*no such package",
        ):
            prepare(broken, tmp_path / "environments")
    assert len(uv()) == 4


def test_offbook_is_measured_in_the_interpreter_that_runs_the_benchmark(tmp_path):
    assert prepare(PEERS["offbook"], tmp_path) == Path(sys.executable)
    assert list(tmp_path.iterdir()) == []


# --- workers ---


def test_a_contender_that_cannot_be_imported_is_said_to_be_with_its_reason():
    # Which is no part of the tests' environment.
    worker = Worker("swarm", Path(sys.executable), timeout=60)
    with pytest.raises(WorkerFailed, match=r"(?s)its process ended with 1: .*ModuleNotFoundError"):
        worker.round("turn", Load(1))
    assert worker.process is None


def test_a_contender_that_hangs_is_ended_and_said_to_be_too_slow(tmp_path):
    hangs = tmp_path / "python"
    hangs.write_text("#!/bin/sh\nexec sleep 600\n")
    hangs.chmod(0o755)
    with pytest.raises(WorkerFailed, match="it was not done after"):
        Worker("bare", hangs, timeout=0.2).round("turn", Load(1))


def test_a_contender_is_warmed_up_once_and_its_rounds_fit_into_the_time():
    worker = Worker("bare", Path(sys.executable), timeout=60)
    try:
        first = worker.round("turn", Load(100_000), seconds=0.005)
        assert 5 <= first["operations"] < 100_000
        assert (
            worker.round("turn", Load(100_000), seconds=0.005)["operations"] == first["operations"]
        )
        assert worker.round("tool", Load(100_000, 300), seconds=0.0001)["operations"] == 600, (
            "all lanes are used"
        )
        with pytest.raises(WorkerFailed, match="NotImplementedError"):
            worker.round("resumes_memory", Load(1))
        assert worker.round("turn", Load(100_000))["seconds"] > 0, "it goes on after a failure"
    finally:
        worker.close()


# --- the whole ---


def peers(output, *options):
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "peers",
        "--quick",
        "--peer",
        "bare",
        "--output",
        str(output),
        *options,
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(output.read_text())


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_tiny_run_is_measured_shown_drawn_and_resumed(tmp_path):
    output = tmp_path / "peers.json"
    document = peers(output, "--only", "W2", "HTTP", "W7", "--rounds", "1")
    measured = {(one["workload"], one["contender"]) for one in document["series"]}
    assert {
        (workload, contender)
        for workload in ("turn", "http_whole", "http_stream")
        for contender in ("offbook", "bare")
    } <= measured
    assert {(one["workload"], one["why"]) for one in document["missing"]} == {
        ("resumes_memory", "it cannot wait"),
        ("resumes_sqlite", "it cannot wait"),
    }
    text = output.with_suffix(".md").read_text()
    assert "it cannot wait" in text
    for page in ("peers-clock.png", "peers-cpu.png"):
        assert 5_000 < (tmp_path / page).stat().st_size < 200_000

    before = {(one["workload"], one["contender"]): one["rounds"] for one in document["series"]}
    again = peers(output, "--only", "W2", "HTTP", "W7", "--rounds", "2", "--no-plot")
    for one in again["series"]:
        assert len(one["rounds"]) == 2
        assert one["rounds"][:1] == before[one["workload"], one["contender"]], (
            "a round that was made is not made again"
        )


def test_a_workload_that_there_is_not_is_refused(tmp_path):
    command = [
        sys.executable,
        "-m",
        "benchmarks",
        "peers",
        "--only",
        "W99",
        "--output",
        str(tmp_path / "none.json"),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert "--only W99: there is no such workload" in done.stderr
