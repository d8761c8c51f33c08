"""One process of the demo: `python -m offbook.actors.demo.worker FOLDER PACE begin|recover|yes|no`.

Owns: what such a process does, and what it tells the command that has started it: a line for each
event, with the tree of actors at that moment, and a last one for how the run has ended. It does not
know which one of them is killed.
"""

from __future__ import annotations

import asyncio
import json
import sys
from base64 import b64encode
from pathlib import Path
from typing import Final

from ...runtime.codec.packing import pack
from ...runtime.run.run import Run
from ...runtime.runner import Runner
from ...runtime.stores import SQLiteStore
from ...runtime.system.system import ActorSystem
from .trip import QUESTION, trip

__all__ = ["RUN_ID", "STORE", "main"]

RUN_ID: Final = "trip-1"
STORE: Final = "runs.db"
_LOOK_AGAIN: Final = 0.5
"""Seconds: where nothing shows that a process has gone (not on Linux), its leases expire after a
while.
"""


def main() -> None:
    """Run the process."""
    folder, pace, part = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    asyncio.run(_play(folder, pace, part))


async def _play(folder: Path, pace: float, part: str) -> None:
    async with SQLiteStore(folder / STORE) as store, ActorSystem("demo") as system:
        runner = Runner(trip(folder, pace), system=system, store=store, durability="step")
        run = await _begun(runner, part)
        async for event in run:
            _tell({"event": b64encode(pack(event)).decode(), "tree": str(system.tree())})
        _tell({"status": (await run).status.value})


async def _begun(runner: Runner, part: str) -> Run:
    if part == "begin":
        return runner.query(QUESTION, run_id=RUN_ID)
    if part != "recover":
        (waits,) = (await runner.info(RUN_ID)).waiting
        return runner.approve(waits) if part == "yes" else runner.deny(waits)
    while not (found := await runner.recover()):  # noqa: ASYNC110 -- nothing tells that a process has gone
        await asyncio.sleep(_LOOK_AGAIN)
    return found[0]


def _tell(what: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
