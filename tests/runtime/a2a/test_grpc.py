"""An agent of others over gRPC: `A2AClient` and `RemoteAgent`.

In a process of its own, because grpcio keeps threads.
"""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grpc")

PROGRAM = Path(__file__).parents[2] / "programs" / "a2a_grpc.py"


def test_an_agent_of_others_is_asked_over_grpc():
    done = subprocess.run(
        [sys.executable, str(PROGRAM)], capture_output=True, text=True, timeout=50, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "send done: go",
        "plain no task ['no task']",
        "stream ['Task', 'TaskArtifactUpdateEvent', 'TaskStatusUpdateEvent']",
        "cancel canceled",
        "refused A2ARequestError TASK_NOT_FOUND",
        "refused A2AProtocolError ",
        "waits which?",
        "resumed done: this one",
        "gone True",
    ]
