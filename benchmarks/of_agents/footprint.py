"""Measurements that need a process of their own: the memory of definitions, the memory of sessions
that wait for their model, the time of an import.

    python -m benchmarks.of_agents.footprint definitions offbook 10000
    python -m benchmarks.of_agents.footprint sessions offbook 10000

print one line of JSON. `agents` runs them in a fresh process for each figure, because memory that
was used before hides what is used now.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import psutil

from benchmarks.contenders.agents_base import ANSWER, KEYS, AgentContender, load_contender
from benchmarks.lab.process import ProcessFailed, as_users_have_it, in_process

__all__ = [
    "SESSION_SECONDS",
    "Definitions",
    "Import",
    "Sessions",
    "import_once",
    "measure_definitions",
    "measure_imports",
    "measure_sessions",
]

# How long each session's model sleeps.
SESSION_SECONDS = 1.0

_IMPORT = """
import json, sys, time
wall, cpu = time.perf_counter(), time.process_time()
import {module}
print(json.dumps({{"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu,
                   "brings": [name for name in ("openai", "pydantic", "httpx", "httpx2")
                              if name in sys.modules],
                   "modules": len(sys.modules)}}))
"""


@dataclass(frozen=True, slots=True)
class Definitions:
    """The cost of `count` definitions of one contender."""

    contender: str
    count: int
    own_tool: bool
    bytes_each: float  # growth of the resident set


@dataclass(frozen=True, slots=True)
class Sessions:
    """The cost of `count` sessions that wait for their model at the same time."""

    contender: str
    count: int
    wall_seconds: float  # from the first one's start to the last one's answer
    model_seconds: float  # of them, the model's own
    cpu_seconds: float
    bytes_each: float  # growth of the resident set, when all of them wait
    threads: int  # how many more there are then


@dataclass(frozen=True, slots=True)
class Import:
    """The cost of an import in a fresh interpreter: medians of several."""

    contender: str
    module: str
    seconds: float
    slowest: float
    cpu_seconds: float
    brings: tuple[str, ...]  # of the heavy libraries, those that have been imported with it


def measure_definitions(contender: str, count: int, *, own_tool: bool) -> Definitions:
    return Definitions(
        **_in_process("definitions", contender, count, *(["--own-tool"] if own_tool else []))
    )


def measure_sessions(contender: str, count: int, *, times: int) -> Sessions:
    """Of `times` measurements, the one whose wall time is the median."""
    found = [Sessions(**_in_process("sessions", contender, count)) for _ in range(times)]
    return sorted(found, key=lambda one: one.wall_seconds)[len(found) // 2]


def measure_imports(modules: Mapping[str, str], *, times: int) -> list[Import]:
    """Interleaved.

    One more round, before all others, is thrown away: it writes the bytecode, so that the compiler
    is not measured.
    """
    there = {
        key: module
        for key, module in modules.items()
        if find_spec(module.partition(".")[0]) is not None
    }
    rounds: dict[str, list[dict[str, Any]]] = {key: [] for key in there}
    with TemporaryDirectory() as cache:
        environment = {"PYTHONPYCACHEPREFIX": cache}
        for number in range(times + 1):
            for key, module in there.items():
                figures = import_once(module, environment=environment)
                if number:
                    rounds[key].append(figures)
    return [
        Import(
            contender=key,
            module=module,
            seconds=statistics.median(one["seconds"] for one in rounds[key]),
            slowest=max(one["seconds"] for one in rounds[key]),
            cpu_seconds=statistics.median(one["cpu_seconds"] for one in rounds[key]),
            brings=tuple(
                name for name in rounds[key][0]["brings"] if name != module.partition(".")[0]
            ),
        )
        for key, module in there.items()
    ]


def import_once(
    module: str,
    *,
    interpreter: str | Path = sys.executable,
    environment: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The seconds of one import in a fresh interpreter, by the clock and of the processor."""
    command = [str(interpreter), "-P", "-c", _IMPORT.format(module=module)]
    done = subprocess.run(
        command, check=False, capture_output=True, text=True, env=as_users_have_it(environment)
    )
    if done.returncode:
        msg = f"import {module} ended with {done.returncode}:\n{done.stderr[-2000:]}"
        raise ProcessFailed(msg)
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures


def _in_process(what: str, contender: str, count: int, *options: str) -> dict[str, Any]:
    return in_process("benchmarks.of_agents.footprint", what, contender, str(count), *options)


def _resident() -> int:
    resident: int = psutil.Process().memory_info().rss
    return resident


def _definitions(contender: AgentContender, count: int, *, own_tool: bool) -> Definitions:
    kept = [contender.define(count + number, own_tool=own_tool) for number in range(10)]
    gc.collect()
    before = _resident()
    kept += [contender.define(number, own_tool=own_tool) for number in range(count)]
    gc.collect()
    return Definitions(contender.key, count, own_tool, (_resident() - before) / count)


async def _sessions(contender: AgentContender, count: int) -> Sessions:
    waiting = resident = threads = 0

    def on_call() -> None:
        nonlocal waiting, resident, threads
        waiting += 1
        if waiting == count:  # the last of them: all others are waiting
            resident, threads = _resident(), threading.active_count()

    warm_up = contender.sleeping(0.001, lambda: None)
    for number in range(10):
        await warm_up(number)
    once = contender.sleeping(SESSION_SECONDS, on_call)
    gc.collect()
    before, threads_before = _resident(), threading.active_count()
    wall, cpu = perf_counter(), process_time()
    answers = await contender.all_at_once([once(number) for number in range(count)])
    wall, cpu = perf_counter() - wall, process_time() - cpu
    if set(answers) != {ANSWER} or waiting != count:
        msg = (
            f"{contender.key}: {waiting} calls of the model for {count} sessions, and the "
            f"answers {set(answers)}"
        )
        raise AssertionError(msg)
    return Sessions(
        contender.key,
        count,
        wall,
        SESSION_SECONDS,
        cpu,
        (resident - before) / count,
        threads - threads_before,
    )


def _main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("definitions", "sessions"))
    parser.add_argument("contender", choices=KEYS)
    parser.add_argument("count", type=int)
    parser.add_argument(
        "--own-tool", action="store_true", help="each definition has a tool of its own"
    )
    options = parser.parse_args()
    contender = load_contender(options.contender)
    if options.what == "definitions":
        figures: Any = _definitions(contender, options.count, own_tool=options.own_tool)
    else:
        figures = asyncio.run(_sessions(contender, options.count))
    print(json.dumps(asdict(figures)))


if __name__ == "__main__":
    _main()
