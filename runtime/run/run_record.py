"""What is known of a run, between its supervisor, which writes it, and its `Run`, which reads it.

Owns: the phase of the run, the events that were shown, the way to the consumer, the outcome, and what is called at the end. All of it lives on the run's
loop. It must never decide anything about the run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from time import time
from typing import TYPE_CHECKING, Final

from ..agent.run_context import RunContext
from ..clock import Timer
from ..data.chat import Message
from ..data.events import AgentEvent, Interrupted
from ..data.outcome import Outcome
from ..data.run_result import RunResult, RunStatus
from ..errors import RunCancelled
from ..log import loggers
from ..quick_init import maker
from ..telemetry.failures import tell_failure
from .phase import Ownership, RunPhase
from .stream import EventStream

if TYPE_CHECKING:
    from ..agent.run_messages import CancelRun
    from ..sessions.turn import Turn

__all__ = ["RunRecord"]

_PENDING: Final = RunPhase.PENDING
_PLAYING: Final = RunPhase.PLAYING
_ENDED: Final = RunPhase.ENDED
_OURS: Final = Ownership.OURS
_new_result: Final = maker(RunResult)
_STATUS: Final = {
    "finished": RunStatus.COMPLETED,
    "exited": RunStatus.COMPLETED,
    "interrupted": RunStatus.INTERRUPTED,
    "failed": RunStatus.FAILED,
    "cancelled": RunStatus.CANCELLED,
}


class RunRecord(EventStream):
    """One run, as it is told. It is the way to its consumer, too: one object for each run."""

    __slots__ = (
        "_awaiting",
        "_events",
        "_waiting",
        "agent_name",
        "cancel_requested",
        "context",
        "end_wanted",
        "ends_first",
        "followed",
        "goes_on",
        "has_begun",
        "is_drained",
        "is_recoverable",
        "last_seq",
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
        self._events: list[AgentEvent] | None = None  # made with the first one
        self.last_seq = 0  # of what was shown, in the parts of the run before this one, too
        self._waiting: tuple[Callable[[], object], ...] = ()  # what is called at the end
        self._awaiting: tuple[asyncio.Future[None], ...] = ()  # what is set then
        self.agent_name = agent_name
        self.said_before: Message | None = None  # the last message of the parts of the run before this one
        self.outcome: Outcome | None = None
        self.turn: Turn | None = None  # in a session, if it belongs to one
        self.phase: RunPhase = _PENDING  # moved by `advance`
        self.has_begun = False  # whether agents have played: the phase does not say so of a run that has ended
        self.ownership: Ownership = _OURS
        self.is_recoverable = False  # whether another process continues it if it is cut short
        self.is_drained = False  # whether it was brought to rest for another process to continue
        self.end_wanted = False  # whether a caller, or its own timeout, has asked it to end, now or at a safe point
        self.goes_on = False  # whether it is being written that it goes on: what cut that short would leave a run that another process continues
        self.ends_first: CancelRun | None = None  # what asks it to end, when it has begun: before its agents have had a turn of the loop
        self.cancel_requested = False  # whether it was asked to end: if it has not begun, it does not begin
        self.problem: Exception | None = None  # why it could not begin
        self.timer: Timer | None = None  # of its timeout
        self.followed: RunResult | None = None  # of a run that was only looked at
        self.written: RunResult | None = None  # as it was written with the last event that was shown
        self.result: RunResult | None = None  # when it has ended, and no actor of it is left
        self.started = 0.0  # when it was started, by the clock on the wall

    # --- for the supervisor ---

    def show(self, event: AgentEvent) -> None:
        """Keep the event, unless it is a piece of one that comes whole later, and let the consumer have it."""
        self.last_seq, self.written = event.seq, None
        if event.delta is None:
            if self._events is None:
                self._events = []
            self._events.append(event)
        if self._open:
            self.put(event)

    def advance(self, phase: RunPhase) -> None:
        """Move on to that phase. A run that is further already stays there."""
        if phase > self.phase:  # noqa: PLR1730 -- max() takes twice the time, for each of a run's phases
            self.phase = phase

    def play(self) -> None:
        """Its agents begin to play."""
        self.advance(_PLAYING)
        self.has_begun = True

    def refuse(self, problem: Exception) -> None:
        """The run cannot begin."""
        self.problem = problem
        self.advance(RunPhase.REFUSED)

    def lose(self) -> None:
        """Events that were not written are dropped, for the session too: a resume starts from the last record. And what they said of the end is not so."""
        self.ownership = Ownership.LOST
        if self.outcome is not None and self.outcome.kind in ("finished", "exited"):
            self.outcome = None

    def set_outcome(self, outcome: Outcome) -> None:
        """How the run has ended. The first outcome counts."""
        if self.outcome is None:
            self.outcome = outcome
            if self._open:
                self.unblock()

    def on_actor_ended(self, _ended: object = None) -> None:
        """The supervisor's actor calls this as the very last, when all under it have ended."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        # In a session, a run has completed only once its turn is written.
        cut = self.outcome is None or (self.turn is not None and self.turn.is_pending and self.outcome.kind in ("finished", "exited"))
        if cut and self.problem is None:
            text = "the actor system was left while the run was under way, or its supervisor has failed (then the log says why)"
            self.is_drained = self.is_recoverable and self.has_begun
            if self.is_drained:
                text += "; recover() continues the run"
            self.outcome = Outcome("cancelled", RunCancelled(text, run=self.context.run_id, agent=self.agent_name))
            seq = self.last_seq + 1
            name, run_id = self.agent_name, self.context.run_id
            self.show(AgentEvent(name, (name,), error=self.outcome.error, seq=seq, timestamp=time(), run_id=run_id))
        if self.problem is None:
            self.result = self.followed or self.written or self.make_result()
            if self.result.error is not None and self.followed is None and self.result.status is RunStatus.FAILED:
                tell_failure(self.context, self.agent_name, self.result)
        if self.context.watch is not None:
            self.context.watch.end(self.result, self.problem, in_session=self.turn is not None, followed=self.followed is not None)
        self.give_up()

    def follow_to(self, result: RunResult) -> None:
        """It was looked at until its end, which is that."""
        self.outcome = Outcome()
        self.followed = result
        self.unblock()

    def give_up(self) -> None:
        """Nothing will come any more: tell those that wait for the end."""
        self.phase = _ENDED
        self.end()
        waiting, self._waiting = self._waiting, ()
        for callback in waiting:
            try:
                callback()
            except Exception:  # noqa: BLE001 -- all the others wait for the end, too
                loggers.run.exception("%r, which was to be called at the end of run %s, raised.", callback, self.context.run_id)
        awaiting, self._awaiting = self._awaiting, ()
        for future in awaiting:
            if not future.done() and not future.get_loop().is_closed():
                future.set_result(None)

    def make_result(self, outcome: Outcome | None = None, more: Sequence[AgentEvent] = ()) -> RunResult:
        """The result, as it is now; or as it will be with that outcome, when `more` events were shown."""
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
            if output is None and final_message is not None and final_message.id != self.context.null_answer:
                output = final_message.text
        if not interrupts and last is not None and type(last.action) is Interrupted:
            interrupts = last.action.contexts
        return _new_result(
            RunStatus.DRAINED if self.is_drained and outcome.kind == "cancelled" else _STATUS[outcome.kind],
            outcome.error if outcome.error is not None and outcome.kind in ("failed", "cancelled", "interrupted") else None,
            final_message,
            output,
            events,
            interrupts,
            self.context.usage,
            self.context.session.to_dict(),
            last.agent_name if last is not None else self.agent_name,
            self.started,
        )

    # --- for the Run ---

    @property
    def events(self) -> tuple[AgentEvent, ...]:
        """What was shown so far, but for the pieces of messages. From any thread."""
        return tuple(self._events or ())

    def check(self) -> None:
        """Raise, if the run could not begin."""
        if self.problem is not None:
            raise self.problem

    @property
    def has_ended(self) -> bool:
        """Whether nothing will come any more."""
        return self.phase is _ENDED

    def when_finished(self, callback: Callable[[], object]) -> None:
        """Call it on the loop when the run has ended; now, if it has."""
        if self.phase is _ENDED:
            callback()
        else:
            self._waiting += (callback,)

    async def wait_ended(self) -> None:
        """Wait until nothing of the run is left, on its loop."""
        if self.phase is _ENDED:
            return
        ended = self.end_of_it()
        try:
            await ended
        except BaseException:
            self.forget(ended)
            raise

    def end_of_it(self) -> asyncio.Future[None]:
        """What is set at the end of a run that is under way. If its waiter is cancelled, it says so by `forget`."""
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaiting += (ended,)
        return ended

    def forget(self, ended: asyncio.Future[None]) -> None:
        """Nothing waits for that future any more."""
        self._awaiting = tuple(one for one in self._awaiting if one is not ended)
