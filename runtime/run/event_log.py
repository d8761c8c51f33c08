"""The event log of one run: its events in order, and everything derived from them.

The log stamps each event, adds it to the history, and decides when it is shown. It holds interrupts
until the run has paused. An event is recorded before it is shown; with `durability="step"` it is
also stored before that. The log does not choose which agent runs.
"""

from __future__ import annotations

import sys
from asyncio import CancelledError
from collections.abc import Sequence
from logging import DEBUG
from typing import TYPE_CHECKING, Any, Final

from ..agent.history import Entry
from ..agent.invocation import walk
from ..agent.run_state import RunState
from ..agent.tree import Node
from ..codec.packing import pack
from ..data.chat import MessageDelta, well_formed_delta
from ..data.events import Action, AgentEvent, BreakLoop, Exit, Interrupted, TransferToAgent, stamp
from ..data.interrupt import InterruptContext, Pending
from ..data.outcome import EXITED, Outcome
from ..durability.image import draw
from ..durability.kept_outcome import pack_outcome
from ..durability.run_row import RunEnd
from ..errors import AgentError, CheckpointError, OffbookError, RunLost, text_of
from ..log import loggers, work_for
from .phase import RunPhase
from .run_progress import RunProgress
from .watched_system import WatchedSystem, watch_of, watched_system

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..agent.invocation import AgentCall, Invocation
    from ..data.agent_input import AgentInput
    from ..durability.run_store import RunStore

__all__ = ["EventLog"]

_PLAYING: Final = RunPhase.PLAYING
_ENDING: Final = RunPhase.ENDING


