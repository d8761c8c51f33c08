"""The single writer of a run: every event is a message to it.

The supervisor owns the run's phase. It decides how the run starts and ends: normally, by an
interrupt, or by cancellation, immediate or at a safe point. It also saves the run at that point.
`Casting` decides which agents run, and `EventLog` writes the events. Each message is one
transition, which never waits and returns its effects. One method carries these out. Agent code runs
in the agents' own actors, not here.
"""

from __future__ import annotations

import asyncio
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from ..actor.direct import OVER, stop_actor
from ..actor.lifecycle import stop_when_childless
from ..actor.ref import cell_of
from ..actor.supervision import Directive, Stop
from ..agent.invocation import Invocation, InvocationPhase
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
from ..agent.tree import Node
from ..data.events import AgentEvent
from ..data.outcome import CANCELLED, Outcome
from ..durability.kept_outcome import rebuilt
from ..errors import OffbookError, ResumeError, RunCancelled, RunLost, StoreError, ValueRefused
from ..log import loggers
from .cancellation import PendingStop, end_if_wanted, request_stop, stop_run_of, stopped_at
from .casting import Casting, CastingChange, Look
from .effects import LEAVE, NOTHING, REFUSE, SUSPEND, WRITE, CutShort, Effects
from .event_log import EventLog
from .finish import has_last_words, say_last_words
from .opening import Opening
from .phase import Ownership, Promise, RunPhase

if TYPE_CHECKING:
    from ..actor.cell import Cell
    from ..actor.ref import ActorRef

__all__ = ["RunSupervisor"]

_DRAIN_SHARE: Final = 0.9
"""The share of the drain's timeout that a run gets to reach a safe point.

The rest of the time is for saving the runs that are interrupted then.
"""

_PLAYING: Final = RunPhase.PLAYING
_ENDING: Final = RunPhase.ENDING
_KEEPING: Final = RunPhase.KEEPING
_NOT_STORED: Final = (
    "Run %s of %s waits for an answer, but it is not stored and cannot be resumed. Pass the "
    "Runner a store: store=SQLiteStore('runs.db')."
)
_NO_PROMISE: Final = Promise.NONE


