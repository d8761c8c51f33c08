"""The process of one contender, seen from the benchmark: it is told to make a round, and says what
it took; it is ended when it is too slow.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.contenders.base import Load
from benchmarks.lab.catalogue import ROOT
from benchmarks.lab.process import as_users_have_it

__all__ = ["Worker", "WorkerFailed"]

_WARM_UP = 10  # the round that does not count is smaller by this
_FEWEST = 5  # operations of a round
_TAIL = 1500  # characters of what it said last


class WorkerFailed(RuntimeError):
    """A contender could not make its round, and why."""


class Worker:
    """The process of one contender.

    It is started when it is needed, and again after it has failed.
    """

    def __init__(self, contender: str, interpreter: Path, *, timeout: float) -> None:
        self.contender = contender
        self.interpreter = interpreter
        self.timeout = timeout
        self.process: subprocess.Popen[str] | None = None
        self.loads: dict[str, Load] = {}  # of the workloads for which it is warm
        self.cannot: dict[str, str] = {}
        self.differs: dict[str, str] = {}

    def start(self) -> None:
        if self.process is not None:
            return
        self.errors = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 -- as long as the process
        command = [str(self.interpreter), "-m", "benchmarks.workers.process", self.contender]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=as_users_have_it(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
            start_new_session=True,
        )
        hello = self._read()
        self.cannot, self.differs = hello["cannot"], hello["differs"]

    def round(
        self, measure: str, load: Load, *, provider: str = "", seconds: float = 1.0
    ) -> dict[str, Any]:
        """One round that counts, of some `seconds`.

        Its first one in this process has a smaller one before it, which does not.
        """
        self.start()
        if measure not in self.loads:
            self.loads[measure] = self._warmed_up(measure, load, provider, seconds)
        return self._ask(measure, self.loads[measure], provider)

    def _warmed_up(self, measure: str, load: Load, provider: str, seconds: float) -> Load:
        took = self._ask(measure, Load(max(1, load.times // _WARM_UP), load.width), provider)
        if load.times <= _FEWEST:
            return load
        fewest = max(_FEWEST, 2 * load.width)  # so that all that are to be under way at once are
        return Load(
            min(load.times, max(fewest, int(seconds / max(took["seconds"], 1e-9)))), load.width
        )

    def _ask(self, measure: str, load: Load, provider: str) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(
                json.dumps(
                    {
                        "measure": measure,
                        "times": load.times,
                        "width": load.width,
                        "provider": provider,
                    }
                )
                + "\n"
            )
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # the answer that does not come says more
        answer = self._read()
        if "failed" in answer:
            raise WorkerFailed(answer["failed"])
        return answer

    def _read(self) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdout is not None
        late = threading.Event()

        def give_up() -> None:
            late.set()
            self._kill()

        timer = threading.Timer(self.timeout, give_up)
        timer.start()
        try:
            line = self.process.stdout.readline()
        finally:
            timer.cancel()
        if not line:
            code = self.process.wait()
            self.errors.seek(0)
            said = self.errors.read()[-_TAIL:].strip()
            self.close()
            raise WorkerFailed(
                f"it was not done after {self.timeout:,.0f} s"
                if late.is_set()
                else f"its process ended with {code}: {said}"
            )
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            with suppress(ProcessLookupError):  # it has ended by itself meanwhile
                if hasattr(os, "killpg"):
                    os.killpg(self.process.pid, signal.SIGKILL)
                else:
                    self.process.kill()

    def close(self) -> None:
        if self.process is not None:
            self._kill()
            self.process.communicate()
            self.errors.close()
            self.process = None
            self.loads.clear()
