"""The benchmark of agents and runs: against peers that are installed and a bare loop, in rounds
that are interleaved.

    python -m benchmarks agents                 everything: tables, the budgets, a JSON file and a
                                                plot
    python -m benchmarks agents --quick         the same in small, to see that it works; its figures
                                                mean nothing
    python -m benchmarks agents --only W2 W6    some workloads, or measures by name

README.md beside it says what the figures mean and how much of them is noise.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

# Run by its path, as `python benchmarks/agents.py`: what is imported below is found beside this
# folder, not in it.
if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])

try:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from benchmarks import contenders
    from benchmarks.contenders.agents_base import KEYS, REFERENCE, AgentContender, load_contender
    from benchmarks.lab.catalogue import RESULTS
    from benchmarks.lab.machine import describe, placements
    from benchmarks.lab.measure import Entry, interleave, stamp_cost
    from benchmarks.lab.report import (
        Measure,
        budget_table,
        duration,
        results_table,
        series_as_json,
        write_json,
    )
    from benchmarks.of_agents.budgets import Figures, agent_budgets
    from benchmarks.of_agents.census import measure_census
    from benchmarks.of_agents.footprint import (
        measure_definitions,
        measure_imports,
        measure_sessions,
    )
    from benchmarks.of_agents.page import draw_page
    from benchmarks.of_agents.tables import process_tables, waits_table
    from benchmarks.of_agents.workloads import (
        FULL,
        IN_PROCESSES,
        MEASURES,
        PEERS_MODULES,
        QUICK,
        SIZES_FULL,
        SIZES_QUICK,
        WAITS,
    )
except ModuleNotFoundError as error:
    sys.exit(f"{error}. Install what the benchmarks need: pip install -e '.[bench]'")

INSTALL = r"pip install -e '.\[bench]'"  # as rich has it

# The measures in processes of their own that belong to a workload, beside the measures whose titles
# begin with its name.
WORKLOADS = {"W1": "definitions", "W6": "sessions", "W8": "imports"}

# With more sessions than this, a contender is not tried: it would take too long.
MOST_SESSIONS = {"openai-agents": 1_000}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = [*FULL, *IN_PROCESSES]
    parser.add_argument(
        "--quick", action="store_true", help="small rounds, two of each: a smoke test"
    )
    parser.add_argument(
        "--only",
        action="extend",
        nargs="+",
        metavar="WHAT",
        help=f"W1 to W8, or any of {', '.join(known)}",
    )
    parser.add_argument(
        "--against",
        action="extend",
        nargs="+",
        metavar="CONTENDER",
        choices=KEYS,
        help=f"any of {', '.join(KEYS)}",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        help="rounds that count, of each measure, contender and placement (10; with --quick, 2)",
    )
    parser.add_argument(
        "--pin",
        choices=("yes", "no", "both"),
        help="run on one core, on any, or each round on both (both; with --quick, no)",
    )
    parser.add_argument(
        "--uvloop", action="store_true", help="give the event loops of the rounds to uvloop"
    )
    parser.add_argument(
        "--output",
        type=Path,
        help=(
            "the JSON file, beside which the plots go (results/agents.json; part of a benchmark "
            "has its own)"
        ),
    )
    parser.add_argument("--no-plot", action="store_true")
    options = parser.parse_args()
    options.what = chosen(options.only, known, parser)
    options.rounds = options.rounds or (2 if options.quick else 10)
    options.pin = options.pin or ("no" if options.quick else "both")
    if options.output is None:
        # So that a smoke test or a part does not overwrite the figures of the whole.
        name = "-".join(
            [
                "agents",
                *(["quick"] if options.quick else []),
                *(options.only or ()),
                *(options.against or ()),
            ]
        )
        options.output = RESULTS / f"{name}.json"
    return options


def chosen(
    only: Sequence[str] | None, known: Sequence[str], parser: argparse.ArgumentParser
) -> set[str]:
    """The measures that `--only` names: W2 means W2c, too."""
    if not only:
        return set(known)
    found: set[str] = set()
    for name in only:
        mine = {
            measure.key
            for measure in (*MEASURES, *WAITS)
            if name.startswith("W") and measure.title.partition(" ")[0].startswith(name)
        }
        mine |= {name} & set(known)
        mine |= {WORKLOADS[name]} if name in WORKLOADS else set()
        if not mine:
            parser.error(
                f"--only {name}: there is no such workload or measure. There are W1 to W8, "
                f"{', '.join(known)}."
            )
        found |= mine
    return found


def installed(options: argparse.Namespace, console: Console) -> list[AgentContender]:
    """The contenders of this run.

    The benchmarks do not require peers: those that are not installed are left out, with a message.
    """
    found = []
    for key in options.against or KEYS:
        try:
            found.append(load_contender(key, contenders.loop_factory(uvloop=options.uvloop)))
        except ModuleNotFoundError as error:
            if (error.name or "").partition(".")[0] == "offbook":
                raise
            console.print(f"[yellow]{key} is left out: {error}. pip install {key} brings it.")
    return found


def run_rounds(
    options: argparse.Namespace,
    figures: Figures,
    measures: Sequence[Measure],
    fields: Sequence[AgentContender],
    progress: Progress,
) -> None:
    loads = QUICK if options.quick else FULL
    places = placements(options.pin)
    plan = {
        measure: [
            one for one in fields if measure.key not in one.cannot and hasattr(one, measure.key)
        ]
        for measure in measures
    }
    task = progress.add_task(
        "", total=sum(map(len, plan.values())) * len(places) * (options.rounds + 1)
    )
    for measure, taking_part in plan.items():
        if not taking_part:
            continue

        def on_round(contender: str, measure: Measure = measure) -> None:
            progress.update(task, advance=1, description=f"{measure.title}: {contender}")

        entries = [
            Entry(one.key, _round(one, measure.key, loads[measure.key])) for one in taking_part
        ]
        figures.series += interleave(
            measure.key, entries, rounds=options.rounds, placements=places, on_round=on_round
        )
    progress.update(task, description="rounds")


def _round(contender: AgentContender, measure: str, load: Any) -> Any:
    return lambda watch: contender.run(measure, load, watch)


def run_processes(
    options: argparse.Namespace,
    figures: Figures,
    fields: Sequence[AgentContender],
    progress: Progress,
) -> None:
    """Make the measurements that need processes of their own.

    A peer whose process fails is left out, with a message.
    """
    sizes = SIZES_QUICK if options.quick else SIZES_FULL
    task = progress.add_task("", total=None)

    def attempt(what: str, one: AgentContender, measure: Callable[[], None]) -> None:
        progress.update(task, description=f"{what}: {one.key}")
        try:
            measure()
        except RuntimeError as error:
            if one.key == REFERENCE:
                raise
            progress.console.print(f"[yellow]{what}: {one.key} is left out: {error}")

    if "definitions" in options.what:
        (count,) = sizes["definitions"]
        for one in fields:
            if "define_shared" not in one.cannot:
                attempt(f"{count:,} definitions", one, partial(_definitions, figures, one, count))
    if "sessions" in options.what:
        for count in sizes["sessions"]:
            for one in fields:
                if count <= MOST_SESSIONS.get(one.key, count):
                    times = 1 if options.quick or one.key != REFERENCE else 3
                    attempt(
                        f"{count:,} sessions", one, partial(_sessions, figures, one, count, times)
                    )
        if REFERENCE in {one.key for one in fields}:
            progress.update(task, description="tracked objects")
            figures.objects += measure_census(sizes["objects"][0])
    if "imports" in options.what:
        progress.update(task, description="imports")
        wanted = {
            key: module
            for key, module in PEERS_MODULES.items()
            if key in {one.key for one in fields} or key not in KEYS
        }
        figures.imports += measure_imports(wanted, times=sizes["imports"][0])
    progress.update(task, description="processes", total=1, completed=1)


def _definitions(figures: Figures, one: AgentContender, count: int) -> None:
    figures.definitions += [
        measure_definitions(one.key, count, own_tool=own_tool) for own_tool in (False, True)
    ]


def _sessions(figures: Figures, one: AgentContender, count: int, times: int) -> None:
    figures.sessions.append(measure_sessions(one.key, count, times=times))


def show(console: Console, figures: Figures, fields: Sequence[AgentContender]) -> None:
    titles = {one.key: one.title for one in fields}
    cannot = {(measure, one.key): why for one in fields for measure, why in one.cannot.items()}
    differs = {(measure, one.key): what for one in fields for measure, what in one.differs.items()}
    for placement in dict.fromkeys(one.placement for one in figures.series):
        title = f"{placement.name}: {'on one core' if placement.cores else 'on all cores'}"
        mine = [one for one in figures.series if one.placement == placement]
        measured = {one.measure for one in mine}
        if shown := [measure for measure in MEASURES if measure.key in measured]:
            kept = [one for one in mine if one.measure in {measure.key for measure in shown}]
            console.print(
                results_table(
                    title,
                    shown,
                    kept,
                    titles=titles,
                    reference=REFERENCE,
                    cannot=cannot,
                    differs=differs,
                ),
                "",
            )
        if waits := [measure for measure in WAITS if measure.key in measured]:
            console.print(
                waits_table(f"{title}; beyond what the models sleep", waits, mine, titles, differs),
                "",
            )
    for table in process_tables(figures, titles):
        console.print(table, "")


def main() -> None:
    options = arguments()
    console = Console()
    if not console.is_terminal or console.width < 150:
        console = Console(width=150)  # a line that wraps is better than one that is cut
    fields = installed(options, console)
    measures = [measure for measure in (*MEASURES, *WAITS) if measure.key in options.what]
    machine = describe()
    figures = Figures()
    columns = (
        TextColumn("{task.description:40}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        stamp = stamp_cost()
        run_rounds(options, figures, measures, fields, progress)
        run_processes(options, figures, fields, progress)

    after = describe()["load"]
    console.print(
        f"\n{machine['processor']}, {machine['cores']} cores, {machine['python']}, load "
        f"{machine['load']} when it began and {after} when it ended; "
        f"{options.rounds} rounds; a lap costs each operation {duration(stamp)}; "
        f"{', '.join(f'{one.key} {one.version()}' for one in fields)}\n"
    )
    if max(machine["load"] or 0, (after or 0) - 1) > machine["cores"] / 2:
        console.print(
            "[yellow]The machine is busy with something else, which distorts whatever is "
            "measured by the clock: trust p50 and what is by CPU.\n"
        )
    show(console, figures, fields)
    judged = [
        measure for measure in measures if not options.quick or measure not in WAITS
    ]  # a quick run has fewer agents there
    budgets = agent_budgets(figures, {measure.key: measure.title for measure in judged})
    if budgets:
        console.print(budget_table(budgets))
    write_json(
        options.output,
        {
            "benchmark": "agents",
            "made": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "machine": {**machine, "load_after": after},
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
            "series": series_as_json(figures.series, REFERENCE),
            "definitions": [asdict(one) for one in figures.definitions],
            "sessions": [asdict(one) for one in figures.sessions],
            "objects": [asdict(one) for one in figures.objects],
            "imports": [asdict(one) for one in figures.imports],
            "budgets": [asdict(budget) for budget in budgets],
        },
    )
    written = [options.output]
    if not options.no_plot and figures.series:
        try:
            written += draw_page(
                options.output,
                measures,
                figures,
                fields=fields,
                machine=machine,
                rounds=options.rounds,
            )
        except ModuleNotFoundError as error:
            console.print(f"[yellow]There is no plot: {error}. {INSTALL} brings it.")
    console.print("Written:", ", ".join(os.path.relpath(path) for path in written))


if __name__ == "__main__":
    main()
