"""Finding a checkpoint, and loading the image of its run.

This module never takes a run, and never writes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ...data.checkpoint_id import CheckpointId
from ...errors import CheckpointError, CheckpointNotFound, ResumeError, UsageError
from ..checkpoint import numbered_id, read_checkpoint, split_id
from ..compatibility import check_format
from ..replay import replay
from ..store_access import StoreAccess
from ..store_keys import journal_key
from .long_history import Segments

__all__ = ["FoundCheckpoint", "LoadedImage", "find_checkpoint", "load_image"]


class FoundCheckpoint(NamedTuple):
    """A checkpoint, and the requested save of it."""

    name: str
    number: int | None
    """None: the last one."""
    head: bytes
    content: dict[str, Any]
    """The contents of the last save."""

    @property
    def is_last(self) -> bool:
        return self.number is None or self.number == self.content["number"]

    def require(self, save: CheckpointId | None) -> None:
        """Raise ResumeError if an answer was meant for another save than the last one."""
        run, number = self.content["run"], self.content["number"]
        if save is not None and (save.run, save.save) != (run, number):
            now = (
                f"It was handed out at save {save.save} of run {save.run!r}, which is answered; "
                f"the last one is save {number} of {run!r}."
            )
            msg = (
                f"checkpoint {self.name!r}: {now} Nothing was answered. Call info() or pending() "
                "for what waits now, and answer that."
            )
            raise ResumeError(msg, run=run)

    def answered(self) -> ResumeError:
        msg = (
            f"interrupt {self.content['number']} of checkpoint {self.name!r} is already "
            "answered. No tool was called. pending() lists what still waits."
        )
        return ResumeError(msg, run=self.content["run"])

    def at_work(self) -> ResumeError:
        msg = (
            f"checkpoint {self.name!r} is already answered: another process has resumed it, or "
            "the run is still running. Call attach() to follow it."
        )
        return ResumeError(msg, run=self.content["run"])

    async def wanted(self, access: StoreAccess) -> dict[str, Any]:
        """Return the contents of the wanted save."""
        if self.is_last:
            return self.content
        assert self.number is not None
        earlier = await access.get(numbered_id(self.name, self.number))
        if earlier is None:
            saved = self.content["number"]
            msg = (
                f"the store has no {self.name}@{self.number}: checkpoint {self.name!r} was saved "
                f"{saved} times. Pass {self.name!r} for the last save."
            )
            raise CheckpointNotFound(msg)
        return read_checkpoint(numbered_id(self.name, self.number), earlier)


class LoadedImage(NamedTuple):
    """An image, and its sources."""

    image: dict[str, Any]
    records: int
    """The number of records in the run's journal."""
    covers_journal: bool
    """Whether the image includes all of them."""


async def find_checkpoint(access: StoreAccess, checkpoint_id: str) -> FoundCheckpoint:
    """Find the checkpoint of that id, or of that id without the number of a save."""
    name, number = split_id(checkpoint_id)
    head = await access.get(name)
    if head is None and number is not None:
        whole = await access.get(checkpoint_id)
        if whole is not None:
            name, number, head = checkpoint_id, None, whole
    if head is None:
        msg = (
            f"there is no checkpoint {name!r} in the store. A run is saved when it is "
            "interrupted or cancelled, if its Runner uses this store. Check the id and the store."
        )
        raise CheckpointNotFound(msg)
    return FoundCheckpoint(name, number, head, read_checkpoint(name, head))


async def load_image(
    access: StoreAccess,
    segments: Segments,
    found: dict[str, Any],
    checkpoint_id: str,
    *,
    steps: bool,
) -> LoadedImage:
    """Load the image of a save. `steps`: whether the run that continues from it has a journal."""
    if "image" in found:
        image: dict[str, Any] = found["image"]
        check_format(image)
        try:
            await segments.complete(image)
        except UsageError as error:
            msg = f"checkpoint {checkpoint_id!r} is damaged: {error}"
            raise CheckpointError(msg) from error
        return LoadedImage(
            image,
            len(await access.read(journal_key(found["run"]))) if steps else 0,
            covers_journal=False,
        )
    records = await access.read(journal_key(found["journal"]))
    count = found["records"]
    if len(records) < count:
        msg = (
            f"checkpoint {checkpoint_id!r} needs {count} records of a journal, but the store has "
            f"only {len(records)}: it has lost data. Restore the store from a backup."
        )
        raise CheckpointError(msg, run=found["run"])
    # The extra records are from a resume that was lost before its first step.
    return LoadedImage(replay(records[:count]), len(records), covers_journal=count == len(records))
