"""The cost of very many idle actors: memory, and the time to spawn and to stop them.

    python -m benchmarks.of_actors.idle offbook 1000000

prints one line of JSON. `actors` runs it in a process of its own for each figure, because memory
that was used before hides what is used now.
"""

from __future__ import annotations

import argparse
import gc
import json
from dataclasses import asdict, dataclass
from time import perf_counter

import psutil

from benchmarks import contenders
from benchmarks.contenders.base import Load
from benchmarks.lab.process import in_process

__all__ = ["Idle", "measure_idle"]


@dataclass(frozen=True, slots=True)
class Idle:
    """The cost of `count` idle actors of one contender."""

    contender: str
    count: int
    bytes_per_actor: float  # growth of the resident set, by the spawning
    resident: int  # bytes of the whole process, with all of them there
    spawn_seconds: float
    stop_seconds: float  # of leaving the system, with all of them there
    kept: int  # bytes by which the resident set is still larger after they have ended


class MemoryProbe:
    """Measures the resident set before and after the spawning.

    The garbage collector runs before each measurement, and is on while the actors are spawned.
    """

    def __init__(self) -> None:
        self._process = psutil.Process()

    def __enter__(self) -> None:
        self.before = self._resident()
        self._started = perf_counter()

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.spawn_seconds = perf_counter() - self._started

    def all_idle(self) -> None:
        self.resident = self._resident()
        self._stopping = perf_counter()

    def ended(self) -> None:
        self.stop_seconds = perf_counter() - self._stopping
        self.after = self._resident()

    def _resident(self) -> int:
        gc.collect()
        resident: int = self._process.memory_info().rss
        return resident


def measure_idle(contender: str, count: int, *, uvloop: bool = False) -> Idle:
    """Measure in a fresh process."""
    return Idle(
        **in_process(
            "benchmarks.of_actors.idle", contender, str(count), *(["--uvloop"] if uvloop else [])
        )
    )


def _main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("contender", choices=contenders.KEYS)
    parser.add_argument("count", type=int)
    parser.add_argument("--uvloop", action="store_true")
    options = parser.parse_args()
    contender = contenders.load(options.contender, contenders.loop_factory(uvloop=options.uvloop))
    probe = MemoryProbe()
    contender.run("idle", Load(options.count), probe)
    probe.ended()
    print(
        json.dumps(
            asdict(
                Idle(
                    contender=options.contender,
                    count=options.count,
                    bytes_per_actor=(probe.resident - probe.before) / options.count,
                    resident=probe.resident,
                    spawn_seconds=probe.spawn_seconds,
                    stop_seconds=probe.stop_seconds,
                    kept=probe.after - probe.before,
                )
            )
        )
    )


if __name__ == "__main__":
    _main()
