"""What one run has written down: its events in their one order, and all that follows from them.

Owns: the stamp of an event, its place in the history, when it is shown, and which interrupts wait until the run has come to rest. An event is
recorded before it is shown, and where each step is kept, it is in the store before that. It must never decide who plays.
"""

from __future__ import annotations

import sys
from asyncio import CancelledError
from collections.abc import Coroutine, Sequence
from logging import DEBUG
from time import time
from typing import TYPE_CHECKING, Any, Final

from ..agent.history import Entry
from ..agent.invocation import walk
from ..agent.run_state import RunState
from ..agent.tree import Node
from ..codec.packing import pack
from ..data.chat import MessageDelta
from ..data.events import Action, AgentEvent, BreakLoop, Exit, Interrupted, TransferToAgent, stamp, stamp_delta
from ..data.interrupt import InterruptContext, Pending
from ..data.outcome import EXITED, Outcome
from ..durability.image import draw
from ..durability.kept_outcome import pack_outcome
from ..durability.run_listing import RunEnd
from ..errors import AgentError, CheckpointError, RunLost, UnderstudyError, text_of
from ..log import loggers, work_for
from ..maybe_await import begun
from .phase import RunPhase
from .run_record import RunRecord
from .watched_system import WatchedSystem, watch_of, watched_system

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..agent.invocation import Assignment, Invocation
    from ..data.agent_input import AgentInput
    from ..durability.persistence import RunPersistence

__all__ = ["EventLog"]

_PLAYING: Final = RunPhase.PLAYING
_ENDING: Final = RunPhase.ENDING


