"""Recovery of unfinished runs whose process is gone.

Each run is taken by one process only, the least tried first, and a run on its last attempt only
alone. A run that has crashed its process too often is marked as stuck. This module never starts an
agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..data.run_result import RunStatus
from ..errors import CheckpointError, ResumeError, UsageError
from ..log import loggers
from .image import check_image
from .last_lives import last_lives_of
from .leases import leases_of
from .lost_run import end_lost
from .run_row import read_run, restated
from .run_store import RunStore
from .saves.save_slot import SaveSlot
from .store_access import StoreAccess
from .store_keys import open_key, open_prefix
from .unfinished_run import UnfinishedRun, why_foreign

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..agent.tree import Node
    from ..stores.run_entries import RunEntry

__all__ = [
    "Found",
    "Recovery",
    "Search",
    "find_unfinished",
    "is_beyond_recovery",
    "retry_stuck",
    "stuck_runs",
    "take_unfinished",
]

_MOST_TOLD: Final = 1_000
_AT_ONCE: Final = 200
"""Runs that are checked together, so that their reads reach the store as one."""


class Recovery(NamedTuple):
    """A run that this process has taken, and the image from which it continues."""

    persistence: RunStore
    image: dict[str, Any]


class Search(NamedTuple):
    """The criteria for runs to recover."""

    max_attempts: int = 3
    """How many processes a run may crash before it counts as stuck."""
    limit: int | None = None
    where: Callable[[UnfinishedRun], bool] | None = None
    app: str | None = None
    """The recovering program, if it has a name."""
    definitions: str | None = None
    """The names of its agents and tools; None if they are not compared."""
    left_alone: dict[str, None] | None = None
    """The runs of other programs that were already logged."""

    def leaves_alone(self, run: UnfinishedRun) -> bool:
        """Return whether a run belongs to another program.

        If its definitions show that, instead of its app, this is logged once.
        """
        why = why_foreign(run, self.app, self.definitions)
        if (
            why is not None
            and run.app is None
            and self.left_alone is not None
            and run.id not in self.left_alone
        ):
            while len(self.left_alone) >= _MOST_TOLD:
                del self.left_alone[next(iter(self.left_alone))]
            self.left_alone[run.id] = None
            text = (
                "Run %s of %s is left to the program that started it: %s. Name each program that "
                "shares a store: Runner(app=...). If this program started it and has changed "
                "since, restore the removed part until the run has ended, or forget the run."
            )
            loggers.durability.warning(text, run.id, run.agent, why)
        return why is not None

    def is_last_life(self, run: UnfinishedRun) -> bool:
        """Return whether a run without a process becomes stuck if the next process is lost, too."""
        return run.attempts + 2 == self.max_attempts

    def left(self, found: Found) -> int | None:
        """Return how many more are wanted; None: all."""
        return None if self.limit is None else self.limit - len(found.taken) - len(found.last_lives)


class Found(NamedTuple):
    """Unfinished runs without a process."""

    taken: list[Recovery]
    """Runs that this process has claimed."""
    last_lives: list[UnfinishedRun]
    """Runs on their last attempt, which are taken one by one."""


async def find_unfinished(access: StoreAccess, root: Node, system: Host, search: Search) -> Found:
    """Find the unfinished runs of that agent that no living process works on."""
    await access.require_released()
    # Leases that this very system failed to return do not belong to another process.
    await leases_of(system).pay_debts(access)
    found = Found([], [])
    try:
        async for keys in _orphans(access, open_prefix(root.name), search, found):
            claims = [_claim(access, root, system, key, search, found) for key in keys]
            problems = await asyncio.gather(*claims, return_exceptions=True)
            for problem in filter(None, problems):
                raise problem  # noqa: TRY301 -- the error as it would be without the others
    except BaseException:
        for recovery in found.taken:
            recovery.persistence.abandon()  # another process may continue it
        raise
    found.taken.sort(key=lambda recovery: recovery.persistence.run_id)
    return found


async def _orphans(
    access: StoreAccess, prefix: str, search: Search, found: Found
) -> AsyncIterator[list[str]]:
    """Yield the claims of runs without a process, in batches, until enough are found.

    Runs that cannot be continued stay first in the store, and must not hide the others.
    """
    seen: set[str] = set()
    while (left := search.left(found)) is None or left > 0:
        most = None if left is None or search.where is not None else left + len(seen)
        keys = [key for key in await access.orphans(prefix, most) if key not in seen]
        seen.update(keys)
        start = 0
        while start < len(keys) and ((left := search.left(found)) is None or left > 0):
            at_once = _AT_ONCE if left is None else min(left, _AT_ONCE)
            yield keys[start : start + at_once]
            start += at_once
        if most is None or not keys:
            return


async def _claim(
    access: StoreAccess, root: Node, system: Host, key: str, search: Search, found: Found
) -> None:
    """Claim a run, unless another process has it, or there is nothing to continue."""
    run_id = key.removeprefix(open_prefix(root.name))
    try:
        row = await access.row(root.name, run_id)
        if row is None or not row.claim:
            return
        run = read_run(row)
        if search.leaves_alone(run) or (search.where is not None and not search.where(run)):
            return
        if run.app is None and search.app is not None:
            run = run.replace(app=search.app, definitions=None)  # for this and later attempts
        if search.is_last_life(run):
            if last_lives_of(system, access).join(run_id):
                found.last_lives.append(run)
            return
        recovery = await take_unfinished(
            RunStore(access, root, run), root, system, search.max_attempts
        )
        if recovery is not None:
            found.taken.append(recovery)
    except CheckpointError as error:
        loggers.durability.error(
            "Run %s cannot be continued, and is left unchanged: %s", run_id, error
        )


async def take_unfinished(
    persistence: RunStore, root: Node, system: Host, max_attempts: int
) -> Recovery | None:
    """Take one run.

    Returns None if another process works on it, if it is or becomes stuck, or if there is nothing
    to continue.
    """
    if not await persistence.take(system):
        return None
    try:
        row = await persistence.access.row(root.name, persistence.run_id)
        if row is None or not row.claim:
            # The process that had the run has just finished it, and its writes stay.
            await persistence.give_back()
            return None
        found = read_run(row)
        if found.counted(persistence.attempts) + found.unwritten > max_attempts:
            await _set_aside(persistence, row, found)
            return None
        persistence.row.know(row, found)
        image = await persistence.read_unfinished()
        if image is not None:
            check_image(image, root)
            return Recovery(persistence, image)
        await end_lost(persistence)
    except BaseException:
        await persistence.give_back()
        raise
    return None


async def is_beyond_recovery(access: StoreAccess, run: UnfinishedRun) -> bool:
    """Return whether a run has lost its process and cannot be continued.

    Its steps are not recorded, and it did not drain.
    """
    if (run.steps and not run.queued) or await access.holder(
        open_key(run.agent, run.id)
    ) is not None:
        return False
    if run.queued:
        return True
    last = await SaveSlot(access, run.checkpoint_id).look()
    return last is None or last["run"] != run.id or not last.get("open")


async def _set_aside(persistence: RunStore, row: RunEntry, found: UnfinishedRun) -> None:
    """Mark a run as stuck, because it crashed too many processes or a step cannot be written."""
    run = persistence.row.run.replace(
        attempts=found.counted(persistence.attempts) - 1 + found.unwritten
    )
    await persistence.commit([restated(row, run, RunStatus.STUCK, found.failure)], "forget")
    await persistence.give_back()
    if found.unwritten:
        loggers.durability.error(
            "Run %s of %s is stuck, because %s. It was tried %d times. retry(%r) tries it again.",
            run.id,
            run.agent,
            found.failure,
            run.attempts,
            run.id,
        )
        return
    loggers.durability.error(
        "Run %s of %s is stuck: %d processes in a row were lost while they ran it, and it made "
        "no progress. retry(%r) tries it again.",
        run.id,
        run.agent,
        run.attempts,
        run.id,
    )


async def stuck_runs(access: StoreAccess, agent_name: str) -> list[UnfinishedRun]:
    """Return the stuck runs of that agent."""
    return sorted(map(read_run, await access.stuck_rows(agent_name)), key=lambda run: run.id)


async def retry_stuck(
    access: StoreAccess, root: Node, system: Host, run_id: str, app: str | None = None
) -> Recovery:
    """Take a stuck run, and reset its count of attempts."""
    row = await access.row(root.name, run_id)
    if row is None or row.status != RunStatus.STUCK.value:
        msg = (
            f"the store has no stuck run {run_id!r} of agent {root.name!r}. retry() is for runs "
            "whose status is stuck; stuck() lists them."
        )
        raise ResumeError(msg, run=run_id)
    run = read_run(row).replace(attempts=0, unwritten=0, failure=None, progressed=0)
    if run.app is not None and run.app != app:
        msg = (
            f"retry({run_id!r}): {why_foreign(run, app, None)}. Retry it with a Runner of that app."
        )
        raise UsageError(msg, run=run_id)
    persistence = RunStore(access, root, run)
    if not await persistence.take(system):
        msg = f"run {run_id!r} is already running in another process. Call attach() to follow it."
        raise ResumeError(msg, run=run_id)
    try:
        # Another process may have retried it before this one has taken it.
        row = await access.row(root.name, run_id)
        if row is None or row.status != RunStatus.STUCK.value:
            msg = f"run {run_id!r} was just retried by another process. Call attach() to follow it."
            raise ResumeError(msg, run=run_id)  # noqa: TRY301 -- it is given back, as on any error
        persistence.row.know(row, run)
        image = await persistence.read_unfinished()
        if image is not None:
            check_image(image, root)
    except BaseException:
        await persistence.give_back()
        raise
    if image is None:
        await persistence.finish(unfinished=False)
        msg = (
            f"run {run_id!r} had nothing left to run, and is no longer stuck. Read its result "
            "with attach(), if it is retained."
        )
        raise ResumeError(msg, run=run_id)
    return Recovery(persistence, image)
