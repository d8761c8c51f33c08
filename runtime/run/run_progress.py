"""The known facts of a run: written by its supervisor, read by its `Run`.

The record holds the run's phase, the events already shown, the buffer to the consumer, the outcome,
and the callbacks for the end. All of it lives on the run's loop. The record makes no decisions
about the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import time
from typing import TYPE_CHECKING, Final, Protocol

from ..agent.run_context import RunContext
from ..clock import Timer
from ..data.chat import Message
from ..data.events import AgentEvent, Interrupted
from ..data.outcome import Outcome
from ..data.run_result import RunResult, RunStatus
from ..errors import RunCancelled
from ..log import loggers
from ..telemetry.failures import tell_failure
from .phase import Ownership, RunPhase
from .stream import EventStream

if TYPE_CHECKING:
    from ..agent.run_messages import CancelRun
    from ..sessions.turn import Turn

__all__ = ["RunProgress"]

_PENDING: Final = RunPhase.PENDING
_PLAYING: Final = RunPhase.PLAYING
_ENDED: Final = RunPhase.ENDED
_OURS: Final = Ownership.OURS
_STATUS: Final = {
    "finished": RunStatus.COMPLETED,
    "exited": RunStatus.COMPLETED,
    "interrupted": RunStatus.INTERRUPTED,
    "failed": RunStatus.FAILED,
    "cancelled": RunStatus.CANCELLED,
}


class ShowsElsewhere(Protocol):
    """The receiver that shows a run to its followers in this process."""

    def known_as(self, run_id: str) -> None: ...
    def show(self, event: AgentEvent) -> None: ...
    def end(self) -> None: ...


class RunProgress(EventStream):
    """The progress of one run, and its event stream to the consumer, in one object."""

    __slots__ = (
        "_accepting",
        "_awaiting",
        "_events",
        "_waiting",
        "agent_name",
        "begun_before",
        "cancel_requested",
        "context",
        "end_wanted",
        "ends_first",
        "followed",
        "follows",
        "goes_on",
        "has_begun",
        "is_accepted",
        "is_drained",
        "is_recoverable",
        "is_told",
        "last_seq",
        "live",
        "outcome",
        "ownership",
        "phase",
        "problem",
        "result",
        "said_before",
        "started",
        "timer",
        "turn",
        "written",
    )

    def __init__(self, context: RunContext, agent_name: str, event_buffer: int) -> None:
        EventStream.__init__(self, event_buffer)
        self.context = context
        self._events: list[AgentEvent] | None = None  # created with the first event
        self.last_seq = 0  # number of the last event shown, counting earlier parts of the run
        self._waiting: tuple[Callable[[], object], ...] = ()  # called at the end
        self._accepting: tuple[asyncio.Future[None], ...] = ()  # set once the run is accepted
        self._awaiting: tuple[asyncio.Future[None], ...] = ()  # set at the end
        self.agent_name = agent_name
        self.said_before: Message | None = None  # last message of the earlier parts of the run
        self.outcome: Outcome | None = None
        self.turn: Turn | None = None  # its turn, if it belongs to a session
        self.phase: RunPhase = _PENDING  # changed only by `advance`
        self.begun_before = False  # True if it continues an earlier run
        # True once agents have run; the phase of an ended run no longer shows it.
        self.has_begun = False
        self.ownership: Ownership = _OURS
        self.is_recoverable = False  # True if another process continues it after a crash
        self.is_drained = False  # True if it was paused for another process to continue
        # True once a caller or the run's timeout has asked it to end, now or at a safe point.
        self.end_wanted = False
        # True while the store records that the run continues. Interrupting that write would leave a
        # run for another process to continue.
        self.goes_on = False
        self.ends_first: CancelRun | None = (
            # The request that ends the run right after its start, before its agents get a turn.
            None
        )
        # True if it was asked to end; a run that has not started then never starts.
        self.cancel_requested = False
        self.problem: Exception | None = None  # why it could not start
        self.is_told: bool | None = (
            # True if the problem was raised where the run is used. False if the run was dropped, so
            # that it never will be.
            None
        )
        self.timer: Timer | None = None  # for the run's timeout
        self.followed: RunResult | None = None  # result of a run that was only followed
        self.follows = False  # True if it only follows another run
        self.is_accepted = False  # True once it has started, or every process can see that it will
        # For its followers in this process; None if it is not stored.
        self.live: ShowsElsewhere | None = None
        self.written: RunResult | None = None  # result as written with the last event shown
        self.result: RunResult | None = None  # set once the run and all its actors have ended
        self.started = 0.0  # wall-clock time of the start

    # --- for the supervisor ---

    def show(self, event: AgentEvent) -> None:
        """Record the event and pass it to the consumer.

        Deltas are not recorded, because their whole message comes later.
        """
        self.last_seq, self.written = event.seq, None
        if event.delta is None:
            if self._events is None:
                self._events = []
            self._events.append(event)
        if self.live is not None:
            self.live.show(event)
            if event.delta is not None and event.error is None and self.merge(event):
                return
        if self._open:
            self.put(event)

    def accept(self) -> None:
        """Note that the run has started, or that its wait for a turn is stored."""
        self.is_accepted = True
        self._release()

    def advance(self, phase: RunPhase) -> None:
        """Move on to `phase`, unless the run is already further."""
        if phase > self.phase:  # noqa: PLR1730 -- max() doubles the time, in each phase of every run
            self.phase = phase

    def play(self) -> None:
        """Note that the agents start to run."""
        self.advance(_PLAYING)
        self.has_begun = True
        if not self.is_accepted:
            self.accept()

    def refuse(self, problem: Exception) -> None:
        """Note that the run cannot start."""
        self.problem = problem
        self.advance(RunPhase.REFUSED)
        if self.is_told is False:
            self.tell_problem()

    def lose(self) -> None:
        """Drop the events that were not written, for the session too.

        A resume starts from the last record, so an end that these events report does not count.
        """
        self.ownership = Ownership.LOST
        if self.outcome is not None and self.outcome.kind in ("finished", "exited"):
            self.outcome = None

    def set_outcome(self, outcome: Outcome) -> None:
        """Record how the run has ended. The first outcome counts."""
        if self.outcome is None:
            self.outcome = outcome
            if self._open:
                self.unblock()

    def on_actor_ended(self, _ended: object = None) -> None:
        """Finish. The supervisor's actor calls this last, after all its children."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        # In a session, a run is completed only once its turn is written.
        cut = self.outcome is None or (
            self.turn is not None
            and self.turn.is_pending
            and self.outcome.kind in ("finished", "exited")
        )
        if cut and self.problem is None and self.followed is None:
            text = (
                "the event loop or the actor system ended while the run was running (the log "
                "shows an error that caused it)"
            )
            self.is_drained = self.is_recoverable and (self.has_begun or self.begun_before)
            if self.is_drained:
                text += "; recover() continues the run"
            elif not self.has_begun:
                text += "; the run had not started: send it again"
            self.outcome = Outcome(
                "cancelled", RunCancelled(text, run=self.context.run_id, agent=self.agent_name)
            )
            seq = self.last_seq + 1
            name, run_id = self.agent_name, self.context.run_id
            if not self.follows:
                self.show(
                    AgentEvent(
                        name,
                        (name,),
                        error=self.outcome.error,
                        seq=seq,
                        timestamp=time(),
                        run_id=run_id,
                    )
                )
        if self.problem is None:
            self.result = self.followed or self.written or self.make_result()
            if (
                self.result.error is not None
                and not self.follows
                and self.result.status is RunStatus.FAILED
            ):
                tell_failure(self.context, self.agent_name, self.result)
        if self.context.watch is not None:
            self.context.watch.end(
                self.result,
                self.problem,
                in_session=self.turn is not None and not self.follows,
                followed=self.follows,
            )
        self.set_ended()

    def follow_to(self, result: RunResult) -> None:
        """End a follower with the result of the run that it followed."""
        self.outcome = Outcome()
        self.followed = result
        self.unblock()

    def set_ended(self) -> None:
        """Mark the run as ended, and notify everything that waits for the end."""
        self.phase = _ENDED
        self.end()
        live, self.live = self.live, None  # each holds the other
        if live is not None:
            live.end()
        self._release()
        waiting, self._waiting = self._waiting, ()
        for callback in waiting:
            try:
                callback()
            except Exception:  # noqa: BLE001 -- the other callbacks must run too
                loggers.run.exception(
                    "The callback %r at the end of run %s raised.",
                    callback,
                    self.context.run_id,
                )
        awaiting, self._awaiting = self._awaiting, ()
        for future in awaiting:
            if not future.done() and not future.get_loop().is_closed():
                future.set_result(None)

    def make_result(
        self, outcome: Outcome | None = None, more: Sequence[AgentEvent] = ()
    ) -> RunResult:
        """Return the current result, or the result with `outcome` and the events `more`."""
        outcome = outcome or self.outcome or Outcome()
        events = tuple(self._events or ()) if not more else (*(self._events or ()), *more)
        final_message, output, interrupts = self.said_before, None, outcome.contexts
        for event in reversed(events):
            if event.message is not None:
                final_message, output = event.message, event.custom_output
                break
        last = events[-1] if events else None
        if output is None:
            output = last.custom_output if last is not None and last.message is None else None
            if (
                output is None
                and final_message is not None
                and final_message.id != self.context.null_answer
            ):
                output = final_message.text
        if not interrupts and last is not None and type(last.action) is Interrupted:
            interrupts = last.action.contexts
        return RunResult(
            RunStatus.DRAINED
            if self.is_drained and outcome.kind == "cancelled"
            else _STATUS[outcome.kind],
            outcome.error
            if outcome.error is not None and outcome.kind in ("failed", "cancelled", "interrupted")
            else None,
            final_message,
            output,
            events,
            interrupts,
            self.context.usage,
            self.context.session.to_dict(),
            last.agent_name if last is not None else self.agent_name,
            self.started,
            self.context.run_id,
        )

    # --- for the Run ---

    @property
    def events(self) -> tuple[AgentEvent, ...]:
        """The events shown so far, without deltas. From any thread."""
        return tuple(self._events or ())

    def check(self) -> None:
        """Raise if the run could not start."""
        if self.problem is not None:
            self.is_told = True
            raise self.problem

    def leave(self) -> None:
        """Note that the `Run` was dropped, so nobody reads its events or its start error."""
        self.discard()
        if self.problem is not None:
            self.tell_problem()
        elif self.is_told is None:
            self.is_told = False

    def tell_problem(self) -> None:
        """Log why the run could not start, unless the caller received the error."""
        if not self.is_told:
            self.is_told = True
            loggers.run.error(
                "Run %s of %r was not started, and its caller has dropped it: %s",
                self.context.run_id,
                self.agent_name,
                self.problem,
            )

    @property
    def has_ended(self) -> bool:
        """True if the run has fully ended."""
        return self.phase is _ENDED

    def when_finished(self, callback: Callable[[], object]) -> None:
        """Call `callback` on the loop when the run has ended; now, if it has."""
        if self.phase is _ENDED:
            callback()
        else:
            self._waiting += (callback,)

    async def wait_ended(self) -> None:
        """Wait on the run's loop until the run has fully ended."""
        if self.phase is _ENDED:
            return
        ended = self.end_of_it()
        try:
            await ended
        except BaseException:
            self.forget(ended)
            raise

    async def wait_accepted(self) -> None:
        """Wait on the run's loop until the run is accepted or has ended."""
        if not self.is_accepted and self.phase is not _ENDED:
            accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._accepting += (accepted,)
            try:
                await accepted
            finally:
                self._accepting = tuple(one for one in self._accepting if one is not accepted)

    def _release(self) -> None:
        """Wake the callers that wait for the start."""
        for accepted in self._accepting:
            if not accepted.done() and not accepted.get_loop().is_closed():
                accepted.set_result(None)

    def end_of_it(self) -> asyncio.Future[None]:
        """Return a future that is set at the end of the run.

        A cancelled waiter must pass the future to `forget`.
        """
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaiting += (ended,)
        return ended

    def forget(self, ended: asyncio.Future[None]) -> None:
        """Remove a future that nobody waits for any longer."""
        self._awaiting = tuple(one for one in self._awaiting if one is not ended)
