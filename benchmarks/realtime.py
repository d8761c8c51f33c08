"""Spoken sessions: what a chunk of audio, an idle session, a barge-in, a tool and a reconnect cost,
beside a bare websocket and the SDK.

    python -m benchmarks realtime            a quarter of an hour; results/realtime.json and .md
    python -m benchmarks realtime --quick    some seconds, to see that it works; its figures mean
                                             nothing

Each contender has a process of its own on one core, and the server another on the other core, by
loopback. `openai-agents` is measured where it is installed. README.md beside it says what the
figures mean.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# Run by its path: what is imported below is found beside this folder, not in it.
if not __package__:
    sys.path[0] = str(Path(__file__).parents[1])

try:
    from benchmarks.lab.catalogue import RESULTS
    from benchmarks.lab.machine import busy_note, describe, machine_line
    from benchmarks.lab.process import in_process
    from benchmarks.lab.report import write_json
    from benchmarks.of_realtime.contenders import CONTENDERS
    from benchmarks.of_realtime.measures import COMMON, MINE
    from benchmarks.of_realtime.page import as_markdown, as_rows
except ModuleNotFoundError as error:
    sys.exit(f"{error}. Install what the benchmarks need: pip install -e '.[realtime,bench]'")

PACKAGES = {
    "bare": "websockets",
    "offbook": "websockets",
    "openai": "openai",
    "openai-agents": "agents",
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--chunks", type=int, default=5_000, help="of 20 ms, for each figure of CPU"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="200 chunks, one round: a smoke test")
    parser.add_argument(
        "--output", type=Path, help="the JSON file (results/realtime.json); the table is beside it"
    )
    options = parser.parse_args()
    if options.quick:
        options.chunks, options.rounds = 200, 1
    options.output = options.output or RESULTS / (
        "realtime-quick.json" if options.quick else "realtime.json"
    )
    return options


def measure(
    options: argparse.Namespace, there: list[str]
) -> dict[str, list[dict[str, dict[str, float]]]]:
    """All rounds. Contenders take turns, so that the machine's other work slows all alike."""
    rounds: dict[str, list[dict[str, dict[str, float]]]] = {name: [] for name in there}
    for number in range(options.rounds):
        for name in there[number % len(there) :] + there[: number % len(there)]:
            print(f"round {number + 1} of {options.rounds}: {name}", file=sys.stderr, flush=True)
            measures = [*COMMON, *(MINE if name == "offbook" else ())]
            rounds[name].append(
                in_process(
                    "benchmarks.of_realtime.worker",
                    name,
                    str(options.chunks),
                    *measures,
                    timeout=600,
                )
            )
    return rounds


def main() -> None:
    options = arguments()
    machine: dict[str, Any] = describe()
    began = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    there = [name for name in CONTENDERS if find_spec(PACKAGES[name])]
    missing = {
        name: f"`{PACKAGES[name]}` is not installed" for name in CONTENDERS if name not in there
    }
    rounds = measure(options, there)
    machine["load_after"] = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    heading = [
        "# Spoken sessions",
        "",
        f"{options.rounds} rounds of {options.chunks:,} chunks; {machine_line(machine)}.",
        busy_note(machine),
    ]
    if options.quick:
        heading.append("A smoke test: the figures mean nothing.")
    page = as_markdown(rounds, missing, heading)
    print(page)
    described = {
        "benchmark": "realtime",
        "began": began,
        "chunks": options.chunks,
        "machine": machine,
        "missing": missing,
    }
    write_json(options.output, {**described, "budgets": as_rows(rounds), "rounds": rounds})
    options.output.with_suffix(".md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
