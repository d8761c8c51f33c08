"""Finding a checkpoint, and the image of the run that it is of.

Owns: how what a store holds becomes an image that a run continues from. It must never take a run, nor write.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..errors import CheckpointError, CheckpointNotFound, UsageError
from .checkpoint import numbered_id, read_checkpoint, split_id
from .compatibility import check_format
from .journal import replay
from .long_history import Segments
from .store_access import StoreAccess
from .store_keys import journal_key

__all__ = ["FoundCheckpoint", "LoadedImage", "find_checkpoint", "load_image"]


class FoundCheckpoint(NamedTuple):
    """A checkpoint, and which of its saves is wanted."""

    name: str
    number: int | None
    """None: the last one."""
    head: bytes
    content: dict[str, Any]
    """What the last save says."""

    @property
    def is_last(self) -> bool:
        return self.number is None or self.number == self.content["number"]

    async def wanted(self, access: StoreAccess) -> dict[str, Any]:
        """What the save says that is wanted."""
        if self.is_last:
            return self.content
        assert self.number is not None
        earlier = await access.get(numbered_id(self.name, self.number))
        if earlier is None:
            saved = self.content["number"]
            msg = f"checkpoint {self.name!r} has been saved {saved} times, and there is no {self.name}@{self.number} in the store."
            raise CheckpointNotFound(msg)
        return read_checkpoint(numbered_id(self.name, self.number), earlier)


class LoadedImage(NamedTuple):
    """An image, and what it is made of."""

    image: dict[str, Any]
    records: int
    """How many the journal of the run holds."""
    covers_journal: bool
    """Whether the image is made of all of them."""


async def find_checkpoint(access: StoreAccess, checkpoint_id: str) -> FoundCheckpoint:
    """The checkpoint of that id, or of that id without the number of a save."""
    name, number = split_id(checkpoint_id)
    head = await access.get(name)
    if head is None and number is not None:
        whole = await access.get(checkpoint_id)
        if whole is not None:
            name, number, head = checkpoint_id, None, whole
    if head is None:
        msg = f"there is no checkpoint {name!r} in the store. One is saved when a run is interrupted or cancelled, if its Runner has this store."
        raise CheckpointNotFound(msg)
    return FoundCheckpoint(name, number, head, read_checkpoint(name, head))


async def load_image(access: StoreAccess, segments: Segments, found: dict[str, Any], checkpoint_id: str, *, steps: bool) -> LoadedImage:
    """The image of a save. `steps`: whether the run that continues from it has a journal."""
    if "image" in found:
        image: dict[str, Any] = found["image"]
        check_format(image)
        try:
            await segments.complete(image)
        except UsageError as error:
            msg = f"checkpoint {checkpoint_id!r} is damaged: {error}"
            raise CheckpointError(msg) from error
        return LoadedImage(image, len(await access.read(journal_key(found["run"]))) if steps else 0, covers_journal=False)
    records = await access.read(journal_key(found["journal"]))
    count = found["records"]
    if len(records) < count:
        msg = f"checkpoint {checkpoint_id!r} stands on {count} records of a journal, of which the store has only {len(records)}."
        raise CheckpointError(msg, run=found["run"])
    # The extra records are from a resume that was lost before its first step.
    return LoadedImage(replay(records[:count]), len(records), covers_journal=count == len(records))
