"""What is kept of one run in a store: its checkpoints, its journal, that it is not finished, and who works on it.

Owns: when something is written. A checkpoint is either a whole image, or, where each step is recorded, the position in the journal. What belongs together is
written in one step, by the run's lease: a run that another process has taken writes nothing any more. It must never let a step be shown that is not written,
nor start an agent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from time import time
from typing import TYPE_CHECKING, Any

from ..agent.invocation import walk
from ..agent.tree import Node
from ..data.chat import new_id
from ..data.run_result import RunStatus
from ..errors import ResumeError, WriteRefused
from ..stores.run_entries import DropEntry
from ..stores.writes import Append, Ending, Expect, Put, Remove, Write
from .checkpoint import kept_of
from .image import draw, draw_beginning, rebuild
from .journal import Journal, replay
from .loading import FoundCheckpoint, find_checkpoint, load_image
from .long_history import Segments
from .open_mark import OpenMark, UnfinishedRun
from .run_lease import RunLease
from .run_listing import RunEnd, RunListing, restated
from .saves.answer_mark import AnswerMark
from .saves.save_slot import SaveSlot
from .store_access import StoreAccess
from .store_keys import answered_key, journal_key

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..agent.run_state import RunState

__all__ = ["RunPersistence"]


class RunPersistence:
    """One run, as far as a store is concerned."""

    __slots__ = (
        "_answer",
        "_covers_journal",
        "_listing",
        "_records",
        "_root",
        "_save_failed",
        "_segments",
        "_slot",
        "access",
        "journal",
        "mark",
        "own",
        "recovered",
        "run_id",
    )

    def __init__(self, access: StoreAccess, root: Node, run: UnfinishedRun) -> None:
        self.access = access
        self._root = root
        self.run_id = run.id
        self.journal = Journal() if run.steps else None
        self._segments: Segments | None = None
        self.recovered = False  # whether it continues without having been interrupted
        self.mark = OpenMark(run)
        self._listing = RunListing(access, time())
        self._slot = SaveSlot(access, run.checkpoint_id)
        self._answer: AnswerMark | None = None  # if it was interrupted, and continues
        self._records = 0  # how many the journal holds
        self._covers_journal = True  # whether the image that it continues from is made of all of them
        self._save_failed = False  # whether the run was to be saved, and is not
        self.own = RunLease(access)

    @property
    def segments(self) -> Segments:
        """The long part of its history. Made when it is first asked for: few runs that record each step have one."""
        if self._segments is None:
            self._segments = Segments(self.access)
        return self._segments

    @property
    def checkpoint_id(self) -> str:
        return self._slot.name

    # --- the beginning ---

    async def begin(self, state: RunState, system: Host) -> bool:
        """The run begins: from here on it is found, if this process is lost. Returns False if there is a run of that id already."""
        mark, journal, record = self.mark.put(), journal_key(self.run_id), None
        writes: list[Write] = [Expect(mark.key), Expect(journal)]
        if self.journal is not None:
            record = self.journal.begin(draw_beginning(state, self._root))
            writes.append(Append(journal, (record,), 0))
        writes.append(mark)
        writes += self._listing.put(self.mark.run, state, RunStatus.RUNNING)
        try:
            if not await self.own.take(self.mark.run, system, writes, undo=self._undo, key=mark.key):
                return False
        except WriteRefused:
            return False
        self._records = 0 if record is None else 1
        self.mark.opened(self.own.clock)
        state.context.lease = self.own.held  # under which everything begins from here on
        return True

    def _undo(self) -> list[Write]:
        mark, listed = self.mark.put(), [DropEntry(self.run_id)] if self.access.lists_runs else []
        return [Expect(mark.key, mark.value), Remove(mark.key), Remove(journal_key(self.run_id)), *listed]

    async def take(self, system: Host) -> bool:
        """Be the one who works on this run. Returns False if another run or process is."""
        return await self.own.take(self.mark.run, system)

    # --- continuing ---

    async def load(self, system: Host) -> dict[str, Any]:
        """Find the checkpoint that is to be resumed, and be the only one who does. Returns its image."""
        found = await find_checkpoint(self.access, self.checkpoint_id)
        if not found.is_last:
            return await self._branch(system, found)
        name, content = found.name, found.content
        self._name(content, name, *kept_of(content))
        self._listing.known()
        number = content["number"]
        taken = await self.own.take_if(self.mark.run, system, [Expect(name, found.head), Expect(answered_key(content["run"], number))])
        if taken is False:
            msg = f"checkpoint {name!r} is already answered: another process is continuing it at this moment, or the run is still alive."
            raise ResumeError(msg, run=self.run_id)
        if taken:
            self._slot.know(number, found.head)
            if content.get("open"):
                self.mark.opened(self.own.clock)
            self._answer = AnswerMark(content["run"], number)
            self.own.leaves_unfinished(unfinished=bool(content.get("open")))
            return await self._image_of(content)
        if found.number is None:
            instead = f"To answer it again on purpose, resume('{name}@{number}'): it becomes a branch of its own."
            msg = f"interrupt {number} of checkpoint {name!r} is already answered. {instead}"
            raise ResumeError(msg, run=content["run"])
        return await self._branch(system, found)

    def _name(self, content: dict[str, Any], checkpoint_id: str, keep: float | None = 0.0, input: str | None = None) -> None:  # noqa: A002 -- what it is
        """It is that run."""
        self.run_id = content["run"]
        self.mark = self.mark.of_saved(content, checkpoint_id, keep, input)
        self._slot = SaveSlot(self.access, checkpoint_id)
        self._segments = Segments(self.access, known=True)

    async def _branch(self, system: Host, found: FoundCheckpoint) -> dict[str, Any]:
        """Continue from an earlier save, or from one that was answered: as another run."""
        wanted = await found.wanted(self.access)
        image = await self._image_of(wanted)
        image["run"] = run_id = new_id()
        image["fresh"] = None  # what it says does not go into the session in which it began
        self._name(
            {"run": run_id, "agent": self._root.name, "labels": found.content.get("labels"), "trace": wanted.get("trace")},
            f"{found.name}@{wanted['number']}~{run_id[:8]}",
        )
        self._slot.know(0, None)
        self._segments = None
        self._records, self._covers_journal = 0, False
        await self.take(system)
        self.own.leaves_unfinished(unfinished=False)
        return image

    async def _image_of(self, found: dict[str, Any]) -> dict[str, Any]:
        image, self._records, self._covers_journal = await load_image(self.access, self.segments, found, self.checkpoint_id, steps=self.journal is not None)
        return image

    def restore(self, image: dict[str, Any], state: RunState) -> None:
        """Build the run of the image, with every agent in its place of the tree."""
        state.context.rename(self.run_id)
        self.segments.paths.know(image.get("paths", ()), rebuild(image, state, self._root))
        if self.journal is not None:
            paths = self.segments.paths
            if self._records and self._covers_journal:
                self.journal.know(image, paths)
            else:
                self.journal.start(draw(state, self._root, paths=paths), paths)
        state.context.lease = self.own.held

    async def go_on(self, state: RunState) -> None:
        """The run continues from here. Where each step is recorded, so is that it does, and the run is to be found again."""
        self.mark.count(self.own.attempts)
        if self.journal is not None:
            for invocation in () if state.root is None else walk(state.root):
                self.journal.touch(invocation)
            if self._slot.number is None:
                await self._slot.look()
            self.journal.mark("resumed", self._slot.number or 0)
            record = self.journal.take(state)
            assert record is not None
            await self._write([self._append(record), *self._opening(state)])
            self._records += 1
            self.mark.opened(self.own.clock)
            self.own.leaves_unfinished(unfinished=True)
        elif self.keeps_outcome:
            await self._write(self._opening(state))
            self.mark.opened(self.own.clock)
        if self._answer is not None:
            self._answer.claim()

    def _opening(self, state: RunState) -> list[Write]:
        """What says that the run is not finished, and takes back how it had ended, where that is kept."""
        listed = self._listing.put(self.mark.run, state, RunStatus.RUNNING)
        return [self.mark.put(), *([Put(journal_key(self.run_id), b"")] if self.keeps_outcome else []), *listed]

    @property
    def keeps_outcome(self) -> bool:
        """Whether it is kept how the run has ended."""
        return self.mark.run.keep != 0.0

    async def read_unfinished(self) -> dict[str, Any] | None:
        """Get the image of a run that no process works on any more. Returns None if there is nothing to continue."""
        self.recovered = True
        self._listing.known()
        self.mark.opened(self.own.clock)
        self._segments = Segments(self.access, known=True)
        if self.journal is None:
            return await self._drained_image()
        records = await self.access.read(journal_key(self.run_id))
        if not records:
            return None
        image = replay(records)
        self._records = len(records)
        last = await self._slot.look()
        kind, number = image["mark"] or (None, 0)
        if kind == "drained":
            self._answer = AnswerMark(self.run_id, number)
        elif kind == "resumed":
            is_last = last is not None and (last["run"], last["number"]) == (self.run_id, number)
            if is_last and await self.access.get(answered_key(self.run_id, number)) is None:
                self._answer = AnswerMark(self.run_id, number)  # that resume was lost before its first step; from now on its answer is binding
        elif kind is not None:
            if kind in ("interrupted", "cancelled") and number > (self._slot.number or 0):
                await self._complete_save(number)
            return None
        return image

    async def _drained_image(self) -> dict[str, Any] | None:
        found = await self._slot.look()
        if found is None or not found.get("open"):
            return None  # it was continued, and waits for something by now
        answered = await self.access.get(answered_key(self.run_id, found["number"]))
        if found["run"] != self.run_id or answered is not None:
            return None
        self._answer = AnswerMark(self.run_id, found["number"])
        return await self._image_of(found)

    async def _complete_save(self, number: int) -> None:
        """An earlier version was lost between the journal and the checkpoint: it had come so far, and no further."""
        self._slot.number = number - 1
        checkpoint, writes = self._slot.save(self.run_id, self._root.name, self._position(self._records))
        await self._write(writes)
        self._slot.saved(checkpoint)

    # --- steps ---

    @property
    def must_write(self) -> bool:
        """Whether a step is to be written before it is shown."""
        return self.journal is not None or (self._answer is not None and self._answer.is_due)

    def _append(self, *records: bytes) -> Write:
        return Append(journal_key(self.run_id), records, self._records)

    def _answered(self) -> list[Write]:
        return [] if self._answer is None else self._answer.writes()

    def _position(self, records: int) -> dict[str, Any]:
        return {"journal": self.run_id, "records": records}

    async def flush(self, state: RunState, *, ahead: int = 0) -> None:
        """Write what has happened since the last time. What is to be shown is shown after that; of the counters, `ahead` events are as good as shown."""
        record = None if self.journal is None else self.journal.take(state, ahead)
        writes = self._answered()
        if record is not None:
            writes.append(self._append(record))
            if self.mark.is_due(self.own.clock):
                writes += [self.mark.put(), *self._listing.put(self.mark.run, state, RunStatus.RUNNING)]
        elif writes:
            writes += self._listing.put(self.mark.run, state, RunStatus.RUNNING)  # what it has waited for was answered
        if not writes:
            return
        await self._write(writes)
        if self._answer is not None:
            self._answer.written()
        if record is not None:
            self._records += 1
            if len(writes) > 1:
                self.mark.opened(self.own.clock)

    async def _write(self, writes: Sequence[Write], then: Ending = "keep") -> None:
        """In one step, and only if this process still has the run."""
        try:
            await self.own.write(writes, then)
        except WriteRefused as refused:
            if self._answer is not None and self._answer.is_due and refused.key == self._answer.key:
                msg = f"checkpoint {self.checkpoint_id!r} was answered by another process meanwhile."
                raise ResumeError(msg, run=self.run_id) from refused
            raise

    async def save(self, state: RunState, kind: str, image: dict[str, Any] | None, *, ahead: int, end: RunEnd) -> None:
        """Keep the run as it is but for `ahead` events that are shown after it: the image, or the position in the journal; and why it rests."""
        self._save_failed = True
        if self._slot.number is None and not self._slot.begins(self.run_id):
            await self._slot.look_for(self.run_id)
        is_over = kind == "interrupted"
        ending: Ending = "forget" if is_over else "keep"
        kept = [] if end.packed is None else [Put(journal_key(self.run_id), end.packed)]
        if kind == "drained":
            self.mark.count(0)  # its process leaves it in good order
        marks = [*kept, *(self.mark.remove() if is_over else [self.mark.put()] if kind == "drained" else [])]
        marks += self._listing.put(self.mark.run, state, RunStatus(kind), end)
        pieces = [] if image is None else await self.segments.shorten(image, self.run_id)
        records: tuple[bytes, ...] = ()
        while True:
            if self.journal is not None:
                self.journal.mark(kind, (self._slot.number or 0) + 1)
                record = self.journal.take(state, ahead)
                assert record is not None
                records = (*records, record)
                content, steps = self._position(self._records + len(records)), [self._append(*records)]
            else:
                content, steps = {"image": image, "open": kind == "drained"}, pieces
            if end.packed is not None:
                content["kept"] = (self.mark.run.keep, self.mark.run.input)
            content |= self.mark.kept_with_saves()
            checkpoint, writes = self._slot.save(self.run_id, self.mark.run.agent, content)
            try:
                await self._write([*self._answered(), *steps, *writes, *marks], ending)
                break
            except WriteRefused as refused:
                if refused.key != self._slot.name:
                    raise
                await self._slot.look_for(self.run_id)  # another run was saved under the same name meanwhile
        self._records += len(records)
        if self._answer is not None:
            self._answer.written()
        self._slot.saved(checkpoint)
        self._save_failed = False
        if kind == "drained":
            self.mark.opened(self.own.clock)
            self.own.leaves_unfinished(unfinished=True)
        elif is_over:
            self.mark.is_open = False
            await self.own.give_back()

    # --- the end ---

    async def finish(self, *, unfinished: bool, state: RunState | None = None, end: RunEnd | None = None, with_step: bool = False) -> None:
        """The run has ended. If it is unfinished, another process is to find it. Else it is kept for a while how it has ended, if that is to be kept.

        `with_step`: the last step is written in the same step.
        """
        try:
            if unfinished or self._save_failed or (end is not None and end.result.status is RunStatus.INTERRUPTED):
                return  # one that waits was given back when it was saved: the process that answers it has it by now
            journal, mark, key = self.journal, self.mark, journal_key(self.run_id)
            writes = self._answered()  # it may have come to its end without a step
            if with_step and journal is not None and (record := journal.take_last()) is not None:
                writes.append(Append(key, (record,), self._records))
            stands = bool(self._slot.number)  # a save that is resumed later stands on the journal
            if end is not None and state is not None:
                writes += self._listing.end(mark.run, state, end, stands=stands)
            elif self.recovered and journal is None and mark.is_open:
                writes += await restated(self.access, mark.run, RunStatus.FAILED, "RunLost: its process is gone, and nothing of the run was kept.")
            if end is not None and end.packed is not None:
                writes.append(Put(key, end.packed, None if stands else mark.run.keep))
            elif mark.is_open and journal is not None and not stands:
                writes.append(Remove(key))  # no save stands on it
            writes += mark.remove()
            if writes or self.own.held is not None:
                await self._write(writes, "forget")
            if self._answer is not None:
                self._answer.written()
            mark.is_open = False
        finally:
            await self.own.give_back()

    async def set_aside(self, writes: Sequence[Write]) -> None:
        """No process is to continue it by itself any more."""
        run = replace(self.mark.run, attempts=self.own.attempts - 1)
        await self._write([*writes, Remove(self.mark.key), *await restated(self.access, run, RunStatus.STUCK)], "forget")
        await self.own.give_back()

    @property
    def ends_with_step(self) -> bool:
        """Whether the last step and the end may be written in one step."""
        return self.journal is not None and not self._save_failed

    @property
    def is_held(self) -> bool:
        """Whether there is something to be done at the end."""
        return self.own.held is not None or self.mark.is_open
