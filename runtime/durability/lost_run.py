"""The status of a run whose process was lost and that stored nothing after its last save.

If the answer to its last interrupt does not count yet, the run waits for an answer again. Otherwise
it has failed. This module never continues a run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..data.run_result import RunResult, RunStatus
from ..errors import RunLost
from ..stores.writes import Expect, Put, Write
from .kept_outcome import pack_outcome
from .run_row import restated
from .saves.loading import load_image
from .saves.long_history import Segments
from .saves.save_slot import SaveSlot
from .store_keys import answered_key, journal_key

if TYPE_CHECKING:
    from .run_store import RunStore

__all__ = ["end_lost"]


async def end_lost(persistence: RunStore) -> None:
    """Write the status of the run, and return its lease.

    A run that was never saved leaves nothing: the next caller that asks for it starts it again.
    """
    access, row = persistence.access, persistence.row
    run = row.run
    saved = (
        await SaveSlot(access, run.checkpoint_id).look()
        if persistence.journal is None and persistence.keeps_outcome and row.is_open
        else None
    )
    if saved is None or saved["run"] != run.id or row.stored is None:
        await persistence.finish(unfinished=False)
        return
    number, answered = saved["number"], answered_key(run.id, saved["number"])
    waits = await access.get(answered) is None
    image = (
        await load_image(
            access, Segments(access, known=True), saved, run.checkpoint_id, steps=False
        )
    ).image
    result = (
        _waiting(image, run.agent, run.id)
        if waits
        else _lost(image, run.agent, run.id, f"{run.checkpoint_id}@{number}")
    )
    packed = pack_outcome(result, run.agent, run.input, journaled=False)
    error = None if result.error is None else f"RunLost: {result.error}"
    writes: list[Write] = [
        *([Expect(answered)] if waits else []),
        Put(journal_key(run.id), packed, None if waits else run.keep),
        restated(row.stored, run, result.status, error, waits_for=result.interrupts, save=number),
    ]
    await persistence.commit(writes, "forget")
    row.is_open = False
    await persistence.give_back()


def _waiting(image: dict[str, Any], agent: str, run_id: str) -> RunResult:
    contexts = tuple(
        pending.context
        for frame in image["frames"].values()
        for pending in (frame.get("pending") or {}).values()
    )
    return _result(image, agent, RunStatus.INTERRUPTED, run_id=run_id, interrupts=contexts)


def _lost(image: dict[str, Any], agent: str, run_id: str, save: str) -> RunResult:
    msg = (
        f"the process of run {run_id!r} was lost after its last interrupt was answered, and "
        "nothing after that was stored. "
        f"Call resume({save!r}) to continue from that interrupt, as another run. With "
        "durability='step', a lost run itself can be continued."
    )
    return _result(image, agent, RunStatus.FAILED, run_id=run_id, error=RunLost(msg, run=run_id))


def _result(image: dict[str, Any], agent: str, status: RunStatus, **more: Any) -> RunResult:
    rows = image["lanes"][""][2]
    name, message = (rows[-1][0], rows[-1][3]) if rows else (agent, None)
    return RunResult(
        status,
        final_message=message,
        usage=image["usage"],
        session_values=dict(image["values"]),
        last_agent=name,
        **more,
    )
