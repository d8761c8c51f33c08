"""The objects that the garbage collector looks at: for each idle session, and for each run that
waits for its model over HTTP. They are counted by type, in a process of its own.

    python -m benchmarks.of_agents.census 1000

prints one line of JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from benchmarks.lab.process import in_process
from benchmarks.of_load.conversations import runner_for
from benchmarks.provider.replies import text_of
from benchmarks.provider.running import Address, held_by, provider
from offbook.runtime import ActorSystem, Run, Runner, Session

__all__ = ["IDLE", "WAITING", "Census", "measure_census"]

IDLE = "idle session"
WAITING = "run waiting over HTTP"

_HELD = 120.0  # seconds for which the provider holds a reply: longer than the count takes
_LOOK = 0.05  # seconds between two questions to the provider
_WARM_UP = 20
_LEAST = 0.05  # of one object for each: what there is less often does not belong to them


@dataclass(frozen=True, slots=True)
class Census:
    """The tracked objects of one session or run, by type."""

    what: str
    count: int
    tracked: float
    by_type: dict[str, float]


def measure_census(count: int) -> list[Census]:
    """Of `count` idle sessions, and of `count` waiting runs."""
    figures = in_process("benchmarks.of_agents.census", str(count))
    return [Census(**one) for one in figures["objects"]]


def _name_of(kind: type) -> str:
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")


@contextmanager
def _counting(what: str, count: int, found: list[Census]) -> Iterator[None]:
    """Count what is made in the block and is still there at its end."""
    gc.collect()
    before = Counter(map(type, gc.get_objects()))
    yield
    gc.collect()
    more = Counter(map(type, gc.get_objects()))
    more.subtract(before)
    by_type = {
        _name_of(kind): round(number / count, 2)
        for kind, number in more.most_common()
        if abs(number) >= count * _LEAST
    }
    found.append(Census(what, count, round(sum(more.values()) / count, 1), by_type))


async def _sessions(runner: Runner, count: int, found: list[Census]) -> None:
    """Each has had one turn, which its program has seen the end of."""

    async def turn(number: int) -> Session:
        session = runner.session(f"user {number}")
        await session.query(text_of(number, 0, "talk"))
        return session

    warm = [await turn(count + number) for number in range(_WARM_UP)]
    with _counting(IDLE, count, found):
        warm += [await turn(number) for number in range(count)]
    for session in warm:
        await session.clear()
        await session.close()


async def _runs(runner: Runner, address: Address, count: int, found: list[Census]) -> None:
    """Each has been started, and the provider holds its request."""

    async def start(number: int) -> None:
        texts = (text_of(conversation, 0, "talk") for conversation in range(number))
        runs.extend([runner.query(text) for text in texts])
        while number:
            number -= (await asyncio.to_thread(held_by, address.port)).requests
            await asyncio.sleep(_LOOK)

    runs: list[Run] = []
    await start(_WARM_UP)
    with _counting(WAITING, count, found):
        await start(count)
    for run in runs:
        run.cancel()
        await run


async def _count(count: int) -> list[Census]:
    found: list[Census] = []
    async with ActorSystem() as system:
        with provider() as address:
            runner = runner_for(address.base_url, system, streaming=False)
            await _sessions(runner, count, found)
        with provider(median=_HELD, sigma=0.0) as address:
            runner = runner_for(address.base_url, system, streaming=False)
            await _runs(runner, address, count, found)
    return found


def _main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int)
    count: int = parser.parse_args().count
    print(json.dumps({"objects": [asdict(one) for one in asyncio.run(_count(count))]}))


if __name__ == "__main__":
    _main()
