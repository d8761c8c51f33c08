"""Peers on the same work: seven agent frameworks and this one, each in an environment and a process
of its own, in rounds that are interleaved.

    python -m benchmarks peers                                  all of it; some 40 minutes, and some
    minutes for the environments
    python -m benchmarks peers --peer agno swarm --only W2 W3   some peers, some workloads
    python -m benchmarks peers --quick                          some seconds a peer: whether it
    works. Its figures mean nothing

A run that is stopped goes on where it was when the same command is given again. README.md beside it
says what the figures mean.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
from pathlib import Path
from typing import Any

# Run by its path: what is imported below is found beside this folder, not in it.
if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])

try:
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    from benchmarks.lab.catalogue import RESULTS
    from benchmarks.lab.machine import busy_note, describe, machine_line
    from benchmarks.lab.report import write_json
    from benchmarks.of_peers.book import Book, OtherRun
    from benchmarks.of_peers.environments import (
        PEERS,
        EnvironmentFailed,
        default_folder,
        prepare,
        versions_of,
    )
    from benchmarks.of_peers.page import draw_page
    from benchmarks.of_peers.rounds import Plan, measure
    from benchmarks.of_peers.table import as_markdown, cells_of
    from benchmarks.of_peers.workloads import WORKLOADS, Workload, named
    from benchmarks.provider.running import provider
except ModuleNotFoundError as error:
    sys.exit(f"{error}. Install what the benchmarks need: pip install -e '.[bench]'")


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = list(dict.fromkeys(one.name for one in WORKLOADS.values()))
    parser.add_argument(
        "--peer",
        action="extend",
        nargs="+",
        metavar="PEER",
        choices=[*PEERS],
        help=f"any of {', '.join(PEERS)}; offbook is always there",
    )
    parser.add_argument(
        "--only",
        action="extend",
        nargs="+",
        metavar="WORKLOAD",
        help=f"any of {', '.join(names)}, or of {', '.join(WORKLOADS)}",
    )
    parser.add_argument("--rounds", type=int, help="rounds that count (5; with --quick, 2)")
    parser.add_argument(
        "--seconds",
        type=float,
        default=1.0,
        help="of a round, about, if it has many operations (1)",
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=300.0,
        help="seconds for a round, after which its contender is said to be too slow (300)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="small rounds, two of each: a smoke test"
    )
    parser.add_argument("--fresh", action="store_true", help="forget the rounds of the run before")
    parser.add_argument(
        "--environments",
        type=Path,
        default=default_folder(),
        help="the folder of the peers' environments (%(default)s)",
    )
    parser.add_argument(
        "--output",
        type=Path,
        help=(
            "the JSON file, beside which the table, the plots and the rounds go "
            "(results/peers.json)"
        ),
    )
    parser.add_argument("--no-plot", action="store_true")
    options = parser.parse_args(given)
    options.workloads = chosen(options.only, parser)
    options.peers = [
        key for key in PEERS if not options.peer or key in options.peer or key == "offbook"
    ]
    options.rounds = options.rounds or (2 if options.quick else 5)
    options.output = options.output or RESULTS / (
        "peers-quick.json" if options.quick else "peers.json"
    )
    return options


def chosen(only: list[str] | None, parser: argparse.ArgumentParser) -> list[Workload]:
    if not only:
        return list(WORKLOADS.values())
    found = []
    for name in only:
        if not (mine := named(name)):
            there = [*dict.fromkeys(one.name for one in WORKLOADS.values()), *WORKLOADS]
            parser.error(f"--only {name}: there is no such workload. There are {', '.join(there)}.")
        found += mine
    return [one for one in WORKLOADS.values() if one in found]


def environments(
    options: argparse.Namespace, console: Console
) -> tuple[dict[str, Path], dict[str, str]]:
    """The interpreters of the peers, and why some have none."""
    interpreters, failed = {}, {}
    for key in options.peers:
        try:
            with console.status(f"the environment of {key}"):
                interpreters[key] = prepare(PEERS[key], options.environments, say=console.print)
        except EnvironmentFailed as error:
            console.print(f"[yellow]{key} is left out.", error, style="yellow")
            failed[key] = str(error).splitlines()[0]
    return interpreters, failed


def run(options: argparse.Namespace, console: Console) -> None:
    interpreters, no_environment = environments(options, console)
    versions = {
        key: versions_of(PEERS[key], interpreter) for key, interpreter in interpreters.items()
    }
    rounds_file = options.output.with_suffix(".rounds.jsonl")
    if options.fresh:
        rounds_file.unlink(missing_ok=True)
    book = Book(
        rounds_file,
        {
            "quick": options.quick,
            "seconds": options.seconds,
            "python": sys.version,
            "versions": versions,
        },
    )
    machine = describe()
    columns = (
        TextColumn("{task.description:44}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with provider() as address, Progress(*columns, console=console) as progress:
        task = progress.add_task(
            "", total=len(options.workloads) * len(interpreters) * options.rounds
        )
        plan = Plan(
            options.workloads,
            interpreters,
            options.rounds,
            address.base_url,
            options.quick,
            options.seconds,
            options.timeout,
        )
        measure(
            plan,
            book,
            lambda title, contender: progress.update(
                task, advance=1, description=f"{title}: {contender}"
            ),
        )
        progress.update(task, description="rounds")
    report(
        options, plan, book, {**machine, "load_after": describe()["load"]}, versions, no_environment
    )


def report(
    options: argparse.Namespace,
    plan: Plan,
    book: Book,
    machine: dict[str, Any],
    versions: dict[str, dict[str, str]],
    no_environment: dict[str, str],
) -> None:
    keys = {one.key for one in options.workloads}
    cells = cells_of(
        {
            key: rounds
            for key, rounds in book.rounds.items()
            if key[0] in keys and key[1] in options.peers
        }
    )
    missing = {
        (workload, contender): why
        for contender, those in plan.cannot.items()
        for workload, why in those.items()
    }
    missing |= {key: f"it failed: {reason}" for key, reason in book.failed.items()}
    missing |= {
        (workload, contender): why for contender, why in no_environment.items() for workload in keys
    }
    differs = {
        (workload, contender): what
        for contender, those in plan.differs.items()
        for workload, what in those.items()
    }
    for key, reason in book.failed.items():  # of one that has rounds nevertheless
        differs[key] = f"{differs[key]}; " * (key in differs) + f"a later round failed: {reason}"
    titles = {
        key: " ".join([key, *list(versions.get(key, {}).values())[:1]]) for key in options.peers
    }
    footnote = (
        f"{machine_line(machine)}; "
        f"{_rounds_said([len(cell.rounds) for cell in cells.values()])}, interleaved."
    )
    heading = f"# Peers on the same work\n\n{footnote}\n\n{busy_note(machine)}".rstrip()
    text = as_markdown(
        cells,
        workloads=options.workloads,
        titles=titles,
        missing=missing,
        differs=differs,
        heading=heading,
    )
    options.output.parent.mkdir(parents=True, exist_ok=True)
    table = options.output.with_suffix(".md")
    table.write_text(text, encoding="utf-8")
    write_json(
        options.output,
        {
            "benchmark": "peers",
            "made": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "machine": machine,
            "options": {
                "quick": options.quick,
                "rounds": options.rounds,
                "seconds": options.seconds,
            },
            "versions": versions,
            "series": [
                {"workload": workload, "contender": contender, "rounds": list(cell.rounds)}
                for (workload, contender), cell in cells.items()
            ],
            "missing": [
                {"workload": workload, "contender": contender, "why": why}
                for (workload, contender), why in missing.items()
                if workload in keys
            ],
        },
    )
    written = [options.output, table]
    if not options.no_plot:
        for by_cpu in (False, True):
            path = options.output.with_name(
                f"{options.output.stem}-{'cpu' if by_cpu else 'clock'}.json"
            )
            names = {key: key for key in titles}
            written += draw_page(
                path,
                cells,
                workloads=options.workloads,
                titles=names,
                missing=missing,
                footnote=footnote,
                by_cpu=by_cpu,
            )
    console = Console()
    console.print(Markdown(text))
    console.print("Written:", ", ".join(os.path.relpath(path) for path in written))


def _rounds_said(counts: list[int]) -> str:
    """How many rounds the figures have: not all the same, if a run went on with another number."""
    return (
        f"{min(counts)} rounds"
        if len(set(counts)) == 1
        else f"{min(counts)} to {max(counts)} rounds"
        if counts
        else "no rounds"
    )


def main() -> None:
    options = arguments()
    try:
        run(options, Console(stderr=True))
    except OtherRun as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(
            "\nStopped. The rounds that were made are kept: the same command goes on behind them."
        )


if __name__ == "__main__":
    main()
