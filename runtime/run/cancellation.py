"""How a run is ended before its end: at once, or at the next safe point.

Owns: how a request to end reaches a run, what several requests come to together (what is immediate wins, the earliest deadline counts), and where the run
was then. It must never end an agent itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..agent.invocation import walk
from ..agent.run_messages import CancelMode, CancelRun
from ..clock import Clock, Timer
from ..data.interrupt import InterruptContext
from ..errors import ActorDeadError
from .phase import Ownership, RunPhase
from .run_record import RunRecord

if TYPE_CHECKING:
    import asyncio

    from ..actor.cell import Cell
    from ..agent.invocation import Assignment, Invocation

__all__ = ["PendingStop", "end_if_wanted", "request_stop", "stop_run_of", "stopped_at"]


def request_stop(supervisor: Cell | None, record: RunRecord, request: CancelRun) -> None:
    """Ask a run to end. To be called on its loop; without a supervisor, it has not begun, and will not."""
    if request.lost:
        record.ownership = Ownership.LOST
    record.unblock()  # an agent that waits for room would come to nothing else
    if not request.lost and not request.unfinished:
        record.end_wanted = True
    begins_first = (record.goes_on or request.begins_first) and record.phase < RunPhase.PLAYING and not request.lost
    if begins_first and record.phase is RunPhase.OPENING and _comes_before(request, record.ends_first):
        record.ends_first = request
        return
    if not begins_first and (request.mode == "immediate" or record.phase < RunPhase.PLAYING):
        record.cancel_requested = True
    if request.mode == "immediate" and record.has_begun:
        record.context.stopping = "immediate"  # agents begin nothing more: the supervisor may be writing, and hear of this later than they go on
    if supervisor is None:
        return
    with contextlib.suppress(ActorDeadError):
        supervisor.own_ref().tell(request)
    # A hook at the end belongs to a run that has ended: only its own caller cuts that short.
    if record.phase.is_cuttable and not begins_first and not (record.phase is RunPhase.HOOKS and (request.unfinished or request.begins_first)):
        with contextlib.suppress(ActorDeadError):
            supervisor.own_ref().cancel()


def _comes_before(request: CancelRun, other: CancelRun | None) -> bool:
    return other is None or (request.mode == "immediate" and (other.unfinished or not request.unfinished))


def end_if_wanted(supervisor: Cell, record: RunRecord) -> asyncio.Future[None] | None:
    """Its system is about to be left: a run that is kept and that its caller has asked to end does so now, for no other process is to continue it.

    Returns what is set when it has ended; None if there is nothing to wait for.
    """
    if not record.end_wanted or not record.context.keeps or record.has_ended:
        return None
    if record.phase < RunPhase.ENDING and not record.cancel_requested:
        request_stop(supervisor, record, CancelRun("its system was left before it came to a safe point"))
    return record.end_of_it()


def stop_run_of(cell: Cell, request: CancelRun) -> None:
    """The same for what may outlive the run, as its lease does: a cell lets go of its actor at the end, so that none of them keeps the others alive."""
    supervisor: Any = cell.actor
    if supervisor is not None:
        supervisor.stop_run(request)


class PendingStop:
    """A run that is to end at a safe point."""

    __slots__ = ("_at", "_clock", "_timer", "mode", "reason", "unfinished")

    def __init__(self, request: CancelRun, clock: Clock) -> None:
        self.mode: CancelMode = request.mode
        self.reason = request.reason
        self.unfinished = request.unfinished
        self._clock = clock
        self._at: float | None = None
        self._timer: Timer | None = None

    def join(self, request: CancelRun, over: Callable[[], object]) -> None:
        """Another request arrives. `over` is called when the earliest deadline of all has come."""
        if request.mode == "after_model":
            self.mode = "after_model"  # the stricter one: its safe points include those of after_tools
        self.unfinished = self.unfinished and request.unfinished
        if request.timeout is not None:
            at = self._clock.monotonic() + request.timeout
            if self._at is None or at < self._at:
                self.end()
                self._at, self._timer = at, self._clock.call_later(request.timeout, over)

    def or_rather(self, request: CancelRun) -> CancelRun:
        """What a caller wanted to end ends, also if its consumer is cancelled before it has come to a safe point: no process is to continue it."""
        return CancelRun(self.reason, request.mode, request.timeout) if request.unfinished and not self.unfinished else request

    def end(self) -> None:
        """The run has come to a safe point, or has ended otherwise."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def stopped_at(root: Assignment, live: Iterable[Invocation]) -> tuple[InterruptContext, ...]:
    """Where a run was, and continues if it is kept: each agent that was itself at work, and everything that waits for an answer already."""
    contexts: list[InterruptContext] = []
    known = list(walk(root))
    for invocation in known if len(known) > 1 else _in_order(live):
        if invocation.pending:
            contexts += [pending.context for pending in invocation.pending.values()]
        elif invocation.node is not None and not invocation.playing:
            contexts.append(invocation.interrupted("cancelled"))
    return tuple(contexts)


def _in_order(live: Iterable[Invocation]) -> Iterator[Invocation]:
    """Agents at work, casters first: a run that is kept nowhere does not note what each has cast."""
    below: dict[str | None, list[Invocation]] = {}
    for invocation in live:
        below.setdefault(None if invocation.assignment.parent is None else invocation.assignment.parent.id, []).append(invocation)
    stack = below.get(None, [])[::-1]
    while stack:
        invocation = stack.pop()
        yield invocation
        stack += below.get(invocation.id, [])[::-1]
