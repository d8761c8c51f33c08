"""Which contender is next: of each workload, every one has its first round before any has its second, and each time another one begins.

Each contender has a process, which stays for all of its rounds: a service imports its library once. Definitions, sessions and imports have a fresh process for
each round, because memory that was used before hides what is used now.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.contenders.base import Load
from benchmarks.lab.catalogue import ROOT
from benchmarks.lab.process import ProcessFailed, in_process
from benchmarks.of_agents.footprint import import_once
from benchmarks.of_peers.book import Book
from benchmarks.of_peers.environments import PEERS
from benchmarks.of_peers.workloads import Workload

__all__ = ["Plan", "Worker", "WorkerFailed", "measure"]

_WARM_UP = 10  # the round that does not count is smaller by this
_FEWEST = 5  # operations of a round
_TAIL = 1500


class WorkerFailed(RuntimeError):
    """A contender could not make its round, and why."""


class Worker:
    """The process of one contender. It is started when it is needed, and again after it has failed."""

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
        command = [str(self.interpreter), "-m", "benchmarks.of_peers.worker", self.contender]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, start_new_session=True)
        hello = self._read()
        self.cannot, self.differs = hello["cannot"], hello["differs"]

    def round(self, workload: Workload, load: Load, provider: str, seconds: float) -> dict[str, Any]:
        """One round that counts, of some `seconds`. Its first one in this process has a smaller one before it, which does not."""
        self.start()
        if workload.key not in self.loads:
            self.loads[workload.key] = self._warmed_up(workload, load, provider, seconds)
        return self._ask(workload, self.loads[workload.key], provider)

    def _warmed_up(self, workload: Workload, load: Load, provider: str, seconds: float) -> Load:
        little = Load(max(1, load.times // _WARM_UP), load.width)
        took = self._ask(workload, little, provider)
        if load.times <= _FEWEST:
            return load
        return Load(min(load.times, max(_FEWEST, int(seconds / max(took["seconds"], 1e-9)))), load.width)

    def _ask(self, workload: Workload, load: Load, provider: str) -> dict[str, Any]:
        assert self.process is not None
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"measure": workload.key, "times": load.times, "width": load.width, "provider": provider}) + "\n")
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
            raise WorkerFailed(f"it was not done after {self.timeout:,.0f} s" if late.is_set() else f"its process ended with {code}: {said}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
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


@dataclass(slots=True)
class Plan:
    """What is measured, and how."""

    workloads: Sequence[Workload]
    interpreters: Mapping[str, Path]  # of the contenders
    rounds: int
    provider: str  # the base URL
    quick: bool = False
    seconds: float = 1.0  # a round takes about so long, unless it is small
    timeout: float = 300.0
    cannot: dict[str, dict[str, str]] = field(default_factory=dict)  # by contender and workload, why not
    differs: dict[str, dict[str, str]] = field(default_factory=dict)


def measure(plan: Plan, book: Book, on_round: Callable[[str, str], object] = lambda *_: None) -> None:
    """Make all rounds that the book has not. `on_round` hears of each, those that cannot be made included."""
    workers = {key: Worker(key, interpreter, timeout=plan.timeout) for key, interpreter in plan.interpreters.items()}
    try:
        _learn(plan, book, workers)
        for workload in plan.workloads:
            for number in range(plan.rounds):
                first = number % len(workers)
                order = [*workers.values()]
                for worker in (*order[first:], *order[:first]):
                    on_round(workload.title, worker.contender)
                    _one(plan, book, workload, worker, number)
    finally:
        for worker in workers.values():
            worker.close()


def _learn(plan: Plan, book: Book, workers: Mapping[str, Worker]) -> None:
    """Ask each contender what it cannot do. One that cannot be started can do nothing."""
    for key, worker in workers.items():
        try:
            worker.start()
        except WorkerFailed as error:
            plan.cannot[key] = {workload.key: f"it could not be started: {error}" for workload in plan.workloads}
        else:
            plan.cannot[key] = {measure: why for measure, why in worker.cannot.items() if measure in {one.key for one in plan.workloads}}
            plan.differs[key] = worker.differs
            if "define_own" in worker.cannot:
                plan.cannot[key]["definitions"] = worker.cannot["define_own"]
        for workload in plan.workloads:
            book.failed.pop((workload.key, key), None)  # it is tried again


def _one(plan: Plan, book: Book, workload: Workload, worker: Worker, number: int) -> None:
    """One round of one contender, unless it has been made, cannot be made or has failed."""
    key = worker.contender
    if workload.key in plan.cannot[key] or (workload.key, key) in book.failed or book.done(workload.key, key) > number:
        return
    try:
        load = workload.load_of(quick=plan.quick)
        if load is not None:
            figures = worker.round(workload, load, plan.provider, plan.seconds)
        else:
            figures = _in_own_process(workload, worker, plan, warm=book.done(workload.key, key) > 0)
        book.add(workload.key, key, figures)
    except (WorkerFailed, ProcessFailed) as error:
        book.fail(workload.key, key, str(error))


def _in_own_process(workload: Workload, worker: Worker, plan: Plan, *, warm: bool) -> dict[str, Any]:
    count = workload.count_of(quick=plan.quick)
    if workload.key == "imports":
        module = PEERS[worker.contender].module
        if not warm:
            import_once(module, interpreter=worker.interpreter)  # writes the bytecode
        return import_once(module, interpreter=worker.interpreter)
    arguments = [workload.key, worker.contender, str(count), *(["--own-tool"] if workload.key == "definitions" else [])]
    return in_process("benchmarks.of_agents.footprint", *arguments, interpreter=worker.interpreter, timeout=plan.timeout)