class EventLog(RunState):
    """The event log and the state of one run, in one object."""

    __slots__ = ("deferred", "persistence", "progress", "unshown", "unwritten")

    def __init__(
        self, run_input: AgentInput, progress: RunProgress, persistence: RunStore | None
    ) -> None:
        RunState.__init__(self, progress.context, run_input)
        self.progress = progress
        self.persistence = persistence  # None if the run is not stored
        self.deferred: tuple[
            tuple[Invocation, AgentEvent], ...
        ] = ()  # interrupts, shown once nothing is running
        self.unshown: list[AgentEvent] | None = None  # events to store before they are shown
        self.unwritten = "a step"  # description of the step that could not be written

    def enter(self, system: Host) -> None:
        """Set up the supervisor's context, which the context of every agent copies."""
        context = self.context
        work_for(context.session)
        # In nearly all programs nothing observes the run, and this check runs for each run.
        if (
            "opentelemetry" in sys.modules
            or WatchedSystem in system.belongings
            or loggers.run.isEnabledFor(DEBUG)
        ):
            self._look_on(system)

    def _look_on(self, system: Host) -> None:
        context, persistence = self.context, self.persistence
        context.watch = watch = watch_of(system, context, self.progress.agent_name)
        if watch is None:
            return
        trace = watch.begin(self.input)
        if persistence is not None:
            persistence.watch = watch
            if trace is not None:
                persistence.row.note_trace(trace)
            if watch.meters:
                watched_system(system).waits_in(persistence.access)

    def play(self) -> None:
        """Tell the observer that the agents start to run."""
        watch, persistence = self.context.watch, self.persistence
        assert watch is not None
        recovered = persistence is not None and persistence.recovered
        before = None if persistence is None else persistence.row.trace_before
        watch.play(before, recovered=recovered, resumed=self.root is not None and not recovered)

    def stamp_posts(self) -> None:
        """Number the posts that the turn starts with: they are the run's first events."""
        name, found = self.progress.agent_name, []
        for message, posted in self.posts:
            self.seq += 1
            found.append(
                stamp(
                    AgentEvent(message=message, post=posted),
                    agent_name=name,
                    run_path=(name,),
                    action=None,
                    error=None,
                    seq=self.seq,
                    run_id=self.context.run_id,
                    invocation_id="",
                )
            )
        self.opening_events = tuple(found)

    def show_posts(self) -> None:
        """Show the posts that the turn starts with, once the start of the run is stored."""
        for event in self.opening_events:
            self.progress.show(event)

    async def give_back(self) -> None:
        """Release the claim and the session turn of a run that does not start."""
        if self.persistence is not None:
            try:
                await self.persistence.withdraw(self, self.progress.problem)
            except Exception as error:  # noqa: BLE001 -- a store may raise anything; the run is then found without a process
                loggers.run.warning(
                    "Run %s does not start, and that could not be stored: %s",
                    self.context.run_id,
                    error,
                )
            await self.persistence.give_back()
        if self.progress.turn is not None:
            await self.progress.turn.release()

    def write(
        self, invocation: Invocation, event: AgentEvent, *, is_last: bool = False
    ) -> AgentEvent:
        """Stamp, record and show an event, or queue it until it is stored.

        `is_last`: the agent does nothing after this event.
        """
        node, agent_call, context, persistence = (
            invocation.node,
            invocation.agent_call,
            self.context,
            self.persistence,
        )
        action: Action | None = event.action
        if persistence is not None or node.agent.on_failure is not None:
            invocation.remember()
        if type(action) is Interrupted:
            return self._hold(invocation, event, action)
        if type(action) is BreakLoop:
            action = BreakLoop(
                node.name, done=agent_call.loop is not None, iteration=agent_call.loop
            )
        error = event.error
        if error is not None and event.delta is None:
            error = self.attributed(error, node)
        conversation = agent_call.conversation
        if conversation.shown:
            self.seq += 1  # the consumer sees no gaps
        if event.delta is not None:
            event = event.replace(delta=well_formed_delta(event.delta))
        stamped = stamp(
            event,
            agent_name=node.name,
            run_path=invocation.run_path,
            action=action,
            error=error,
            seq=self.seq,
            run_id=context.run_id,
            invocation_id=invocation.id,
        )
        message, post = event.message, event.post
        said = message is not None and event.delta is None
        if said:
            assert message is not None
            invocation.messages.append(message)
            if post is None:
                invocation.last_message = conversation.last_message = message
            elif context.inbox is not None:
                context.inbox.hear(post)
            if message.usage is not None:
                context.count_recorded(message)
            invocation.lane.entries.append(
                Entry(
                    node.name if post is None else "", invocation.run_path, invocation.id, message
                )
            )
            if message.role == "tool" and invocation.answers:
                invocation.answers = {
                    key: answer
                    for key, answer in invocation.answers.items()
                    if key != message.tool_call_id
                }
        if action is not None or error is not None:
            _heed(invocation, stamped)
        if persistence is not None and persistence.must_write and event.delta is None:
            if persistence.journal is not None:
                persistence.journal.event(stamped, invocation, said=said, is_last=is_last)
            if self.unshown is None:
                self.unshown = []
            self.unshown.append(stamped if conversation.shown else _NOT_SHOWN)
        elif conversation.shown:
            self.progress.show(stamped)
        return stamped

    def show_delta(self, invocation: Invocation, delta: MessageDelta) -> bool:
        """Stamp and show a delta, which is not recorded: the whole message comes later.

        Returns False, without any effect, if the delta must wait.
        """
        progress = self.progress
        if (
            progress.phase >= _ENDING
            or self.waits
            or not progress.has_room_for_two
            or self.context.stopping is not None
        ):
            return False
        delta = well_formed_delta(delta)
        node = invocation.node
        if self.persistence is not None or node.agent.on_failure is not None:
            invocation.remember()
        # A run with followers in this process numbers every delta, so that a returning follower
        # gets only those it has not seen.
        if invocation.agent_call.conversation.shown and (
            progress.live is not None or not progress.join(invocation.id, delta)
        ):
            self.seq += 1
            progress.show(
                stamp(
                    AgentEvent(delta=delta),
                    agent_name=node.name,
                    run_path=invocation.run_path,
                    action=None,
                    error=None,
                    seq=self.seq,
                    run_id=self.context.run_id,
                    invocation_id=invocation.id,
                )
            )
        return True

    # --- waiting events ---

    @property
    def ends_with_step(self) -> bool:
        """True if one write may hold both the last step and the end of the run."""
        return (
            self.persistence is not None
            and self.persistence.ends_with_step
            and self.progress.turn is None
        )

    @property
    def waits(self) -> bool:
        """True if events must be written before they are shown."""
        return self.unshown is not None

    async def flush(self, *, at_end: bool = False) -> None:
        """Write the queued events, then show them.

        Events that could not be written are not shown. `at_end`: the same write ends the run.
        """
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
            self.seq = self.progress.last_seq  # the consumer sees no gap
            self.unwritten = _step_of(unshown)
            if isinstance(error, CancelledError):
                # the system is ending, so it is unknown whether the step was written
                self.progress.lose()
            if isinstance(error, CheckpointError) and (told := self.explained(error)) is not error:
                raise told from error
            raise
        for event in unshown:
            if event is not _NOT_SHOWN:
                self.progress.show(event)
        self.progress.written = None if end is None or self.context.hooks else end.result

    def _hold(self, invocation: Invocation, event: AgentEvent, action: Interrupted) -> AgentEvent:
        """Hold an interrupt until nothing else is running: only then can the run be resumed.

        It replaces the interrupts of the agents below.
        """
        agent_call = invocation.agent_call
        self.drop_deferred(agent_call)
        known = {name for below in walk(agent_call) for name in below.pending or ()}
        own = invocation.pending or {}
        wanted = {context.id for context in action.contexts}
        pending = {name: one for name, one in own.items() if name in wanted}
        for context in action.contexts:
            if context.id not in known:
                pending[context.id] = Pending(context)
        invocation.pending = pending or None
        invocation.outcome = Outcome("interrupted", contexts=action.contexts)
        if agent_call.conversation.shown and agent_call.conversation.recorded:
            self.deferred += ((invocation, event),)
        if self.persistence is not None and self.persistence.journal is not None:
            self.persistence.journal.touch(invocation)
        return event

    def drop_deferred(self, agent_call: AgentCall) -> None:
        """Drop interrupts of the agents at or below `agent_call`; its caller may report them."""
        self.deferred = tuple(
            (invocation, event)
            for invocation, event in self.deferred
            if not _is_under(invocation, agent_call)
        )

    def stamped_deferred(
        self, *, is_kept: bool = True
    ) -> tuple[list[AgentEvent], tuple[InterruptContext, ...]]:
        """Return the interrupts as stamped events, and the contexts that the run waits for."""
        checkpoint_id = (
            self.persistence.checkpoint_id if is_kept and self.persistence is not None else None
        )
        contexts: list[InterruptContext] = []
        stamped: list[AgentEvent] = []
        for number, (invocation, event) in enumerate(self.deferred, self.seq + 1):
            action = event.action
            assert isinstance(action, Interrupted)
            contexts += action.contexts
            action = Interrupted(action.contexts, checkpoint_id)
            stamped.append(
                stamp(
                    event,
                    agent_name=invocation.node.name,
                    run_path=invocation.run_path,
                    action=action,
                    error=None,
                    seq=number,
                    run_id=self.context.run_id,
                    invocation_id=invocation.id,
                )
            )
        return stamped, tuple(contexts)

    def release_deferred(
        self, before: Exception | None, stamped: list[AgentEvent] | None = None
    ) -> tuple[InterruptContext, ...]:
        """Show the interrupts, after `before`, an error of the save, if there is one.

        Returns the contexts that the run waits for.
        """
        if before is not None:
            self.say(before)
        if stamped is None or before is not None:
            stamped, contexts = self.stamped_deferred(is_kept=before is None)
        else:
            contexts = tuple(
                [
                    context
                    for event in stamped
                    if isinstance(event.action, Interrupted)
                    for context in event.action.contexts
                ]
            )
        self.deferred = ()
        if self.context.watch is not None:
            self.context.watch.interrupted(contexts)
        for event in stamped:
            self.seq = event.seq
            self.progress.show(event)
        return contexts

    def image(self, root: Node, ahead: int) -> dict[str, Any] | None:
        """Return the run's current state, without the events shown after the save.

        None if the run has a journal, which already holds it.
        """
        persistence = self.persistence
        if persistence is None or persistence.journal is not None:
            return None
        segments = persistence.segments
        return draw(self, root, segments.stored, segments.paths, ahead=ahead)

    def end(
        self,
        outcome: Outcome | None = None,
        more: Sequence[AgentEvent] = (),
        *,
        packed: bool = True,
    ) -> RunEnd:
        """Return how the run ends, or why it pauses.

        `packed` also encodes the outcome for later callers, if the store retains it.
        """
        persistence, result = self.persistence, self.progress.make_result(outcome, more)
        if not packed or persistence is None or not persistence.keeps_outcome:
            return RunEnd(result, None)
        run = persistence.row.run
        return RunEnd(
            result,
            pack_outcome(result, run.agent, run.input, journaled=persistence.journal is not None),
        )

    # --- errors ---

    def explained(self, error: Exception) -> Exception:
        """Name the agent and the state key in an error about state that cannot be stored.

        Other errors are returned unchanged.
        """
        root = self.root
        if type(error) is not CheckpointError or root is None:
            return error
        for invocation in walk(root):
            for key, value in (invocation.saved[0] or {}).items():
                try:
                    pack(value)
                except CheckpointError as why:
                    name, instead = (
                        invocation.node.name,
                        (
                            "Put plain data in it, and objects of this process into a local "
                            "variable of its run()."
                        ),
                    )
                    msg = (
                        f"agent {name!r}: context.state[{key!r}] cannot be stored: {why} {instead}"
                    )
                    return CheckpointError(msg, run=self.context.run_id, agent=name)
        return error

    def say(self, error: Exception) -> None:
        """Show an error of the run as a whole, or its cancellation."""
        name, context = self.progress.agent_name, self.context
        if isinstance(error, OffbookError):
            error.run = error.run or context.run_id
        if self.progress.follows:
            return  # the end of a follower is not an event of the run
        if context.watch is not None and isinstance(error, RunLost):
            context.watch.lost()
        self.seq += 1
        self.progress.show(
            stamp(
                AgentEvent(),
                agent_name=name,
                run_path=(name,),
                action=None,
                error=error,
                seq=self.seq,
                run_id=context.run_id,
                invocation_id="",
            )
        )

    def attributed(self, error: Any, node: Node) -> Exception:
        """Add the run and the agent to one of our own errors, and wrap what is not an Exception."""
        if not isinstance(error, Exception):
            msg = f"agent {node.name!r} crashed with {type(error).__name__}: {text_of(error)}"
            crash = AgentError(msg, run=self.context.run_id, agent=node.name)
            crash.__cause__ = error
            return crash
        if isinstance(error, OffbookError):
            error.run = error.run or self.context.run_id
            error.agent = error.agent or node.name
        return error


_NOT_SHOWN = AgentEvent()


def _step_of(events: Sequence[AgentEvent]) -> str:
    """Describe these events, for an error."""
    for event in reversed(events):
        message = event.message
        if message is not None and message.role == "tool":
            return f"the result of tool {message.tool_name!r}"
        if message is not None:
            return f"the message of agent {event.agent_name!r}"
    return "a step"


def _is_under(invocation: Invocation, agent_call: AgentCall) -> bool:
    at: AgentCall | None = invocation.agent_call
    while at is not None and at is not agent_call:
        at = at.parent.agent_call if at.parent is not None else None
    return at is agent_call


def _heed(invocation: Invocation, event: AgentEvent) -> None:
    """Note what an event reports about its agent's end."""
    action = event.action
    if event.is_failure:
        invocation.outcome = Outcome("failed", event.error)
    elif type(action) is Exit:
        invocation.outcome = EXITED
    elif isinstance(action, TransferToAgent):
        invocation.transfer = action.agent_name
    elif isinstance(action, BreakLoop) and action.done:
        invocation.broke = True
