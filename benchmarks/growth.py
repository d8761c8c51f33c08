"""How the costs grow: of a turn with its history, of a transfer, of runs at once, of idle sessions
and waiting runs; flat or linear, and whether it should be.

    python -m benchmarks growth                          some minutes
    python -m benchmarks growth --only history at_once   some questions
    python -m benchmarks growth --quick                  some seconds: whether it works. Its figures
    mean nothing

Each size is in a process of its own; costs are CPU time. README.md beside it says what the
exponents mean.
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

    from benchmarks.lab.catalogue import RESULTS
    from benchmarks.lab.machine import busy_note, describe, machine_line
    from benchmarks.lab.process import ProcessFailed, in_process
    from benchmarks.lab.report import write_json
    from benchmarks.of_growth.answer import Answer, as_markdown, draw_page
    from benchmarks.of_growth.questions import QUESTIONS, Question
except ModuleNotFoundError as error:
    sys.exit(f"{error}. Install what the benchmarks need: pip install -e '.[bench]'")

_TIMEOUT = 600.0


def arguments(given: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=[*QUESTIONS],
        metavar="QUESTION",
        help=f"any of {', '.join(QUESTIONS)}",
    )
    parser.add_argument("--rounds", type=int, help="of each size (5; with --quick, 1)")
    parser.add_argument(
        "--quick", action="store_true", help="two small sizes of each: a smoke test"
    )
    parser.add_argument(
        "--output",
        type=Path,
        help="the JSON file, beside which the table and the plot go (results/growth.json)",
    )
    parser.add_argument("--no-plot", action="store_true")
    options = parser.parse_args(given)
    options.questions = [QUESTIONS[key] for key in options.only or QUESTIONS]
    options.rounds = options.rounds or (1 if options.quick else 5)
    options.output = options.output or RESULTS / (
        "growth-quick.json" if options.quick else "growth.json"
    )
    return options


def sizes_of(question: Question, *, quick: bool) -> tuple[int, ...]:
    return question.quick if quick else question.sizes


def measure(options: argparse.Namespace, console: Console) -> list[Answer]:
    """Every size of a question has its first round before any has its second."""
    figures: dict[str, dict[int, list[float]]] = {
        one.key: {size: [] for size in sizes_of(one, quick=options.quick)}
        for one in options.questions
    }
    columns = (
        TextColumn("{task.description:40}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=options.rounds * sum(map(len, figures.values())))
        for question in options.questions:
            for _ in range(options.rounds):
                for size in figures[question.key]:
                    progress.update(task, description=f"{question.title}: {size:,}")
                    arguments = (
                        question.key,
                        str(size),
                        *(["--least", "0.02"] if options.quick else []),
                    )
                    found = in_process("benchmarks.of_growth.worker", *arguments, timeout=_TIMEOUT)
                    figures[question.key][size].append(found["figure"])
                    progress.advance(task)
    return [Answer(question, figures[question.key]) for question in options.questions]


def main() -> None:
    options = arguments()
    machine = describe()
    try:
        answers = measure(options, Console(stderr=True))
    except ProcessFailed as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("\nStopped.")
    machine["load_after"] = describe()["load"]
    footnote = f"{machine_line(machine)}; {options.rounds} rounds of each size, interleaved."
    text = as_markdown(answers, f"# Growth\n\n{footnote}\n\n{busy_note(machine)}".rstrip())
    table = options.output.with_suffix(".md")
    write_json(
        options.output,
        {
            "benchmark": "growth",
            "made": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
            "machine": machine,
            "options": {"quick": options.quick, "rounds": options.rounds},
            "answers": [one.as_json() for one in answers],
        },
    )
    table.write_text(text, encoding="utf-8")
    written = [options.output, table]
    if not options.no_plot:
        written += draw_page(options.output, answers, footnote)
    console = Console()
    console.print(Markdown(text))
    console.print("Written:", ", ".join(os.path.relpath(path) for path in written))


if __name__ == "__main__":
    main()
