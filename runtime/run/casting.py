"""The agents of a run: which are running, their agent calls, and who follows an ended agent.

`Casting` creates and ends the agents' actors, limits transfers, and returns outcomes to callers.
When a run resumes, a caller that requests the same agent call again gets its known outcome or the
agent that holds it. Each method returns what its change means for the run as a whole, and the
supervisor decides. The event log, not this module, records and shows events.
"""

from __future__ import annotations

from copy import deepcopy
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..actor.actor import InnerActor
from ..actor.direct import stop_actor
from ..actor.envelope import Envelope
from ..agent.agent_actor import AgentActor
from ..agent.input_range import open_range
from ..agent.invocation import AgentCall, Conversation, Invocation, InvocationPhase, walk
from ..agent.run_messages import CancelCast, Cast, Perform
from ..data.events import AgentEvent
from ..data.outcome import CANCELLED, Outcome
from ..data.run_path import extended
from ..durability.compatibility import find_below
from ..errors import AgentError, MaxTransfersExceeded, TransferError
from ..log import loggers
from .event_log import EventLog
from .phase import RunPhase

if TYPE_CHECKING:
    from ..actor.cell import Cell
    from ..actor.ref import ActorRef
    from ..agent.tree import Node
    from ..durability.journal import Journal

__all__ = ["Casting", "CastingChange", "Look"]

_PERFORM: Final = Perform()
_BEGIN: Final = Envelope(_PERFORM)
_STOPPING: Final = RunPhase.STOPPING
_ENDING: Final = RunPhase.ENDING
_DORMANT: Final = InvocationPhase.DORMANT
_AT_WORK: Final = InvocationPhase.AT_WORK
_PARKED: Final = InvocationPhase.PARKED
_GONE: Final = InvocationPhase.GONE


class Look(Enum):
    """The sign that the run may be able to end now."""

    AT_SAFE_POINT = "an agent is at a safe point, or has ended"


CastingChange: TypeAlias = Outcome | Look | None
"""The root's outcome, a sign that the run may be able to end, or nothing."""


