"""Going on with runs: one that somebody answers, and those that nobody has finished.

Owns: how a run that comes from a store is opened, and how the unfinished ones of an agent are found, each by one process only. It must never start an agent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from .codec import unpack
from .errors import CheckpointError
from .image import walk
from .keeping import Keeping
from .monitor import logger
from .resuming import Answers
from .vault import Vault, open_prefix

if TYPE_CHECKING:
    from .definition import Node
    from .ledger import Ledger
    from .system import ActorSystem

__all__ = ["Resuming", "find_unfinished"]

_AT_ONCE: Final = 200
"""Runs that are looked at together: their reads are one to the store."""


class Resuming:
    """How a run is opened that comes from a store."""

    __slots__ = ("_answers", "_keeping")

    def __init__(self, keeping: Keeping, answers: Answers | None) -> None:
        self._keeping = keeping
        self._answers = answers  # None: it was not interrupted

    async def __call__(self, ledger: Ledger, system: ActorSystem, lost: Callable[[], object]) -> None:
        keeping, answers = self._keeping, self._answers
        if answers is not None:
            await keeping.load(system, lost)
        else:
            keeping.when_lost(lost)
        keeping.restore(ledger)
        if answers is not None:
            if ledger.root is None:
                msg = f"checkpoint {keeping.checkpoint_id!r} is of a run in which nobody had begun to play."
                raise CheckpointError(msg)
            answers.give(walk(ledger.root), keeping.checkpoint_id)
        await keeping.go_on(ledger)


async def find_unfinished(vault: Vault, root: Node, system: ActorSystem) -> list[Keeping]:
    """The runs of that agent which are not finished, and which nobody works on: from here on this process does."""
    prefix = open_prefix(root.name)
    keys = await vault.keys(prefix)
    found: list[Keeping] = []
    for start in range(0, len(keys), _AT_ONCE):
        some = keys[start : start + _AT_ONCE]
        found += [one for one in await asyncio.gather(*(_claim(vault, root, system, key, key[len(prefix) :]) for key in some)) if one is not None]
    return found


async def _claim(vault: Vault, root: Node, system: ActorSystem, key: str, run_id: str) -> Keeping | None:
    """Be the one who goes on with a run. None, if somebody else does, or if there is nothing to go on with."""
    try:
        mark = await vault.get(key)
        if mark is None:
            return None
        said: Any = unpack(mark)
        keeping = Keeping(vault, root, run_id, said["checkpoint"], steps=bool(said["steps"]))
        if not await keeping.lease(system):
            return None
        try:
            if await keeping.read_unfinished():
                return keeping
            await keeping.finish(unfinished=False)
        except BaseException:
            await keeping.close()
            raise
    except (CheckpointError, KeyError, TypeError) as error:
        logger.error("Run %s cannot be continued, and is left as it is: %s", run_id, error)
    return None
