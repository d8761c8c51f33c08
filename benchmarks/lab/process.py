"""One figure in a process of its own: a module of the benchmarks is run by an interpreter, and the
last line that it prints is a JSON object.

Memory that was used before hides what is used now, and a library that was imported before makes
another one's import cheap: hence the processes.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.lab.catalogue import ROOT

__all__ = ["ProcessFailed", "as_users_have_it", "in_process"]

_TAIL = 2000  # characters of what it wrote to standard error


class ProcessFailed(RuntimeError):
    """The process ended with an error, or took too long. Its text ends with what it said last."""


def as_users_have_it(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a process that is measured: bytecode is written.

    Without it, what imports while it runs compiles what it imports each time.
    """
    found = {**os.environ, **(environment or {})}
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found


def in_process(
    module: str,
    *arguments: str,
    interpreter: str | Path = sys.executable,
    environment: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> dict[str, Any]:
    """Run `interpreter -m module arguments`, and return the object that it prints last.

    After `timeout` seconds, it and its own children are ended.
    """
    command = [str(interpreter), "-m", module, *arguments]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=as_users_have_it(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            _end(process)
            msg = f"{module} {' '.join(arguments)} was not done after {timeout:,.0f} s"
            raise ProcessFailed(msg) from None
        except BaseException:
            _end(process)  # it has a session of its own, so that Ctrl-C does not reach it
            raise
    if process.returncode:
        msg = f"{module} {' '.join(arguments)} ended with {process.returncode}:\n{errors[-_TAIL:]}"
        raise ProcessFailed(msg)
    figures: dict[str, Any] = json.loads(output.splitlines()[-1])
    return figures


def _end(process: subprocess.Popen[str]) -> None:
    """End the process and those that it started."""
    with suppress(ProcessLookupError):  # it has ended by itself meanwhile
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.communicate()
