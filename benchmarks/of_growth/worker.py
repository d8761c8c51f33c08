"""One size of one question, in a process of its own: `python -m benchmarks.of_growth.worker history
100` prints one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
from collections.abc import Callable, Coroutine
from time import process_time
from typing import Any

import psutil

from benchmarks.contenders.agents_base import ANSWER, QUESTION
from benchmarks.contenders.agents_offbook import GivingWay, Instant, OffbookAgents
from benchmarks.of_growth.questions import QUESTIONS
from offbook.actors import ChatModelAgent
from offbook.runtime import MemoryStore, Message, ModelRequest, Runner

__all__ = ["MEASURES"]

# How much is done at least for one figure, so that the processor's clock has something to count.
_LEAST_SECONDS = 0.2
_WARM_UP = 20


def _resident() -> int:
    gc.collect()
    resident: int = psutil.Process().memory_info().rss
    return resident


async def _per_operation(once: Callable[[], Coroutine[Any, Any, int]], least: float) -> float:
    """CPU seconds for one operation. `once` does some, and says how many."""
    await once()
    gc.collect()
    operations, started = 0, process_time()
    while process_time() - started < least:
        operations += await once()
    return (process_time() - started) / operations


async def history(size: int, least: float) -> float:
    """One turn of each of many sessions with so long a history.

    What fills them, and the turn that makes a session ready, are not counted.
    """
    runner = Runner(ChatModelAgent(name="a", model=Instant()), store=MemoryStore())
    said = [
        message
        for number in range((size - 1) // 2)
        for message in (Message.user(f"Question {number}?"), Message.assistant(f"Answer {number}."))
    ]
    said = [*said, Message.user("And?")] if len(said) < size else said
    seconds, turns, number = 0.0, 0, 0
    while seconds < least or turns < _WARM_UP:
        session = runner.session(f"user {number}")
        await session.run(said)  # with its answer, the history has the size
        gc.collect(0)
        started = process_time()
        result = await session.query(QUESTION)
        took = process_time() - started
        if result.final_output != ANSWER:
            raise AssertionError(result)
        await session.clear()
        if number >= 5:
            seconds, turns = seconds + took, turns + 1
        number += 1
    return seconds / turns


async def transfers(size: int, least: float) -> float:
    once = OffbookAgents().relay(size)

    async def some() -> int:
        if await once() != ANSWER:
            raise AssertionError
        return size

    return await _per_operation(some, least)


async def at_once(size: int, least: float) -> float:
    runner = Runner(ChatModelAgent(name="a", model=GivingWay()))

    async def one() -> str:
        return str((await runner.query(QUESTION)).final_output)

    async def some() -> int:
        answers = await asyncio.gather(*(one() for _ in range(size)))
        if set(answers) != {ANSWER}:
            raise AssertionError(set(answers))
        return size

    return await _per_operation(some, least)


async def idle_sessions(size: int, least: float) -> float:
    del least
    store = MemoryStore()
    runner = Runner(ChatModelAgent(name="a", model=Instant()), store=store)
    for number in range(_WARM_UP):
        await runner.session(f"before {number}").query(QUESTION)
    before = _resident()
    kept = [runner.session(f"user {number}") for number in range(size)]
    for session in kept:
        await session.query(QUESTION)
    return (_resident() - before) / size


class Waits:
    """A model that answers when it is let, and says when so many wait for it."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.all_wait, self.let = asyncio.Event(), asyncio.Event()

    async def generate(self, request: ModelRequest) -> Message:
        del request
        self.left -= 1
        if not self.left:
            self.all_wait.set()
        await self.let.wait()
        return Message("assistant", ANSWER)


async def waiting_runs(size: int, least: float) -> float:
    del least
    warm = Runner(ChatModelAgent(name="a", model=Instant()))
    for _ in range(_WARM_UP):
        await warm.query(QUESTION)
    model = Waits(size)
    runner = Runner(ChatModelAgent(name="a", model=model))
    before = _resident()
    runs = [runner.query(QUESTION) for _ in range(size)]
    await model.all_wait.wait()
    each = (_resident() - before) / size
    model.let.set()
    for run in runs:
        await run
    return each


MEASURES: dict[str, Callable[[int, float], Coroutine[Any, Any, float]]] = {
    "history": history,
    "transfers": transfers,
    "at_once": at_once,
    "idle_sessions": idle_sessions,
    "waiting_runs": waiting_runs,
}


def _main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("question", choices=[*QUESTIONS])
    parser.add_argument("size", type=int)
    parser.add_argument(
        "--least",
        type=float,
        default=_LEAST_SECONDS,
        help="CPU seconds that are measured, at least",
    )
    options = parser.parse_args()
    print(
        json.dumps({"figure": asyncio.run(MEASURES[options.question](options.size, options.least))})
    )


if __name__ == "__main__":
    _main()
