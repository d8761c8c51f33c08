"""One load, in a process of its own: `python -m benchmarks.of_load.worker --port P --conversations
1000` prints one line of JSON.

The framework's own time of a turn is what the user waited for it, less what the provider says it
held its requests. It has in it whatever is not the provider: the framework, the client, the kernel,
the wait for a free core, and the wait behind all other conversations, which is what grows with the
load.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import re
import threading
from dataclasses import dataclass, field
from time import perf_counter, process_time
from typing import Any

import psutil

from benchmarks.lab.machine import most_open_files
from benchmarks.lab.measure import percentile
from benchmarks.of_load.conversations import runner_for, turns_of
from benchmarks.provider.replies import answer_of, text_of
from benchmarks.provider.running import base_url_of, held_by
from offbook.runtime import ActorSystem, Session

__all__ = ["Load", "measure", "without_ids"]

_IDS = re.compile(r"\b(?=[0-9a-f]*[0-9])[0-9a-f]{8,}\b|\d+")
_SAMPLE = 0.25  # seconds between two looks at memory, threads and open files


@dataclass(frozen=True, slots=True)
class Load:
    conversations: int  # at once
    repeats: int  # how many each of these has, one after the other
    turns: tuple[str, ...]
    think: float  # seconds that a user thinks before each turn, on average
    streaming: bool = False
    paced: bool = True  # whether full garbage collections are


@dataclass(slots=True)
class Seen:
    """What was seen of the turns and of the process."""

    waited: dict[tuple[int, int], float] = field(default_factory=dict)  # by conversation and turn
    ended: list[float] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=dict)  # by the error
    thought: float = 0.0
    resident: int = 0  # at most
    threads: int = 0
    files: int = 0
    at_once: int = 0
    busy: int = 0  # conversations that have begun and not ended


@dataclass(slots=True)
class Collections:
    """The seconds of each full garbage collection."""

    seconds: list[float] = field(default_factory=list)
    started: float = 0.0

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] == 2:
            if phase == "start":
                self.started = perf_counter()
            else:
                self.seconds.append(perf_counter() - self.started)


def without_ids(reason: str) -> str:
    """The kind of a failure: what is said of it without its numbers, so that thousands of one kind
    are one.
    """
    return _IDS.sub("#", reason)


async def _conversation(
    session: Session, number: int, load: Load, seen: Seen, chance: random.Random
) -> None:
    """All turns of one conversation. One that fails ends it: a user would go."""
    for turn, do in enumerate(load.turns):
        # Bounded, so that a load of very many does not wait for the one that thinks longest.
        thinks = chance.uniform(0.0, 2 * load.think)
        seen.thought += thinks
        await asyncio.sleep(thinks)
        started = perf_counter()
        result = await session.query(text_of(number, turn, do))
        ended = perf_counter()
        if result.error is not None or result.final_output != answer_of(number, turn):
            reason = (
                f"{type(result.error).__name__}: {result.error}"
                if result.error is not None
                else f"the answer was {result.final_output!r}"
            )
            kind = without_ids(reason)
            seen.failed[kind] = seen.failed.get(kind, 0) + 1
            return
        seen.waited[number, turn] = ended - started
        seen.ended.append(ended)


async def _slot(slot: int, runner: Any, load: Load, seen: Seen) -> None:
    """One conversation after the other, so that the load stays what it is."""
    chance = random.Random(slot)
    for repeat in range(load.repeats):
        number = repeat * load.conversations + slot
        session = runner.session(f"user {number}")
        seen.busy += 1
        seen.at_once = max(seen.at_once, seen.busy)
        try:
            await _conversation(session, number, load, seen, chance)
        finally:
            seen.busy -= 1
            await session.clear()  # the user is gone, and what was said with it
            await session.close()


async def _watch(seen: Seen, process: psutil.Process) -> None:
    while True:
        seen.resident = max(seen.resident, process.memory_info().rss)
        seen.threads = max(seen.threads, threading.active_count())
        seen.files = max(seen.files, process.num_fds() if hasattr(process, "num_fds") else 0)
        await asyncio.sleep(_SAMPLE)


async def _run(port: int, load: Load) -> dict[str, Any]:
    process, seen, collections = psutil.Process(), Seen(), Collections()
    async with ActorSystem(full_collections="paced" if load.paced else None) as system:
        runner = runner_for(base_url_of(port), system, streaming=load.streaming)
        warm = Seen()
        await asyncio.gather(
            *(
                _slot(slot, runner, Load(5, 1, load.turns, 0.0, load.streaming, load.paced), warm)
                for slot in range(5)
            )
        )
        if warm.failed:
            msg = f"a conversation failed before there was any load: {warm.failed}"
            raise RuntimeError(msg)
        gc.collect()
        before = await asyncio.to_thread(held_by, port)
        resident, threads = process.memory_info().rss, threading.active_count()
        watching = asyncio.create_task(_watch(seen, process))
        gc.callbacks.append(collections)
        wall, cpu = perf_counter(), process_time()
        await asyncio.gather(
            *(_slot(slot, runner, load, seen) for slot in range(load.conversations))
        )
        wall, cpu = perf_counter() - wall, process_time() - cpu
        gc.callbacks.remove(collections)
        watching.cancel()
        held = await asyncio.to_thread(held_by, port)
    own = sorted(waited - held.seconds.get(turn, 0.0) for turn, waited in seen.waited.items())
    figures: dict[str, Any] = {
        "conversations": load.conversations,
        "turns": len(own),
        "failed": seen.failed,
        "wall_seconds": wall,
        "cpu_seconds": cpu,
        "requests": held.requests,
        "provider_cpu_seconds": held.cpu_seconds - before.cpu_seconds,
        "connections": held.most_connections,
        "at_once": seen.at_once,
        "resident_before": resident,
        "resident_most": seen.resident,
        "threads_more": seen.threads - threads,
        "files_most": seen.files,
        "per_second": _rate(sorted(seen.ended)),
        "collections": len(collections.seconds),
        "longest_collection": max(collections.seconds, default=0.0),
    }
    if own:
        figures["own"] = {
            "p50": percentile(own, 50),
            "p95": percentile(own, 95),
            "p99": percentile(own, 99),
            "most": own[-1],
        }
        figures["waited_mean"] = sum(seen.waited.values()) / len(own)
        figures["held_mean"] = sum(held.seconds.get(turn, 0.0) for turn in seen.waited) / len(own)
        figures["thought_mean"] = seen.thought / len(own)
    return figures


def _rate(ended: list[float]) -> float:
    """Turns per second in the middle: from when a fifth of them had ended to when four fifths had,
    so that neither the start nor the last ones count.
    """
    first, last = len(ended) // 5, len(ended) * 4 // 5
    return (
        (last - first) / (ended[last] - ended[first])
        if last > first and ended[last] > ended[first]
        else 0.0
    )


def measure(port: int, load: Load) -> dict[str, Any]:
    most_open_files()
    return asyncio.run(_run(port, load))


def _main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--conversations", type=int, required=True)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--turns", type=int, default=4)
    parser.add_argument("--think", type=float, default=0.5)
    parser.add_argument("--streaming", action="store_true")
    parser.add_argument("--unpaced", action="store_true")
    options = parser.parse_args()
    load = Load(
        options.conversations,
        options.repeats,
        turns_of(options.turns),
        options.think,
        options.streaming,
        not options.unpaced,
    )
    print(json.dumps(measure(options.port, load)))


if __name__ == "__main__":
    _main()
