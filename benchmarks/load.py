"""Very many conversations at once over real HTTP: throughput, the framework's own time, memory,
threads and files, and where the knee is.

    python -m benchmarks load                             from 100 to 20,000 at once
    python -m benchmarks load --conversations 50 500      these loads alone
    python -m benchmarks load --streaming                 the model's replies in pieces
    python -m benchmarks load --unpaced                   full garbage collections left to Python
    python -m benchmarks load --quick                     some seconds: whether it works. Its
    figures mean nothing

Each conversation is a session with several turns, one with a tool, one with a transfer. Its model
is a server in another process, which holds each reply for a time that is drawn from a log-normal
distribution. README.md beside it says what the figures mean.
"""

from __future__ import annotations

import argparse
import datetime as dt
import math
import os
import sys
from dataclasses import asdict
from pathlib import Path

# Run by its path: what is imported below is found beside this folder, not in it.
if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])

try:
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from benchmarks.lab.catalogue import RESULTS
    from benchmarks.lab.machine import busy_note, describe, machine_line, most_open_files
    from benchmarks.lab.process import ProcessFailed, in_process
    from benchmarks.lab.report import duration, write_json
    from benchmarks.of_load.level import Level, as_markdown, knee_in, level_of
    from benchmarks.of_load.page import draw_page
    from benchmarks.provider.running import provider
except ModuleNotFoundError as error:
    sys.exit(f"{error}. Install what the benchmarks need: pip install -e '.[bench]'")

LOADS = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000)
LOADS_QUICK = (5, 20)
_SPARE_FILES = 200  # beside one for each conversation


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--conversations",
        type=int,
        nargs="+",
        metavar="N",
        help=f"the loads ({', '.join(map(str, LOADS))})",
    )
    parser.add_argument("--turns", type=int, help="of each conversation (4; with --quick, 2)")
    parser.add_argument(
        "--median",
        type=float,
        help=(
            "seconds for which the provider holds half of its replies at most (0.3; with "
            "--quick, 0.01)"
        ),
    )
    parser.add_argument(
        "--sigma",
        type=float,
        default=0.6,
        help="how much these differ: the standard deviation of their logarithm (0.6)",
    )
    parser.add_argument(
        "--think",
        type=float,
        help="seconds that a user thinks before each turn, on average (0.5; with --quick, 0.01)",
    )
    parser.add_argument(
        "--least",
        type=int,
        help=(
            "turns of a load at least: with few conversations, each slot has several (2,000; "
            "with --quick, 20)"
        ),
    )
    parser.add_argument("--streaming", action="store_true", help="the replies are streamed")
    parser.add_argument(
        "--unpaced",
        action="store_true",
        help="full garbage collections are left to Python, for comparison",
    )
    parser.add_argument("--quick", action="store_true", help="two small loads: a smoke test")
    parser.add_argument(
        "--timeout", type=float, default=1800.0, help="seconds for one load (1,800)"
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="the JSON file, beside which the table and the plot go (results/load.json)",
    )
    parser.add_argument("--no-plot", action="store_true")
    options = parser.parse_args(given)
    quick = options.quick
    options.conversations = sorted(set(options.conversations or (LOADS_QUICK if quick else LOADS)))
    options.turns = options.turns or (2 if quick else 4)
    options.median = options.median if options.median is not None else 0.01 if quick else 0.3
    options.think = options.think if options.think is not None else 0.01 if quick else 0.5
    options.least = options.least or (20 if quick else 2_000)
    if options.conversations[0] < 1 or options.turns < 1 or min(options.median, options.think) < 0:
        parser.error("there has to be a conversation and a turn, and no time is below zero")
    options.output = options.output or RESULTS / (
        "-".join(
            [
                "load",
                *(["quick"] if quick else []),
                *(["streaming"] if options.streaming else []),
                *(["unpaced"] if options.unpaced else []),
            ]
        )
        + ".json"
    )
    return options


def one_level(conversations: int, options: argparse.Namespace) -> Level:
    """One load, with a provider and a process of its own."""
    repeats = max(1, math.ceil(options.least / (conversations * options.turns)))
    with provider(median=options.median, sigma=options.sigma) as address:
        figures = in_process(
            "benchmarks.of_load.worker",
            *(
                "--port",
                str(address.port),
                "--conversations",
                str(conversations),
                "--repeats",
                str(repeats),
            ),
            *(
                "--turns",
                str(options.turns),
                "--think",
                str(options.think),
                *(["--streaming"] if options.streaming else []),
                *(["--unpaced"] if options.unpaced else []),
            ),
            timeout=options.timeout,
        )
    return level_of(figures)


def measure(options: argparse.Namespace, console: Console) -> list[Level]:
    """The loads, the least first. One that fails ends it: a greater one would, too."""
    levels: list[Level] = []
    files = most_open_files()
    columns = (
        TextColumn("{task.description:32}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=len(options.conversations))
        for conversations in options.conversations:
            progress.update(task, description=f"{conversations:,} conversations")
            if conversations + _SPARE_FILES > files:
                console.print(
                    f"[yellow]{conversations:,} conversations may need more than the "
                    f"{files:,} files that a process may open here (ulimit -Hn)."
                )
            try:
                levels.append(one_level(conversations, options))
            except (ProcessFailed, RuntimeError) as error:
                console.print(
                    f"[yellow]With {conversations:,} conversations, it failed, and greater "
                    "loads are left out:",
                    str(error),
                    style="yellow",
                )
                break
            progress.advance(task)
    return levels


def main() -> None:
    options = arguments()
    machine = describe()
    try:
        levels = measure(options, Console(stderr=True))
    except KeyboardInterrupt:
        sys.exit("\nStopped.")
    if not levels:
        sys.exit("No load came to its end.")
    machine["load_after"] = describe()["load"]
    knee = knee_in(levels)
    footnote = (
        f"{machine_line(machine)}. "
        f"The provider holds a reply for {duration(options.median)} (median, sigma "
        f"{options.sigma}), a user thinks for {duration(options.think)}; "
        f"{options.turns} turns{', streamed' if options.streaming else ''}"
        f"{', full collections left to Python' if options.unpaced else ''}."
    )
    # This benchmark has two processes.
    note = busy_note({**machine, "load_after": max(0.0, (machine["load_after"] or 0.0) - 1)})
    text = as_markdown(levels, knee, f"# Load\n\n{footnote}\n\n{note}".rstrip())
    table = options.output.with_suffix(".md")
    write_json(
        options.output,
        {
            "benchmark": "load",
            "made": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "machine": machine,
            "options": {
                key: getattr(options, key)
                for key in (
                    "quick",
                    "turns",
                    "median",
                    "sigma",
                    "think",
                    "least",
                    "streaming",
                    "unpaced",
                )
            },
            "levels": [asdict(one) for one in levels],
            "knee": asdict(knee),
        },
    )
    table.write_text(text, encoding="utf-8")
    written = [options.output, table]
    if not options.no_plot and len(levels) > 1:
        written += draw_page(options.output, levels, knee, footnote)
    console = Console()
    console.print(Markdown(text))
    console.print("Written:", ", ".join(os.path.relpath(path) for path in written))


if __name__ == "__main__":
    main()
