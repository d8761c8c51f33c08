"""Who has answered what a run waited for.

It is written before the answer is given, and again if the answer is refused: an answer of which nothing is known but what came of it cannot happen.

Owns: these notes, one value for each run, bounded in number and time. It must never decide about an answer.
"""

from __future__ import annotations

from time import time
from typing import Any, Final

from ..codec.packing import pack, unpack
from ..durability.store_access import StoreAccess
from ..durability.store_keys import answered_by_key
from ..errors import CheckpointError, WriteRefused
from ..observe.event_json import Json
from ..stores.writes import Expect, Put

__all__ = ["AnswerLog"]

_FORMAT: Final = 1
_MOST: Final = 200
"""Notes of one run: the latest."""
_SECONDS: Final = 90 * 86_400.0
_TRIES: Final = 20


class AnswerLog:
    """The notes of one store."""

    def __init__(self, access: StoreAccess) -> None:
        self._access = access

    async def note(self, run_id: str, **note: str) -> None:
        """Add a note. The time is now."""
        key = answered_by_key(run_id)
        for _ in range(_TRIES):
            before = await self._access.get(key)
            notes = [*_read(before), {"at": time(), **note}][-_MOST:]
            try:
                await self._access.commit(None, [Expect(key, before), Put(key, pack({"answers": _FORMAT, "notes": notes}), _SECONDS)])
            except WriteRefused:  # another one has added a note meanwhile
                continue
            return
        msg = f"run {run_id!r:.200}: who answers could not be written, because others write at the same time. Try again."
        raise CheckpointError(msg, run=run_id)

    async def of(self, run_id: str) -> list[Json]:
        """The notes of a run, the oldest first."""
        return list(_read(await self._access.get(answered_by_key(run_id))))


def _read(data: bytes | None) -> list[dict[str, Any]]:
    if data is None:
        return []
    found: Any = unpack(data)
    notes = found.get("notes") if isinstance(found, dict) and found.get("answers") == _FORMAT else None
    if not isinstance(notes, list) or not all(isinstance(note, dict) for note in notes):
        raise CheckpointError("who has answered is damaged in the store, or was written by a newer version of understudy.")
    return notes
