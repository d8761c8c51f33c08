"""For how long tasks that are at rest are kept, and how many.

Owns: what is removed, and with it all that belongs to a task; with its last task a context goes, too, and what was said in it. It must never remove a task that
is being worked on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...clock import sleep
from ...durability.store_keys import session_key
from ...log import loggers
from ...stores.writes import Remove, Write
from .states import AT_REST

if TYPE_CHECKING:
    from .keys import IndexEntry
    from .service import TaskService

__all__ = ["evict", "evict_again_and_again"]

_LOOK_SECONDS: Final = 60.0


async def evict(service: TaskService, seconds: float, most: int) -> int:
    """Remove the tasks at rest that are older than so many seconds, and of the others the oldest, if there are more than `most`. Returns how many."""
    entries = [service.keys.entry(key) for key in await service.access.keys(service.keys.index_prefix())]
    entries.sort(key=lambda entry: (entry.rank, entry.task_id))
    oldest = (service.now() - seconds) * 1e9
    removed = 0
    left: dict[tuple[str, str], int] = {}
    for entry in entries:
        left[entry.owner, entry.context] = left.get((entry.owner, entry.context), 0) + 1
    for index, entry in enumerate(entries):
        if entry.state in AT_REST and (index >= most or entry.time < oldest) and not service.is_at_work(entry.task_id):
            left[entry.owner, entry.context] -= 1
            await _remove(service, entry, with_context=not left[entry.owner, entry.context])
            removed += 1
    return removed


async def _remove(service: TaskService, entry: IndexEntry, *, with_context: bool) -> None:
    keys, task_id = service.keys, entry.task_id
    writes: list[Write] = [Remove(keys.task(task_id)), Remove(entry.key), Remove(keys.configs(task_id)), Remove(keys.outbox(task_id))]
    if with_context:
        log = await service.load(task_id)
        if log is not None:
            writes += [Remove(keys.context(log.task.context_id)), Remove(session_key(keys.session(log.kept.owner, log.task.context_id)))]
    await service.access.commit(None, writes)


async def evict_again_and_again(service: TaskService, seconds: float, most: int) -> None:
    """The same, for as long as the server is there."""
    while True:
        await sleep(_LOOK_SECONDS, service.system.clock)
        try:
            if service.ended:
                service.ended = 0
                await evict(service, seconds, most)
        except Exception:  # noqa: BLE001 -- whatever a store raises, it is tried again
            loggers.a2a.exception("Tasks that are to be forgotten could not be removed.")
