"""Which contender is next: of each workload, every one has its first round before any has its
second, and each time another one begins.

Each contender has a process, which stays for all of its rounds: a service imports its library once.
Definitions, sessions and imports have a fresh process for each round, because memory that was used
before hides what is used now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.lab.process import ProcessFailed, in_process
from benchmarks.of_agents.footprint import import_once
from benchmarks.of_peers.book import Book
from benchmarks.of_peers.environments import PEERS
from benchmarks.of_peers.workloads import Workload
from benchmarks.workers.worker import Worker, WorkerFailed

__all__ = ["Plan", "measure"]


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
    # By contender and workload, why not.
    cannot: dict[str, dict[str, str]] = field(default_factory=dict)
    differs: dict[str, dict[str, str]] = field(default_factory=dict)


def measure(
    plan: Plan, book: Book, on_round: Callable[[str, str], object] = lambda *_: None
) -> None:
    """Make all rounds that the book has not.

    `on_round` hears of each, those that cannot be made included.
    """
    workers = {
        key: Worker(key, interpreter, timeout=plan.timeout)
        for key, interpreter in plan.interpreters.items()
    }
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
            plan.cannot[key] = {
                workload.key: f"it could not be started: {error}" for workload in plan.workloads
            }
        else:
            plan.cannot[key] = {
                measure: why
                for measure, why in worker.cannot.items()
                if measure in {one.key for one in plan.workloads}
            }
            plan.differs[key] = worker.differs
            if "define_own" in worker.cannot:
                plan.cannot[key]["definitions"] = worker.cannot["define_own"]
        for workload in plan.workloads:
            book.failed.pop((workload.key, key), None)  # it is tried again


def _one(plan: Plan, book: Book, workload: Workload, worker: Worker, number: int) -> None:
    """One round of one contender, unless it has been made, cannot be made or has failed."""
    key = worker.contender
    if (
        workload.key in plan.cannot[key]
        or (workload.key, key) in book.failed
        or book.done(workload.key, key) > number
    ):
        return
    try:
        load = workload.load_of(quick=plan.quick)
        if load is not None:
            figures = worker.round(workload.key, load, provider=plan.provider, seconds=plan.seconds)
        else:
            figures = _in_own_process(workload, worker, plan, warm=book.done(workload.key, key) > 0)
        book.add(workload.key, key, figures)
    except (WorkerFailed, ProcessFailed) as error:
        book.fail(workload.key, key, str(error))


def _in_own_process(
    workload: Workload, worker: Worker, plan: Plan, *, warm: bool
) -> dict[str, Any]:
    count = workload.count_of(quick=plan.quick)
    if workload.key == "imports":
        module = PEERS[worker.contender].module
        if not warm:
            import_once(module, interpreter=worker.interpreter)  # writes the bytecode
        return import_once(module, interpreter=worker.interpreter)
    arguments = [
        workload.key,
        worker.contender,
        str(count),
        *(["--own-tool"] if workload.key == "definitions" else []),
    ]
    return in_process(
        "benchmarks.of_agents.footprint",
        *arguments,
        interpreter=worker.interpreter,
        timeout=plan.timeout,
    )
