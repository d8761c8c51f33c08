"""The long part of a history that was saved before: so that a checkpoint is as long as what is new, and not as the run.

What was said is put behind what lies in the store already, in pieces; a checkpoint holds the last few messages, and how many are in the pieces before them.

Owns: the making and the putting together of these pieces. What a save refers to is never written again: one that was made in vain is passed over.
"""

from __future__ import annotations

from typing import Any, Final

from ..codec.packing import pack, unpack
from ..errors import CheckpointError
from ..stores.writes import Append, Write
from .image import STORED_PATHS
from .path_table import PathTable
from .store_access import StoreAccess
from .store_keys import history_key

__all__ = ["Segments"]

_LONG: Final = 64
"""Messages that a checkpoint holds itself; more become a piece of their own."""


class Segments:
    """The pieces of one run's history."""

    __slots__ = ("_access", "_count", "paths", "stored")

    def __init__(self, store_access: StoreAccess, *, known: bool = False) -> None:
        self._access = store_access
        self._count: int | None = None if known else 0  # of the pieces that are in the store; None: unknown
        self.stored: dict[str, int] = {}  # how much of each lane is in pieces, and of the paths
        self.paths = PathTable()  # of all that is in them, and in images

    async def shorten(self, image: dict[str, Any], run_id: str) -> list[Write]:
        """Take out of an image what is long; it was drawn without what is in pieces. Returns what has to be written with it."""
        lanes = image.get("lanes", {})
        writes: list[Write] = []
        if sum(len(rows) for _, _, rows in lanes.values()) > _LONG and self._access.has_journals:
            piece = {lane: (self.stored.get(lane, 0), rows) for lane, (_, _, rows) in lanes.items() if rows}
            if image.get("paths"):
                piece[STORED_PATHS] = (self.stored.get(STORED_PATHS, 0), image["paths"])
            if self._count is None:
                self._count = len(await self._access.read(history_key(run_id)))
            writes.append(Append(history_key(run_id), (pack(piece),), self._count))
            self._count += 1
            for lane, (start, rows) in piece.items():
                self.stored[lane] = start + len(rows)
                if lane == STORED_PATHS:
                    image["paths"] = []
                else:
                    lanes[lane][2] = []
        self.stored = {lane: count for lane, count in self.stored.items() if lane in lanes or lane == STORED_PATHS}
        if self.stored:
            image["stored"] = (run_id, dict(self.stored))
        return writes

    async def complete(self, image: dict[str, Any]) -> None:
        """Put back into an image what was taken out."""
        if "stored" not in image:
            return
        try:
            await self._complete(image, *image.pop("stored"))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            msg = f"the part of the history that was kept apart is damaged: {type(error).__name__}: {error}"
            raise CheckpointError(msg) from error

    async def _complete(self, image: dict[str, Any], run_id: str, counts: dict[str, int]) -> None:
        found: dict[str, list[Any]] = {}
        for record in await self._access.read(history_key(run_id)):
            for lane, (start, rows) in unpack(record).items():
                found.setdefault(lane, [])[start:] = rows
        for lane, count in counts.items():
            rows = found.get(lane, ())
            if len(rows) < count:
                msg = f"a checkpoint stands on {count} messages that were kept apart, of which the store has only {len(rows)}."
                raise CheckpointError(msg, run=run_id)
            if lane == STORED_PATHS:
                image["paths"] = [*rows[:count], *image.get("paths", ())]
            else:
                image["lanes"][lane][2] = [*rows[:count], *image["lanes"][lane][2]]
        self.stored = dict(counts)
