"""Two revisions of this project, by turns on one machine, and a verdict that knows the noise:
faster, slower, or no difference that this run can see.

    python -m benchmarks compare main HEAD
    python -m benchmarks compare HEAD .              what the working tree changes (of files that
    git tracks)
    python -m benchmarks compare HEAD HEAD           the noise: there should be no difference
    python -m benchmarks compare HEAD HEAD --quick   whether it works

Each revision has a worktree and an environment, made for the run and removed after it. README.md
beside it says how to read the verdict.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
from pathlib import Path

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

    from benchmarks.contenders.base import Load
    from benchmarks.lab.catalogue import RESULTS
    from benchmarks.lab.machine import busy_note, describe, machine_line
    from benchmarks.lab.report import write_json
    from benchmarks.of_agents.workloads import MEASURES
    from benchmarks.of_compare.checkouts import CheckoutFailed, both_checked_out
    from benchmarks.of_compare.rounds import measure
    from benchmarks.of_compare.table import as_markdown, judge
    from benchmarks.provider.running import provider
    from benchmarks.workers.worker import WorkerFailed
except ModuleNotFoundError as error:
    sys.exit(f"{error}. Install what the benchmarks need: pip install -e '.[bench]'")

LOADS = {
    "turn": Load(3000),
    "turns_at_once": Load(3, 1000),
    "tool": Load(2000),
    "transfer": Load(1500),
    "resumes_memory": Load(500),
    "http_whole": Load(300, 50),
    "http_stream": Load(150, 50),
}
USUAL = ("turn", "tool", "transfer", "resumes_memory")
QUICK = {"turn": Load(30), "tool": Load(20)}
TITLES = {
    **{one.key: one.title for one in MEASURES},
    "http_whole": "HTTP, whole",
    "http_stream": "HTTP, streamed",
}


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "first", metavar="REV1", help="a revision, as git understands it, or . for the working tree"
    )
    parser.add_argument("second", metavar="REV2")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[*LOADS],
        metavar="WORKLOAD",
        help=f"any of {', '.join(LOADS)} ({', '.join(USUAL)})",
    )
    parser.add_argument("--blocks", type=int, help="pairs of processes (10; with --quick, 2)")
    parser.add_argument(
        "--pairs", type=int, help="rounds of each in a block, of each workload (6; with --quick, 2)"
    )
    parser.add_argument("--seconds", type=float, default=0.25, help="of a round, about (0.25)")
    parser.add_argument("--confidence", type=float, default=0.99, help="of the interval (0.99)")
    parser.add_argument(
        "--least", type=float, default=0.02, help="a smaller difference is none (0.02)"
    )
    parser.add_argument(
        "--quick", action="store_true", help="small rounds, few of them: a smoke test"
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="the JSON file, beside which the table goes (results/compare.json)",
    )
    options = parser.parse_args(given)
    options.loads = (
        QUICK
        if options.quick and not options.only
        else {key: LOADS[key] for key in options.only or USUAL}
    )
    options.blocks = options.blocks or (2 if options.quick else 10)
    options.pairs = options.pairs or (2 if options.quick else 6)
    options.output = options.output or RESULTS / (
        "compare-quick.json" if options.quick else "compare.json"
    )
    return options


def run(options: argparse.Namespace, console: Console) -> tuple[str, dict[str, object]]:
    machine = describe()
    columns = (
        TextColumn("{task.description:32}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with (
        console.status("a worktree and an environment for each revision") as status,
        both_checked_out(options.first, options.second) as checkouts,
    ):
        status.stop()
        with provider() as address, Progress(*columns, console=console) as progress:
            task = progress.add_task("", total=options.blocks * options.pairs * len(options.loads))
            found = measure(
                (checkouts[0].interpreter, checkouts[1].interpreter),
                options.loads,
                blocks=options.blocks,
                pairs=options.pairs,
                seconds=options.seconds,
                provider=address.base_url,
                on_pair=lambda workload: progress.update(
                    task, advance=1, description=TITLES.get(workload, workload)
                ),
            )
    machine["load_after"] = describe()["load"]
    verdicts = judge(found, confidence=options.confidence, least=options.least)
    heading = (
        f"# Two revisions\n\n{machine_line(machine)}; {options.blocks} pairs of processes, "
        f"{options.pairs} pairs of rounds in each.\n\n{busy_note(machine)}"
    ).rstrip()
    text = as_markdown(verdicts, checkouts, TITLES, heading)
    return text, {
        "benchmark": "compare",
        "made": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "options": {
            key: getattr(options, key)
            for key in ("quick", "blocks", "pairs", "seconds", "confidence", "least")
        },
        "revisions": [
            {"given": one.revision, "commit": one.commit, "subject": one.subject}
            for one in checkouts
        ],
        "verdicts": [one.as_json() for one in verdicts],
        "rounds": [
            {"workload": one.workload, "cpu_seconds": one.cpu, "seconds": one.wall} for one in found
        ],
    }


def main() -> None:
    options = arguments()
    try:
        text, document = run(options, Console(stderr=True))
    except (CheckoutFailed, WorkerFailed) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("\nStopped. The worktrees and environments are removed.")
    write_json(options.output, document)
    table = options.output.with_suffix(".md")
    table.write_text(text, encoding="utf-8")
    console = Console()
    console.print(Markdown(text))
    console.print("Written:", os.path.relpath(options.output), os.path.relpath(table))


if __name__ == "__main__":
    main()
