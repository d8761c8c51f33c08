"""Which runs in a store are not finished, and have no process that works on them.

Owns: how those of an agent are found and taken, each by one process only, the least tried first; and that a run which has ended its process too often is set
aside. It must never start an agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..codec.packing import pack, unpack
from ..errors import CheckpointError, ResumeError, WriteRefused
from ..log import logger
from ..stores.writes import Expect, Put, Remove
from .image import check_image
from .leases import leases_of
from .open_mark import OpenMark, UnfinishedRun, read_mark
from .persistence import RunPersistence
from .store_access import StoreAccess
from .store_keys import open_prefix, stuck_key, stuck_prefix

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..agent.tree import Node

__all__ = ["Recovery", "Search", "find_unfinished", "retry_stuck", "stuck_run", "stuck_runs"]

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


async def find_unfinished(access: StoreAccess, root: Node, system: Host, search: Search) -> list[Recovery]:
    """The runs of that agent which are not finished and which no living process works on: from here on this process does."""
    prefix = open_prefix(root.name)
    await leases_of(system).pay_debts(access)  # what this very system could not let go is not another's
    keys = await access.orphans(prefix, None if search.where is not None else search.limit)
    found: list[Recovery] = []
    try:
        for start in range(0, len(keys), _AT_ONCE):
            left = None if search.limit is None else search.limit - len(found)
            if left is not None and left <= 0:
                break
            at_once = keys[start : start + (_AT_ONCE if left is None else min(left, _AT_ONCE))]
            claims = [_claim(access, root, system, key, key[len(prefix) :], search, found) for key in at_once]
            problems = await asyncio.gather(*claims, return_exceptions=True)
            for problem in filter(None, problems):
                raise problem  # noqa: TRY301 -- as what it would be without the others
    except BaseException:
        for recovery in found:
            recovery.persistence.own.abandon()  # another process may continue it
        raise
    return sorted(found, key=lambda recovery: recovery.persistence.run_id)


async def _claim(access: StoreAccess, root: Node, system: Host, key: str, run_id: str, search: Search, found: list[Recovery]) -> None:
    """Be the one who continues a run, unless another process does, or there is nothing to continue."""
    try:
        mark = await access.get(key)
        if mark is None:
            return
        run = read_mark(root.name, run_id, mark)
        if search.where is not None and not search.where(run):
            return
        persistence = RunPersistence(access, root, run)
        if not await persistence.take(system):
            return
        try:
            if persistence.own.attempts > search.max_attempts:
                await _set_aside(persistence, mark)
                return
            recovery = await _read(persistence, root, key)
            if recovery is not None:
                found.append(recovery)
        except BaseException:
            await persistence.own.give_back()
            raise
    except CheckpointError as error:
        logger.error("Run %s cannot be continued, and is left as it is: %s", run_id, error)


async def _read(persistence: RunPersistence, root: Node, key: str) -> Recovery | None:
    # The process that had it until now may just have finished it.
    image = await persistence.read_unfinished() if await persistence.access.get(key) is not None else None
    if image is None:
        await persistence.finish(unfinished=False)
        return None
    check_image(image, root)
    return Recovery(persistence, image)


async def _set_aside(persistence: RunPersistence, mark: bytes) -> None:
    """It has ended its process too often: let the others finish."""
    run = replace(persistence.unfinished, attempts=persistence.own.attempts - 1)
    said = pack({"mark": mark, "attempts": run.attempts})
    await persistence.set_aside([Put(stuck_key(run.agent, run.id), said)])
    logger.error("Run %s of %s has ended its process %d times, and is set aside: retry(%r) gives it another life.", run.id, run.agent, run.attempts, run.id)


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
    run = read_mark(root.name, run_id, unpack(data)["mark"])
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
