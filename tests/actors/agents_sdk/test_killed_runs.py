"""A program of the Agents SDK whose process is killed in a tool: another process goes on with its run."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "agents_sdk_durable.py"


@pytest.mark.slow
def test_a_killed_run_asks_no_model_twice_and_makes_no_call_twice():
    """After a handoff, in the second tool: by a real SIGKILL."""
    said = subprocess.run([sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=120, check=True).stdout.splitlines()
    assert said == [
        "the first process has ended with -9 (SIGKILL is -9)",
        "run trip-1 has ended: Your trip to Oslo is booked.",
        "the model was asked, knowing of 0 results",
        "the model was asked, knowing of 1 results",
        "flight to Oslo booked",
        "the model was asked, knowing of 2 results",
        "hotel in Oslo booked",
        "the model was asked, knowing of 3 results",
    ]
