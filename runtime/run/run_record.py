"""What is known of a run, between its supervisor, which writes it, and its `Run`, which reads it.

Owns: the events that were shown, the way to the consumer, the outcome, and who waits for the end. All of it lives on the run's loop.
"""

from __future__ import annotations

from collections.abc import Callable
from time import time
from typing import TYPE_CHECKING, Final

from ..agent.run_context import RunContext
from ..clock import Timer
from ..data.chat import Message
from ..data.events import AgentEvent, Interrupted
from ..data.outcome import Outcome
from ..data.run_result import RunResult, RunStatus
from ..errors import RunCancelled
from ..log import logger
from .stream import EventStream

if TYPE_CHECKING:
    from ..sessions.turn import Turn

__all__ = ["RunRecord"]

_STATUS: Final = {
    "finished": RunStatus.COMPLETED,
    "exited": RunStatus.COMPLETED,
    "interrupted": RunStatus.INTERRUPTED,
    "failed": RunStatus.FAILED,
    "cancelled": RunStatus.CANCELLED,
}


class RunRecord:
    """One run, as it is told."""

    __slots__ = (
        "_context",
        "_events",
        "_waiting",
        "agent_name",
        "has_ended",
        "in_hooks",
        "is_open",
        "last_seq",
        "outcome",
        "problem",
        "result",
        "said_before",
        "stream",
        "timer",
        "turn",
        "unwanted",
    )

    def __init__(self, context: RunContext, agent_name: str, event_buffer: int) -> None:
        self._context = context
        self._events: list[AgentEvent] = []
        self.last_seq = 0  # of what was shown, in the parts of the run before this one, too
        self._waiting: list[Callable[[], object]] = []
        self.agent_name = agent_name
        self.stream = EventStream(event_buffer)
        self.said_before: Message | None = None  # the last message of the parts of the run before this one
        self.outcome: Outcome | None = None
        self.turn: Turn | None = None  # in a session, if it has to do with one
        self.problem: Exception | None = None  # why it could not begin
        self.is_open = False  # whether it has begun
        self.unwanted = False  # whether it is to end before it begins, if it has not begun
        self.in_hooks = False  # whether the supervisor is in a hook at the end, which may go on for ever
        self.has_ended = False  # whether nothing will come any more
        self.timer: Timer | None = None  # of its timeout
        self.result: RunResult | None = None  # when it has ended, and no actor of it is left

    # --- for the supervisor ---

    def show(self, event: AgentEvent) -> None:
        """Keep the event, unless it is a piece of one that comes whole later, and let the consumer have it."""
        self.last_seq = event.seq
        if event.delta is None:
            self._events.append(event)
        self.stream.put(event)

    def set_outcome(self, outcome: Outcome) -> None:
        """How the run has ended. The first to say so is right."""
        if self.outcome is None:
            self.outcome = outcome
            self.stream.unblock()

    def on_actor_ended(self, _ended: object = None) -> None:
        """The supervisor's actor has ended, and all under it: called by it, in place of a future's."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        cut = self.outcome is None or (self.turn is not None and self.turn.is_pending and self.outcome.kind in ("finished", "exited"))
        if cut and self.problem is None:
            text = "the actor system was left while the run was under way, or its supervisor has failed (then the log says why)"
            self.outcome = Outcome("cancelled", RunCancelled(text, run=self._context.run_id, agent=self.agent_name))
            seq = self.last_seq + 1
            name, run_id = self.agent_name, self._context.run_id
            self.show(AgentEvent(name, (name,), error=self.outcome.error, seq=seq, timestamp=time(), run_id=run_id))
        if self.problem is None:
            self.result = self.make_result()
        self.give_up()

    def give_up(self) -> None:
        """Nothing will come any more: wake whoever waits."""
        self.has_ended = True
        self.stream.end()
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            try:
                callback()
            except Exception:  # noqa: BLE001 -- all the others wait for the end, too
                logger.exception("%r, which was to be called at the end of run %s, raised.", callback, self._context.run_id)

    def make_result(self) -> RunResult:
        """The result, as it is now."""
        outcome = self.outcome or Outcome()
        final_message, output, interrupts = self.said_before, None, outcome.contexts
        for event in reversed(self._events):
            if event.message is not None:
                final_message, output = event.message, event.custom_output
                break
        last = self._events[-1] if self._events else None
        if output is None:
            output = last.custom_output if last is not None and last.message is None else None
            if output is None and final_message is not None and final_message.id != self._context.null_answer:
                output = final_message.text
        if not interrupts and last is not None and type(last.action) is Interrupted:
            interrupts = last.action.contexts
        return RunResult(
            _STATUS[outcome.kind],
            outcome.error if outcome.kind in ("failed", "cancelled", "interrupted") else None,
            final_message,
            output,
            tuple(self._events),
            interrupts,
            self._context.usage,
            self._context.session.to_dict(),
            last.agent_name if last is not None else self.agent_name,
        )

    # --- for the Run ---

    @property
    def may_be_cut(self) -> bool:
        """Whether what the supervisor is at may be cancelled: not what keeps the run."""
        return self.in_hooks or not (self.is_open or self.outcome is not None or self.problem is not None)

    def when_finished(self, callback: Callable[[], object]) -> None:
        """Call it on the loop when the run has ended; now, if it has."""
        if self.has_ended:
            callback()
        else:
            self._waiting.append(callback)

    def forget(self, callback: Callable[[], object]) -> None:
        """Do not call it."""
        if callback in self._waiting:
            self._waiting.remove(callback)
