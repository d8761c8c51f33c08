"""The load benchmark of the actor runtime: against pykka, autogen-core and bare asyncio, in rounds
that are interleaved.

    python -m benchmarks actors                 everything: a table, the budgets, a JSON file and a
                                                plot
    python -m benchmarks actors --quick         the same in small, to see that it works; its figures
                                                mean nothing
    python -m benchmarks actors --only ask      one measure (may be given several times)

README.md beside it says what the figures mean and how much of them is noise.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

# Run by its path, as `python benchmarks/actors.py`: what is imported below is found beside this
# folder, not in it.
if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])

try:
    import psutil
    from rich import box
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.table import Table

    from benchmarks import contenders
    from benchmarks.contenders.base import Contender, Load
    from benchmarks.lab.catalogue import RESULTS
    from benchmarks.lab.machine import describe, placements
    from benchmarks.lab.measure import Entry, Series, interleave, stamp_cost
    from benchmarks.lab.report import (
        Measure,
        amount,
        budget_table,
        duration,
        results_table,
        series_as_json,
        write_json,
    )
    from benchmarks.of_actors.budgets import actor_budgets
    from benchmarks.of_actors.idle import Idle, measure_idle
    from benchmarks.of_actors.page import draw_page
except ModuleNotFoundError as error:
    sys.exit(f"{error}. Install what the benchmarks need: pip install -e '.[bench]'")

INSTALL = r"pip install -e '.\[bench]'"  # as rich has it

MEASURES = (
    Measure("spawn", "spawn", "one spawn"),
    Measure("ask", "ask", "one ask, until the reply is here"),
    Measure(
        "ask_awaiting", "ask, handler awaits", "one ask whose handler gives way to the loop once"
    ),
    Measure("tell", "tell", "one tell, for the sender"),
    Measure("fan_out", "fan-out", "asking one actor that asks its children at once and gathers"),
    Measure("stop", "stop", "stopping one idle actor, until it has ended"),
    Measure("shutdown", "shutdown", "stopping all at once, per actor"),
    Measure(
        "control",
        "stop behind work",
        "stopping one whose mailbox is full of work, until it has ended",
    ),
)

FULL = {
    "spawn": Load(2000),
    "ask": Load(3000),
    "ask_awaiting": Load(2000),
    "tell": Load(5, 1000),
    "fan_out": Load(30, 100),
    "stop": Load(1000),
    "shutdown": Load(1000),
    "control": Load(3, 1000),
}
QUICK = {
    "spawn": Load(100),
    "ask": Load(200),
    "ask_awaiting": Load(100),
    "tell": Load(1, 200),
    "fan_out": Load(3, 20),
    "stop": Load(50),
    "shutdown": Load(50),
    "control": Load(1, 50),
}
COUNTS = (1_000, 10_000, 100_000, 1_000_000)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="small rounds, two of each: a smoke test"
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="MEASURE",
        choices=[*FULL, "memory"],
        help=f"one of {', '.join([*FULL, 'memory'])}; repeatable",
    )
    parser.add_argument(
        "--against",
        action="append",
        metavar="CONTENDER",
        choices=contenders.KEYS,
        help=f"one of {', '.join(contenders.KEYS)}; repeatable",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        help="rounds that count, of each measure, contender and placement (15; with --quick, 2)",
    )
    parser.add_argument(
        "--pin",
        choices=("yes", "no", "both"),
        help="run on one core, on any, or each round on both (both; with --quick, no)",
    )
    parser.add_argument("--no-memory", action="store_true", help="leave out the idle actors")
    parser.add_argument(
        "--most",
        type=int,
        metavar="N",
        help="of the idle actors, at most so many (1,000,000; with --quick, 1,000)",
    )
    parser.add_argument("--uvloop", action="store_true", help="give all event loops to uvloop")
    parser.add_argument(
        "--output",
        type=Path,
        help=(
            "the JSON file, beside which the plots go (results/actors.json; part of a benchmark "
            "has its own)"
        ),
    )
    parser.add_argument("--no-plot", action="store_true")
    options = parser.parse_args()
    options.rounds = options.rounds or (2 if options.quick else 15)
    options.pin = options.pin or ("no" if options.quick else "both")
    options.most = options.most or (1_000 if options.quick else 1_000_000)
    if options.output is None:
        # So that a smoke test or a part does not overwrite the figures of the whole.
        name = "-".join(
            [
                "actors",
                *(["quick"] if options.quick else []),
                *(options.only or ()),
                *(options.against or ()),
            ]
        )
        options.output = RESULTS / f"{name}.json"
    if options.only and "memory" not in options.only:
        options.no_memory = True
    return options


def installed(options: argparse.Namespace, console: Console) -> list[Contender]:
    """The contenders of this run. Those that are not installed are left out, with a message."""
    found = []
    for key in options.against or contenders.KEYS:
        try:
            found.append(contenders.load(key, contenders.loop_factory(uvloop=options.uvloop)))
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "offbook":
                raise
            console.print(f"[yellow]{key} is left out: {error}. {INSTALL} brings it.")
    return found


def run_measures(
    options: argparse.Namespace,
    measures: Sequence[Measure],
    fields: Sequence[Contender],
    progress: Progress,
) -> list[Series]:
    loads = QUICK if options.quick else FULL
    places = placements(options.pin)
    series: list[Series] = []
    plan = {
        measure: [one for one in fields if measure.key not in one.cannot] for measure in measures
    }
    task = progress.add_task(
        "", total=sum(map(len, plan.values())) * len(places) * (options.rounds + 1)
    )
    for measure, taking_part in plan.items():

        def on_round(contender: str, measure: Measure = measure) -> None:
            progress.update(task, advance=1, description=f"{measure.title}: {contender}")

        entries = [
            Entry(one.key, _round(one, measure.key, loads[measure.key])) for one in taking_part
        ]
        series += interleave(
            measure.key, entries, rounds=options.rounds, placements=places, on_round=on_round
        )
    progress.update(task, description="rounds")
    return series


def _round(contender: Contender, measure: str, load: Load) -> Any:
    return lambda watch: contender.run(measure, load, watch)


def run_idle(
    options: argparse.Namespace, fields: Sequence[Contender], progress: Progress
) -> list[Idle]:
    counts = [count for count in COUNTS if count <= options.most] or [options.most]
    plan = [
        (count, one)
        for count in counts
        for one in fields
        if one.most_idle is None or count <= one.most_idle
    ]
    task = progress.add_task("", total=len(plan))
    idles: dict[tuple[str, int], Idle] = {}
    per_actor: dict[str, float] = {}
    for count, one in plan:
        progress.update(task, description=f"{count:,} idle: {one.key}")
        needed = per_actor.get(one.key, 0.0) * count * 1.3
        if needed > psutil.virtual_memory().available:
            progress.console.print(
                f"[yellow]{one.key} with {count:,} idle actors is left out: it needs some "
                f"{amount(needed)}, and there is not so much free."
            )
        else:
            idle = measure_idle(one.key, count, uvloop=options.uvloop)
            idles[one.key, count] = idle
            per_actor[one.key] = idle.bytes_per_actor
        progress.advance(task)
    progress.update(task, description="idle actors")
    return list(idles.values())


def idle_table(idles: Sequence[Idle], fields: Sequence[Contender]) -> Table:
    table = Table(
        title="Idle actors, each row in a process of its own",
        title_justify="left",
        title_style="bold",
        header_style="bold",
        pad_edge=False,
        box=box.SIMPLE_HEAD,
    )
    for name in ("actors", "contender"):
        table.add_column(name, justify="right" if name == "actors" else "left")
    for name in ("each", "whole process", "to spawn them", "each", "to stop them"):
        table.add_column(name, justify="right", no_wrap=True)
    found = {(idle.count, idle.contender): idle for idle in idles}
    for count in dict.fromkeys(idle.count for idle in idles):
        for one in fields:
            idle = found.get((count, one.key))
            if idle is not None:
                spawn = (duration(idle.spawn_seconds), duration(idle.spawn_seconds / count))
                table.add_row(
                    f"{count:,}",
                    one.title,
                    f"{idle.bytes_per_actor:,.0f} B",
                    amount(idle.resident),
                    *spawn,
                    duration(idle.stop_seconds),
                )
        table.add_section()
    return table


def main() -> None:
    options = arguments()
    console = Console()
    if not console.is_terminal or console.width < 140:
        console = Console(width=140)  # a line that wraps is better than one that is cut
    fields = installed(options, console)
    measures = [measure for measure in MEASURES if not options.only or measure.key in options.only]
    machine = describe()
    columns = (
        TextColumn("{task.description:40}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        stamp = stamp_cost()
        series = run_measures(options, measures, fields, progress)
        idles = [] if options.no_memory else run_idle(options, fields, progress)

    titles = {one.key: one.title for one in fields}
    cannot = {(measure, one.key): why for one in fields for measure, why in one.cannot.items()}
    differs = {(measure, one.key): what for one in fields for measure, what in one.differs.items()}
    console.print(
        f"\n{machine['processor']}, {machine['cores']} cores, {machine['python']}, load "
        f"{machine['load']} when it began; "
        f"{options.rounds} rounds; a lap costs each operation {duration(stamp)}; "
        f"{', '.join(f'{one.key} {one.version()}' for one in fields)}\n"
    )
    if (machine["load"] or 0) > machine["cores"] / 2:
        console.print(
            "[yellow]The machine is busy with something else, which distorts all that is "
            "measured by the clock: trust p50 and the ratios by CPU.\n"
        )
    for placement in dict.fromkeys(one.placement for one in series):
        title = f"{placement.name}: {'on one core' if placement.cores else 'on all cores'}"
        shown = [one for one in series if one.placement == placement]
        console.print(
            results_table(
                title,
                measures,
                shown,
                titles=titles,
                reference=contenders.REFERENCE,
                cannot=cannot,
                differs=differs,
            ),
            "",
        )
    if idles:
        console.print(idle_table(idles, fields), "")
    budgets = actor_budgets(measures, series, idles, differs)
    console.print(budget_table(budgets))
    write_json(
        options.output,
        {
            "benchmark": "actors",
            "made": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "machine": {**machine, "load_after": describe()["load"]},
            "options": {
                "quick": options.quick,
                "rounds": options.rounds,
                "pin": options.pin,
                "uvloop": options.uvloop,
                "garbage_collector": "on",
            },
            "seconds_per_lap": stamp,
            "loads": {
                key: asdict(load) for key, load in (QUICK if options.quick else FULL).items()
            },
            "contenders": {
                one.key: {
                    "what": one.what,
                    "version": one.version(),
                    "cannot": one.cannot,
                    "differs": one.differs,
                }
                for one in fields
            },
            "series": series_as_json(series, contenders.REFERENCE),
            "idle": [asdict(idle) for idle in idles],
            "budgets": [asdict(budget) for budget in budgets],
        },
    )
    written = [options.output]
    if not options.no_plot and series:
        try:
            written += draw_page(
                options.output,
                measures,
                series,
                idles,
                fields=fields,
                machine=machine,
                rounds=options.rounds,
            )
        except ModuleNotFoundError as error:
            console.print(f"[yellow]There is no plot: {error}. {INSTALL} brings it.")
    console.print("Written:", ", ".join(os.path.relpath(path) for path in written))


if __name__ == "__main__":
    main()
