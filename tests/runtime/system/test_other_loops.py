"""Under gevent and trio, what cannot work is refused with one sentence.

The programs are run where those packages are installed.
"""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


def said_by(name):
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    done = subprocess.run(
        [sys.executable, "-m", "tests.programs.other_loops", name],
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_gevent_is_named():
    said = said_by("gevent")
    assert len(said) == 4
    for line in said:
        assert line.startswith("UsageError: ")
        assert "gevent has replaced them by greenlets" in line


def test_trio_is_refused_and_a_worker_thread_of_it_is_not():
    said = said_by("trio")
    assert len(said) == 12
    assert [said[5], said[11]] == ["completed"] * 2
    for line in (*said[:5], *said[6:11]):
        assert line.startswith("UsageError: ")
        assert "needs asyncio, and trio runs in this thread" in line
