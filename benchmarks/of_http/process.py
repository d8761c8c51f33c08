"""One contender in a process of its own, which makes rounds: `python -m benchmarks.of_http.process
CONTENDER`, a request in each line, a line for each answer.

A round: `width` workers take turns off a common count until `turns` are done. The CPU time is that
of the whole process. One round before the first is for the warming up of interpreter, imports and
connections.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from time import monotonic_ns, perf_counter, process_time
from typing import Any

import psutil

from benchmarks.lab.machine import most_open_files
from benchmarks.lab.measure import percentile
from benchmarks.of_http.contenders import CONTENDERS, Contender
from benchmarks.of_http.peers import PEERS
from benchmarks.of_http.server import TEXT, WORDS

__all__ = ["main"]


async def one_round(contender: Contender, kind: str, width: int, turns: int) -> dict[str, Any]:
    if kind == "paced":
        return await _paced(contender, width)
    once = getattr(contender, kind)()
    left = iter(range(turns))
    latencies: list[float] = []

    async def work() -> None:
        for _ in left:
            before = perf_counter()
            text = await once()
            latencies.append(perf_counter() - before)
            if text.split() != TEXT.split():
                msg = f"the reply was {text[:80]!r}"
                raise AssertionError(msg)

    gc.collect()
    wall, cpu = perf_counter(), process_time()
    await asyncio.gather(*(work() for _ in range(width)))
    wall, cpu = perf_counter() - wall, process_time() - cpu
    return {
        "cpu": cpu / turns,
        "wall": wall / turns,
        "p50": percentile(latencies, 50),
        "p99": percentile(latencies, 99),
    }


async def _paced(contender: Any, width: int) -> dict[str, Any]:
    """How far behind the server the pieces are, and how much memory a stream takes while all are
    open.
    """
    once = contender.paced()
    first: list[float] = []
    behind: list[float] = []
    process = psutil.Process()
    gc.collect()
    memory = process.memory_info().rss
    most = 0

    async def work() -> None:
        nonlocal most
        stamps = 0

        def take(text: str) -> None:
            nonlocal stamps
            now = monotonic_ns()
            for word in text.split():
                if word.isdigit():
                    (behind if stamps else first).append((now - int(word)) / 1e9)
                    stamps += 1

        await once(take)
        if stamps != WORDS:
            msg = f"{stamps} of {WORDS} words came"
            raise AssertionError(msg)

    async def look() -> None:
        nonlocal most
        await asyncio.sleep(2.0)
        most = process.memory_info().rss

    wall, cpu = perf_counter(), process_time()
    await asyncio.gather(look(), *(work() for _ in range(width)))
    wall, cpu = perf_counter() - wall, process_time() - cpu
    return {
        "cpu": cpu / width,
        "wall": wall / width,
        "first_p50": percentile(first, 50),
        "first_p99": percentile(first, 99),
        "p50": percentile(behind, 50),
        "p99": percentile(behind, 99),
        "bytes_each": max(0, most - memory) / width,
    }


async def _serve(name: str) -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    contenders: dict[str, Contender] = {}
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        asked = json.loads(line)
        answer: dict[str, Any]
        try:
            url = asked["url"]
            if url not in contenders:
                contenders[url] = {**CONTENDERS, **PEERS}[name](url)
            contender = contenders[url]
            if not hasattr(contender, asked["kind"]):
                answer = {"cannot": "it is not asked that"}
            else:
                answer = await one_round(contender, asked["kind"], asked["width"], asked["turns"])
        except Exception as error:  # noqa: BLE001 -- whatever a contender raises is its figure
            answer = {"failed": f"{type(error).__name__}: {error}"[:500]}
        print(json.dumps(answer), file=answers, flush=True)
    for contender in contenders.values():
        await contender.close()


def main() -> None:
    most_open_files()
    asyncio.run(_serve(sys.argv[1]))


if __name__ == "__main__":
    main()