class Casting(InnerActor):
    """The agents of one run. The supervisor is a subclass, so a run has one object for both."""

    __slots__ = ("_journal", "_keeps", "_log", "_max_transfers", "_progress", "at_work")

    def __init__(self, cell: Cell, event_log: EventLog, max_transfers: int) -> None:
        self._cell = cell
        cell.actor = self
        self._log = event_log
        self._progress = event_log.progress
        self._max_transfers = max_transfers
        # True if the run may later continue from here.
        self._keeps = event_log.persistence is not None
        self._journal: Journal | None = (
            None if event_log.persistence is None else event_log.persistence.journal
        )
        self.at_work = 0  # number of agents whose actor has not reported its end

    @property
    def is_at_safe_point(self) -> bool:
        """True if every agent is at a safe point, so that the run may end here."""
        live = self.live()
        return len(live) == self.at_work and all(invocation.is_at_safe_point for invocation in live)

    def live(self) -> list[Invocation]:
        """Return the running agents, in the order in which they started.

        Their actors are the supervisor's children, which map to their invocations.
        """
        return [
            invocation
            for cell, invocation in tuple((self._cell.children or {}).items())
            if invocation is not None and invocation.cell is cell
        ]

    def playing_on(self, cell: Cell) -> Invocation | None:
        """Return the running agent that this actor belongs to."""
        invocation: Invocation | None = (self._cell.children or {}).get(cell)
        return invocation if invocation is not None and invocation.cell is cell else None

    # --- starting ---

    def open(self, root: Node) -> None:
        """Start or resume the run."""
        self._progress.play()
        state = self._log
        if self._log.context.watch is not None:
            self._log.play()
        if state.root is not None:
            holder = state.root.holder
            assert holder is not None
            self._wake(holder, root)
            return
        if state.opening_events:
            state.show_posts()
        first = root if state.begins_with is None else self._first(root)
        agent_call = state.root = AgentCall(
            None, 0, Conversation(state.input, shown=True, recorded=True)
        )
        self._play(Invocation(first, (first.name,), state.lane, agent_call, open_range(state.lane)))

    def _first(self, root: Node) -> Node:
        """Return the agent that the run starts with."""
        name = self._log.begins_with
        if name is None or name == root.name:
            return root
        found = root.named(name)
        if found is None:
            text = (
                "session %r: its last turn ended with agent %r, which is no longer among the "
                "agents of %r. This turn starts with %r."
            )
            loggers.run.warning(text, self._log.context.session_id, name, root.name, root.name)
        return found or root

    def _play(self, invocation: Invocation) -> None:
        own, event_log = self._cell, self._log
        args = (invocation, event_log.context, own, event_log, event_log.input.streaming)
        cell = own.system.spawn_own(AgentActor, args, invocation.node.name, own)
        own.children[cell] = invocation  # type: ignore[index]  # it has one now
        self.at_work += 1
        invocation.phase = _AT_WORK
        invocation.supervisor = own
        cell.ended = (invocation.on_actor_ended,)
        if invocation.node.agent.on_failure is None:
            cell.args = ()  # it is not restarted
        cell.until_childless = True  # it ends with its handler
        cell.handle(_BEGIN)

    def _wake(self, invocation: Invocation, tree: Node) -> None:
        """Resume a dormant agent."""
        if invocation.node is None:
            find_below(tree.root, list(walk(invocation.agent_call)))
        if invocation.outcome is not None and invocation.outcome.kind == "interrupted":
            invocation.outcome = None
        self._play(invocation)

    def cast(self, request: Cast) -> CastingChange:
        """Make an agent call: to a new agent, or to the agent that already holds it."""
        if request.reply.done():
            return None  # cancelled before it started
        parent = request.parent
        if self._progress.phase >= _ENDING or not parent.is_at_work:
            request.reply.set_result(CANCELLED)
            return None
        if self._keeps:
            parent.remember()
        known = parent.agent_calls.get(request.cast_key) if parent.agent_calls is not None else None
        if isinstance(known, Outcome):
            request.reply.set_result(known)
            return None
        if self._progress.phase is _STOPPING:
            parent.phase = _PARKED
            return Look.AT_SAFE_POINT
        if known is not None:
            assert known.holder is not None
            self._wake(known.holder, request.node)  # this may find that the agent cannot be resumed
            known.future = request.reply
            parent.playing += 1
            return None
        parent.playing += 1
        conversation = request.conversation or parent.agent_call.conversation
        loop = (
            request.loop
            if request.loop is not None
            else parent.agent_call.loop
            if request.conversation is None
            else None
        )
        agent_call = AgentCall(
            parent,
            request.cast_key,
            conversation,
            tool=request.tool,
            loop=loop,
            future=request.reply,
        )
        run_path = (
            request.base
            if request.node.parent is None and parent.node.inner is request.node
            else extended(request.base, request.node.name)
        )
        invocation = Invocation(
            request.node,
            run_path,
            request.lane,
            agent_call,
            open_range(request.lane, request.given),
        )
        if self._keeps:
            self._note_cast(request, agent_call, invocation)
        self._play(invocation)
        return None

    def _note_cast(self, request: Cast, agent_call: AgentCall, invocation: Invocation) -> None:
        parent, journal = request.parent, self._journal
        if parent.agent_calls is None:
            parent.agent_calls = {}
        if request.one_at_a_time and parent.agent_calls:
            parent.agent_calls.clear()  # the caller no longer needs them
            if journal is not None:
                journal.asked(parent)
        parent.agent_calls[request.cast_key] = agent_call
        if journal is not None:
            journal.touch(parent)
            journal.touch(invocation)

    # --- ending ---

    def ended(
        self, invocation: Invocation, outcome: Outcome, transfer: str | None
    ) -> CastingChange:
        """Handle the end of an agent."""
        if invocation.cell is not None:
            self.at_work -= 1
            invocation.cell = None
        if invocation.playing:
            # It left agents running that no agent waits for.
            invocation.phase = InvocationPhase.LEAVING
            invocation.report = (outcome, transfer)
            self.cancel_children(invocation)
            return None
        return self._follow(invocation, outcome, transfer)

    def _follow(
        self, invocation: Invocation, outcome: Outcome, transfer: str | None
    ) -> CastingChange:
        """Transfer or close the agent call of an agent that has ended with all its children."""
        invocation.phase = _GONE
        if self._progress.phase >= _ENDING:
            outcome = CANCELLED
        elif transfer is not None and outcome.kind == "finished":
            parent = invocation.agent_call.parent
            if invocation.is_cancelled:
                outcome = CANCELLED  # the caller no longer waits for the next agent
            elif self._progress.phase is _STOPPING:
                # The agent holds its agent call, and hands off when the run resumes.
                invocation.phase = _DORMANT
                if parent is not None:
                    parent.playing -= 1
                    parent.phase = _PARKED
                return Look.AT_SAFE_POINT
            elif (failure := self._transfer(invocation, transfer, outcome)) is None:
                return None
            else:
                outcome = Outcome("failed", failure)
        if outcome.kind == "interrupted":
            invocation.phase = _DORMANT
        return self._close(invocation.agent_call, outcome)

    def _transfer(self, invocation: Invocation, name: str, outcome: Outcome) -> Exception | None:
        """Transfer the agent call to the agent called `name`. Returns the error if that fails."""
        event_log, node, agent_call = self._log, invocation.node, invocation.agent_call
        run = event_log.context.run_id
        agent_call.broke = agent_call.broke or outcome.broke
        handed = invocation.following
        target = node.target(name) if handed is None else handed.node
        error: AgentError | None = None
        if target is None:
            error = TransferError(node.no_target(name), run=run, agent=node.name)
        elif event_log.transfers >= self._max_transfers:
            error = MaxTransfersExceeded(
                f"more than {self._max_transfers} transfers in one run, the last from "
                f"'{node.name}' to '{name}'. If the agents do not transfer in a circle, pass the "
                "Runner a larger max_transfers=.",
                run=run,
                agent=node.name,
            )
        if error is not None:
            event_log.write(invocation, AgentEvent(error=error))
            return error
        assert target is not None
        event_log.transfers += 1
        lane, before = invocation.lane, invocation.input_range
        if handed is not None:
            input_range = open_range(
                lane,
                handed.input,
                verbatim_from=handed.verbatim_from,
                verbatim_cache=handed.verbatim_cache,
                asked=handed.asked,
            )
        elif before.input is not None and len(invocation.names) > 1:
            # Its conversation started with a handoff, so the next agent sees no more of the earlier
            # history than this one did.
            input_range = open_range(
                lane,
                before.input,
                verbatim_from=before.verbatim_from,
                retold_from=before.verbatim_until,
                asked=before.asked,
            )
        else:
            input_range = open_range(lane)
        if handed is None and event_log.context.watch is not None:
            event_log.context.watch.transferred(invocation, target.name)
        following = Invocation(
            target,
            extended(invocation.run_path, target.name),
            lane,
            agent_call,
            input_range,
            handed_over_by=node,
        )
        if self._journal is not None:
            self._journal.gone(invocation)
            self._journal.touch(following)
        self._play(following)
        return None

    def _close(self, agent_call: AgentCall, outcome: Outcome) -> CastingChange:
        """Close an agent call that no agent holds any longer, and notify its caller."""
        if agent_call.broke and outcome.kind == "finished" and not outcome.broke:
            outcome = Outcome(message=outcome.message, broke=True)
        parent = agent_call.parent
        if self._log.deferred and outcome.kind != "interrupted":
            self._log.drop_deferred(agent_call)
        if not self._keeps:
            _let_go(agent_call)
        if parent is None:
            return outcome
        if agent_call.conversation is not parent.agent_call.conversation:
            # The last message of a conversation is its result. An exit ends the conversation, not
            # the run around it.
            kind = "finished" if outcome.kind == "exited" else outcome.kind
            outcome = outcome.replace(
                kind=kind, message=agent_call.conversation.last_message, broke=False
            )
        if self._keeps and self._progress.phase < _ENDING and outcome.kind != "interrupted":
            self._note_end(agent_call, parent, outcome)
        if agent_call.future is not None and not agent_call.future.done():
            agent_call.future.set_result(outcome)
        if outcome.kind == "failed":
            agent_call.future = None  # it has the error, which has the agent's frames
        parent.playing -= 1
        if not parent.playing and parent.report is not None:
            (last, transfer), parent.report = parent.report, None
            return self._follow(parent, last, transfer)
        return Look.AT_SAFE_POINT

    def _note_end(self, agent_call: AgentCall, parent: Invocation, outcome: Outcome) -> None:
        """Remember the outcome: the caller may request it again."""
        journal = self._journal
        if journal is not None and agent_call.holder is not None:
            journal.gone(agent_call.holder)
        _let_go(agent_call)
        if (
            parent.agent_calls is None
            or parent.agent_calls.get(agent_call.cast_key) is not agent_call
        ):
            return
        if agent_call.forgotten:
            del parent.agent_calls[agent_call.cast_key]
        else:
            parent.agent_calls[agent_call.cast_key] = outcome
            if journal is not None:
                journal.ended(parent, agent_call.cast_key, outcome)

    # --- cancelling running agents ---

    def end_all(self) -> None:
        """Interrupt all agents.

        A journal also records their pending interrupts and the steps that are in no record yet.
        """
        journal = self._journal
        for invocation in self.live():
            if journal is not None:
                journal.touch(invocation)
                for name in invocation.unnoted:
                    journal.step(invocation, name, (invocation.steps or {})[name])
            _end(invocation)

    def break_cycles(self) -> None:
        """Break the reference cycles of an ended run, so that no garbage collection is needed."""
        if self._journal is not None:
            self._journal.drop_changes()
        root = self._log.root
        for invocation in () if root is None else tuple(walk(root)):
            _let_go(invocation.agent_call)
            invocation.agent_calls = None

    def cut_off(self) -> None:
        """Cut off agents that ignored an earlier cancellation."""
        for invocation in self.live():
            if invocation.cell is not None:
                invocation.cell.cut_off()

    def cancel_cast(self, request: CancelCast) -> None:
        """End everything that runs in one agent call."""
        found = None
        for invocation in self.live():
            agent_call: AgentCall | None = invocation.agent_call
            while agent_call is not None and agent_call.future is not request.reply:
                agent_call = agent_call.parent.agent_call if agent_call.parent is not None else None
            if agent_call is not None:
                found = agent_call
                _end(invocation)
        if found is None:
            request.gone.set_result(None)
        else:
            found.future = request.gone  # set when the agent call is closed
            found.forgotten = True

    def cancel_children(self, parent: Invocation) -> None:
        """End everything that runs below one agent."""
        for invocation in self.live():
            above = invocation.agent_call.parent
            while above is not None and above is not parent:
                above = above.agent_call.parent
            if above is parent:
                _end(invocation)

    def start_again(self, invocation: Invocation, ref: ActorRef[Any]) -> None:
        """Restart a failed agent from its recorded state."""
        self.cancel_children(invocation)
        state, notes = deepcopy(invocation.saved)
        invocation.state, invocation.notes = state, notes
        ref.tell(_PERFORM)  # waits in the mailbox until there is a fresh instance


def _let_go(agent_call: AgentCall) -> None:
    """Break the reference cycles between an agent call, its holder and the holder's error."""
    holder, agent_call.holder = agent_call.holder, None
    if holder is not None:
        holder.outcome = None


def _end(invocation: Invocation) -> None:
    """Interrupt an agent's actor and end it.

    The actor reports its end itself; for one that never started, `on_actor_ended` reports it.
    """
    cell = invocation.cell
    assert cell is not None
    invocation.is_cancelled = True
    cell.cancel_handler()
    stop_actor(cell)
