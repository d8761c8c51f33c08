"""The cost of keeping runs, and the speed of getting them back: `durability="step"` against
`"none"`, recovery, sessions that are woken.

    python -m benchmarks durable                         in memory and in SQLite;
    results/durable.json
    python -m benchmarks durable --quick                 the same in small, to see that it works;
    its figures mean nothing
    python -m benchmarks durable --redis URL --postgres DSN

README.md beside it says what the figures mean.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import gc
import os
import statistics
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any, Literal, NamedTuple

# Run by its path, as `python benchmarks/durable.py`: what is imported below is found beside this
# folder, not in it.
if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])

try:
    from rich import box
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    from benchmarks.lab.catalogue import RESULTS
    from benchmarks.lab.machine import describe
    from benchmarks.lab.report import duration, rate, ratio, write_json
except ModuleNotFoundError as error:
    sys.exit(f"{error}. Install what the benchmarks need: pip install -e '.[bench]'")

from offbook.actors import ChatModelAgent
from offbook.runtime import (
    ActorSystem,
    MemoryStore,
    Message,
    ModelRequest,
    PostgresStore,
    RedisStore,
    Runner,
    SQLiteStore,
)

ANSWER = "It is three."


class Instant:
    """A model that has its answer ready."""

    async def generate(self, request: ModelRequest) -> Message:
        del request
        return Message("assistant", ANSWER)


class Never:
    """A model that never answers, and sets an event when `count` requests have arrived."""

    def __init__(self, count: int) -> None:
        self.left = count
        self.all_asked = asyncio.Event()

    async def generate(self, request: ModelRequest) -> Message:
        del request
        self.left -= 1
        if not self.left:
            self.all_asked.set()
        await asyncio.Event().wait()
        raise AssertionError


@dataclass(frozen=True, slots=True)
class Figure:
    """One measure with one store: operations per second of each round, and per second of the
    process's CPU time, which a loaded machine does not change.
    """

    store: str
    what: str
    count: int  # operations of a round
    at_once: bool
    rounds: tuple[float, ...]
    cpu_rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)

    @property
    def cpu_median(self) -> float:
        return statistics.median(self.cpu_rounds)

    def cpu_part(self, other: Figure) -> float:
        """Of another one, round by round: the rounds of both were taken in turns."""
        return statistics.median(
            [one / two for one, two in zip(self.cpu_rounds, other.cpu_rounds, strict=True)]
        )


class Took(NamedTuple):
    """Operations per second, by the clock and by the process's CPU time."""

    by_clock: float
    by_cpu: float


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small, and two rounds: a smoke test")
    parser.add_argument("--rounds", type=int, help="rounds that count (7; with --quick, 2)")
    parser.add_argument("--redis", metavar="URL", help="measure a Redis, too")
    parser.add_argument("--postgres", metavar="DSN", help="measure a PostgreSQL, too")
    parser.add_argument("--output", type=Path, help="the JSON file (results/durable.json)")
    options = parser.parse_args()
    options.rounds = options.rounds or (2 if options.quick else 7)
    if options.output is None:
        options.output = RESULTS / ("durable-quick.json" if options.quick else "durable.json")
    return options


@contextmanager
def opened(kind: str, options: argparse.Namespace) -> Iterator[Any]:
    """An empty store."""
    with TemporaryDirectory() as folder:
        prefix = f"bench-{os.getpid()}-{perf_counter():.6f}:"
        store: Any
        if kind == "memory":
            store = MemoryStore()
        elif kind == "sqlite":
            store = SQLiteStore(Path(folder) / "runs.db")
        elif kind == "redis":
            store = RedisStore(options.redis, prefix=prefix)
        else:
            store = PostgresStore(options.postgres, prefix=f"b{abs(hash(prefix)) % 10**9}_")
        try:
            yield store
        finally:
            store.close()


def runner_of(
    store: Any,
    durability: Literal["none", "interrupt", "step"],
    model: Any = None,
    system: ActorSystem | None = None,
) -> Runner:
    agent = ChatModelAgent(name="a", model=model or Instant())
    return Runner(agent, store=store, durability=durability, system=system)


async def timed(
    count: int, once: Callable[[int], Coroutine[Any, Any, Any]], *, at_once: bool
) -> Took:
    await once(-1)
    gc.collect()  # no round pays for the one before it
    started, cpu_started = perf_counter(), process_time()
    if at_once:
        results = await asyncio.gather(*(once(number) for number in range(count)))
    else:
        results = [await once(number) for number in range(count)]
    seconds, cpu_seconds = perf_counter() - started, process_time() - cpu_started
    if any(result.final_output != ANSWER for result in results):
        msg = "a run had another answer than it should"
        raise AssertionError(msg)
    return Took(count / seconds, count / cpu_seconds)


