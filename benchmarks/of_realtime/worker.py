"""One contender, or what offbook alone is asked, in a process of its own: `python -m
benchmarks.of_realtime.worker NAME SIZE MEASURE...`.

It prints what was measured as JSON, in its last line. It must never be imported.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys

from benchmarks.lab.machine import most_open_files
from benchmarks.of_realtime.measures import COMMON, MINE
from benchmarks.of_realtime.server import ServerProcess


async def main(name: str, size: int, measures: list[str]) -> dict[str, dict[str, float]]:
    found = {}
    for measure in measures:
        with ServerProcess() as server:
            found[measure] = await (
                COMMON[measure](name, server, size)
                if measure in COMMON
                else MINE[measure](server, size)
            )
    return found


if __name__ == "__main__":
    most_open_files()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(json.dumps(asyncio.run(main(sys.argv[1], int(sys.argv[2]), sys.argv[3:]))))
