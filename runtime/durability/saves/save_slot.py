"""Where the saves of one checkpoint are.

Owns: how many times it has been saved, and what the last save is, as far as that is known: UNKNOWN, then AT a number, and one further with each save. Each
save keeps the earlier ones under names of their own. It must never write: what is to be written is returned.
"""

from __future__ import annotations

from typing import Any

from ...codec.packing import pack
from ...log import loggers
from ...stores.writes import Expect, Put, Write
from ..checkpoint import numbered_id, read_checkpoint
from ..compatibility import FORMAT
from ..store_access import StoreAccess
from ..store_keys import answered_key

__all__ = ["SaveSlot"]


class SaveSlot:
    """The saves of one checkpoint."""

    __slots__ = ("_access", "_head", "name", "number")

    def __init__(self, access: StoreAccess, name: str) -> None:
        self._access = access
        self.name = name
        self.number: int | None = None  # of the last save, 0 if there is none; None: unknown
        self._head: bytes | None = None  # the last save itself

    def know(self, number: int, head: bytes | None) -> None:
        self.number, self._head = number, head

    def begins(self, run_id: str) -> bool:
        """Take it that there is no save yet, of a checkpoint that is called as its run: the write is refused, if there is one. Returns whether that may be."""
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
        """The same, for a run that is to be saved here. If another one waits there for an answer, the log says that the name is this run's from now on."""
        last = await self.look()
        if last is not None and last["run"] != run_id and await self._access.get(answered_key(last["run"], last["number"])) is None:
            loggers.durability.warning(
                "Checkpoint %r was that of run %s, which waits to be resumed: from now on it is that of run %s. resume(%r) continues the former one. "
                "Give each run a checkpoint_id of its own, or none: then it is the run's id.",
                *(self.name, last["run"], run_id, numbered_id(self.name, last["number"])),
            )

    def save(self, run_id: str, agent_name: str, content: dict[str, Any]) -> tuple[bytes, list[Write]]:
        """The next save, and what has to be written for it. It is refused if another run has saved under this name meanwhile."""
        assert self.number is not None
        checkpoint = pack({"checkpoint": FORMAT, "number": self.number + 1, "run": run_id, "agent": agent_name, **content})
        writes: list[Write] = [Expect(self.name, self._head)]
        if self._head is not None and self.number:
            writes.append(Put(numbered_id(self.name, self.number), self._head))
        return checkpoint, [*writes, Put(self.name, checkpoint)]

    def saved(self, checkpoint: bytes) -> None:
        """It was written."""
        assert self.number is not None
        self.know(self.number + 1, checkpoint)