class EventLog(RunState):
    """The book of one run, and what the run has come to: one object for each run."""

    __slots__ = ("deferred", "persistence", "record", "unshown")

    def __init__(self, run_input: AgentInput, record: RunRecord, persistence: RunPersistence | None) -> None:
        RunState.__init__(self, record.context, run_input)
        self.record = record
        self.persistence = persistence  # None: nothing of it is kept anywhere
        self.deferred: tuple[tuple[Invocation, AgentEvent], ...] = ()  # interrupts, which are shown when nothing is under way any more
        self.unshown: list[AgentEvent] | None = None  # what has to be in the store first

    def enter(self, system: Host) -> None:
        """In the context of the supervisor, of which all that belongs to the run are copies: say whose they are."""
        context = self.context
        work_for(context.session)
        # In nearly all programs nothing looks on, and this is asked for each run.
        if "opentelemetry" in sys.modules or WatchedSystem in system.belongings or loggers.run.isEnabledFor(DEBUG):
            self._look_on(system)

    def _look_on(self, system: Host) -> None:
        context, persistence = self.context, self.persistence
        context.watch = watch = watch_of(system, context, self.record.agent_name)
        if watch is None:
            return
        trace = watch.begin(self.input)
        if persistence is not None:
            persistence.own.watch = watch
            if trace is not None:
                persistence.mark.note_trace(trace)
            if watch.meters:
                watched_system(system).waits_in(persistence.access)

    def play(self) -> None:
        """The agents begin to play."""
        watch, persistence = self.context.watch, self.persistence
        assert watch is not None
        recovered = persistence is not None and persistence.recovered
        before = None if persistence is None else persistence.mark.trace_before
        watch.play(before, recovered=recovered, resumed=self.root is not None and not recovered)

    async def give_back(self) -> None:
        """Let go of what was taken for a run that does not begin: the right to work on it, and the turn of its session."""
        if self.persistence is not None:
            await self.persistence.own.give_back()
        if self.record.turn is not None:
            await self.record.turn.release()

    def write(self, invocation: Invocation, event: AgentEvent, is_last: bool = False) -> AgentEvent:  # noqa: FBT001, FBT002 -- for speed
        """Stamp, record, show; or have it wait to be shown. `is_last`: the agent does nothing behind it."""
        node, assignment, context, persistence = invocation.node, invocation.assignment, self.context, self.persistence
        action: Action | None = event.action
        if persistence is not None or node.agent.on_failure is not None:
            invocation.remember()
        if type(action) is Interrupted:
            return self._hold(invocation, event, action)
        if type(action) is BreakLoop:
            action = BreakLoop(node.name, done=assignment.loop is not None, iteration=assignment.loop)
        error = event.error
        if error is not None and event.delta is None:
            error = self.attributed(error, node)
        dialogue = assignment.dialogue
        if dialogue.shown:
            self.seq += 1  # the consumer sees no gaps
        stamped = stamp(event, node.name, invocation.run_path, action, error, self.seq, time(), context.run_id, invocation.id)
        message = event.message
        said = message is not None and event.delta is None
        if said:
            assert message is not None
            invocation.messages.append(message)
            invocation.last_message = dialogue.last_message = message
            if message.usage is not None:
                context.usage += message.usage
            invocation.lane.entries.append(Entry(node.name, invocation.run_path, invocation.id, message))
            if message.role == "tool" and invocation.answers:
                invocation.answers = {key: answer for key, answer in invocation.answers.items() if key != message.tool_call_id}
        if action is not None or error is not None:
            _heed(invocation, stamped)
        if persistence is not None and persistence.must_write and event.delta is None:
            if persistence.journal is not None:
                persistence.journal.event(stamped, invocation, said=said, is_last=is_last)
            if self.unshown is None:
                self.unshown = []
            self.unshown.append(stamped if dialogue.shown else _NOT_SHOWN)
        elif dialogue.shown:
            self.record.show(stamped)
        return stamped

    def note(self, invocation: Invocation, event: AgentEvent) -> AgentEvent | None:
        """Write it, if nothing has to be waited for. Returns None, having done nothing, if that is not so."""
        record = self.record
        can = self.persistence is None and record.phase is _PLAYING and record.has_room_for_two
        return self.write(invocation, event) if can else None

    def show_delta(self, invocation: Invocation, delta: MessageDelta) -> bool:
        """Stamp and show a piece of a message, of which nothing is recorded: the whole comes later. Returns False, having done nothing, if that has to wait."""
        record = self.record
        if record.phase >= _ENDING or self.waits or not record.has_room_for_two or self.context.stopping is not None:
            return False
        node = invocation.node
        if self.persistence is not None or node.agent.on_failure is not None:
            invocation.remember()
        if invocation.assignment.dialogue.shown and not record.join(invocation.id, delta):
            self.seq += 1
            record.show(stamp_delta(delta, node.name, invocation.run_path, self.seq, time(), self.context.run_id, invocation.id))
        return True

    # --- what waits ---

    def begun(self, coro: Coroutine[Any, None, object]) -> object:
        """Have that done as far as it goes without waiting: with a store in memory, to its end. Else it is done in a task."""
        persistence = self.persistence
        at_once = persistence is not None and persistence.access.answers_at_once and self.record.turn is None and not self.context.hooks
        return begun(coro) if at_once else coro

    def begun_unseen(self, coro: Coroutine[Any, None, object]) -> object:
        """The same of what is done in the middle of a run: only if no consumer looks on, which sees each event before the next thing is done."""
        return coro if self.record.may_be_seen else self.begun(coro)

    @property
    def ends_with_step(self) -> bool:
        """Whether the last step and the end of the run may be written in one step: whether nothing is to be done between the two."""
        return self.persistence is not None and self.persistence.ends_with_step and self.record.turn is None

    @property
    def waits(self) -> bool:
        """Whether something has to be written before it is shown."""
        return self.unshown is not None

    async def flush(self, *, at_end: bool = False) -> None:
        """Write it, and show it. What could not be written is not shown. `at_end`: in one step with the end of the run."""
        assert self.persistence is not None
        unshown, self.unshown = self.unshown or (), None
        end: RunEnd | None = None
        try:
            if at_end:
                end = self.end(None, [event for event in unshown if event is not _NOT_SHOWN])
                await self.persistence.finish(unfinished=False, state=self, end=end, with_step=True)
            else:
                await self.persistence.flush(self)
        except BaseException as error:
            self.seq = self.record.last_seq  # the consumer sees no gap
            if isinstance(error, CancelledError):
                self.record.lose()  # its system is left: it is not known whether that was written
            if isinstance(error, CheckpointError) and (told := self.explained(error)) is not error:
                raise told from error
            raise
        for event in unshown:
            if event is not _NOT_SHOWN:
                self.record.show(event)
        self.record.written = None if end is None or self.context.hooks else end.result

    def _hold(self, invocation: Invocation, event: AgentEvent, action: Interrupted) -> AgentEvent:
        """An interrupt is shown when nothing else is under way: only then is there something to go on from. It stands for those of the agents below."""
        assignment = invocation.assignment
        self.drop_deferred(assignment)
        known = {name for below in walk(assignment) for name in below.pending or ()}
        own = invocation.pending or {}
        wanted = {context.id for context in action.contexts}
        pending = {name: one for name, one in own.items() if name in wanted}
        for context in action.contexts:
            if context.id not in known:
                pending[context.id] = Pending(context)
        invocation.pending = pending or None
        invocation.outcome = Outcome("interrupted", contexts=action.contexts)
        if assignment.dialogue.shown and assignment.dialogue.recorded:
            self.deferred += ((invocation, event),)
        if self.persistence is not None and self.persistence.journal is not None:
            self.persistence.journal.touch(invocation)
        return event

    def drop_deferred(self, assignment: Assignment) -> None:
        """Forget the interrupts of the agents at or below that assignment: a caller reports them, or no one does."""
        self.deferred = tuple((invocation, event) for invocation, event in self.deferred if not _is_under(invocation, assignment))

    def stamped_deferred(self, *, is_kept: bool = True) -> tuple[list[AgentEvent], tuple[InterruptContext, ...]]:
        """The interrupts as they are to be shown next, and what the run waits for."""
        checkpoint_id = self.persistence.checkpoint_id if is_kept and self.persistence is not None else None
        contexts: list[InterruptContext] = []
        stamped: list[AgentEvent] = []
        for number, (invocation, event) in enumerate(self.deferred, self.seq + 1):
            action = event.action
            assert isinstance(action, Interrupted)
            contexts += action.contexts
            action = Interrupted(action.contexts, checkpoint_id)
            stamped.append(stamp(event, invocation.node.name, invocation.run_path, action, None, number, time(), self.context.run_id, invocation.id))
        return stamped, tuple(contexts)

    def release_deferred(self, before: Exception | None, stamped: list[AgentEvent] | None = None) -> tuple[InterruptContext, ...]:
        """Show the interrupts, behind what went wrong in saving. Returns what the run waits for."""
        if before is not None:
            self.say(before)
        if stamped is None or before is not None:
            stamped, contexts = self.stamped_deferred(is_kept=before is None)
        else:
            contexts = tuple([context for event in stamped if isinstance(event.action, Interrupted) for context in event.action.contexts])
        self.deferred = ()
        if self.context.watch is not None:
            self.context.watch.interrupted(contexts)
        for event in stamped:
            self.seq = event.seq
            self.record.show(event)
        return contexts

    def image(self, root: Node, ahead: int) -> dict[str, Any] | None:
        """The run as it is now, but for what is shown after the save. Where each step is in the journal, that holds it already."""
        persistence = self.persistence
        if persistence is None or persistence.journal is not None:
            return None
        segments = persistence.segments
        return draw(self, root, segments.stored, segments.paths, ahead=ahead)

    def end(self, outcome: Outcome | None = None, more: Sequence[AgentEvent] = (), *, packed: bool = True) -> RunEnd:
        """How the run ends, or why it rests; `packed` for callers that ask for it later, if that is kept."""
        persistence, result = self.persistence, self.record.make_result(outcome, more)
        if not packed or persistence is None or not persistence.keeps_outcome:
            return RunEnd(result, None)
        run = persistence.mark.run
        return RunEnd(result, pack_outcome(result, run.agent, run.input, journaled=persistence.journal is not None))

    # --- of no agent in particular ---

    def explained(self, error: Exception) -> Exception:
        """What could not be kept, by the agent and the key of its state, if it is that; not by its place in what is written."""
        root = self.root
        if type(error) is not CheckpointError or root is None:
            return error
        for invocation in walk(root):
            for key, value in (invocation.saved[0] or {}).items():
                try:
                    pack(value)
                except CheckpointError as why:
                    name, instead = invocation.node.name, "Put plain data in it; what only lives in this process belongs into a local variable of its run()."
                    msg = f"agent {name!r}: context.state[{key!r}] cannot be kept in the store of this run: {why} {instead}"
                    return CheckpointError(msg, run=self.context.run_id, agent=name)
        return error

    def say(self, error: Exception) -> None:
        """Show what went wrong with the run as a whole, or that it was cancelled."""
        name, context = self.record.agent_name, self.context
        if isinstance(error, UnderstudyError):
            error.run = error.run or context.run_id
        if context.watch is not None and isinstance(error, RunLost):
            context.watch.lost()
        self.seq += 1
        self.record.show(stamp(AgentEvent(), name, (name,), None, error, self.seq, time(), context.run_id, ""))

    def attributed(self, error: Any, node: Node) -> Exception:
        """The error, which says now to which run and agent it belongs, if it is one of ours."""
        if not isinstance(error, Exception):
            msg = f"agent {node.name!r} crashed with {type(error).__name__}: {text_of(error)}"
            crash = AgentError(msg, run=self.context.run_id, agent=node.name)
            crash.__cause__ = error
            return crash
        if isinstance(error, UnderstudyError):
            error.run = error.run or self.context.run_id
            error.agent = error.agent or node.name
        return error


_NOT_SHOWN = AgentEvent()


def _is_under(invocation: Invocation, assignment: Assignment) -> bool:
    at: Assignment | None = invocation.assignment
    while at is not None and at is not assignment:
        at = at.parent.assignment if at.parent is not None else None
    return at is assignment


def _heed(invocation: Invocation, event: AgentEvent) -> None:
    """Take note of what an event says of its agent's end."""
    action = event.action
    if event.is_failure:
        invocation.outcome = Outcome("failed", event.error)
    elif type(action) is Exit:
        invocation.outcome = EXITED
    elif isinstance(action, TransferToAgent):
        invocation.transfer = action.agent_name
    elif isinstance(action, BreakLoop) and action.done:
        invocation.broke = True
