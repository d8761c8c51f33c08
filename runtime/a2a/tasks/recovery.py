"""Recovery of tasks that another process has left in progress: they continue here, or fail.

The search runs when a server starts, and repeatedly after that. A task whose process is alive is
left alone, because that process has claimed it. A run only continues after its task is claimed.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ...clock import sleep
from ...errors import CheckpointNotFound, UsageError
from .asks import Continue

if TYPE_CHECKING:
    from ...run.run import Run
    from ...runner import Runner
    from .service import TaskService

__all__ = ["RunFinder", "look_for_lost_tasks"]

_LOOK_SECONDS: Final = 15.0
_COLLECT_SECONDS: Final = 0.05
"""Seconds to collect requests for runs before the store is searched: one search finds them all."""


class RunFinder:
    """Finds the runs of claimed tasks."""

    def __init__(self, runner: Runner | None, logger: logging.Logger) -> None:
        self._runner = runner
        self._logger = logger
        self._asked: dict[str, asyncio.Future[Run | None]] = {}
        self._searching: asyncio.Task[None] | None = None

    async def find(self, service: TaskService, run_id: str | None) -> Run | None:
        """Return the run, which continues; None if nothing of it is left."""
        if self._runner is None or run_id is None:
            return None
        asked = self._asked.setdefault(run_id, asyncio.get_running_loop().create_future())
        if self._searching is None:
            self._searching = service.run_task(
                self._search(self._runner, service), "looks for the runs of lost tasks"
            )
        return await asked

    async def forget(self, run_id: str) -> None:
        """Remove the stored data of an interrupted run whose task is removed.

        Its interrupt can no longer be answered.
        """
        if self._runner is None:
            return
        try:
            await self._runner.forget(run_id)
        except (CheckpointNotFound, UsageError):  # it is gone, or was never stored
            self._logger.debug("There is nothing to forget of run %s.", run_id)

    async def _search(self, runner: Runner, service: TaskService) -> None:
        await sleep(_COLLECT_SECONDS, service.system.clock)
        asked, self._asked, self._searching = self._asked, {}, None
        found: dict[str, Run] = {}
        try:
            found = {
                run.id: run
                for run in await runner.recover(where=lambda unfinished: unfinished.id in asked)
            }
        except Exception:
            self._logger.exception("The runs of tasks of a lost process could not be found.")
        for run_id, answer in asked.items():
            if not answer.done():
                answer.set_result(found.get(run_id))


async def look_for_lost_tasks(service: TaskService) -> None:
    """Continue tasks that no living process runs: now, and repeatedly."""
    while True:
        try:
            prefix = service.keys.work_prefix
            for key in await service.access.orphans(prefix):
                task_id = key.removeprefix(prefix)
                if not service.is_at_work(task_id):
                    service.tell(task_id, Continue())
        except Exception:
            service.logger.exception("The tasks of lost processes could not be listed.")
        await sleep(_LOOK_SECONDS, service.system.clock)
