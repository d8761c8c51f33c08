"""G5 at the end of the process: a call that hangs in a worker thread does not keep it from ending.

Each program is a real one, in `tests/programs/hung_tool.py`.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "programs" / "hung_tool.py"
SECONDS = 50  # a program that takes longer hangs
NAMED = "tool charge of agent 'Cashier' in run "


def check(code, err):
    assert code == 0, err
    lines = [line for line in err.splitlines() if "blocked the event loop" not in line]
    assert [line[: len(NAMED)] for line in lines] == [NAMED], err
    assert "has not returned from its thread within 0.3 s. It is abandoned" in lines[0]


@pytest.mark.parametrize("name", ["on_the_loop", "in_thread", "default", "own_loop"])
def test_g05_a_program_ends_after_a_call_that_timed_out_and_hangs(name):
    done = subprocess.run(
        [sys.executable, PROGRAM, name],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    check(done.returncode, done.stderr)
    assert done.stdout == "ready\nThe card may have been charged.\n"


@pytest.mark.parametrize("name", ["left_on_the_loop", "default_left"])
def test_g05_a_program_ends_while_a_call_is_under_way(name):
    done = subprocess.run(
        [sys.executable, PROGRAM, name],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    check(done.returncode, done.stderr)


@pytest.mark.parametrize("name", ["interrupted", "interrupted_on_the_loop"])
def test_g05_ctrl_c_ends_a_program_whose_call_hangs(name):
    process = subprocess.Popen(
        [sys.executable, PROGRAM, name], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode in (-signal.SIGINT, 128 + signal.SIGINT), err
    assert err.count(NAMED) == 1, err
    assert "Exception ignored" not in err


def test_g05_a_call_that_ends_soon_after_its_program_is_waited_for():
    done = subprocess.run(
        [sys.executable, PROGRAM, "slow_at_the_end"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "not waited for\ncharged\n"


def test_g05_a_program_that_wants_a_thread_at_its_very_end_says_nothing_of_it():
    """From Python 3.12 on, none can be started any more."""
    done = subprocess.run(
        [sys.executable, PROGRAM, "last_moment"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "thread at interpreter shutdown" not in done.stderr
