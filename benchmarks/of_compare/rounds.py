"""Both revisions by turns: a block is a new pair of processes, and in it each round of the one has
a round of the other beside it.

Which one begins changes from round to round and from block to block, so that neither is always the
first after something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.contenders.base import Load
from benchmarks.workers.worker import Worker

__all__ = ["Compared", "measure"]

_TIMEOUT = 300.0


@dataclass(slots=True)
class Compared:
    """The costs of both at one workload, in seconds for one operation, by block and round."""

    workload: str
    cpu: tuple[list[list[float]], list[list[float]]] = field(default_factory=lambda: ([], []))
    wall: tuple[list[list[float]], list[list[float]]] = field(default_factory=lambda: ([], []))


def measure(
    interpreters: tuple[Path, Path],
    loads: dict[str, Load],
    *,
    blocks: int,
    pairs: int,
    seconds: float,
    provider: str,
    contender: str = "offbook",
    on_pair: Callable[[str], object] = lambda _: None,
) -> list[Compared]:
    found = [Compared(workload) for workload in loads]
    for block in range(blocks):
        workers = tuple(
            Worker(contender, interpreter, timeout=_TIMEOUT) for interpreter in interpreters
        )
        try:
            for compared in found:
                for costs in (*compared.cpu, *compared.wall):
                    costs.append([])
                for pair in range(pairs):
                    _one_pair(
                        workers,
                        compared,
                        loads[compared.workload],
                        (block + pair) % 2,
                        seconds,
                        provider,
                    )
                    on_pair(compared.workload)
        finally:
            for worker in workers:
                worker.close()
    return found


def _one_pair(
    workers: Sequence[Worker],
    compared: Compared,
    load: Load,
    first: int,
    seconds: float,
    provider: str,
) -> None:
    # The two have the same number of operations: that which the first one fits into the time.
    if compared.workload not in workers[0].loads:
        workers[1].start()
        workers[0].round(compared.workload, load, provider=provider, seconds=seconds)
        workers[1].round(compared.workload, load, provider=provider, seconds=seconds)
        workers[1].loads[compared.workload] = workers[0].loads[compared.workload]
    for index in (first, 1 - first):
        figures = workers[index].round(compared.workload, load, provider=provider, seconds=seconds)
        compared.cpu[index][-1].append(figures["cpu_seconds"])
        compared.wall[index][-1].append(figures["seconds"])
