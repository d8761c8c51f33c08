"""What the tests that kill processes share: what each process has written down of its life, and how
that is compared.
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[3]
LANES = {
    "L1": "Left",
    "L2": "Left",
    "Right": "Right",
    "I1": "I1",
    "I2": "I2",
    "Helper": "Helper",
    "Digger": "Digger",
}


class Attempt:
    """What came of one thing that a process has tried."""

    def __init__(self, lines):
        self.begun = [tuple(line.split()[1:]) for line in lines if line.startswith("begin ")]
        self.shown = [
            json.loads(line.partition(" ")[2]) for line in lines if line.startswith("shown ")
        ]
        self.ended = next(
            (json.loads(line.partition(" ")[2]) for line in lines if line.startswith("ended ")),
            None,
        )
        self.refused = next(
            (line.split()[1] for line in lines if line.startswith("refused ")), None
        )


class Life(Attempt):
    """What one process has written down."""

    def __init__(self, lines):
        super().__init__(lines)
        self.recorded = json.loads(
            next(line for line in lines if line.startswith("recorded ")).partition(" ")[2]
        )
        self.left = next(
            (json.loads(line.partition(" ")[2]) for line in lines if line.startswith("left ")), None
        )
        self.killed = next(
            (line.partition(" ")[2] for line in lines if line.startswith("killed ")), None
        )
        starts = [index for index, line in enumerate(lines) if line.startswith("tries ")]
        self.attempts = [
            Attempt(lines[start:end])
            for start, end in zip(starts, [*starts[1:], None], strict=False)
        ]

    def finds_a_run(self):
        return all(
            any(key.startswith(f"offbook:{kind}:") for key in self.recorded["keys"])
            for kind in ("journal", "open")
        )

    def done(self):
        """The calls whose results were in the store when it began: (kind, name) of each.

        Who has said something has done his step.
        """
        found = {("tool", call_id) for call_id in self.recorded["held"]}
        turns = Counter()
        for _seq, agent, _path, said, _action in self.recorded["events"]:
            if said is not None and said[0] == "tool":
                found.add(("tool", said[3]))
            elif said is not None:
                found |= {("model", f"{agent}-{turns[agent]}"), ("step", agent)}
                turns[agent] += 1
        return found


def in_lanes(events):
    """What was said, lane by lane: where things happen at once, only the order within each
    counts.
    """
    lanes = {}
    for _seq, agent, path, said, action in events:
        is_of_round = agent == "Worker" and said[0] == "tool" and said[3].startswith("Worker-0")
        lanes.setdefault("Worker-0" if is_of_round else LANES.get(agent, "main"), []).append(
            [agent, path, said, action]
        )
    lanes.get("Worker-0", []).sort()
    return lanes


def is_shown(event):
    return event[1] != "Digger"


def spend(program, recipe, *arguments):
    """Run one of the programs, and return for each case the lives that it has had."""
    command = [
        sys.executable,
        "-W",
        "error",
        "-W",
        "ignore::DeprecationWarning",
        "-m",
        f"tests.programs.{program}",
        json.dumps(recipe),
        *map(str, arguments),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=55, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return [[Life(lines) for lines in json.loads(line)] for line in done.stdout.splitlines()]
