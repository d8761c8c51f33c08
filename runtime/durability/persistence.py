"""What is kept of one run in a store: its checkpoints, its journal, and who works on it.

Owns: when something is written, and under which key. A checkpoint is either a whole image, or, where each step is in the journal, the place in it.
Each save keeps the earlier ones. That an interrupt was answered is written with the first step after it, so that a resume which died before that does
not count. It must never let a step be shown that is not written, nor start an agent.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from ..agent.invocation import walk
from ..agent.tree import Node
from ..codec.packing import pack
from ..data.chat import new_id
from ..errors import CheckpointError, CheckpointNotFound, ResumeError, UsageError
from .checkpoint import VERSIONED, numbered_id, read_checkpoint, split_id
from .image import FORMAT, check_format, draw, rebuild
from .journal import Journal, replay
from .leases import SystemLeases, leases_of
from .long_history import Segments
from .store_access import RESERVED, StoreAccess, answered_key, journal_key, lease_key, open_key

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..agent.invocation import Invocation
    from ..agent.run_state import RunState
    from ..clock import Clock

__all__ = ["RunPersistence", "check_checkpoint_id"]

_OPEN_SECONDS: Final = 30.0
"""How often it is said again that a run is not finished: a store may forget what is as old as that, but not what was written since."""


def check_checkpoint_id(checkpoint_id: str) -> str:
    """Raise, if it cannot be the id of a new checkpoint."""
    if not isinstance(checkpoint_id, str) or not checkpoint_id:
        msg = f"checkpoint_id={checkpoint_id!r}: give a text that is not empty."
        raise UsageError(msg)
    if checkpoint_id.startswith(RESERVED) or VERSIONED.fullmatch(checkpoint_id):
        msg = f"checkpoint_id={checkpoint_id!r}: an id begins not with {RESERVED!r}, and ends not in '@' and a number: that names one of several saves."
        raise UsageError(msg)
    return checkpoint_id


class RunPersistence:
    """One run, as far as a store is concerned."""

    __slots__ = (
        "_answer",
        "_answering",
        "_clock",
        "_head",
        "_image_covers_journal",
        "_is_lost",
        "_lease_key",
        "_leases",
        "_lost",
        "_number",
        "_open_until",
        "_opened",
        "_records",
        "_root",
        "_save_in_progress",
        "checkpoint_id",
        "image",
        "journal",
        "recovered",
        "run_id",
        "segments",
        "store_access",
    )

    def __init__(self, store_access: StoreAccess, root: Node, run_id: str, checkpoint_id: str, *, steps: bool) -> None:
        self.store_access = store_access
        self._root = root
        self.run_id = run_id
        self.checkpoint_id = checkpoint_id
        self.journal = Journal() if steps else None
        self.segments = Segments(store_access)
        self.image: dict[str, Any] | None = None  # from which it is to go on, if that is known already
        self.recovered = False  # whether it goes on without having been interrupted
        self._records = 0  # how many the journal holds
        self._image_covers_journal = True  # whether the image is made of all of them
        self._number: int | None = None  # of the last save; None if it is not known yet whether there is one under that id
        self._head: bytes | None = None  # the last save itself
        self._answer: str | None = None  # what says that the interrupt was answered from which it is to go on
        self._answering: str | None = None  # the same, since it does: its first step writes that
        self._save_in_progress = False  # whether the journal says more of saves than there are
        self._leases: SystemLeases | None = None
        self._lease_key: str | None = None  # the lease that is held
        self._is_lost = False  # whether somebody else has it now
        self._lost: Callable[[], object] | None = None  # who is to know of that
        self._opened = False  # whether it says in the store that the run is not finished
        self._open_until = math.inf  # when that is to be said again
        self._clock: Clock | None = None

    # --- the beginning ---

    async def begin(self, state: RunState, system: Host, lost: Callable[[], object]) -> None:
        """A run of which each step is kept begins: from here on it is found, if this process is no more."""
        assert self.journal is not None
        self.when_lost(lost)
        if not await self.lease(system):
            msg = f"run {self.run_id} is under way already."
            raise UsageError(msg, run=self.run_id)
        self.journal.start(draw(state, self._root))
        problems = await _problems(self._open(), self.flush(state), self._look_for_saves())
        if any(problems) and problems[0] is None:
            await self.store_access.delete(open_key(self._root.name, self.run_id))  # whoever began it is told that it has not begun
        _raise_first(problems)

    async def lease(self, system: Host) -> bool:
        """Be the one who works on this run. Returns False if somebody else is."""
        key = lease_key(self.run_id)
        self._leases = leases_of(system)
        self._clock = system.clock
        taken = await self._leases.take(self.store_access, key, self._lose)
        self._lease_key = key if taken else None
        return taken

    def when_lost(self, lost: Callable[[], object]) -> None:
        """Call that if somebody else works on it from now on; at once, if that is so."""
        self._lost = lost
        if self._is_lost:
            lost()

    def _lose(self) -> None:
        self._is_lost = True
        if self._lost is not None:
            self._lost()

    async def _open(self) -> None:
        self._opened = True
        self._open_until = math.inf if self._clock is None else self._clock.monotonic() + _OPEN_SECONDS
        await self.store_access.set(open_key(self._root.name, self.run_id), pack({"checkpoint": self.checkpoint_id, "steps": self.journal is not None}))

    async def _look_for_saves(self) -> dict[str, Any] | None:
        """Get the last save."""
        self._head = await self.store_access.get(self.checkpoint_id)
        found = None if self._head is None else read_checkpoint(self.checkpoint_id, self._head)
        self._number = 0 if found is None else found["number"]
        return found

    # --- going on ---

    async def load(self, system: Host, lost: Callable[[], object]) -> None:
        """Find the checkpoint that is to be resumed, be the only one who does, and get its image."""
        self.when_lost(lost)
        name, number = split_id(self.checkpoint_id)
        head = await self.store_access.get(name)
        if head is None and number is not None:
            whole = await self.store_access.get(self.checkpoint_id)
            if whole is not None:
                name, number, head = self.checkpoint_id, None, whole
        if head is None:
            msg = f"there is no checkpoint {name!r} in the store. One is saved when a run is interrupted or cancelled, if its Runner has this store."
            raise CheckpointNotFound(msg)
        found = read_checkpoint(name, head)
        if number is None or number == found["number"]:
            self.run_id, self.checkpoint_id = found["run"], name
            if not await self.lease(system):
                msg = f"checkpoint {name!r} is already answered: somebody else is continuing it at this moment, or the run is still alive."
                raise ResumeError(msg, run=self.run_id)
            now, answered = await self.store_access.get_both(name, answered_key(found["run"], found["number"]))
            if now == head and answered is None:
                self._head, self._number = head, found["number"]
                self._opened = bool(found.get("open"))
                self._answer = answered_key(found["run"], found["number"])
                self.image = await self._image_of(found)
                return
            await self.close()
            if number is None:
                latest = found["number"]
                instead = f"To answer it again on purpose, resume('{name}@{latest}'): it becomes a branch of its own."
                msg = f"interrupt {latest} of checkpoint {name!r} is already answered. {instead}"
                raise ResumeError(msg, run=found["run"])
        await self._branch(name, number, head)
        await self.lease(system)

    async def _branch(self, name: str, number: int, head: bytes) -> None:
        """Go on from an earlier save, or from one that was answered: as another run."""
        found = read_checkpoint(name, head)
        if found["number"] != number:
            earlier = await self.store_access.get(numbered_id(name, number))
            if earlier is None:
                msg = f"checkpoint {name!r} has been saved {found['number']} times, and there is no {name}@{number} in the store."
                raise CheckpointNotFound(msg)
            found = read_checkpoint(numbered_id(name, number), earlier)
        self.image = await self._image_of(found)
        self.run_id = self.image["run"] = new_id()
        self.image["fresh"] = None  # what it says does not go into the session in which it began
        self.checkpoint_id = f"{name}@{number}~{self.run_id[:8]}"
        self.segments = Segments(self.store_access)
        self._number = 0
        self._records = 0

    async def _image_of(self, found: dict[str, Any]) -> dict[str, Any]:
        if "image" in found:
            image: dict[str, Any] = found["image"]
            check_format(image)
            try:
                await self.segments.complete(image)
            except UsageError as error:
                msg = f"checkpoint {self.checkpoint_id!r} is damaged: {error}"
                raise CheckpointError(msg) from error
        else:
            records = await self.store_access.read(journal_key(found["journal"]))
            count = found["records"]
            if len(records) < count:
                msg = f"checkpoint {self.checkpoint_id!r} stands on {count} records of a journal, of which the store has only {len(records)}."
                raise CheckpointError(msg, run=found["run"])
            image = replay(records[:count])
            self._records = len(records)
            self._image_covers_journal = count == len(records)  # behind it is what somebody wanted who was lost before his first step
        return image

    def restore(self, state: RunState) -> None:
        """Build the run of the image, with every agent in its place of the tree."""
        assert self.image is not None
        image, self.image = self.image, None
        state.context.run_id = self.run_id
        rebuild(image, state, self._root)
        if self.journal is not None:
            if self._records and self._image_covers_journal:
                self.journal.know(image)
            else:
                self.journal.start(draw(state, self._root))

    async def go_on(self, state: RunState) -> None:
        """The run goes on from here. Where each step is kept, so is that it does."""
        if self.journal is not None:
            for invocation in _at_work(state):
                self.journal.touch(invocation)
            self.journal.mark("resumed", self._number or 0)
            _raise_first(await _problems(self._open(), self.flush(state)))  # which is no step yet
            if self._number is None:
                await self._look_for_saves()
        self._answering = self._answer

    async def read_unfinished(self) -> bool:
        """Get the image of a run that nobody works on any more. Returns False if there is nothing to continue."""
        self.recovered = self._opened = True
        if self.journal is None:
            head = await self.store_access.get(self.checkpoint_id)
            if head is None:
                return False
            found = read_checkpoint(self.checkpoint_id, head)
            self._head, self._number = head, found["number"]
            if not found.get("open"):
                return False  # it was continued, and waits for something by now
            answered = await self.store_access.get(answered_key(self.run_id, found["number"]))
            if found["run"] != self.run_id or answered is not None:
                return False
            self._answer = answered_key(self.run_id, found["number"])
            self.image = await self._image_of(found)
            return True
        records = await self.store_access.read(journal_key(self.run_id))
        if not records:
            return False
        self.image = replay(records)
        self._records = len(records)
        last = await self._look_for_saves()
        mark = self.image["mark"]
        if mark is not None and mark[0] == "drained":
            self._answer = answered_key(self.run_id, mark[1])
        elif mark is not None and mark[0] == "resumed":
            if last is not None and (last["run"], last["number"]) == (self.run_id, mark[1]):
                answer = answered_key(self.run_id, mark[1])
                if await self.store_access.get(answer) is None:
                    self._answer = answer  # whoever gave it was lost before his first step; it counts from now on
        elif mark is not None:
            if mark[0] in ("interrupted", "cancelled") and mark[1] > (self._number or 0):
                await self._save(mark[1], self._journal_position())  # it had come so far, and no further
            return False
        return True

    # --- steps ---

    async def flush(self, state: RunState, *, ahead: int = 0) -> None:
        """Write what has happened since the last time. What is to be shown is shown after that; of the counters, `ahead` events are as good as shown."""
        record = None if self.journal is None else self.journal.take(state, ahead)
        if record is not None or self._answering is not None:
            await self._check()
        if self._answering is not None:
            key, self._answering = self._answering, None
            if not await self.store_access.create(key, b"\x01"):
                raise self._answered_meanwhile()
        if record is not None:
            self._records += 1
            await self.store_access.append(journal_key(self.run_id), [record])
            if self._opened and self._clock is not None and self._clock.monotonic() > self._open_until:
                await self._open()

    async def _check(self) -> None:
        """Raise, if somebody else may work on it by now: then nothing may be written any more."""
        if self._lease_key is None or self._leases is None or await self._leases.still_has(self.store_access, self._lease_key, ask=False):
            return
        self._lose()
        msg = f"run {self.run_id} is not this process's any more: its lease has expired meanwhile, and somebody else may continue it."
        raise ResumeError(msg, run=self.run_id)

    def _answered_meanwhile(self) -> ResumeError:
        return ResumeError(f"checkpoint {self.checkpoint_id!r} was answered by somebody else meanwhile.", run=self.run_id)

    @property
    def must_write(self) -> bool:
        """Whether a step is to be written before it is shown."""
        return self.journal is not None or self._answering is not None

    async def save(self, state: RunState, kind: str, image: dict[str, Any] | None, *, ahead: int) -> None:
        """Keep the run as it is but for `ahead` events that are shown after it: the image, or the place in the journal."""
        await self._check()
        if self._number is None:
            await self._look_for_saves()
        number = (self._number or 0) + 1
        self._save_in_progress = True
        if self.journal is not None:
            self.journal.mark(kind, number)
            await self.flush(state, ahead=ahead)
            await self._save(number, self._journal_position())
        else:
            answering, self._answering = self._answering, None
            if answering is not None and await self.store_access.get(answering) is not None:
                raise self._answered_meanwhile()
            assert image is not None
            await self.segments.shorten(image, self.run_id)
            await self._save(number, {"image": image, "open": kind == "drained"})
            if answering is not None:
                await self.store_access.create(answering, b"\x01")  # not before: lost in between, it would wait for nothing
        self._save_in_progress = False
        if kind == "drained":
            await self._open()
        elif kind == "interrupted":
            await _problems(self.finish(unfinished=False))  # whoever sees it may go on at once

    def _journal_position(self) -> dict[str, Any]:
        return {"journal": self.run_id, "records": self._records}

    async def _save(self, number: int, content: dict[str, Any]) -> None:
        checkpoint = pack({"checkpoint": FORMAT, "number": number, "run": self.run_id, "agent": self._root.name, **content})
        if self._head is not None and self._number:
            await self.store_access.set(numbered_id(self.checkpoint_id, self._number), self._head)
        await self.store_access.set(self.checkpoint_id, checkpoint)
        self._head, self._number = checkpoint, number

    # --- the end ---

    async def finish(self, *, unfinished: bool) -> None:
        """The run has ended. If it is unfinished, somebody is to find it."""
        try:
            if unfinished:
                return
            await self._check()
            if self._answering is not None:
                await self.store_access.create(self._answering, b"\x01")  # it has come to its end without a step
            if self._opened and not (self.journal is not None and self._save_in_progress):
                if self.journal is not None and not self._number:
                    await self.store_access.delete(journal_key(self.run_id))  # nobody can go back to it
                await self.store_access.delete(open_key(self._root.name, self.run_id))
                self._opened = False  # from now on it is somebody else's to say
        finally:
            await self.close()

    async def close(self) -> None:
        """Work on it no more."""
        key, self._lease_key = self._lease_key, None
        if key is not None and self._leases is not None:
            await self._leases.give_back(self.store_access, key)

    def abandon(self) -> None:
        """The same, of a run that has ended otherwise than it should: there is no time to wait."""
        key, self._lease_key = self._lease_key, None
        if key is not None and self._leases is not None:
            self._leases.abandon(self.store_access, key)

    @property
    def is_held(self) -> bool:
        """Whether there is something to be done at the end."""
        return self._lease_key is not None or self._opened


def _at_work(state: RunState) -> list[Invocation]:
    return [] if state.root is None else list(walk(state.root))


async def _problems(*works: Awaitable[object]) -> list[BaseException | None]:
    """What each has raised, when all have ended: nothing is written behind the back of whoever waits."""
    return [one if isinstance(one, BaseException) else None for one in await asyncio.gather(*works, return_exceptions=True)]


def _raise_first(problems: list[BaseException | None]) -> None:
    for problem in problems:
        if problem is not None:
            raise problem
