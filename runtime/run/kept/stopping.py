"""Ending a run that waits for an answer: nothing runs, so the store alone is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...data.run_result import RunStatus
from ...durability.lease import Lease
from ...durability.leases import leases_of
from ...durability.run_row import cancelled, read_entry
from ...durability.store_access import StoreAccess
from ...durability.store_keys import answered_key, deadline_key, open_key
from ...durability.timers import due_task
from ...errors import WriteRefused
from ...stores.run_entries import DropEntry
from ...stores.writes import Expect, Put

if TYPE_CHECKING:
    from ...actor.host import Host

__all__ = ["stop_waiting"]


async def stop_waiting(access: StoreAccess, system: Host, agent: str, run_id: str) -> bool:
    """Cancel a run that waits for an answer: later answers are refused, and its deadline is gone.

    Returns False if it does not wait any more.
    """
    leases = leases_of(system)
    lease = Lease(open_key(agent, run_id), f"run {run_id}", lambda: None)
    if not await leases.take(access, lease):
        return False  # it continues at this moment
    try:
        row = await access.run_entry(run_id)
        if row is None or row.status != RunStatus.INTERRUPTED.value:
            return False
        number = getattr(read_entry(row).checkpoint_id, "save", 0)
        answered = answered_key(run_id, number)
        writes = [
            Expect(answered),
            Put(answered, b"\x01"),
            cancelled(row),
            DropEntry(deadline_key(run_id, number)),
            *await due_task(access, run_id),
        ]
        try:
            await lease.commit(writes, then="forget")
        except WriteRefused:
            return False  # its answer came first
        return True
    finally:
        await leases.give_back(lease)
