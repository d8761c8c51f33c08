"""Which runs in a store nobody has finished, and nobody works on.

Owns: how those of an agent are found, each by one process only. It must never start an agent.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from ..codec.packing import unpack
from ..errors import CheckpointError
from ..log import logger
from .image import check_image
from .persistence import RunPersistence
from .store_access import StoreAccess, open_prefix

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..agent.tree import Node

__all__ = ["find_unfinished"]

_AT_ONCE: Final = 200
"""Runs that are looked at together: their reads are one to the store."""

_LONGEST_ID: Final = 2000


async def find_unfinished(store_access: StoreAccess, root: Node, system: Host) -> list[RunPersistence]:
    """The runs of that agent which are not finished, and which nobody works on: from here on this process does."""
    prefix = open_prefix(root.name)
    keys = await store_access.keys(prefix)
    found: list[RunPersistence] = []
    try:
        for start in range(0, len(keys), _AT_ONCE):
            claims = [_claim(store_access, root, system, key, key[len(prefix) :], found) for key in keys[start : start + _AT_ONCE]]
            problems = await asyncio.gather(*claims, return_exceptions=True)
            for problem in filter(None, problems):
                raise problem  # noqa: TRY301 -- as what it would be without the others
    except BaseException:
        for persistence in found:
            persistence.abandon()  # nobody goes on with them here: others may
        raise
    return sorted(found, key=lambda persistence: persistence.run_id)


async def _claim(store_access: StoreAccess, root: Node, system: Host, key: str, run_id: str, found: list[RunPersistence]) -> None:
    """Be the one who goes on with a run, unless somebody else does, or there is nothing to go on with."""
    try:
        mark = await store_access.get(key)
        if mark is None:
            return
        persistence = _marked(store_access, root, run_id, unpack(mark))
        if not await persistence.lease(system):
            return
        try:
            # Whoever had it until now may just have finished it.
            if await store_access.get(key) is not None and await persistence.read_unfinished():
                assert persistence.image is not None
                check_image(persistence.image, root)
                found.append(persistence)
            else:
                await persistence.finish(unfinished=False)
        except BaseException:
            await persistence.close()
            raise
    except CheckpointError as error:
        logger.error("Run %s cannot be continued, and is left as it is: %s", run_id, error)


def _marked(store_access: StoreAccess, root: Node, run_id: str, said: Any) -> RunPersistence:
    """The run of which that is said."""
    checkpoint_id, steps = (said.get("checkpoint"), said.get("steps")) if isinstance(said, dict) else (None, None)
    if not isinstance(checkpoint_id, str) or not 0 < len(checkpoint_id) <= _LONGEST_ID or type(steps) is not bool:
        raise CheckpointError("what says that it is not finished is damaged.")
    return RunPersistence(store_access, root, run_id, checkpoint_id, steps=steps)
