"""Tasks that a process has left at work: they are continued here, or have failed with it.

Owns: the search for them, when a server begins and again and again, and the runs that belong to them. A task whose process lives is left alone: who works on a
task has claimed it. It must never continue a run before its task is claimed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ...clock import sleep
from ...log import loggers
from .asks import Continue

if TYPE_CHECKING:
    from ...run.run import Run
    from ...runner import Runner
    from .service import TaskService

__all__ = ["RunFinder", "look_for_lost_tasks"]

_LOOK_SECONDS: Final = 15.0
_COLLECT_SECONDS: Final = 0.05
"""For how long runs are asked for before the store is searched: one search finds them all."""


class RunFinder:
    """Finds the runs of tasks that are claimed."""

    def __init__(self, runner: Runner | None) -> None:
        self._runner = runner
        self._asked: dict[str, asyncio.Future[Run | None]] = {}
        self._searching: asyncio.Task[None] | None = None

    async def find(self, service: TaskService, run_id: str | None) -> Run | None:
        """The run, which goes on; None if there is nothing left of it."""
        if self._runner is None or run_id is None:
            return None
        asked = self._asked.setdefault(run_id, asyncio.get_running_loop().create_future())
        if self._searching is None:
            self._searching = service.run_task(self._search(self._runner, service), "looks for the runs of lost tasks")
        return await asked

    async def _search(self, runner: Runner, service: TaskService) -> None:
        await sleep(_COLLECT_SECONDS, service.system.clock)
        asked, self._asked, self._searching = self._asked, {}, None
        found: dict[str, Run] = {}
        try:
            found = {run.id: run for run in await runner.recover(where=lambda unfinished: unfinished.id in asked)}
        except Exception:  # noqa: BLE001 -- whatever a store raises, it is tried again
            loggers.a2a.exception("The runs of tasks that another process has left could not be found.")
        for run_id, answer in asked.items():
            if not answer.done():
                answer.set_result(found.get(run_id))


async def look_for_lost_tasks(service: TaskService) -> None:
    """Continue what no living process works on: now, and again and again."""
    while True:
        try:
            prefix = service.keys.work_prefix
            for key in await service.access.orphans(prefix):
                task_id = key.removeprefix(prefix)
                if not service.is_at_work(task_id):
                    service.tell(task_id, Continue())
        except Exception:  # noqa: BLE001 -- whatever a store raises, it is tried again
            loggers.a2a.exception("Tasks that another process has left could not be looked for.")
        await sleep(_LOOK_SECONDS, service.system.clock)
