"""The long part of a history, stored in pieces, so that a checkpoint grows with the new messages
only.

New messages are appended to the stored ones in pieces. A checkpoint contains the last few messages,
and the number of those in the pieces. A piece that a save refers to is never rewritten; unused
pieces are skipped.
"""

from __future__ import annotations

from typing import Any, Final

from ...codec.packing import pack, unpack
from ...errors import CheckpointError
from ...stores.writes import Append, Write
from ..image import STORED_PATHS
from ..path_table import PathTable
from ..store_access import StoreAccess
from ..store_keys import history_key

__all__ = ["Segments"]

_LONG: Final = 64
"""The largest number of messages that a checkpoint contains itself; more become a piece."""


class Segments:
    """The pieces of one run's history."""

    __slots__ = ("_access", "_count", "paths", "stored")

    def __init__(self, store_access: StoreAccess, *, known: bool = False) -> None:
        self._access = store_access
        # The number of pieces in the store; None: unknown.
        self._count: int | None = None if known else 0
        self.stored: dict[str, int] = {}  # how much of each lane, and of the paths, is in pieces
        self.paths = PathTable()  # the paths of all pieces and images

    async def shorten(self, image: dict[str, Any], run_id: str) -> list[Write]:
        """Remove the long parts from an image that was drawn without the rows already in pieces.

        Returns the writes that belong to it.
        """
        lanes = image.get("lanes", {})
        writes: list[Write] = []
        if sum(len(rows) for _, _, rows in lanes.values()) > _LONG and self._access.has_journals:
            piece = {
                lane: (self.stored.get(lane, 0), rows)
                for lane, (_, _, rows) in lanes.items()
                if rows
            }
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
        self.stored = {
            lane: count
            for lane, count in self.stored.items()
            if lane in lanes or lane == STORED_PATHS
        }
        if self.stored:
            image["stored"] = (run_id, dict(self.stored))
        return writes

    async def complete(self, image: dict[str, Any]) -> None:
        """Restore the parts that were removed from an image."""
        if "stored" not in image:
            return
        try:
            await self._complete(image, *image.pop("stored"))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
            msg = (
                "the part of the history that is stored separately is damaged: "
                f"{type(error).__name__}: {error}. Restore the store from a backup"
            )
            raise CheckpointError(msg) from error

    async def _complete(self, image: dict[str, Any], run_id: str, counts: dict[str, int]) -> None:
        found: dict[str, list[Any]] = {}
        for record in await self._access.read(history_key(run_id)):
            for lane, (start, rows) in unpack(record).items():
                found.setdefault(lane, [])[start:] = rows
        for lane, count in counts.items():
            rows = found.get(lane, ())
            if len(rows) < count:
                msg = (
                    f"a checkpoint needs {count} messages that are stored separately, but the "
                    f"store has only {len(rows)}. Restore the store from a backup."
                )
                raise CheckpointError(msg, run=run_id)
            if lane == STORED_PATHS:
                image["paths"] = [*rows[:count], *image.get("paths", ())]
            else:
                image["lanes"][lane][2] = [*rows[:count], *image["lanes"][lane][2]]
        self.stored = dict(counts)
