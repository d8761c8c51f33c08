"""Which runs in a store are not finished, and have no process that works on them.

Owns: how those of an agent are found and taken, each by one process only, the least tried first, and which ones only alone; and that a run which has ended its
process too often is set aside. It must never start an agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..codec.packing import pack, unpack
from ..errors import CheckpointError, ResumeError, WriteRefused
from ..log import loggers
from ..stores.writes import Expect, Put, Remove
from .image import check_image
from .last_lives import last_lives_of
from .leases import leases_of
from .open_mark import OpenMark, UnfinishedRun, read_mark
from .persistence import RunPersistence
from .saves.save_slot import SaveSlot
from .store_access import StoreAccess
from .store_keys import open_key, open_prefix, stuck_key, stuck_prefix

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..agent.tree import Node

__all__ = ["Found", "Recovery", "Search", "find_unfinished", "is_beyond_recovery", "retry_stuck", "stuck_run", "stuck_runs", "take_unfinished"]

_AT_ONCE: Final = 200
"""Runs that are looked at together: their reads are one to the store."""


class Recovery(NamedTuple):
    """A run that this process has taken, and from where it continues."""

    persistence: RunPersistence
    image: dict[str, Any]


class Search(NamedTuple):
    """Which runs are wanted."""

    max_attempts: int = 3
    """How often a run may have ended its process: one that has done so more often is set aside."""
    limit: int | None = None
    where: Callable[[UnfinishedRun], bool] | None = None

    def is_last_life(self, run: UnfinishedRun) -> bool:
        """Whether a run that has lost its process again is set aside if it loses the next one, too."""
        return run.attempts + 2 == self.max_attempts

    def left(self, found: Found) -> int | None:
        """How many more are wanted; None: all."""
        return None if self.limit is None else self.limit - len(found.taken) - len(found.last_lives)


class Found(NamedTuple):
    """The runs that are not finished and have no process."""

    taken: list[Recovery]
    """From here on this process works on them."""
    last_lives: list[UnfinishedRun]
    """They are on their last life, and are taken one by one."""


async def find_unfinished(access: StoreAccess, root: Node, system: Host, search: Search) -> Found:
    """The runs of that agent which are not finished and which no living process works on."""
    await leases_of(system).pay_debts(access)  # what this very system could not let go is not another's
    found = Found([], [])
    try:
        async for keys in _orphans(access, open_prefix(root.name), search, found):
            claims = [_claim(access, root, system, key, search, found) for key in keys]
            problems = await asyncio.gather(*claims, return_exceptions=True)
            for problem in filter(None, problems):
                raise problem  # noqa: TRY301 -- as what it would be without the others
    except BaseException:
        for recovery in found.taken:
            recovery.persistence.own.abandon()  # another process may continue it
        raise
    found.taken.sort(key=lambda recovery: recovery.persistence.run_id)
    return found


async def _orphans(access: StoreAccess, prefix: str, search: Search, found: Found) -> AsyncIterator[list[str]]:
    """The marks of runs without a process, some at once, until enough are found. What cannot be continued stays in front, and must not hide the others."""
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


async def _claim(access: StoreAccess, root: Node, system: Host, key: str, search: Search, found: Found) -> None:
    """Be the one who continues a run, unless another process does, or there is nothing to continue."""
    run_id = key.removeprefix(open_prefix(root.name))
    try:
        mark = await access.get(key)
        if mark is None:
            return
        run = read_mark(root.name, run_id, mark)
        if search.where is not None and not search.where(run):
            return
        if search.is_last_life(run):
            if last_lives_of(system, access).join(run_id):
                found.last_lives.append(run)
            return
        recovery = await take_unfinished(RunPersistence(access, root, run), root, system, search.max_attempts)
        if recovery is not None:
            found.taken.append(recovery)
    except CheckpointError as error:
        loggers.durability.error("Run %s cannot be continued, and is left as it is: %s", run_id, error)


async def take_unfinished(persistence: RunPersistence, root: Node, system: Host, max_attempts: int) -> Recovery | None:
    """Take one run. Returns None if another process works on it, if it was set aside, now or before, or if there is nothing to continue."""
    if not await persistence.take(system):
        return None
    try:
        # The process that had it until now may just have finished it.
        mark = await persistence.access.get(open_key(root.name, persistence.run_id))
        if mark is not None:
            persistence.mark.trace_before = read_mark(root.name, persistence.run_id, mark).trace
        if mark is not None and persistence.own.attempts > max_attempts:
            await _set_aside(persistence, mark)
            return None
        image = None if mark is None else await persistence.read_unfinished()
        if image is not None:
            check_image(image, root)
            return Recovery(persistence, image)
        await persistence.finish(unfinished=False)
    except BaseException:
        await persistence.own.give_back()
        raise
    return None


async def is_beyond_recovery(access: StoreAccess, run: UnfinishedRun) -> bool:
    """Whether a run has lost its process, and nothing of it was kept: its steps are not, and it has not come to rest in good order."""
    if run.steps or await access.holder(open_key(run.agent, run.id)) is not None:
        return False
    last = await SaveSlot(access, run.checkpoint_id).look()
    return last is None or last["run"] != run.id or not last.get("open")


async def _set_aside(persistence: RunPersistence, mark: bytes) -> None:
    """It has ended its process too often: let the others finish."""
    run = replace(persistence.mark.run, attempts=persistence.own.attempts - 1)
    said = pack({"mark": mark, "attempts": run.attempts})
    await persistence.set_aside([Put(stuck_key(run.agent, run.id), said)])
    loggers.durability.error(
        "Run %s of %s has ended its process %d times, and is set aside: retry(%r) gives it another life.", run.id, run.agent, run.attempts, run.id
    )


async def stuck_runs(access: StoreAccess, agent_name: str) -> list[UnfinishedRun]:
    """The runs of that agent that were set aside."""
    prefix = stuck_prefix(agent_name)
    runs = []
    for key in await access.keys(prefix):
        run = await stuck_run(access, agent_name, key[len(prefix) :])
        if run is not None:
            runs.append(run)
    return runs


async def stuck_run(access: StoreAccess, agent_name: str, run_id: str) -> UnfinishedRun | None:
    """A run of that agent that was set aside; None if it was not."""
    data = await access.get(stuck_key(agent_name, run_id))
    if data is None:
        return None
    said = unpack(data)
    return replace(read_mark(agent_name, run_id, said["mark"]), attempts=said["attempts"])


async def retry_stuck(access: StoreAccess, root: Node, system: Host, run_id: str) -> Recovery:
    """Take a run that was set aside, and let it count as never having ended a process."""
    key = stuck_key(root.name, run_id)
    data = await access.get(key)
    if data is None:
        msg = f"run {run_id!r} of {root.name!r} is not set aside: retry() is for runs whose status is stuck."
        raise ResumeError(msg, run=run_id)
    run = replace(read_mark(root.name, run_id, unpack(data)["mark"]), attempts=0)
    persistence = RunPersistence(access, root, run)
    try:
        taken = await persistence.own.take(run, system, [Expect(key, data), Remove(key), OpenMark(run).put()])
    except WriteRefused as refused:
        msg = f"run {run_id!r} was retried by another process at this moment."
        raise ResumeError(msg, run=run_id) from refused
    if not taken:
        msg = f"run {run_id!r} is being continued by another process."
        raise ResumeError(msg, run=run_id)
    try:
        image = await persistence.read_unfinished()
        if image is not None:
            check_image(image, root)
    except BaseException:
        await persistence.own.give_back()
        raise
    if image is None:
        await persistence.finish(unfinished=False)
        msg = f"run {run_id!r} has nothing left to do."
        raise ResumeError(msg, run=run_id)
    return Recovery(persistence, image)
