"""How fast kept runs are found among many: `runner.runs()` with each filter, in SQLite and
PostgreSQL, and what it takes to list one.

    python -m benchmarks listing                         1,000,000 runs in SQLite: some minutes
    python -m benchmarks listing --postgres DSN --redis URL
    python -m benchmarks listing --quick                 10,000: whether it works

README.md beside it says what the figures mean.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime as dt
import os
import statistics
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any, Final

# Run by its path: what is imported below is found beside this folder, not in it.
if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])

try:
    from rich import box
    from rich.console import Console
    from rich.progress import track
    from rich.table import Table

    from benchmarks.lab.catalogue import RESULTS
    from benchmarks.lab.machine import describe
    from benchmarks.lab.report import duration, write_json
except ModuleNotFoundError as error:
    sys.exit(f"{error}. Install what the benchmarks need: pip install -e '.[bench]'")

from offbook.actors import ChatModelAgent
from offbook.runtime import PostgresStore, RedisStore, Runner, ScriptedModel, SQLiteStore
from offbook.runtime.stores import RunEntry

_BATCH: Final = 500
_STATUSES: Final = ("completed",) * 94 + ("failed",) * 3 + ("running",) * 2 + ("interrupted",)
_BEGIN: Final = 1_700_000_000_000_000
_STEP: Final = 1_000_000
"""Microseconds between the beginnings of two runs."""


@dataclass(frozen=True, slots=True)
class Figure:
    """How long one question took, in seconds, and how many runs it found."""

    store: str
    what: str
    found: int
    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.rounds)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=15, help="of each question")
    parser.add_argument("--quick", action="store_true", help="10,000 runs: a smoke test")
    parser.add_argument("--no-sqlite", action="store_true")
    parser.add_argument("--postgres", metavar="DSN")
    parser.add_argument("--redis", metavar="URL")
    parser.add_argument("--output", type=Path, help="the JSON file (results/listing.json)")
    options = parser.parse_args()
    if options.quick:
        options.runs, options.rounds = 10_000, 3
    options.output = options.output or RESULTS / (
        "listing-quick.json" if options.quick else "listing.json"
    )
    return options


@contextmanager
def opened(kind: str, options: argparse.Namespace) -> Iterator[Any]:
    """A store that is empty.

    What a server holds of it is its own to remove: the prefix says what is this benchmark's.
    """
    name = f"bench_{os.getpid()}_"
    with TemporaryDirectory() as folder:
        store: Any
        if kind == "SQLite":
            store = SQLiteStore(Path(folder) / "runs.db")
        elif kind == "PostgreSQL":
            store = PostgresStore(options.postgres, prefix=name)
        else:
            store = RedisStore(options.redis, prefix=name)
        with store:
            yield store


def entry(value: bytes, number: int) -> RunEntry:
    """A run of a service: five agents, two hundred tenants, a session for each ten runs; one in a
    hundred waits for an answer.
    """
    labels = (f"tenant\0{number % 200}", "region\0eu")
    status = _STATUSES[(number * 2_654_435_761 >> 9) % 100]
    return RunEntry(
        f"run-{number:012}",
        f"Agent {number % 5}",
        f"user-{number // 10}",
        status,
        _BEGIN + number * _STEP,
        labels,
        value,
    )


async def fill(store: Any, runner: Runner, count: int, console: Console) -> float:
    """List that many, as a run is listed that has really ended. Returns the seconds for each."""
    done = runner.query("go")
    await done
    value = (await store.run_entry(done.id)).value
    await runner.forget(done.id)
    began = perf_counter()
    for first in track(range(0, count, _BATCH), "runs are listed", console=console):
        await store.commit(
            None, [entry(value, number) for number in range(first, min(first + _BATCH, count))]
        )
    return (perf_counter() - began) / count


def questions(count: int) -> dict[str, dict[str, Any]]:
    middle = (_BEGIN + count // 2 * _STEP) / 1e6
    return {
        "the newest 100": {},
        "those that wait": {"status": "interrupted"},
        "failed or cancelled": {"status": ("failed", "cancelled")},
        "of an agent": {"agent": "Agent 3"},
        "failed, of an agent": {"agent": "Agent 3", "status": "failed"},
        "of a session": {"session_id": f"user-{count // 20}"},
        "with a label": {"labels": {"tenant": "77"}},
        "failed, with a label": {"labels": {"tenant": "77"}, "status": "failed"},
        "with two labels": {"labels": {"tenant": "77", "region": "eu"}},
        "of a time": {"since": middle, "until": middle + 3600},
        "a page in the middle": {"after": f"run-{count // 2:012}"},
        "a status that none has": {"status": "stuck"},
    }


async def measure(
    kind: str, store: Any, options: argparse.Namespace, console: Console
) -> list[Figure]:
    runner = Runner(
        ChatModelAgent(name="A", model=ScriptedModel(["Done."])), store=store, durability="step"
    )
    listed = await fill(store, runner, options.runs, console)
    figures = [Figure(kind, "one run is listed", options.runs, (listed,))]
    for what, asked in questions(options.runs).items():
        rounds, found = [], 0
        for _ in range(options.rounds):
            began = perf_counter()
            found = len(await runner.runs(**asked))
            rounds.append(perf_counter() - began)
        figures.append(Figure(kind, what, found, tuple(rounds)))
    return figures


def show(console: Console, figures: list[Figure]) -> None:
    table = Table(title="Runs that are found", box=box.SIMPLE, title_justify="left")
    for column in ("store", "what", "found", "median", "slowest"):
        table.add_column(column)
    for one in figures:
        table.add_row(
            one.store, one.what, f"{one.found:,}", duration(one.median), duration(max(one.rounds))
        )
    console.print(table)


async def run(options: argparse.Namespace, console: Console) -> list[Figure]:
    kinds = [
        *([] if options.no_sqlite else ["SQLite"]),
        *(["PostgreSQL"] if options.postgres else []),
        *(["Redis"] if options.redis else []),
    ]
    figures: list[Figure] = []
    for kind in kinds:
        with opened(kind, options) as store:
            figures += await measure(kind, store, options, console)
    return figures


def main() -> None:
    options, console = arguments(), Console()
    began = dt.datetime.now(dt.UTC)
    figures = asyncio.run(run(options, console))
    show(console, figures)
    described = {
        "benchmark": "listing",
        "began": began.isoformat(timespec="seconds"),
        "runs": options.runs,
        "machine": describe(),
    }
    write_json(options.output, {**described, "figures": [asdict(one) for one in figures]})
    console.print(f"[dim]{options.output}")


if __name__ == "__main__":
    main()
