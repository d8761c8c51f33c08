"""Removing all that a store holds of a run.

Owns: what that is. It must never remove what belongs to a session, or to another run: a save of one under the same name, or a branch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...durability.checkpoint import numbered_id, read_checkpoint
from ...durability.open_mark import UnfinishedRun
from ...durability.run_lease import RunLease
from ...durability.store_access import StoreAccess
from ...durability.store_keys import answered_by_key, answered_key, history_key, journal_key, open_key, stuck_key
from ...errors import CheckpointNotFound, UsageError
from ...stores.run_entries import DropEntry
from ...stores.writes import Remove, Write

if TYPE_CHECKING:
    from ...actor.host import Host

__all__ = ["forget_run"]


async def forget_run(access: StoreAccess, system: Host, agent: str, run_id: str, checkpoint_id: str, *, listed: bool) -> None:
    """Remove it. Raises if it is at work, or if there is nothing of it."""
    lease = RunLease(access)
    run = UnfinishedRun(run_id, agent, checkpoint_id, steps=True)  # if this process is lost now, others find what it was before
    if not await lease.take(run, system):
        msg = f"forget({run_id!r}): the run is at work. Cancel it first, or wait for its end."
        raise UsageError(msg, run=run_id)
    try:
        keys = [open_key(agent, run_id), stuck_key(agent, run_id), journal_key(run_id), history_key(run_id), answered_by_key(run_id)]
        saves = await _saves(access, run_id, checkpoint_id)
        if not listed and not saves and not [key for key in keys if await access.get(key) is not None or await access.read(key)]:
            msg = f"forget({run_id!r}): there is nothing of that run of {agent!r} in the store."
            raise CheckpointNotFound(msg, run=run_id)
        writes: list[Write] = [Remove(key) for key in (*saves, *keys)]
        await lease.write([*writes, DropEntry(run_id)] if access.lists_runs else writes, "forget")
    finally:
        await lease.give_back()


async def _saves(access: StoreAccess, run_id: str, checkpoint_id: str) -> list[str]:
    """The keys of its saves, and of what says that they were answered."""
    head = await access.get(checkpoint_id)
    if head is None:
        return []
    last, keys = read_checkpoint(checkpoint_id, head), []
    for number in range(1, last["number"] + 1):
        name = numbered_id(checkpoint_id, number) if number < last["number"] else checkpoint_id
        data = head if name == checkpoint_id else await access.get(name)
        if data is not None and read_checkpoint(name, data)["run"] == run_id:
            keys += [name, answered_key(run_id, number)]
    return keys