class RunSupervisor(Casting):
    """The supervisor of one run."""

    __when_slow__: ClassVar[str] = (
        "What a run calls on the loop must not block: its RunHooks, its history=, its store, "
        "and what consumes its events."
    )

    __slots__ = ("_opening", "_pending_stop", "_promise", "_root")

    def __init__(
        self,
        cell: Cell,
        root: Node,
        event_log: EventLog,
        max_transfers: int,
        timeout: float | None,
        opening: Opening | None,
    ) -> None:
        Casting.__init__(self, cell, event_log, max_transfers)
        self._root = root
        self._opening = opening
        self._pending_stop: PendingStop | None = None
        self._promise: Promise = _NO_PROMISE
        cell.ended = (self._progress.on_actor_ended,)
        if timeout is not None:
            request = CancelRun(f"the run took longer than its timeout of {timeout:g} s")
            self._progress.timer = cell.system.clock.call_later(timeout, self.stop_run, request)
        cell.context.run(self._enter)  # its own context, which the agents' contexts copy

    # --- messages ---

    def on_receive(self, message: Any) -> Any:
        """Return the reply, or a coroutine for it if something must be awaited."""
        if type(message) is Open:
            return self._open()
        effects = self._transition(message)
        if effects.takes_time or (self._log.unshown and not effects.joins_end):
            return self._carry_out(effects)
        return self._leave(effects.reply) if effects.leave else effects.reply

    def _transition(self, message: Any) -> Effects:
        if self._cell.system.closing:
            # The agents end with their system. A stored run continues from its last record.
            return REFUSE
        kind = type(message)
        if kind is Emitted:
            return self._emitted(message.invocation, message.event, is_last=message.is_last)
        if kind is AgentEnded:
            return self._ended(message.invocation, message.outcome, message.transfer)
        if kind is Cast:
            return self._cast(self.cast(message))
        if kind is EmittedNoWait:
            return self._emitted_without_waiting(message)
        if kind is JoinLanes:
            self._join(message.parent)
        elif kind is StateChanged:
            return self._state_changed(message)
        elif kind is Crashed:
            return self._crashed(message.invocation, message.error)
        elif kind is ReachedSafePoint:
            message.invocation.phase = InvocationPhase.PARKED
            return self._look()
        elif kind is CancelRun:
            return self._cancel(message)
        elif kind is CancelCast:
            self.cancel_cast(message)
        elif kind is CancelChildren:
            self.cancel_children(message.parent)
        else:
            msg = (
                f"{self} received the unknown message {message!r}. Only the runtime sends "
                "messages to it."
            )
            raise OffbookError(msg, run=self._log.context.run_id, message=message)
        return NOTHING

    async def _carry_out(self, effects: Effects) -> object:
        """Wait for the store and the consumer."""
        if self._log.waits or effects.write:
            try:
                await self._log.flush(
                    at_end=effects.leave
                    and self._promise is Promise.NONE
                    and self._log.ends_with_step
                )
            except Exception as error:  # noqa: BLE001 -- a store may raise anything; the run ends, and its waiters are notified
                self._progress.lose()
                effects = self._fail_unwritten(error)
        if effects.suspend:
            effects = await self._suspend()
        elif effects.cut_short is not None:
            effects = await self._keep_cut_short(effects.cut_short)
        if effects.wait_for_room:
            await self._progress.wait_for_room()
        reply = self._leave(effects.reply) if effects.leave else effects.reply
        return await reply if type(reply) is CoroutineType else reply

    def _leave(self, reply: object) -> object:
        """End the run. Returns the reply, or a coroutine for it if there are last words."""
        self._progress.advance(_KEEPING)
        if has_last_words(self._log):
            return self._say_last_words(reply)
        self._let_go()
        return reply

    async def _say_last_words(self, reply: object) -> object:
        try:
            await say_last_words(self._log, self._promise)
        finally:
            self._let_go()
        return reply

    def _let_go(self) -> None:
        """Leave nothing of the run to the garbage collector, and stop with the last agent."""
        if self._keeps:  # otherwise the end of each agent call breaks its own
            self.break_cycles()
        stop_when_childless(self._cell)  # the last agent's actor may still be in its last step

    # --- starting ---

    async def _open(self) -> None:
        """Find out where the run starts from, and start it."""
        opening, progress = self._opening, self._progress
        if opening is None or progress.phase is not RunPhase.OPENING or progress.cancel_requested:
            return
        try:
            followed = rebuilt(
                self._root,
                await opening(self._log, self._cell.system, partial(stop_run_of, self._cell)),
            )
            if followed is None:
                self.open(self._root)
            else:
                progress.follow_to(followed)
                stop_actor(self._cell)
        except Exception as problem:  # noqa: BLE001 -- raised where the run is first awaited or iterated
            if isinstance(problem, OffbookError):
                problem.run = problem.run or self._log.context.run_id
            progress.refuse(problem)
            stop_actor(self._cell)  # takes effect once this handler has ended, in every case
            await self._log.give_back()
        # Before the agents have had a turn of the loop.
        if progress.ends_first is not None and progress.has_begun and progress.phase < _ENDING:
            await self._carry_out(self._cancel(progress.ends_first))

    def _enter(self) -> None:
        self._log.enter(self._cell.system)
        if self._opening is None:
            self.open(self._root)
        else:
            self._progress.advance(RunPhase.OPENING)

    # --- reports of agents ---

    def _emitted(
        self, invocation: Invocation, event: AgentEvent, *, is_last: bool = False
    ) -> Effects:
        """Record an event. The reply is the event as recorded."""
        progress = self._progress
        if progress.phase >= _ENDING:
            return REFUSE
        is_last = is_last and progress.phase is _PLAYING
        stamped = self._log.write(invocation, event, is_last=is_last)
        if self._pending_stop is not None and (effects := self._look()) is not NOTHING:
            return effects
        return Effects(stamped, wait_for_room=not progress.has_room, joins_end=is_last)

    def _emitted_without_waiting(self, message: EmittedNoWait) -> Effects:
        message.shown()
        if not message.invocation.is_at_work:
            return NOTHING  # from a thread that was abandoned
        return self._emitted(message.invocation, message.event)

    def _state_changed(self, message: StateChanged) -> Effects:
        """Record a change of an agent's state, which counts as a step of its own."""
        invocation, step = message.invocation, message.step
        if self._progress.phase >= _ENDING:
            return REFUSE
        if (persistence := self._log.persistence) is not None:
            invocation.remember()
        if persistence is None or persistence.journal is None:
            return NOTHING
        persistence.journal.touch(invocation)
        if step is not None:
            persistence.journal.step(invocation, step, (invocation.steps or {})[step])
        return NOTHING if message.with_next_event else WRITE

    def _join(self, parent: Invocation) -> None:
        lanes, parent.lanes = parent.lanes or [], None
        parent.lane.join(lanes)
        persistence = self._log.persistence
        if persistence is not None and persistence.journal is not None:
            persistence.journal.joined(parent, lanes)

    def _ended(self, invocation: Invocation, outcome: Outcome, transfer: str | None) -> Effects:
        if (
            outcome.kind == "cancelled"
            and outcome.error is None
            and not invocation.is_cancelled
            and self._progress.phase < _ENDING
        ):
            # The agent's own code or the program, at the end of its loop, cancelled the task. The
            # run did not.
            error = self._log.attributed(
                asyncio.CancelledError("the agent's task was cancelled by other code than the run"),
                invocation.node,
            )
            if (
                self._progress.is_recoverable
            ):  # not recorded: the run continues from its last record
                self._progress.is_drained = True
                text = (
                    "the agent's task was cancelled by other code than the run, for example at "
                    "the end of its event loop; recover() continues the run"
                )
                return self._give_up(
                    RunCancelled(text, run=self._log.context.run_id, agent=invocation.node.name),
                    "cancelled",
                )
            if self._log.persistence is not None:
                return self._give_up(error)  # not recorded: the run continues from its last record
            self._log.write(invocation, AgentEvent(error=error))
            outcome = Outcome("failed", error)
        return self._cast(self.ended(invocation, outcome, transfer))

    def on_child_failure(self, ref: ActorRef[Any], error: BaseException) -> Directive:
        del error
        invocation = self.playing_on(cell_of(ref))
        restart: Directive | None = None if invocation is None else invocation.node.agent.on_failure
        if (
            invocation is None
            or restart is None
            or self._progress.phase >= _ENDING
            or invocation.is_cancelled
        ):
            return Stop()  # its actor's end is reported
        self.start_again(invocation, ref)
        return restart

    def _crashed(self, invocation: Invocation, error: BaseException | None) -> Effects:
        if not invocation.is_at_work:
            return NOTHING
        if self._progress.phase >= _ENDING or invocation.is_cancelled:
            return self._cast(self.ended(invocation, CANCELLED, None))
        attributed = self._log.attributed(
            RunCancelled("the agent's actor was stopped by other code than the run")
            if error is None
            else error,
            invocation.node,
        )
        self._log.write(invocation, AgentEvent(error=attributed))
        return self._cast(self.ended(invocation, Outcome("failed", attributed), None))

    # --- ending, normally or by an interrupt ---

    def _cast(self, change: CastingChange) -> Effects:
        """Translate a change among the agents into effects for the run."""
        if change is None:
            return NOTHING
        return self._look() if type(change) is Look else self._root_ended(change)  # type: ignore[arg-type]  # it is an outcome

    def _look(self) -> Effects:
        """End the run if it is to end at a safe point and all its agents are at one.

        If it has already ended, leave.
        """
        if self._pending_stop is not None and self._progress.phase < _ENDING:
            return (
                self._end_run(self._pending_stop.reason, unfinished=self._pending_stop.unfinished)
                if self.is_at_safe_point
                else NOTHING
            )
        return self._look_over()

    def _look_over(self) -> Effects:
        progress, none_at_work = self._progress, not self.at_work
        return (
            LEAVE
            if none_at_work
            and _ENDING <= progress.phase < _KEEPING
            and progress.outcome is not None
            else NOTHING
        )

    def _root_ended(self, outcome: Outcome) -> Effects:
        """End or suspend the run after the root's agent call is closed."""
        progress = self._progress
        waits = outcome.kind == "interrupted" and progress.phase < _ENDING
        progress.advance(_ENDING)
        if waits and self._log.persistence is not None:
            return SUSPEND
        if waits:
            context = self._log.context
            loggers.run.warning(
                _NOT_STORED, context.run_id, progress.agent_name, extra={"run_id": context.run_id}
            )
            self._rest(None)
        else:
            progress.set_outcome(outcome)
        return self._look_over()

    async def _suspend(self) -> Effects:
        """Save the run, then show its interrupts."""
        persistence, problem = self._log.persistence, None
        assert persistence is not None
        stamped, contexts = self._log.stamped_deferred()
        ahead = len(stamped)
        try:
            end = self._log.end(Outcome("interrupted", contexts=contexts), stamped)
            await persistence.save(
                self._log, "interrupted", self._log.image(self._root, ahead), ahead=ahead, end=end
            )
        except RunLost as error:
            # Another process has claimed the run, and shows the interrupts itself.
            self._log.deferred = ()
            return self._give_up(error)
        except Exception as error:  # noqa: BLE001 -- see `_carry_out`
            # Another process continues the run, and shows the interrupts with this number.
            if isinstance(error, StoreError) and persistence.journal is not None:
                self._log.deferred = ()
                return self._fail_unwritten(error)
            problem = self._log.explained(error)
        self._rest(problem, stamped)
        return self._look_over()

    def _rest(self, problem: Exception | None, stamped: list[AgentEvent] | None = None) -> None:
        self._progress.set_outcome(
            Outcome("interrupted", problem, contexts=self._log.release_deferred(problem, stamped))
        )

    # --- ending, from outside ---

    def stop_run(self, request: CancelRun) -> None:
        """End the run, now or at the next safe point. On the loop."""
        request_stop(self._cell, self._progress, request)

    def __end_if_wanted__(self) -> asyncio.Future[None] | None:
        return end_if_wanted(self._cell, self._progress)

    def on_drain(self, timeout: float) -> None:
        """Pause a stored run, so that another process continues it when the system stops.

        A run that is not stored runs to its end. A follower, and a run that has not started in this
        process, also count as drained: only a caller or a failure cancels a run.
        """
        progress = self._progress
        begun = progress.has_begun or progress.goes_on
        if begun and self._log.persistence is None:
            return
        if progress.follows:
            what = "the run that it follows continues: attach(run_id) follows it again"
        else:
            what = (
                "recover() continues the run" if begun else "the run had not started: send it again"
            )
        progress.is_drained = not begun
        self.stop_run(
            CancelRun(
                f"the system is being drained; {what}",
                "after_tools",
                _DRAIN_SHARE * timeout,
                unfinished=True,
            )
        )

    def _cancel(self, request: CancelRun) -> Effects:
        progress = self._progress
        if progress.phase >= _ENDING:
            self.cut_off()
            return NOTHING
        if request.lost:
            return self._give_up(
                RunLost(
                    f"run {self._log.context.run_id}: {request.reason}",
                    run=self._log.context.run_id,
                )
            )
        request = request if self._pending_stop is None else self._pending_stop.or_rather(request)
        if request.mode == "immediate" or not self.at_work:
            return self._end_run(request.reason, unfinished=request.unfinished)
        if self._pending_stop is None:
            self._pending_stop = PendingStop(request, self._cell.system.clock)
            progress.when_finished(self._pending_stop.end)  # in every case
        self._pending_stop.join(request, self._pending_stop_is_over)
        progress.advance(RunPhase.STOPPING)
        self._log.context.stopping = self._pending_stop.mode
        return self._look()

    def _pending_stop_is_over(self) -> None:
        if (stop := self._pending_stop) is not None and self._progress.phase < RunPhase.KEEPING:
            self.stop_run(
                CancelRun(
                    f"{stop.reason}; it did not come to a safe point in time",
                    unfinished=stop.unfinished,
                )
            )

    def _end_run(self, reason: str, *, unfinished: bool) -> Effects:
        """End all running work, and save the run as it was.

        The run ends when all of that work has ended.
        """
        log, progress = self._log, self._progress
        root, persistence, begun = log.root, log.persistence, progress.has_begun
        error = RunCancelled(
            f"run cancelled: {reason}", run=log.context.run_id, agent=progress.agent_name
        )
        error.contexts = (
            stopped_at(root, self.live(), self._progress.context.checkpoint_id)
            if begun and root is not None
            else ()
        )
        kept = (
            persistence is not None
            and begun
            and root is not None
            and progress.ownership is Ownership.OURS
        )
        # The cancellation is shown after the save.
        image = self._log.image(self._root, 1) if kept else None
        progress.advance(_ENDING)
        if unfinished or (persistence is not None and persistence.recovered and not begun):
            self._promise = Promise.UNFINISHED
        log.context.continues_elsewhere = kept and self._promise is Promise.UNFINISHED
        self.end_all()
        if kept:
            return Effects(cut_short=CutShort(error, image))
        self._say_cancelled(error, None)
        return self._look_over()

    async def _keep_cut_short(self, cut: CutShort) -> Effects:
        persistence, progress, problem = self._log.persistence, self._progress, None
        assert persistence is not None
        kind = "drained" if self._promise is Promise.UNFINISHED else "cancelled"
        try:
            await persistence.save(
                self._log,
                kind,
                cut.image,
                ahead=1,
                end=self._log.end(Outcome("cancelled", cut.error), packed=False),
            )
            progress.is_drained = kind == "drained"
        except RunLost as failure:
            return self._give_up(failure)
        except Exception as failure:  # noqa: BLE001 -- see `_carry_out`
            problem = self._log.explained(failure)
        self._say_cancelled(cut.error, problem)
        return self._look_over()

    def _say_cancelled(self, error: RunCancelled, problem: Exception | None) -> None:
        if problem is not None:
            self._log.say(problem)
        self._log.say(error)
        self._progress.set_outcome(Outcome("cancelled", error, contexts=error.contexts))

    def _fail_unwritten(self, error: Exception) -> Effects:
        """End a run whose step could not be written.

        If the step can never be written, the run fails. Otherwise the step is retried, a limited
        number of times.
        """
        log, persistence = self._log, self._log.persistence
        if isinstance(error, ResumeError) or persistence is None:
            return self._give_up(error)
        if not isinstance(error, ValueRefused):
            persistence.not_written(log, log.unwritten, error)
            return self._give_up(error)
        loggers.run.error(
            "Run %s has failed, because %s cannot be written: %s",
            log.context.run_id,
            log.unwritten,
            error,
            extra={"run_id": log.context.run_id},
        )
        self._progress.advance(_ENDING)
        self.end_all()
        log.say(error)
        self._progress.set_outcome(Outcome("failed", error))
        return Effects(OVER, leave=self._look_over().leave)

    def _give_up(
        self, error: Exception, kind: Literal["failed", "cancelled"] = "failed"
    ) -> Effects:
        """End the run in this process, because its progress can no longer be stored."""
        self._promise = Promise.UNFINISHED
        self._progress.advance(_ENDING)
        self._log.context.continues_elsewhere = True
        self.end_all()
        if self._progress.outcome is None:
            self._log.say(error)
            self._progress.set_outcome(Outcome(kind, error))
        return Effects(OVER, leave=self._look_over().leave)
