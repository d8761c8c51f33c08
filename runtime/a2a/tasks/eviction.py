"""The retention of inactive tasks, by age and number.

A task is removed with everything that belongs to it; the last task of a context also removes the
context and its session. A running task is never removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

from ...clock import sleep
from ...durability.store_keys import session_key
from ...stores.writes import Remove, Write
from .checks import AT_REST, TERMINAL

if TYPE_CHECKING:
    from .keys import IndexEntry
    from .service import TaskService

__all__ = ["evict", "evict_again_and_again"]

_LOOK_SECONDS: Final = 60.0


async def evict(service: TaskService, seconds: float, most: int) -> int:
    """Remove inactive tasks that are older than `seconds`, those beyond the bound of each owner,
    and the rest beyond `most`. Returns how many.

    Beyond `most`, the owner with the most tasks loses first, so that no owner's tasks evict those
    of others. Tasks that have ended are removed before those that wait.
    """
    entries = [
        service.keys.entry(key) for key in await service.access.keys(service.keys.index_prefix())
    ]
    oldest = (service.now() - seconds) * 1e9
    left = Counter((entry.owner, entry.context) for entry in entries)
    removed = 0
    for entry in _beyond(service, entries, oldest, most):
        left[entry.owner, entry.context] -= 1
        await _remove(service, entry, with_context=not left[entry.owner, entry.context])
        removed += 1
    return removed


def _beyond(
    service: TaskService, entries: list[IndexEntry], oldest: float, most: int
) -> Iterator[IndexEntry]:
    """Yield the entries to remove."""
    owners: dict[str, list[IndexEntry]] = {}
    count = Counter(entry.owner for entry in entries)
    total = len(entries)
    # For each owner, the first to be removed come last: those that have ended, the oldest first.
    for entry in sorted(
        entries, key=lambda entry: (entry.state in TERMINAL, entry.rank, entry.task_id)
    ):
        if entry.state not in AT_REST or service.is_at_work(entry.task_id):
            continue
        if entry.time < oldest:
            count[entry.owner] -= 1
            total -= 1
            yield entry
        else:
            owners.setdefault(entry.owner, []).append(entry)
    own = min(most, service.limits.tasks) if service.is_shared else most
    largest = [(-count[owner], owner) for owner in owners]
    heapify(largest)
    while largest and (total > most or -largest[0][0] > own):
        owner = heappop(largest)[1]
        yield owners[owner].pop()
        count[owner] -= 1
        total -= 1
        if owners[owner]:
            heappush(largest, (-count[owner], owner))


async def _remove(service: TaskService, entry: IndexEntry, *, with_context: bool) -> None:
    keys, task_id = service.keys, entry.task_id
    writes: list[Write] = [
        Remove(keys.task(task_id)),
        Remove(entry.key),
        Remove(keys.configs(task_id)),
        Remove(keys.outbox(task_id)),
    ]
    log = await service.load(task_id)
    if log is not None and log.kept.run_id is not None:
        await service.runs.forget(log.kept.run_id)
    if log is not None and with_context:
        # The first key exists in stores of earlier versions only.
        writes += [
            Remove(keys.context(log.task.context_id)),
            Remove(session_key(keys.session(log.kept.owner, log.task.context_id))),
        ]
    await service.access.commit(None, writes)


async def evict_again_and_again(service: TaskService, seconds: float, most: int) -> None:
    """Evict repeatedly, for as long as the server runs."""
    while True:
        await sleep(_LOOK_SECONDS, service.system.clock)
        try:
            if service.ended:
                service.ended = 0
                await evict(service, seconds, most)
        except Exception:
            service.logger.exception("Old tasks could not be removed.")
