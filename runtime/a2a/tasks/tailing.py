"""Follows a task of another process by polling its journal until the task pauses or ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import InternalError

from ...clock import sleep

if TYPE_CHECKING:
    from .service import TaskService
    from .subscription import Subscription
    from .task_log import TaskLog

__all__ = ["tail"]

_FIRST_LOOK: Final = 0.05
_LAST_LOOK: Final = 1.0


async def tail(service: TaskService, log: TaskLog, shows: Subscription) -> None:
    """Show the task, and each of its changes when it is stored."""
    key, number = service.keys.task(log.task.id), log.number
    shows.put(log.snapshot())
    delay = _FIRST_LOOK
    try:
        while shows.is_open:
            await sleep(delay, service.system.clock)
            records = await service.access.read(key, number)
            delay = _FIRST_LOOK if records else min(2 * delay, _LAST_LOOK)
            number += len(records)
            for record in records:
                response = pb.StreamResponse.FromString(record)
                shows.put(
                    response.status_update
                    if response.HasField("status_update")
                    else response.artifact_update
                )
            fresh = await service.load(log.task.id)
            if fresh is None or (fresh.is_at_rest and fresh.number <= number):
                break
        shows.end()
    except Exception:
        service.logger.exception("Task %s could not be followed.", log.task.id)
        shows.end(InternalError())
