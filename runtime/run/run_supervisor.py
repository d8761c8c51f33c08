"""The single writer of a run: every event is a message to it.

Owns: how a run begins and how it ends: by itself, by an interrupt, by being cancelled now or at the next safe point; and that it is kept when it
does. Who plays is up to its `Casting`, what has happened is written in its `EventLog`. It must never run an agent's code.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..actor.actor import Actor
from ..actor.direct import OVER, stop_actor, stop_when_childless
from ..actor.supervision import Directive, Stop
from ..agent.hooks import call_hooks
from ..agent.invocation import Invocation
from ..agent.run_messages import (
    AgentEnded,
    CancelCast,
    CancelChildren,
    CancelRun,
    Cast,
    Crashed,
    Emitted,
    EmittedNoWait,
    JoinLanes,
    Open,
    ReachedSafePoint,
    StateChanged,
)
from ..agent.session_values import bind_session
from ..agent.tree import Node
from ..data.events import AgentEvent
from ..data.outcome import CANCELLED, Outcome
from ..durability.image import draw
from ..errors import ActorDeadError, CheckpointError, RunCancelled, UnderstudyError
from ..log import logger
from .cancellation import PendingStop, stopped_at
from .casting import Casting
from .event_log import EventLog

if TYPE_CHECKING:
    from ..actor.host import Host
    from ..actor.ref import ActorRef

__all__ = ["Opening", "RunSupervisor"]

_DRAIN_SHARE: Final = 0.9
"""Of the time that a drain may take: after that, what has not come to a safe point is cut short, so that there is time to keep it."""

Opening: TypeAlias = "Callable[[EventLog, Host, Callable[[CancelRun], object]], Awaitable[None]]"
"""Finds out from where a run starts, and writes that into the ledger. The last argument is what ends the run later on, from outside."""


class RunSupervisor(Actor):
    """One run."""

    __slots__ = ("_is_lost", "_log", "_opening", "_pending_stop", "_root", "_stage", "_unfinished")

    def __init__(self, root: Node, event_log: EventLog, max_transfers: int, timeout: float | None, opening: Opening | None) -> None:
        super().__init__()
        self._root = root
        self._log = event_log
        self._opening = opening
        self._stage = Casting(self, event_log, max_transfers)
        self._pending_stop: PendingStop | None = None  # that it ends at a safe point
        self._unfinished = False  # whether somebody is to find it and go on
        self._is_lost = False  # whether somebody else has it
        cell = self._cell
        cell.ended = [event_log.record.on_actor_ended]  # who is told when this actor has ended, however that came
        cell.context.run(bind_session, event_log.context.session)
        event_log.record.timer = None if timeout is None else cell.system.clock.call_later(timeout, self._time_is_over, timeout)
        if opening is None:
            # In the supervisor's own context, where the session is bound: the agents' are copies of it.
            cell.context.run(self._begin)

    # --- messages ---

    def on_receive(self, message: Any) -> Any:
        reply = self._handle(message)
        return self._flushed(reply) if self._log.waits else reply

    def _handle(self, message: Any) -> Any:
        if self._cell.system.closing:
            return OVER  # what its agents come to now is no end of theirs: a run that is kept is continued from where it stood
        kind, stage = type(message), self._stage
        if kind is Emitted:
            return self._emitted(message.invocation, message.event)
        if kind is AgentEnded:
            return self._ended(message)
        if kind is Cast:
            return stage.cast(message)
        if kind is EmittedNoWait:
            message.shown()
            if message.invocation.cell is None:
                return None  # it comes from a thread that nobody waits for any more
            reply = self._emitted(message.invocation, message.event)
            return reply if inspect.iscoroutine(reply) else None
        if kind is JoinLanes:
            return self._join(message.parent)
        if kind is StateChanged:
            return self._noted(message.invocation, message.step)
        if kind is Crashed:
            return self._crashed(message.invocation, message.error)
        if kind is ReachedSafePoint:
            message.invocation.parked = True
            return self.look_parked()
        if kind is CancelRun:
            return self._cancel(message)
        if kind is CancelCast:
            return stage.cancel_cast(message)
        if kind is CancelChildren:
            return stage.cancel_children(message.parent)
        if kind is Open:
            return self._open()
        msg = f"{self} is given {message!r}, which it does not know."
        raise UnderstudyError(msg, run=self._log.context.run_id, message=message)

    async def _flushed(self, reply: Any) -> Any:
        """The reply, when all that has happened is in the store."""
        try:
            await self._log.flush()
        except CheckpointError as error:
            if inspect.iscoroutine(reply):
                reply.close()
            self._is_lost = True  # what was not written is nobody's: not the session's either. Whoever goes on does so from before it
            return await self._give_up(error)
        return await reply if inspect.iscoroutine(reply) else reply

    # --- the beginning ---

    async def _open(self) -> None:
        """Find out from where the run starts, and let it begin."""
        opening, record = self._opening, self._log.record
        assert opening is not None
        if record.outcome is not None or record.unwanted:
            return  # it was cancelled before, or is about to be
        try:
            await opening(self._log, self._cell.system, self.stop_run)
            self._begin()
        except Exception as problem:  # noqa: BLE001 -- it is raised where the run is first awaited or iterated
            if isinstance(problem, UnderstudyError):
                problem.run = problem.run or self._log.context.run_id
            record.problem = problem
            self._stage.over = True
            stop_actor(self._cell)  # when what follows has ended, however that comes
            if self._log.persistence is not None:
                await self._log.persistence.close()
            if self._log.record.turn is not None:
                await self._log.record.turn.release()

    def _begin(self) -> None:
        self._log.record.is_open = True
        self._stage.open(self._root)

    def stop_run(self, request: CancelRun) -> None:
        """End the run, now or at the next safe point. On the loop."""
        record = self._log.record
        self._is_lost = self._is_lost or request.lost
        record.stream.unblock()
        with contextlib.suppress(ActorDeadError):
            self.actor_ref.tell(request)
        if request.unfinished and not record.is_open:
            record.unwanted = True
            if record.may_be_cut:
                self.actor_ref.cancel()  # it waits for its turn, or for a store; one that was lost would write into what is somebody else's

    def on_drain(self, timeout: float) -> None:
        """The system is about to stop: a run that is kept comes to rest, and somebody else continues it. One that is not goes on to its end."""
        record = self._log.record
        if record.is_open and self._log.persistence is None:
            return
        what = "recover() continues the run" if record.is_open else "the run had not begun: send it again"
        self.stop_run(CancelRun(f"the system is being drained; {what}", "after_tools", _DRAIN_SHARE * timeout, unfinished=True))

    # --- events ---

    def _emitted(self, invocation: Invocation, event: AgentEvent) -> Any:
        """The reply is the event as it was recorded; one that has to wait for room is a coroutine of it. When the run is over already, so is the agent."""
        if self._stage.over:
            return OVER
        stamped = self._log.write(invocation, event)
        if self._pending_stop is not None:
            stop = self.look_parked()
            if stop is not None:
                return stop
        return stamped if self._log.record.stream.has_room else self._wait_for_room(stamped)

    async def _wait_for_room(self, stamped: AgentEvent) -> AgentEvent:
        await self._log.record.stream.wait_for_room()
        return stamped

    def _noted(self, invocation: Invocation, step: str | None) -> Any:
        """An agent's state has changed. Where each step is kept, that is one."""
        if self._stage.over:
            return OVER
        persistence = self._log.persistence
        if persistence is not None:
            invocation.remember()
        if persistence is None or persistence.journal is None:
            return None
        persistence.journal.touch(invocation)
        if step is not None:
            persistence.journal.step(invocation, step, (invocation.steps or {})[step])
        return self._flushed(None)

    def _join(self, parent: Invocation) -> None:
        lanes, parent.lanes = parent.lanes or [], None
        parent.lane.join(lanes)
        persistence = self._log.persistence
        if persistence is not None and persistence.journal is not None:
            persistence.journal.joined(parent, lanes)

    # --- ends of agents ---

    def _ended(self, ended: AgentEnded) -> Any:
        invocation, outcome = ended.invocation, ended.outcome
        if outcome.kind == "cancelled" and outcome.error is None and not invocation.cancelled and not self._stage.over:
            # Not by us: its own code has done it, or whoever ends the loop.
            error = self._log.attributed(asyncio.CancelledError("its task was cancelled, and not by the run"), invocation.node)
            if self._log.persistence is not None:
                return self._give_up(error)  # nothing of that is kept: it goes on from where it stood
            self._log.write(invocation, AgentEvent(error=error))
            outcome = Outcome("failed", error)
        return self._stage.ended(invocation, outcome, ended.transfer)

    def on_child_failure(self, ref: ActorRef[Any], error: BaseException) -> Directive:
        del error
        invocation = self._stage.live.get(ref._cell)
        restart: Directive | None = None if invocation is None else invocation.node.agent.on_failure
        if invocation is None or restart is None or self._stage.over or invocation.cancelled:
            return Stop()  # and its end is told
        self._stage.start_again(invocation, ref)
        return restart

    def _crashed(self, invocation: Invocation, error: BaseException | None) -> Any:
        if invocation.cell is None:
            return None
        if self._stage.over or invocation.cancelled:
            return self._stage.ended(invocation, CANCELLED, None)
        attributed = self._log.attributed(RunCancelled("its actor was stopped") if error is None else error, invocation.node)
        self._log.write(invocation, AgentEvent(error=attributed))
        return self._stage.ended(invocation, Outcome("failed", attributed), None)

    # --- the end, by itself or by an interrupt ---

    def root_ended(self, outcome: Outcome) -> Any:
        """The root's seat is empty: the run has come to its end, or to rest."""
        stage = self._stage
        if outcome.kind == "interrupted" and not stage.over:
            stage.over = True
            if self._log.persistence is not None:
                return self._suspend(self._log.persistence)
            self._rest(None)
        else:
            stage.over = True
            self._log.record.set_outcome(outcome)
        return self.look_over()

    async def _suspend(self, persistence: Any) -> None:
        """Keep the run as it stands, then show what it waits for."""
        problem: Exception | None = None
        event_log = self._log
        ahead = len(event_log.deferred)
        try:
            await persistence.save(event_log.state, "interrupted", self._image(ahead), ahead=ahead)
        except CheckpointError as error:
            problem = error
        self._rest(problem)
        await self._ends(self.look_over())

    def _rest(self, problem: Exception | None) -> None:
        contexts = self._log.release_deferred(problem)
        self._log.record.set_outcome(Outcome("interrupted", problem, contexts=contexts))

    def _image(self, ahead: int) -> dict[str, Any] | None:
        """The run as it is now, but for what is shown after the save. Where each step is in the journal, that holds it already."""
        persistence = self._log.persistence
        return draw(self._log.state, self._root, persistence.segments.stored, ahead=ahead) if persistence is not None and persistence.journal is None else None

    def look_over(self) -> Any:
        """All agents may have ended: then so does the run."""
        if self._stage.over and not self._stage.live and self._log.record.outcome is not None:
            return self._leave()
        return None

    def _leave(self) -> Any:
        context, persistence = self._log.context, self._log.persistence
        hooks = context.hooks
        if (hooks is not None and "on_run_end" in hooks._overridden) or (persistence is not None and persistence.is_held) or self._log.record.turn is not None:
            return self._say_end()
        stop_when_childless(self._cell)  # the last agent's actor may still be at its last step
        return None

    async def _say_end(self) -> None:
        try:
            await self._keep_end()
        finally:
            stop_when_childless(self._cell)

    async def _keep_end(self) -> None:
        context, event_log = self._log.context, self._log
        try:
            if event_log.record.turn is not None:
                await event_log.record.turn.end(event_log.state, keep=not self._is_lost)
        except CheckpointError as error:
            event_log.say(error)
            event_log.record.outcome = Outcome("failed", error)
            self._unfinished = True  # whoever finds it puts its part into the session
        try:
            if event_log.waits:
                await event_log.flush()
            if event_log.persistence is not None:
                await event_log.persistence.finish(unfinished=self._unfinished)
        except CheckpointError:
            logger.exception("The end of run %s could not be kept; it may be found as unfinished.", context.run_id)
        event_log.record.in_hooks = True
        await call_hooks(context.hooks, None, "on_run_end", None, context, event_log.record.make_result())

    async def _ends(self, reply: Any) -> None:
        if inspect.iscoroutine(reply):
            await reply

    # --- the end, by somebody from outside ---

    def _time_is_over(self, timeout: float) -> None:
        record = self._log.record
        record.stream.unblock()
        record.unwanted = True
        with contextlib.suppress(ActorDeadError):
            self.actor_ref.tell(CancelRun(f"the run took longer than its timeout of {timeout:g} s"))
        if record.may_be_cut:
            self.actor_ref.cancel()

    def _cancel(self, request: CancelRun) -> Any:
        stage = self._stage
        if stage.over:
            stage.cut_off()
            return None
        if request.mode == "immediate" or not stage.live:
            return self._end_run(request.reason, unfinished=request.unfinished)
        if self._pending_stop is None:
            self._pending_stop = PendingStop(request, self._cell.system.clock)
            self._log.record.when_finished(self._pending_stop.end)  # however that comes
        self._pending_stop.join(request, self._wish_is_over)
        stage.stopping = True
        self._log.context.stopping = self._pending_stop.mode
        return self.look_parked()

    def _wish_is_over(self) -> None:
        assert self._pending_stop is not None
        with contextlib.suppress(ActorDeadError):
            self.actor_ref.tell(CancelRun(f"{self._pending_stop.reason}; it did not come to a safe point in time", unfinished=self._pending_stop.unfinished))

    def look_parked(self) -> Any:
        """If the run is to end at a safe point, and all its agents are at one: end it."""
        if self._pending_stop is None or self._stage.over:
            return self.look_over()
        for invocation in self._stage.live.values():
            if invocation.busy or not (invocation.parked or invocation.playing):
                return None
        return self._end_run(self._pending_stop.reason, unfinished=self._pending_stop.unfinished)

    def _end_run(self, reason: str, *, unfinished: bool) -> Any:
        """End all that is under way, and keep the run as it stood. It ends when all of it has ended."""
        event_log, stage = self._log, self._stage
        error = RunCancelled(f"run cancelled: {reason}", run=event_log.context.run_id, agent=event_log.record.agent_name)
        error.contexts = stopped_at(event_log.state.root, stage.live.values()) if event_log.state.root is not None and event_log.record.is_open else ()
        persistence = event_log.persistence
        image = None
        kept = persistence is not None and event_log.record.is_open and event_log.state.root is not None and not self._is_lost
        if persistence is not None and kept:
            image = self._image(1)  # that it was cancelled is shown after the save
        stage.end_all()
        self._unfinished = unfinished or (persistence is not None and persistence.recovered and not event_log.record.is_open)
        if kept:
            return self._keep_stopped(persistence, image, error)
        self._say_cancelled(error, None)
        return self.look_over()

    async def _keep_stopped(self, persistence: Any, image: dict[str, Any] | None, error: RunCancelled) -> None:
        problem: Exception | None = None
        try:
            await persistence.save(self._log.state, "drained" if self._unfinished else "cancelled", image, ahead=1)
        except CheckpointError as failure:
            problem = failure
        self._say_cancelled(error, problem)
        await self._ends(self.look_over())

    def _say_cancelled(self, error: RunCancelled, problem: Exception | None) -> None:
        if problem is not None:
            self._log.say(problem)
        self._log.say(error)
        self._log.record.set_outcome(Outcome("cancelled", error, contexts=error.contexts))

    async def _give_up(self, error: Exception) -> Any:
        """What happens cannot be kept any more: the run must not go on as if it were."""
        event_log = self._log
        self._unfinished = True
        self._stage.end_all()
        if event_log.record.outcome is None:
            event_log.say(error)
            event_log.record.set_outcome(Outcome("failed", error))
        await self._ends(self.look_over())
        return OVER
