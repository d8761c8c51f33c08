"""A log of the people who answered a run's interrupts.

An entry is written before the answer is passed on, and again if the answer is refused: so no answer
takes effect without an entry. There is one value for each run, bounded in number and time.
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
"""The largest number of entries for one run: the latest."""
_SECONDS: Final = 90 * 86_400.0
_TRIES: Final = 20


class AnswerLog:
    """The entries of one store."""

    def __init__(self, access: StoreAccess) -> None:
        self._access = access

    async def note(self, run_id: str, **note: str) -> None:
        """Add an entry, with the current time."""
        key = answered_by_key(run_id)
        for _ in range(_TRIES):
            before = await self._access.get(key)
            notes = [*_read(before), {"at": time(), **note}][-_MOST:]
            try:
                await self._access.commit(
                    None,
                    [
                        Expect(key, before),
                        Put(key, pack({"answers": _FORMAT, "notes": notes}), _SECONDS),
                    ],
                )
            except WriteRefused:  # another one has added an entry in the meantime
                continue
            return
        msg = (
            f"run {run_id!r:.200}: the name of the person who answers could not be stored, "
            "because other writes were in progress. Try again."
        )
        raise CheckpointError(msg, run=run_id)

    async def of(self, run_id: str) -> list[Json]:
        """Return the entries of a run, the oldest first."""
        return list(_read(await self._access.get(answered_by_key(run_id))))


def _read(data: bytes | None) -> list[dict[str, Any]]:
    if data is None:
        return []
    found: Any = unpack(data)
    notes = (
        found.get("notes") if isinstance(found, dict) and found.get("answers") == _FORMAT else None
    )
    if not isinstance(notes, list) or not all(isinstance(note, dict) for note in notes):
        raise CheckpointError(
            "the stored log of answers is damaged, or was written by a newer version of offbook. "
            "Update offbook, or restore the store from a backup."
        )
    return notes
