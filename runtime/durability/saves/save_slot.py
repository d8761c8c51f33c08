"""The place of a checkpoint's saves in the store.

The slot knows the number of the last save, once it has read it; each save increments it. Earlier
saves remain under their own names. This module never writes: it returns the writes.
"""

from __future__ import annotations

from typing import Any, Final

from ...codec.packing import pack
from ...data.checkpoint_id import CheckpointId
from ...log import loggers
from ...stores.writes import Expect, Put, Write
from ..checkpoint import numbered_id, read_checkpoint
from ..compatibility import FORMAT
from ..store_access import StoreAccess
from ..store_keys import answered_key

__all__ = ["SAVES_SECONDS", "SaveSlot"]

SAVES_SECONDS: Final = 86_400.0
"""Seconds for which the saves of an ended run stay if nothing else of it is retained.

A late answer gets a clear error, and `resume("id@n")` makes a branch.
"""


class SaveSlot:
    """The saves of one checkpoint."""

    __slots__ = ("_access", "_head", "_head_seconds", "name", "number")

    def __init__(self, access: StoreAccess, name: str) -> None:
        self._access = access
        self.name = name
        # the number of the last save, 0 if there is none; None: unknown
        self.number: int | None = None
        self._head: bytes | None = None  # the last save itself
        # Retention of the last save after the next one; None: as long as its run.
        self._head_seconds: float | None = None

    def handed_out(self, run_id: str) -> str:
        """Return the name, bound to the last save of that run, if there is one."""
        return CheckpointId(self.name, run_id, self.number) if self.number else self.name

    def know(self, number: int, head: bytes | None) -> None:
        self.number, self._head = number, head

    def begins(self, run_id: str) -> bool:
        """Assume that there is no save yet, if the checkpoint has the id of its run.

        The write is refused if there is one. Returns whether the assumption is safe.
        """
        may_be = self.name == run_id and self._access.is_fenced
        if may_be:
            self.know(0, None)
        return may_be

    async def look(self) -> dict[str, Any] | None:
        """Get the last save."""
        head = await self._access.get(self.name)
        found = None if head is None else read_checkpoint(self.name, head)
        self.know(0 if found is None else found["number"], head)
        return found

    async def look_for(self, run_id: str) -> None:
        """Get the last save, for a run that will be saved here.

        If another run waits there for an answer, a warning is logged that the name is this run's
        from now on.
        """
        last = await self.look()
        if last is None or last["run"] == run_id:
            return
        if await self._access.get(answered_key(last["run"], last["number"])) is not None:
            # that run may have ended, and nothing would remove the save
            self._head_seconds = SAVES_SECONDS
        else:
            loggers.durability.warning(
                "Checkpoint %r belonged to run %s, which waits to be resumed, and now belongs to "
                "run %s. resume(%r) continues the former run. Pass a different checkpoint_id for "
                "each run, or omit it: then it is the run's id.",
                *(self.name, last["run"], run_id, numbered_id(self.name, last["number"])),
            )

    def save(
        self, run_id: str, agent_name: str, content: dict[str, Any]
    ) -> tuple[bytes, list[Write]]:
        """Return the next save, and the writes for it.

        They are refused if another run has saved under this name in the meantime.
        """
        assert self.number is not None
        checkpoint = pack(
            {
                "checkpoint": FORMAT,
                "number": self.number + 1,
                "run": run_id,
                "agent": agent_name,
                **content,
            }
        )
        writes: list[Write] = [Expect(self.name, self._head)]
        if self._head is not None and self.number:
            writes.append(Put(numbered_id(self.name, self.number), self._head, self._head_seconds))
        return checkpoint, [*writes, Put(self.name, checkpoint)]

    async def expire(self, run_id: str, seconds: float) -> list[Write]:
        """Return the writes that let the saves of an ended run, and their answers, expire.

        They are refused if another run has saved under this name in the meantime.
        """
        assert self.number is not None
        if self._head is None or read_checkpoint(self.name, self._head)["run"] != run_id:
            return []
        writes: list[Write] = [
            Expect(self.name, self._head),
            Put(self.name, self._head, seconds),
            Put(answered_key(run_id, self.number), b"\x01", seconds),
        ]
        for number in range(self.number - 1, 0, -1):
            name = numbered_id(self.name, number)
            earlier = await self._access.get(name)
            if earlier is None or read_checkpoint(name, earlier)["run"] != run_id:
                # A run's saves are consecutive; earlier ones belong to another run, and may be
                # long.
                break
            writes += [
                Put(name, earlier, seconds),
                Put(answered_key(run_id, number), b"\x01", seconds),
            ]
        return writes

    def saved(self, checkpoint: bytes) -> None:
        """Record that the save was written."""
        assert self.number is not None
        self._head_seconds = None
        self.know(self.number + 1, checkpoint)
