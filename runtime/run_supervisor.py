"""The single writer of a run: every event is a message to it.

Owns: the order of events, the history, who plays, and how the run ends. It stamps an event, records it, and only then shows it. It casts every agent
actor of the run, follows transfers, counts them, and tells a parent how its child has ended. It must never run an agent's code.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from copy import deepcopy
from dataclasses import replace
from time import time
from typing import TYPE_CHECKING, Any, Final, cast

from .actor import Actor
from .agent_actor import AgentActor
from .definition import AgentInput, Node
from .delivery import OVER, finish, finish_last, hand
from .errors import ActorDeadError, AgentError, MaxTransfersExceeded, RunCancelled, TransferError, UnderstudyError, text_of
from .events import Action, AgentEvent, BreakLoop, Exit, Interrupted, TransferToAgent, stamp
from .history import Entry, Lane
from .hooks import call_hooks
from .invocation import Invocation, Scope, Seat
from .outcome import CANCELLED, EXITED, Outcome
from .protocol import CancelCast, CancelChildren, CancelRun, Cast, Crashed, Emitted, EmittedSoon, Ended, JoinLanes, Perform
from .run_context import RunContext
from .run_record import RunRecord
from .session import bind_session
from .supervision import Directive, Stop

if TYPE_CHECKING:
    from .cell import Cell
    from .ref import ActorRef

__all__ = ["RunSupervisor"]

_PERFORM: Final = Perform()


class RunSupervisor(Actor):
    """One run."""

    __slots__ = ("_context", "_ending", "_live", "_max_transfers", "_record", "_seq", "_streaming", "_transfers")

    def __init__(self, root: Node, context: RunContext, record: RunRecord, given: AgentInput, max_transfers: int, timeout: float | None) -> None:
        super().__init__()
        self._context = context
        self._record = record
        self._max_transfers = max_transfers
        self._streaming = given.streaming
        self._seq = 0
        self._transfers = 0
        self._live: dict[Cell, Invocation] = {}  # the agents at work, by their actors
        self._ending = False  # whether no agent is to be cast any more
        seat = Seat(None, Scope(given, shown=True, recorded=True), None, None, None)
        cell = self._cell
        cell.ended = [cast("Any", record)]  # who is told when this actor has ended, however that came
        cell.context.run(bind_session, context.session)
        record.timer = None if timeout is None else cell.system.clock.call_later(timeout, self._time_is_over, timeout)
        # In the supervisor's own context, where the session is bound: the agents' are copies of it.
        cell.context.run(self._begin, Invocation(root, (root.name,), Lane(), seat, None, None))

    # --- messages ---

    def on_receive(self, message: Any) -> Any:
        kind = type(message)
        if kind is Emitted:
            return self._emitted(message.invocation, message.event)
        if kind is Ended:
            return self._ended(message)
        if kind is Cast:
            return self._cast(message)
        if kind is EmittedSoon:
            message.shown()
            if message.invocation.cell is None:
                return None  # it comes from a thread that nobody waits for any more
            reply = self._emitted(message.invocation, message.event)
            return reply if inspect.iscoroutine(reply) else None
        if kind is JoinLanes:
            return message.lane.join(message.children)
        if kind is Crashed:
            return self._crashed(message.invocation, message.error)
        if kind is CancelRun:
            return self._cancel(message.reason)
        if kind is CancelCast:
            return self._cancel_cast(message.reply, message.gone)
        if kind is CancelChildren:
            return self._cancel_children(message.parent)
        msg = f"{self} is given {message!r}, which it does not know."
        raise UnderstudyError(msg, run=self._context.run_id, message=message)

    # --- playing ---

    def _begin(self, invocation: Invocation) -> None:
        own = self._cell
        supervisor = own.own_ref()
        ref = own.system.spawn_own(AgentActor, (invocation, self._context, supervisor, self._streaming), invocation.node.name, own)
        cell = ref._cell
        self._live[cell] = invocation
        invocation.supervisor = supervisor
        cell.ended = [cast("Any", invocation)]
        hand(ref, _PERFORM)

    def _cast(self, request: Cast) -> None:
        if request.reply.done():
            return  # it was given up before it began
        if self._ending or request.parent.cell is None:
            request.reply.set_result(CANCELLED)
            return
        parent = request.parent
        scope = request.scope or parent.seat.scope
        loop = request.loop if request.loop is not None else parent.seat.loop if request.scope is None else None
        parent.playing += 1
        seat = Seat(parent, scope, request.tool, loop, request.reply)
        run_path = request.base if request.node.parent is None and parent.node.inner is request.node else (*request.base, request.node.name)
        self._begin(Invocation(request.node, run_path, request.lane, seat, request.given, None))

    def _ended(self, ended: Ended) -> Any:
        invocation, outcome = ended.invocation, ended.outcome
        if invocation.cell is not None:
            self._live.pop(invocation.cell, None)
            invocation.cell = None
        if outcome.kind == "cancelled" and outcome.error is None and not invocation.cancelled and not self._ending:
            # Not by us: its own code has done it, or whoever ends the loop.
            error = self._attributed(asyncio.CancelledError("its task was cancelled, and not by the run"), invocation.node)
            self._write(invocation, AgentEvent(error=error))
            outcome = Outcome("failed", error)
        if invocation.playing:
            # It has left others at work, which nobody waits for any more.
            invocation.ended = (outcome, ended.transfer)
            self._cancel_children(invocation)
            return None
        return self._follow(invocation, outcome, ended.transfer)

    def _follow(self, invocation: Invocation, outcome: Outcome, transfer: str | None) -> Any:
        """The agent has ended, and all that it has cast: the next one takes its seat, or it is empty."""
        if self._ending:
            outcome = CANCELLED
        elif transfer is not None and outcome.kind == "finished":
            failure = self._transfer(invocation, transfer, outcome)
            if failure is None:
                return None
            outcome = Outcome("failed", failure)
        return self._settle(invocation.seat, outcome)

    def _transfer(self, invocation: Invocation, name: str, outcome: Outcome) -> Exception | None:
        """Let the agent of that name take over the seat. Returns why it cannot."""
        node, seat, run = invocation.node, invocation.seat, self._context.run_id
        seat.broke = seat.broke or outcome.broke
        target = node.target(name)
        error: Exception | None = None
        if target is None:
            error = TransferError(f"transfer failed: agent '{name}' not found when transferring from '{node.name}'", run=run, agent=node.name)
        elif self._transfers >= self._max_transfers:
            error = MaxTransfersExceeded(
                f"more than {self._max_transfers} transfers in one run, the last from '{node.name}' to '{name}'. "
                "If the agents are not going in circles, give the Runner a larger max_transfers.",
                run=run,
                agent=node.name,
            )
        if error is not None:
            self._write(invocation, AgentEvent(error=error))
            return error
        assert target is not None
        self._transfers += 1
        self._begin(Invocation(target, (*invocation.run_path, name), invocation.lane, seat, None, node))
        return None

    def _settle(self, seat: Seat, outcome: Outcome) -> Any:
        """A seat is empty now: tell whoever waits for it."""
        if seat.broke and outcome.kind == "finished" and not outcome.broke:
            outcome = Outcome(message=outcome.message, broke=True)
        if seat.parent is None:
            self._record.settle_outcome(outcome)
            self._ending = True
        else:
            if seat.scope is not seat.parent.seat.scope:
                # What is said last in a conversation is its result. An exit ends it, and not what is around it.
                kind = "finished" if outcome.kind == "exited" else outcome.kind
                outcome = replace(outcome, kind=kind, message=seat.scope.last_message, broke=False)
            if seat.future is not None and not seat.future.done():
                seat.future.set_result(outcome)
            parent = seat.parent
            parent.playing -= 1
            if not parent.playing and parent.ended is not None:
                (last, transfer), parent.ended = parent.ended, None
                return self._follow(parent, last, transfer)
        if self._ending and not self._live:
            return self._leave()
        return None

    # --- events ---

    def _emitted(self, invocation: Invocation, event: AgentEvent) -> Any:
        """The reply is the event as it was recorded; one that has to wait for room is a coroutine of it. When the run is over already, so is the agent."""
        if self._ending:
            return OVER
        stamped = self._write(invocation, event)
        return stamped if self._record.stream.has_room else self._wait_for_room(stamped)

    def _write(self, invocation: Invocation, event: AgentEvent) -> AgentEvent:
        """Stamp, record, show."""
        node, seat, context = invocation.node, invocation.seat, self._context
        action: Action | None = event.action
        if type(action) is BreakLoop:
            action = BreakLoop(node.name, done=seat.loop is not None, iteration=seat.loop)
        error = event.error
        if error is not None and event.delta is None:
            error = self._attributed(error, node)
        scope = seat.scope
        shown = scope.shown and (scope.recorded or type(action) is not Interrupted)
        if shown:
            self._seq += 1  # the consumer sees no gaps
        stamped = stamp(event, node.name, invocation.run_path, action, error, self._seq, time(), context.run_id, invocation.id)
        message = event.message
        if message is not None and event.delta is None:
            invocation.messages.append(message)
            invocation.last_message = scope.last_message = message
            if message.usage is not None:
                context.usage += message.usage
            invocation.lane.entries.append(Entry(node.name, invocation.run_path, invocation.id, message))
        if action is not None or error is not None:
            _heed(invocation, stamped)
        if invocation.state is not None and node.agent.on_failure is not None:
            invocation.saved = deepcopy(invocation.state)
        if shown:
            self._record.show(stamped)
        return stamped

    async def _wait_for_room(self, stamped: AgentEvent) -> AgentEvent:
        await self._record.stream.wait_for_room()
        return stamped

    def _attributed(self, error: Any, node: Node) -> Exception:
        """The error, which says now to which run and agent it belongs, if it is one of ours."""
        if not isinstance(error, Exception):
            msg = f"agent {node.name!r} crashed with {type(error).__name__}: {text_of(error)}"
            crash = AgentError(msg, run=self._context.run_id, agent=node.name)
            crash.__cause__ = error
            return crash
        if isinstance(error, UnderstudyError):
            error.run = error.run or self._context.run_id
            error.agent = error.agent or node.name
        return error

    # --- failures ---

    def on_child_failure(self, ref: ActorRef[Any], error: BaseException) -> Directive:
        invocation = self._live.get(ref._cell)
        restart: Directive | None = None if invocation is None else invocation.node.agent.on_failure
        if invocation is None or restart is None or self._ending or invocation.cancelled:
            return Stop()  # and its end is told
        self._cancel_children(invocation)
        invocation.state = deepcopy(invocation.saved)
        ref.tell(_PERFORM)  # it waits in the mailbox until there is a fresh instance
        return restart

    def _crashed(self, invocation: Invocation, error: BaseException | None) -> Any:
        if invocation.cell is None:
            return None
        if self._ending or invocation.cancelled:
            return self._ended(Ended(invocation, CANCELLED))
        attributed = self._attributed(RunCancelled("its actor was stopped") if error is None else error, invocation.node)
        self._write(invocation, AgentEvent(error=attributed))
        return self._ended(Ended(invocation, Outcome("failed", attributed)))

    # --- the end ---

    def _time_is_over(self, timeout: float) -> None:
        self._record.stream.unblock()
        with contextlib.suppress(ActorDeadError):
            self.actor_ref.tell(CancelRun(f"the run took longer than its timeout of {timeout:g} s"))
        if self._record.outcome is not None:
            self.actor_ref.cancel()  # it may be in a hook that does not end

    def _cancel(self, reason: str) -> Any:
        """End all that is under way. The run ends when all of it has ended."""
        if self._ending:
            for cell in tuple(self._live):
                cell.cut_off()  # it has been told before, and has not listened
            return None
        self._ending = True
        context, name = self._context, self._record.agent_name
        error = RunCancelled(f"run cancelled: {reason}", run=context.run_id, agent=name)
        self._record.settle_outcome(Outcome("cancelled", error))
        self._seq += 1
        self._record.show(stamp(AgentEvent(), name, (name,), None, error, self._seq, time(), context.run_id, ""))
        if not self._live:
            return self._leave()
        for cell, invocation in tuple(self._live.items()):
            _end(cell, invocation)
        return None

    def _cancel_cast(self, reply: Any, gone: Any) -> None:
        """End all that is under way in one seat."""
        found = None
        for cell, invocation in tuple(self._live.items()):
            seat: Seat | None = invocation.seat
            while seat is not None and seat.future is not reply:
                seat = seat.parent.seat if seat.parent is not None else None
            if seat is not None:
                found = seat
                _end(cell, invocation)
        if found is None:
            gone.set_result(None)
        else:
            found.future = gone  # which is set when it is empty

    def _cancel_children(self, parent: Invocation) -> None:
        """End all that is under way below one agent."""
        for cell, invocation in tuple(self._live.items()):
            above = invocation.seat.parent
            while above is not None and above is not parent:
                above = above.seat.parent
            if above is parent:
                _end(cell, invocation)

    def _leave(self) -> Any:
        """All agents have ended: so does the run."""
        hooks = self._context.hooks
        if hooks is not None and "on_run_end" in hooks._overridden:
            return self._say_end()
        finish_last(self._cell)  # the last agent's actor may still be at its last step
        return None

    async def _say_end(self) -> None:
        try:
            await call_hooks(self._context.hooks, None, "on_run_end", None, self._context, self._record.make_result())
        finally:
            finish_last(self._cell)


def _heed(invocation: Invocation, event: AgentEvent) -> None:
    """Take note of what an event says of its agent's end."""
    action = event.action
    kind = type(action)
    if event.is_failure:
        invocation.outcome = Outcome("failed", event.error)
    elif kind is Exit:
        invocation.outcome = EXITED
    elif isinstance(action, Interrupted):
        invocation.outcome = Outcome("interrupted", contexts=action.contexts)
    elif isinstance(action, TransferToAgent):
        invocation.transfer = action.agent_name
    elif isinstance(action, BreakLoop) and action.done:
        invocation.broke = True


def _end(cell: Cell, invocation: Invocation) -> None:
    """Cut short what an agent's actor is at, and let it end. It reports that itself; one that cannot, because it never began, is heard of by its end."""
    invocation.cancelled = True
    cell.cancel_handler()
    finish(cell)
