"""Removing the data of unreachable runs: not listed, not unfinished, and not waiting.

The data of sessions, and values that this library did not write, stay.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Final

from ...durability.checkpoint import read_checkpoint
from ...durability.store_access import StoreAccess
from ...durability.store_keys import (
    RESERVED,
    answered_by_key,
    answered_key,
    history_key,
    journal_key,
)
from ...errors import CheckpointError, WriteRefused
from ...stores.writes import Expect, Remove, Write

__all__ = ["prune_unreachable"]

_AT_ONCE: Final = 200
_BY_RUN: Final = (journal_key(""), history_key(""), answered_by_key(""))
_ANSWERED: Final = answered_key("", 0).removesuffix("@0")


async def prune_unreachable(access: StoreAccess) -> int:
    """Remove the data of unreachable runs. Returns the number of keys."""
    keys = await access.keys("")
    saves = [key for key in keys if not key.startswith(RESERVED)]
    reached: set[str] = set()
    found: dict[str, list[Write]] = {}
    for key in keys:
        run_id = _run_of(key)
        if run_id is not None:
            found.setdefault(run_id, []).append(Remove(key))
    answered = {key for key in keys if key.startswith(_ANSWERED)}
    for part in _parts(saves):
        for key, data in zip(part, await asyncio.gather(*map(access.get, part)), strict=True):
            save = None if data is None else _save(key, data)
            if save is None:
                continue
            if answered_key(*save) not in answered:
                reached.add(save[0])  # it waits for an answer, or may be resumed
            found.setdefault(save[0], [])[:0] = [Expect(key, data), Remove(key)]
    count = 0
    for part in _parts(run_id for run_id in found if run_id not in reached):
        entries = await asyncio.gather(*map(access.run_entry, part))
        count += sum(
            await asyncio.gather(
                *(
                    _remove(access, found[run_id])
                    for run_id, entry in zip(part, entries, strict=True)
                    if entry is None
                )
            )
        )
    return count


async def _remove(access: StoreAccess, writes: list[Write]) -> int:
    try:
        await access.commit(None, writes)
    except WriteRefused:
        return 0  # some of it was written at this moment
    return sum(isinstance(write, Remove) for write in writes)


def _parts(items: Iterable[str]) -> Iterable[list[str]]:
    listed = list(items)
    return (listed[start : start + _AT_ONCE] for start in range(0, len(listed), _AT_ONCE))


def _run_of(key: str) -> str | None:
    """Return the run of a key that is not a checkpoint; None for other keys."""
    for prefix in _BY_RUN:
        if key.startswith(prefix):
            return key.removeprefix(prefix)
    return key.removeprefix(_ANSWERED).rpartition("@")[0] if key.startswith(_ANSWERED) else None


def _save(key: str, data: bytes) -> tuple[str, int] | None:
    """Return the run and the number of a checkpoint; None if the value is something else."""
    try:
        content = read_checkpoint(key, data)
    except CheckpointError:
        return None
    return content["run"], content["number"]
