"""Removing everything that a store holds of a run, or of a session and its runs.

The data of the run's session, and of another run that uses the same checkpoint id or branches off,
stays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...data.run_result import RunStatus
from ...durability.checkpoint import numbered_id, read_checkpoint
from ...durability.kept_outcome import status_at_end
from ...durability.lease import Lease
from ...durability.leases import leases_of
from ...durability.run_labels import session_text
from ...durability.run_row import read_entry
from ...durability.store_access import StoreAccess
from ...durability.store_keys import (
    answered_by_key,
    answered_key,
    answered_prefix,
    deadline_key,
    history_key,
    journal_key,
    open_key,
    preempt_key,
    session_key,
)
from ...errors import CheckpointNotFound, RunLost, UsageError
from ...sessions.inbox import Inbox
from ...sessions.turn import Turn
from ...stores.run_entries import DropEntry, RunQuery
from ...stores.writes import Remove, Write

if TYPE_CHECKING:
    from ...actor.host import Host

__all__ = ["forget_run", "forget_session"]

_AT_ONCE: Final = 1_000


async def forget_run(
    access: StoreAccess,
    system: Host,
    agent: str,
    run_id: str,
    checkpoint_id: str,
    *,
    listed: bool,
    only_failed: bool = False,
) -> None:
    """Remove a run.

    Raises if it is running or unknown; with `only_failed`, raises `RunLost` if it is no longer a
    failed run.
    """
    if await access.is_held():  # no process may own a run in a held store
        if await access.holder(open_key(agent, run_id)) is not None:
            msg = (
                f"forget({run_id!r}): the process that runs it has not noticed yet that the "
                "store is held. Try again in a minute."
            )
            raise UsageError(msg, run=run_id)
        await access.commit(
            None, await _removal(access, agent, run_id, checkpoint_id, listed=listed)
        )
        return
    leases = leases_of(system)
    lease = Lease(open_key(agent, run_id), f"run {run_id}", lambda: None)
    lease.is_unfinished = True  # If this process crashes now, others find the run as it was.
    if not await leases.take(access, lease):
        if only_failed:
            msg = (
                f"run {run_id!r} was started again, so it was not deleted. Wait for its end, or "
                "cancel it."
            )
            raise RunLost(msg, run=run_id)
        msg = f"forget({run_id!r}): the run is running. Cancel it first, or wait for its end."
        raise UsageError(msg, run=run_id)
    try:
        if (
            only_failed
            and (ended := await access.get(journal_key(run_id)))
            and status_at_end(ended) == RunStatus.COMPLETED
        ):
            msg = (
                f"run {run_id!r} was started again and has completed, so it was not deleted. "
                "Call forget() again to delete it."
            )
            raise RunLost(msg, run=run_id)
        await lease.commit(
            await _removal(access, agent, run_id, checkpoint_id, listed=listed), then="forget"
        )
    finally:
        await leases.give_back(lease)


async def forget_session(
    access: StoreAccess, system: Host, agent_name: str, session_id: str
) -> int:
    """Remove a session and all of its runs.

    Returns the number of runs. Raises if one of them is running.
    """
    forgotten = 0

    async def forget_runs() -> None:
        nonlocal forgotten
        query = RunQuery(
            tuple(status.value for status in RunStatus),
            session=session_text(session_id),
            limit=_AT_ONCE,
        )
        while entries := await access.run_entries(query):
            for entry in entries:
                info = read_entry(entry)
                await forget_run(
                    access, system, info.agent, info.id, info.checkpoint_id, listed=True
                )
                forgotten += 1

    inbox = Inbox(access, agent_name, session_id)
    if await access.is_held():
        await forget_runs()
        keys = (session_key(session_id), preempt_key(session_id))
        await access.commit(None, [*map(Remove, keys), *await inbox.removal()])
    else:
        turn = Turn(access, session_id, "queue", None, inbox=inbox)
        await turn.forget_all(system, forget_runs)
    return forgotten


async def _removal(
    access: StoreAccess, agent: str, run_id: str, checkpoint_id: str, *, listed: bool
) -> list[Write]:
    """Return the writes that remove the run. Raises if there is nothing to remove."""
    keys = [journal_key(run_id), history_key(run_id), answered_by_key(run_id)]
    saves = await _saves(access, run_id, checkpoint_id)
    if (
        not listed
        and not saves
        and await access.row(agent, run_id) is None
        and not [key for key in keys if await access.get(key) is not None or await access.read(key)]
    ):
        msg = (
            f"forget({run_id!r}): the store has no run with this id of agent {agent!r}. Check "
            "the id and the store."
        )
        raise CheckpointNotFound(msg, run=run_id)
    timers = [
        DropEntry(deadline_key(run_id, number))
        for number in range(1, len(saves) + 1)
        if access.lists_runs
    ]
    return [
        *(Remove(key) for key in (*saves, *keys)),
        *timers,
        DropEntry(run_id, open_key(agent, run_id)),
    ]


async def _saves(access: StoreAccess, run_id: str, checkpoint_id: str) -> list[str]:
    """Return the keys of the run's checkpoints, and of the records of their answers."""
    head = await access.get(checkpoint_id)
    if head is None:
        return []
    last, keys = read_checkpoint(checkpoint_id, head), []
    for number in range(1, last["number"] + 1):
        name = numbered_id(checkpoint_id, number) if number < last["number"] else checkpoint_id
        data = head if name == checkpoint_id else await access.get(name)
        if data is not None and read_checkpoint(name, data)["run"] == run_id:
            keys += [name, answered_key(run_id, number)]
    return [*keys, *await access.keys(answered_prefix(run_id))]