async def runs(
    store: Any, durability: Literal["none", "interrupt", "step"], count: int, *, at_once: bool
) -> Took:
    runner = runner_of(store, durability)

    async def once(number: int) -> Any:
        del number
        return await runner.query("What is one and two?")

    return await timed(count, once, at_once=at_once)


async def sessions(store: Any, count: int, *, at_once: bool) -> Took:
    """Each session has had one turn and is only in the store; now each gets its second message."""
    runner = runner_of(store, "none")

    async def once(number: int) -> Any:
        return await runner.session(f"user {number}").query("And now?")

    for number in range(count):
        await once(number)
    return await timed(count, once, at_once=at_once)


async def recovery(store: Any, count: int) -> Took:
    """`count` runs whose process has gone in the middle of them: the time from the call of
    recover() until all have ended.
    """
    never = Never(count)
    async with ActorSystem() as system:
        runner = runner_of(store, "step", never, system)
        begun = [runner.query("What is one and two?") for _ in range(count)]
        await never.all_asked.wait()
    del begun
    gc.collect()
    async with ActorSystem() as system:
        started, cpu_started = perf_counter(), process_time()
        found = await runner_of(store, "step", None, system).recover()
        results = [await run for run in found]
        seconds, cpu_seconds = perf_counter() - started, process_time() - cpu_started
    if [result.final_output for result in results] != [ANSWER] * count:
        msg = f"of {count} runs, {len(results)} were recovered, and not all to their end"
        raise AssertionError(msg)
    return Took(count / seconds, count / cpu_seconds)


def measure(options: argparse.Namespace, console: Console) -> list[Figure]:
    few, many = (50, 200) if options.quick else (500, 10_000)
    kinds = [
        "memory",
        "sqlite",
        *(["redis"] if options.redis else []),
        *(["postgres"] if options.postgres else []),
    ]
    found: dict[tuple[str, str, int, bool], list[Took]] = {}
    for number in track(range(options.rounds + 1), "rounds", console=Console(stderr=True)):
        for kind in kinds:
            for at_once in (False, True):
                for durability in ("none", "interrupt", "step"):
                    with opened(kind, options) as store:
                        took = asyncio.run(
                            runs(
                                store if durability != "none" else None,
                                durability,
                                few,
                                at_once=at_once,
                            )
                        )  # type: ignore[arg-type]
                    if number:  # the first round is thrown away
                        found.setdefault(
                            (kind, f"runs, durability={durability!r}", few, at_once), []
                        ).append(took)
                with opened(kind, options) as store:
                    took = asyncio.run(sessions(store, few, at_once=at_once))
                if number:
                    found.setdefault((kind, "sessions woken", few, at_once), []).append(took)
            if number <= 3:  # it takes long
                with opened(kind, options) as store:
                    took = asyncio.run(recovery(store, many))
                if number:
                    found.setdefault((kind, "unfinished runs recovered", many, True), []).append(
                        took
                    )
    console.print()
    return [
        Figure(*key, tuple(took.by_clock for took in rounds), tuple(took.by_cpu for took in rounds))
        for key, rounds in found.items()
    ]


def show(console: Console, figures: list[Figure]) -> None:
    plain = {(one.store, one.at_once): one for one in figures if "'none'" in one.what}
    table = Table(title="Runs that are kept", box=box.SIMPLE, title_justify="left")
    for name in (
        "store",
        "what",
        "how",
        "operations/s",
        "each",
        "CPU of each",
        "of those that are kept nowhere, by CPU",
    ):
        table.add_column(name, justify="left" if name in ("store", "what", "how") else "right")
    for one in figures:
        of = (
            ""
            if "runs, " not in one.what or "'none'" in one.what
            else ratio(one.cpu_part(plain[one.store, one.at_once]))
        )
        how = f"{one.count:,} at once" if one.at_once else "one by one"
        each = (
            duration(1 / one.median)
            if "recovered" not in one.what
            else f"{duration(one.count / one.median)} for all"
        )
        table.add_row(
            one.store, one.what, how, rate(one.median), each, duration(1 / one.cpu_median), of
        )
    console.print(table)


def main() -> None:
    options = arguments()
    console = Console()
    if not console.is_terminal or console.width < 130:
        console = Console(width=130)
    machine = describe()
    figures = measure(options, console)
    console.print(
        f"{machine['processor']}, {machine['cores']} cores, {machine['python']}, load "
        f"{machine['load']} when it began; {options.rounds} rounds\n"
    )
    show(console, figures)
    write_json(
        options.output,
        {
            "benchmark": "durable",
            "made": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "machine": machine,
            "options": {"quick": options.quick, "rounds": options.rounds},
            "figures": [
                {**asdict(one), "median": one.median, "cpu_median": one.cpu_median}
                for one in figures
            ],
        },
    )
    console.print("Written:", os.path.relpath(options.output))


if __name__ == "__main__":
    main()
