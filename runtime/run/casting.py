"""Who plays in a run: the agents at work, the seats that they have, and who follows whom.

Owns: the casting of every agent actor of a run, transfers and their limit, the outcomes that casters are told, and the ending of agents. An agent
that was at work before goes on from where it stands: whoever casts a seat that has been cast already gets what is known of it. It must never record
or show anything itself: that is the ledger's.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

from ..actor.direct import send_now, stop_actor
from ..agent.agent_actor import AgentActor
from ..agent.invocation import Assignment, Dialogue, Invocation, walk
from ..agent.run_messages import CancelCast, Cast, Perform
from ..data.events import AgentEvent
from ..data.outcome import CANCELLED, Outcome
from ..durability.compatibility import find_below
from ..errors import AgentError, MaxTransfersExceeded, TransferError
from .event_log import EventLog

if TYPE_CHECKING:
    from ..actor.cell import Cell
    from ..actor.ref import ActorRef
    from ..agent.tree import Node
    from .run_supervisor import RunSupervisor

__all__ = ["Casting"]

_PERFORM: Final = Perform()


class Casting:
    """The agents of one run."""

    __slots__ = ("_keeps", "_log", "_max_transfers", "_supervisor", "live", "over", "stopping")

    def __init__(self, supervisor: RunSupervisor, event_log: EventLog, max_transfers: int) -> None:
        self._supervisor = supervisor
        self._log = event_log
        self._max_transfers = max_transfers
        self._keeps = event_log.persistence is not None  # whether the run may have to go on from here some day
        self.live: dict[Cell, Invocation] = {}  # the agents at work, by their actors
        self.over = False  # whether no agent is to be cast any more
        self.stopping = False  # whether those that are about to be cast are to wait for the end of the run

    # --- beginning ---

    def open(self, root: Node) -> None:
        """Let the run begin, or go on."""
        event_log = self._log
        if event_log.state.root is not None:
            holder = event_log.state.root.holder
            assert holder is not None
            self._wake(holder, root)
            return
        assignment = event_log.state.root = Assignment(None, 0, Dialogue(event_log.state.input, shown=True, recorded=True), None, None, None)
        self._begin(Invocation(root, (root.name,), event_log.state.lane, assignment, None, None))

    def _begin(self, invocation: Invocation) -> None:
        own = self._supervisor._cell
        supervisor = own.own_ref()
        ref = own.system.spawn_own(AgentActor, (invocation, self._log.context, supervisor, self._log.state.input.streaming), invocation.node.name, own)
        cell = ref._cell
        self.live[cell] = invocation
        invocation.supervisor = supervisor
        cell.ended = [invocation.on_actor_ended]
        send_now(ref, _PERFORM)

    def _wake(self, invocation: Invocation, tree: Node) -> None:
        """Let an agent go on that has no actor."""
        if invocation.node is None:
            find_below(tree.root, list(walk(invocation.assignment)))
        if invocation.outcome is not None and invocation.outcome.kind == "interrupted":
            invocation.outcome = None
        self._begin(invocation)

    def cast(self, request: Cast) -> Any:
        """Fill a seat: with a new agent, or with the one that has it."""
        if request.reply.done():
            return None  # it was given up before it began
        parent = request.parent
        if self.over or parent.cell is None:
            request.reply.set_result(CANCELLED)
            return None
        if self._keeps:
            parent.remember()
        known = parent.assignments.get(request.cast_key) if parent.assignments is not None else None
        if isinstance(known, Outcome):
            request.reply.set_result(known)
            return None
        if self.stopping:
            parent.parked = True
            return self._supervisor.look_parked()
        if known is not None:
            assert known.holder is not None
            self._wake(known.holder, request.node)  # which may find that it cannot
            known.future = request.reply
            parent.playing += 1
            return None
        parent.playing += 1
        dialogue = request.dialogue or parent.assignment.dialogue
        loop = request.loop if request.loop is not None else parent.assignment.loop if request.dialogue is None else None
        assignment = Assignment(parent, request.cast_key, dialogue, request.tool, loop, request.reply)
        run_path = request.base if request.node.parent is None and parent.node.inner is request.node else (*request.base, request.node.name)
        invocation = Invocation(request.node, run_path, request.lane, assignment, request.given, None)
        if self._keeps:
            self._note_cast(request, assignment, invocation)
        self._begin(invocation)
        return None

    def _note_cast(self, request: Cast, assignment: Assignment, invocation: Invocation) -> None:
        parent = request.parent
        if parent.assignments is None:
            parent.assignments = {}
        journal = cast("Any", self._log.persistence).journal
        if request.one_at_a_time and parent.assignments:
            parent.assignments.clear()  # it has gone on behind them
            if journal is not None:
                journal.asked(parent)
        parent.assignments[request.cast_key] = assignment
        if journal is not None:
            journal.touch(parent)
            journal.touch(invocation)

    # --- ending ---

    def ended(self, invocation: Invocation, outcome: Outcome, transfer: str | None) -> Any:
        """An agent has come to its end."""
        if invocation.cell is not None:
            self.live.pop(invocation.cell, None)
            invocation.cell = None
        if invocation.playing:
            # It has left others at work, which nobody waits for any more.
            invocation.ended = (outcome, transfer)
            self.cancel_children(invocation)
            return None
        return self._follow(invocation, outcome, transfer)

    def _follow(self, invocation: Invocation, outcome: Outcome, transfer: str | None) -> Any:
        """The agent has ended, and all that it has cast: the next one takes its seat, or it is empty."""
        if self.over:
            outcome = CANCELLED
        elif transfer is not None and outcome.kind == "finished":
            parent = invocation.assignment.parent
            if invocation.cancelled:
                outcome = CANCELLED  # nobody waits for the one to whom it would hand over
            elif self.stopping:
                # It keeps its seat, and hands over when the run goes on. Nobody plays in it until then.
                if parent is not None:
                    parent.playing -= 1
                    parent.parked = True
                return self._supervisor.look_parked()
            elif (failure := self._transfer(invocation, transfer, outcome)) is None:
                return None
            else:
                outcome = Outcome("failed", failure)
        return self._settle(invocation.assignment, outcome)

    def _transfer(self, invocation: Invocation, name: str, outcome: Outcome) -> Exception | None:
        """Let the agent of that name take over the seat. Returns why it cannot."""
        event_log, node, assignment = self._log, invocation.node, invocation.assignment
        run = event_log.context.run_id
        assignment.broke = assignment.broke or outcome.broke
        handed = invocation.following
        target = node.target(name) if handed is None else handed.node
        error: AgentError | None = None
        if target is None:
            error = TransferError(f"transfer failed: agent '{name}' not found when transferring from '{node.name}'", run=run, agent=node.name)
        elif event_log.state.transfers >= self._max_transfers:
            error = MaxTransfersExceeded(
                f"more than {self._max_transfers} transfers in one run, the last from '{node.name}' to '{name}'. "
                "If the agents are not going in circles, give the Runner a larger max_transfers.",
                run=run,
                agent=node.name,
            )
        if error is not None:
            event_log.write(invocation, AgentEvent(error=error))
            return error
        assert target is not None
        event_log.state.transfers += 1
        following = Invocation(target, (*invocation.run_path, target.name), invocation.lane, assignment, None if handed is None else handed.given, node)
        if handed is not None:
            following.told_from, following.told = handed.told_from, handed.told
        elif invocation.given is not None and len(invocation.names) > 1:
            # Its conversation began with a handoff: whoever follows is not given more of what was before than it was.
            following.given, following.told_from = invocation.given, invocation.told_from
            following.retold_from = invocation.since if invocation.retold_from is None else invocation.retold_from
        if event_log.persistence is not None and event_log.persistence.journal is not None:
            event_log.persistence.journal.gone(invocation)
            event_log.persistence.journal.touch(following)
        self._begin(following)
        return None

    def _settle(self, assignment: Assignment, outcome: Outcome) -> Any:
        """A seat is empty now: tell whoever waits for it."""
        if assignment.broke and outcome.kind == "finished" and not outcome.broke:
            outcome = Outcome(message=outcome.message, broke=True)
        parent = assignment.parent
        if outcome.kind != "interrupted":
            self._log.drop_deferred(assignment)
        if parent is None:
            return self._supervisor.root_ended(outcome)
        if assignment.dialogue is not parent.assignment.dialogue:
            # What is said last in a conversation is its result. An exit ends it, and not what is around it.
            kind = "finished" if outcome.kind == "exited" else outcome.kind
            outcome = replace(outcome, kind=kind, message=assignment.dialogue.last_message, broke=False)
        if self._keeps and not self.over and outcome.kind != "interrupted":
            self._note_end(assignment, parent, outcome)
        if not self._keeps:
            assignment.holder = None
        if assignment.future is not None and not assignment.future.done():
            assignment.future.set_result(outcome)
        parent.playing -= 1
        if not parent.playing and parent.ended is not None:
            (last, transfer), parent.ended = parent.ended, None
            return self._follow(parent, last, transfer)
        return self._supervisor.look_parked()

    def _note_end(self, assignment: Assignment, parent: Invocation, outcome: Outcome) -> None:
        """Remember how it has ended, for its caster may ask for it again."""
        journal = cast("Any", self._log.persistence).journal
        if journal is not None and assignment.holder is not None:
            journal.gone(assignment.holder)
        assignment.holder = None
        if parent.assignments is None or parent.assignments.get(assignment.cast_key) is not assignment:
            return
        if assignment.forgotten:
            del parent.assignments[assignment.cast_key]
        else:
            parent.assignments[assignment.cast_key] = outcome
            if journal is not None:
                journal.ended(parent, assignment.cast_key, outcome)

    # --- ending what is under way ---

    def end_all(self) -> None:
        """Cut short all agents. Where each step is kept, so is what they wait for by now, and what they have done that is in no record yet."""
        self.over = True
        journal = None if self._log.persistence is None else self._log.persistence.journal
        for cell, invocation in tuple(self.live.items()):
            if journal is not None:
                journal.touch(invocation)
                for name in invocation.unnoted:
                    journal.step(invocation, name, (invocation.steps or {})[name])
            _end(cell, invocation)

    def cut_off(self) -> None:
        """They have been told before, and have not listened."""
        for cell in tuple(self.live):
            cell.cut_off()

    def cancel_cast(self, request: CancelCast) -> None:
        """End all that is under way in one seat."""
        found = None
        for cell, invocation in tuple(self.live.items()):
            assignment: Assignment | None = invocation.assignment
            while assignment is not None and assignment.future is not request.reply:
                assignment = assignment.parent.assignment if assignment.parent is not None else None
            if assignment is not None:
                found = assignment
                _end(cell, invocation)
        if found is None:
            request.gone.set_result(None)
        else:
            found.future = request.gone  # which is set when it is empty
            found.forgotten = True

    def cancel_children(self, parent: Invocation) -> None:
        """End all that is under way below one agent."""
        for cell, invocation in tuple(self.live.items()):
            above = invocation.assignment.parent
            while above is not None and above is not parent:
                above = above.assignment.parent
            if above is parent:
                _end(cell, invocation)

    def start_again(self, invocation: Invocation, ref: ActorRef[Any]) -> None:
        """An agent has failed, and is to begin anew from the state that was recorded."""
        self.cancel_children(invocation)
        state, notes = deepcopy(invocation.saved)
        invocation.state, invocation.notes = state, notes
        ref.tell(_PERFORM)  # it waits in the mailbox until there is a fresh instance


def _end(cell: Cell, invocation: Invocation) -> None:
    """Cut short what an agent's actor is at, and let it end. It reports that itself; one that cannot, because it never began, is heard of by its end."""
    invocation.cancelled = True
    cell.cancel_handler()
    stop_actor(cell)
