"""One run and its state in a store: its claim, its row, its checkpoints and its journal.

A checkpoint is either a whole image or, if each step is recorded, a position in the journal.
Related changes are written in one step, under the run's lease: a run that another process has taken
can no longer write. No step is shown before it is written.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from ..agent.invocation import walk
from ..agent.run_messages import LOST
from ..agent.tree import Node
from ..codec.json_values import fits
from ..data.chat import new_id
from ..data.checkpoint_id import CheckpointId
from ..data.run_result import RunResult, RunStatus
from ..errors import ResumeError, RunCancelled, ValueRefused, WriteRefused, text_of
from ..stores.run_entries import DropEntry, ExpectEntry, RunEntry
from ..stores.writes import Append, Ending, Expect, Put, Remove, Write
from .checkpoint import kept_of
from .image import draw, draw_beginning, rebuild
from .journal import Journal
from .lease import Lease
from .leases import SystemLeases, leases_of
from .replay import replay
from .run_row import RunEnd, RunRow, closed, restated
from .saves.answer_mark import AnswerMark
from .saves.ending import write_end
from .saves.loading import FoundCheckpoint, find_checkpoint, load_image
from .saves.long_history import Segments
from .saves.save_slot import SAVES_SECONDS, SaveSlot
from .store_access import StoreAccess
from .store_keys import TASK, answered_key, answered_prefix, journal_key
from .timers import deadline_timer, due_task
from .unfinished_run import UnfinishedRun, lost_text

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..agent.run_messages import CancelRun
    from ..agent.run_state import RunState
    from ..clock import Clock
    from ..telemetry.run_telemetry import RunTelemetry

__all__ = ["RunStore"]

_LONGEST_FAILURE = 1000


class RunStore:
    """One run and its state in a store."""

    __slots__ = (
        "_answer",
        "_covers_journal",
        "_has_progressed",
        "_is_new_context",
        "_leases",
        "_records",
        "_root",
        "_save_failed",
        "_segments",
        "_slot",
        "_stop",
        "access",
        "answer_id",
        "clock",
        "held",
        "journal",
        "recovered",
        "row",
        "run_id",
        "watch",
    )

    def __init__(self, access: StoreAccess, root: Node, run: UnfinishedRun) -> None:
        self.access = access
        self._root = root
        self.run_id = run.id
        self.journal = Journal() if run.steps else None
        self._segments: Segments | None = None
        self.recovered = False  # whether it continues without having been interrupted
        self.row = RunRow(run)
        self._slot = SaveSlot(access, run.checkpoint_id)
        self._answer: AnswerMark | None = None  # set if it was interrupted and continues
        self.answer_id: str | None = None  # makes sending the same answer twice idempotent
        self._has_progressed = False  # whether a step was recorded in this attempt
        self._records = 0  # number of records in the journal
        # Whether the image that it continues from includes all records of the journal.
        self._covers_journal = True
        # Whether the run continues with a context other than the stored one.
        self._is_new_context = False
        self._save_failed = False  # whether saving the run was attempted and failed
        self._leases: SystemLeases | None = None
        self._stop: Callable[[CancelRun], object] | None = None
        self.held: Lease | None = None  # while this process has the run
        self.clock: Clock | None = None  # the clock of the system that has taken it
        self.watch: RunTelemetry | None = None  # observes the run

    @property
    def segments(self) -> Segments:
        """The long part of its history.

        Made on first use: few runs that record each step need it.
        """
        if self._segments is None:
            self._segments = Segments(self.access)
        return self._segments

    @property
    def checkpoint_id(self) -> str:
        return self._slot.name

    @property
    def handed_out(self) -> str:
        """The checkpoint id, bound to the last save.

        An answer that names it is refused after the next save.
        """
        return self._slot.handed_out(self.run_id)

    # --- the beginning ---

    async def queue(self, state: RunState, system: Host) -> bool:
        """Store that the run waits for its turn in a session, so that other processes know of it.

        Returns False if there is a run of that id already.
        """
        self.row.queue(queued=True)
        row = self.row.entry(state, RunStatus.PENDING, is_open=True)
        if not await self._take_new(system, [*self._is_new(), row], row):
            self.row.queue(queued=False)
            return False
        self.leaves_unfinished(unfinished=False)
        self.at_leave(partial(self._withdrawn, state))
        return True

    def _withdrawn(self, state: RunState, why: Exception | None = None) -> list[Write]:
        """Return the writes for a run whose turn does not come. It has not started, and the same id
        may be sent again.
        """
        run = self.row.run
        if not run.queued:
            return []
        if not self.keeps_outcome:
            return [DropEntry(self.run_id, self.row.key)]
        why = why or RunCancelled(
            "the actor system was left while the run waited for its turn in the session. The run "
            "had not started: send it again"
        )
        status = RunStatus.CANCELLED if isinstance(why, RunCancelled) else RunStatus.FAILED
        end = RunEnd(RunResult(status, why), None)
        return [self.row.entry(state, status, end, run.keep or None, is_open=False)]

    async def withdraw(self, state: RunState, why: Exception | None) -> None:
        """Withdraw the run from the queue. It does not start."""
        if self.row.run.queued and self.held is not None:
            await self._write(self._withdrawn(state, why), "forget")
            self.row.is_open = False

    async def begin(self, state: RunState, system: Host) -> bool:
        """Store that the run starts: from now on it can be recovered if this process is lost.

        Returns False if there is a run of that id already.
        """
        was_queued, record = self.row.run.queued, None
        self.row.queue(queued=False)
        writes = [] if was_queued else self._is_new()
        if self.journal is not None:
            record = self.journal.begin(draw_beginning(state, self._root))
            writes.append(Append(journal_key(self.run_id), (record,), 0))
        row = self.row.entry(state, RunStatus.RUNNING, is_open=True)
        writes.append(row)
        heard = self._heard(state)
        writes += heard
        if was_queued:
            try:
                await self._write(writes)
            except BaseException:
                self.row.queue(queued=True)
                raise
            self.row.opened(self.clock)
            self.leaves_unfinished(unfinished=self.row.run.steps)
        elif not await self._take_new(system, writes, row):
            return False
        self._records = 0 if record is None else 1
        self._note_heard(state, heard)
        self.at_leave(partial(self._left, state))
        state.context.lease = self.held  # everything starts under it from here on
        return True

    def _is_new(self) -> list[Write]:
        """Return the writes that are refused if the store has an unfinished or ended run of that
        id.
        """
        return [ExpectEntry(self.run_id, self.row.key), Expect(journal_key(self.run_id))]

    async def _take_new(self, system: Host, writes: Sequence[Write], row: RunEntry) -> bool:
        """Claim a run that the store does not know yet. `row`: the one among the writes.

        Returns False if the store does.
        """
        try:
            taken = await self.take(system, writes, undo=partial(self._undo, row))
        except WriteRefused as refused:
            if refused.reason != "value":  # only a value shows that there is a run of that id
                raise
            return False
        if taken:
            self.row.opened(self.clock)
        return taken

    def _left(self, state: RunState) -> list[Write]:
        """Return the writes for a run that is released before its end.

        If its steps are recorded, another process continues it.
        """
        return (
            [] if self.journal is None else [self.row.entry(state, RunStatus.DRAINED, is_open=True)]
        )

    def _undo(self, row: RunEntry) -> list[Write]:
        return [
            ExpectEntry(self.run_id, self.row.key, row),
            DropEntry(self.run_id, self.row.key),
            Remove(journal_key(self.run_id)),
        ]

    # --- the claim ---

    async def take(
        self,
        system: Host,
        writes: Sequence[Write] = (),
        *,
        undo: Callable[[], Sequence[Write]] | None = None,
    ) -> bool:
        """Claim this run, and write, in one step.

        Returns False if another run or process has it. `undo` returns the writes that undo
        `writes`, if the store's answer is not received.
        """
        self._leases, self.clock = leases_of(system), system.clock
        lease = Lease(self.row.key, f"run {self.run_id}", self._lose, on_stop=self._asked)
        lease.is_unfinished, lease.undo = self.row.run.steps, undo
        if not await self._leases.take(self.access, lease, writes):
            return False
        self.held, lease.undo = lease, None
        return True

    async def _take_if(self, system: Host, expected: Sequence[Expect]) -> bool | None:
        """Claim the run if all expectations hold, in one step if the store supports it.

        Returns None, without claiming it, if one of them does not hold.
        """
        fenced = self.access.is_fenced
        try:
            if not await self.take(system, expected if fenced else ()):
                return False
        except WriteRefused as refused:
            if refused.reason != "value":
                raise
            return None
        for one in () if fenced else expected:
            if await self.access.get(one.key) != one.value:
                await self.give_back()
                return None
        return True

    def when_asked(self, stop: Callable[[CancelRun], object]) -> None:
        """Set the callback for when another process wants the run to end, or may hold it from now
        on.

        If the claim is already lost, the callback is called at once.
        """
        self._stop = stop
        if self.held is not None and not self.held.is_held:
            stop(LOST)

    def _asked(self, request: CancelRun) -> None:
        if self._stop is not None:
            self._stop(request)

    def _lose(self) -> None:
        self._asked(LOST)

    @property
    def attempts(self) -> int:
        """Return how often the run was taken since a process last released it in good order."""
        return 0 if self.held is None or self.held.claim is None else self.held.claim.attempts

    def leaves_unfinished(self, *, unfinished: bool) -> None:
        """Set whether other processes must continue the run when it is released."""
        if self.held is not None:
            self.held.is_unfinished = unfinished

    def at_leave(self, writes: Callable[[], Sequence[Write]]) -> None:
        """Set the writes of the step that releases the unfinished run, such as on system exit."""
        if self.held is not None:
            self.held.at_leave = writes

    def commit(self, writes: Sequence[Write], then: Ending = "keep") -> Coroutine[Any, Any, None]:
        """Write in one step, and only if this process still has the run.

        A run that no other process can have is written without a claim.
        """
        writing = (
            self.access.commit(None, writes)
            if self.held is None
            else self.held.commit(writes, then=then)
        )
        return writing if self.watch is None else _timed(self.watch, writing)

    async def give_back(self) -> None:
        """Return the claim."""
        lease, self.held = self.held, None
        if lease is not None and self._leases is not None:
            await self._leases.give_back(lease)

    def abandon(self) -> None:
        """Return the claim of a run that ended unexpectedly, without waiting."""
        lease, self.held = self.held, None
        if lease is not None and self._leases is not None:
            self._leases.abandon(lease)

    # --- continuing ---

    async def load(self, system: Host, save: CheckpointId | None = None) -> dict[str, Any]:
        """Find the checkpoint to resume, at `save` if set, and claim it. Returns its image."""
        found = await find_checkpoint(self.access, self.checkpoint_id)
        found.require(save)
        if not found.is_last:
            return await self._branch(system, found)
        name, content, number = found.name, found.content, found.content["number"]
        self._name(content, name, *kept_of(content))
        self.row.is_known = True
        taken = await self._take_if(
            system,
            [Expect(name, found.head), Expect(answered_key(content["run"], number))],
        )
        if taken is False:
            raise found.at_work()
        if taken:
            self._slot.know(number, found.head)
            if content.get("open"):
                self.row.opened(self.clock)
            self._answer = AnswerMark(content["run"], number, self.answer_id)
            self._answer.has_timer = bool(content.get("timer"))
            self.leaves_unfinished(unfinished=bool(content.get("open")))
            return await self._image_of(content)
        if found.number is None:
            raise found.answered()
        return await self._branch(system, found)

    async def knows_answer(self) -> bool:
        """Return whether the answer of that id was accepted before.

        Then the run already continues with it.
        """
        if self.answer_id is None:
            return False
        found = await find_checkpoint(self.access, self.checkpoint_id)
        run_id: str = found.content["run"]
        if await self.access.get(answered_prefix(run_id) + self.answer_id) is None:
            return False
        self.run_id = run_id
        return True

    async def is_claimed(self) -> bool:
        """Return whether a living process has claimed the run."""
        return await self.access.holder(self.row.key) is not None

    def _name(
        self,
        content: dict[str, Any],
        checkpoint_id: str,
        keep: float | None = 0.0,
        input: str | None = None,  # noqa: A002 -- the natural name
    ) -> None:
        """Switch to the run of that content."""
        self.run_id = content["run"]
        self.row = self.row.of_saved(content, checkpoint_id, keep, input)
        self._slot = SaveSlot(self.access, checkpoint_id)
        self._segments = Segments(self.access, known=True)

    async def _branch(self, system: Host, found: FoundCheckpoint) -> dict[str, Any]:
        """Continue from an earlier save, or from an answered one, as another run."""
        wanted = await found.wanted(self.access)
        image = await self._image_of(wanted)
        image["run"] = run_id = new_id()
        image["fresh"] = None  # its messages do not go into the session in which it started
        self._name(
            {
                "run": run_id,
                "agent": self._root.name,
                "labels": found.content.get("labels"),
                "trace": wanted.get("trace"),
            },
            f"{found.name}@{wanted['number']}~{run_id[:8]}",
        )
        self._slot.know(0, None)
        self._segments = None
        self._records, self._covers_journal = 0, False
        await self.take(system)
        self.leaves_unfinished(unfinished=False)
        return image

    async def _image_of(self, found: dict[str, Any]) -> dict[str, Any]:
        image, self._records, self._covers_journal = await load_image(
            self.access, self.segments, found, self.checkpoint_id, steps=self.journal is not None
        )
        return image

    def restore(self, image: dict[str, Any], state: RunState) -> None:
        """Build the run of the image, with every agent in its place of the tree."""
        state.context.rename(self.run_id, self.checkpoint_id)
        self._is_new_context = state.context.context is not None
        self.segments.paths.know(image.get("paths", ()), rebuild(image, state, self._root))
        if self.journal is not None:
            paths = self.segments.paths
            if self._records and self._covers_journal:
                self.journal.know(image, paths)
            else:
                self.journal.start(draw(state, self._root, paths=paths), paths)
        state.context.lease = self.held

    async def go_on(self, state: RunState) -> None:
        """Store that the run continues.

        If each step is recorded, so is this one, and the run can be recovered again.
        """
        self.row.count(self.row.run.counted(self.attempts))
        if self.journal is not None:
            for invocation in () if state.root is None else walk(state.root):
                self.journal.touch(invocation)
            if self._slot.number is None:
                await self._slot.look()
            self.journal.mark("resumed", self._slot.number or 0)
            if self._is_new_context and fits(state.context.context):
                self.journal.context(state.context.context)
            record = self.journal.take(state)
            assert record is not None
            if self._answer is not None and self.answer_id is not None:
                # An answer with an id is binding from here on: it is part of this record.
                self._answer.claim()
            await self._write([*self._answered(), self._append(record), *self._opening(state)])
            self._records += 1
            self.row.opened(self.clock)
            self.leaves_unfinished(unfinished=True)
            self.at_leave(partial(self._left, state))
        elif self.keeps_outcome:
            await self._write(self._opening(state))
            self.row.opened(self.clock)
        if self._answer is not None:
            self._answer.claim()

    def _opening(self, state: RunState) -> list[Write]:
        """Return the writes that say that the run is unfinished, and remove its stored result."""
        return [
            *([Put(journal_key(self.run_id), b"")] if self.keeps_outcome else []),
            self.row.entry(state, RunStatus.RUNNING, is_open=True),
        ]

    @property
    def keeps_outcome(self) -> bool:
        """Return whether the result of the run is stored."""
        return self.row.run.keep != 0.0

    async def read_unfinished(self) -> dict[str, Any] | None:
        """Get the image of a run that no process has any longer.

        Returns None if there is nothing to continue.
        """
        self.recovered = True
        self.row.opened(self.clock)
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
                # That resume was lost before its first step; from now on its answer is binding.
                self._answer = AnswerMark(self.run_id, number)
                self._answer.has_timer = bool(last is not None and last.get("timer"))
        elif kind is not None:
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

    # --- steps ---

    @property
    def must_write(self) -> bool:
        """Return whether a step must be written before it is shown."""
        return self.journal is not None or (self._answer is not None and self._answer.is_due)

    def _append(self, *records: bytes) -> Write:
        return Append(journal_key(self.run_id), records, self._records)

    def _answered(self) -> list[Write]:
        return [] if self._answer is None else self._answer.writes()

    async def flush(self, state: RunState, *, ahead: int = 0) -> None:
        """Write the changes since the last time.

        Pending events are shown after that; the counters already include `ahead` of them.
        """
        record = None if self.journal is None else self.journal.take(state, ahead)
        writes = self._answered()
        if record is not None:
            writes.append(self._append(record))
            is_first = not self._has_progressed and self.row.run.progressed < self.attempts > 1
            if is_first:
                self.row.progress(self.attempts)
            if is_first or self.row.is_due(self.clock):
                writes.append(self.row.entry(state, RunStatus.RUNNING, is_open=True))
        elif writes:
            # Its interrupt was answered.
            writes.append(self.row.entry(state, RunStatus.RUNNING, is_open=self.row.is_open))
        heard = self._heard(state)
        writes += heard
        if not writes:
            return
        await self._write(writes)
        self._note_heard(state, heard)
        if record is not None:
            self._records += 1
            self._has_progressed = True
            if len(writes) - len(heard) > 1:
                self.row.opened(self.clock)

    def _heard(self, state: RunState, *, goes_on: bool = False) -> list[Write]:
        """Return the writes that remove heard posts, if the steps that show them are stored: in the
        journal, or in the image of a run that goes on.

        Otherwise they are removed when the session is written.
        """
        inbox = state.context.inbox
        return inbox.writes() if inbox is not None and (self.journal or goes_on) else []

    def _note_heard(self, state: RunState, heard: Sequence[Write]) -> None:
        if heard and state.context.inbox is not None:
            state.context.inbox.written(heard)

    def not_written(self, state: RunState, step: str, error: Exception) -> None:
        """Record that a step could not be written.

        The next attempt repeats the step. The failure itself is written when the run is released.
        """
        if self.journal is not None:
            self.row.not_written(
                f"{step} could not be written: {text_of(error)}"[:_LONGEST_FAILURE],
                has_progressed=self._has_progressed,
            )
            self.at_leave(lambda: self._left(state))

    async def _write(self, writes: Sequence[Write], then: Ending = "keep") -> None:
        """Write in one step, and only if this process still has the run."""
        try:
            await self.commit(writes, then)
        except WriteRefused as refused:
            if self._answer is not None and self._answer.is_due and refused.key == self._answer.key:
                msg = (
                    f"checkpoint {self.checkpoint_id!r} was answered by another process in the "
                    "meantime. Call info() or pending() for what waits now."
                )
                raise ResumeError(msg, run=self.run_id) from refused
            raise
        if self._answer is not None:
            self._answer.written()

    async def save(
        self, state: RunState, kind: str, image: dict[str, Any] | None, *, ahead: int, end: RunEnd
    ) -> None:
        """Save the run: the image, or the position in the journal, and the reason why it pauses.

        The save includes `ahead` events that are shown after it.
        """
        self._save_failed = True
        if self._slot.number is None and not self._slot.begins(self.run_id):
            await self._slot.look_for(self.run_id)
        is_over = kind == "interrupted"
        ending: Ending = "forget" if is_over else "keep"
        kept = [] if end.packed is None else [Put(journal_key(self.run_id), end.packed)]
        if kind == "drained":
            self.row.count(0)  # its process releases it in good order
        is_open = kind == "drained" or (self.row.is_open and not is_over)
        pieces = [] if image is None else await self.segments.shorten(image, self.run_id)
        records: tuple[bytes, ...] = ()
        while True:
            if self.journal is not None:
                self.journal.mark(kind, (self._slot.number or 0) + 1)
                record = self.journal.take(state, ahead)
                assert record is not None
                records = (*records, record)
                content, steps = (
                    {"journal": self.run_id, "records": self._records + len(records)},
                    [self._append(*records)],
                )
            else:
                content, steps = {"image": image, "open": kind == "drained"}, pieces
            if end.packed is not None:
                content["kept"] = (self.row.run.keep, self.row.run.input)
            content |= self.row.kept_with_saves()
            number = (self._slot.number or 0) + 1
            row = self.row.entry(state, RunStatus(kind), end, save=number, is_open=is_open)
            timers = await self._timers(state, number, end) if is_over else []
            if any(context.deadline is not None for context in end.result.interrupts):
                content["timer"] = True
            checkpoint, writes = self._slot.save(self.run_id, self.row.run.agent, content)
            try:
                heard = self._heard(state, goes_on=kind != "cancelled")
                written = [*self._answered(), *steps, *writes, *kept, row, *timers, *heard]
                await self._write(written, ending)
                self._note_heard(state, heard)
                break
            except WriteRefused as refused:
                if refused.key != self._slot.name:
                    raise
                # Another run was saved under the same name in the meantime.
                await self._slot.look_for(self.run_id)
        self._records += len(records)
        self._slot.saved(checkpoint)
        self._save_failed = False
        if kind == "drained":
            self.row.opened(self.clock)
            self.leaves_unfinished(unfinished=True)
        elif is_over:
            self.row.is_open = False
            await self.give_back()

    async def _timers(self, state: RunState, number: int, end: RunEnd) -> list[Write]:
        """Return the timers of an interrupt: of its deadlines, and of a background task."""
        session_id, contexts = state.context.session_id, end.result.interrupts
        timer = deadline_timer(
            self.run_id, self.row.run.agent, session_id, number, self.checkpoint_id, contexts
        )
        if timer is None:
            return await self._task(state)
        self.access.require_list("interrupt(deadline=...)")
        return [timer.entry(), *await self._task(state)]

    async def _task(self, state: RunState) -> list[Write]:
        """Return the writes that have the outcome of a background task reported."""
        is_task = self.run_id.startswith(TASK) and state.context.session_id == self.run_id
        return await due_task(self.access, self.run_id) if is_task else []

    # --- the end ---

    async def finish(
        self,
        *,
        unfinished: bool,
        state: RunState | None = None,
        end: RunEnd | None = None,
        with_step: bool = False,
    ) -> None:
        """Store the end of the run.

        An unfinished run remains for another process to find. Otherwise its result is stored for a
        while, if it is to be retained.

        `with_step`: write the last step together with the end.
        """
        is_over = True
        try:
            if self.row.run.queued and state is not None:
                await self.withdraw(state, None if end is None else end.result.error)
                return
            if (
                unfinished
                or self._save_failed
                or (end is not None and end.result.status is RunStatus.INTERRUPTED)
            ):
                # An interrupted run was released when it was saved: the process that answers it may
                # have it by now.
                return
            journal, row, key = self.journal, self.row, journal_key(self.run_id)
            writes = self._answered()  # it may have ended without a step
            record = journal.take_last() if with_step and journal is not None else None
            if record is not None or (end is not None and journal is not None):
                # Without a record, the position is still checked: a store that has lost the last
                # steps must not report that the run has ended after them.
                writes.append(Append(key, () if record is None else (record,), self._records))
            stands = bool(self._slot.number)  # a save that is resumed later needs the journal
            # It can still be resumed.
            stays = stands and (end is None or end.result.status is RunStatus.CANCELLED)
            seconds = (
                None
                if stays
                else SAVES_SECONDS
                if stands and not self.keeps_outcome
                else row.run.keep
            )
            if end is not None and end.packed is not None:
                writes.append(Put(key, end.packed, seconds))
            elif row.is_open and journal is not None and not stands:
                writes.append(Remove(key))  # no save needs it
            elif journal is not None and seconds:
                writes.append(Put(key, b"", seconds))
            writes += await self._closing(state, end)
            heard = [] if state is None else self._heard(state)
            writes += heard
            if state is not None and end is not None:
                writes += await self._task(state)
            if stands and seconds and self.access.is_fenced:
                await write_end(
                    self._write, writes, self._slot, self._segments, self.run_id, seconds
                )
            elif writes or self.held is not None:
                await self._write(writes, "forget")
            if state is not None:
                self._note_heard(state, heard)
            row.is_open = False
        except ValueRefused:
            is_over = not with_step  # the end is then written without that step
            raise
        finally:
            if is_over:
                await self.give_back()

    async def _closing(self, state: RunState | None, end: RunEnd | None) -> list[Write]:
        """Return the row of the run that has ended, or of which nothing is left to continue."""
        row, save = self.row, self._slot.number or 0
        run = row.run
        if end is not None and state is not None:
            status = end.result.status
            if not row.is_known:
                return []
            if status is RunStatus.CANCELLED and save:
                return [row.entry(state, status, end, save=save, is_open=False)]
            if run.keep == 0.0 and not save:
                return [DropEntry(run.id, row.key)]
            seconds = run.keep if run.keep != 0.0 else SAVES_SECONDS
            return [row.entry(state, status, end, seconds, is_open=False)]
        if not row.is_open:
            return []
        stored = row.stored or await self.access.row(run.agent, run.id)
        if stored is None:
            return []
        if self.recovered and not self._records:
            return [restated(stored, run, RunStatus.FAILED, f"RunLost: {lost_text(run)}")]
        return [closed(stored, run)]

    @property
    def ends_with_step(self) -> bool:
        """Return whether the last step and the end may be written together."""
        return self.journal is not None and not self._save_failed

    @property
    def is_held(self) -> bool:
        """Return whether there is something to write at the end."""
        return self.held is not None or self.row.is_open


async def _timed(watch: RunTelemetry, writing: Coroutine[Any, Any, None]) -> None:
    began = perf_counter()
    await writing
    watch.store_wrote(perf_counter() - began)
