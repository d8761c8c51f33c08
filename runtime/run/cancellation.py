"""Ending a run early: immediately, or at the next safe point.

The module delivers a request to a run, combines several requests (immediate wins, the earliest
deadline applies), and reports where the run stopped. The supervisor ends the agents.
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
from .run_progress import RunProgress

if TYPE_CHECKING:
    import asyncio

    from ..actor.cell import Cell
    from ..agent.invocation import AgentCall, Invocation

__all__ = ["PendingStop", "end_if_wanted", "request_stop", "stop_run_of", "stopped_at"]


def request_stop(supervisor: Cell | None, progress: RunProgress, request: CancelRun) -> None:
    """Ask a run to end. Call it on the run's loop.

    A run without a supervisor has not started, and will not.
    """
    if request.lost:
        progress.ownership = Ownership.LOST
    progress.unblock()  # an agent that waits for room in the buffer would reach nothing else
    if not request.lost and not request.unfinished:
        progress.end_wanted = True
    begins_first = (
        (progress.goes_on or request.begins_first)
        and progress.phase < RunPhase.PLAYING
        and not request.lost
    )
    if (
        begins_first
        and progress.phase is RunPhase.OPENING
        and _comes_before(request, progress.ends_first)
    ):
        progress.ends_first = request
        return
    if not begins_first and (request.mode == "immediate" or progress.phase < RunPhase.PLAYING):
        progress.cancel_requested = True
    if request.mode == "immediate" and progress.has_begun:
        # Agents start nothing more. The supervisor may be busy writing, and would learn of the
        # request too late.
        progress.context.stopping = "immediate"
    if supervisor is None:
        return
    with contextlib.suppress(ActorDeadError):
        supervisor.own_ref().tell(request)
    # A hook at the end belongs to a run that has ended: only its own caller cuts that short.
    if (
        progress.phase.is_cuttable
        and not begins_first
        and not (progress.phase is RunPhase.HOOKS and (request.unfinished or request.begins_first))
    ):
        with contextlib.suppress(ActorDeadError):
            supervisor.own_ref().cancel()


def _comes_before(request: CancelRun, other: CancelRun | None) -> bool:
    return other is None or (
        request.mode == "immediate" and (other.unfinished or not request.unfinished)
    )


def end_if_wanted(supervisor: Cell, progress: RunProgress) -> asyncio.Future[None] | None:
    """End a stored run that its caller asked to end, before its system stops.

    No other process may continue it. Returns a future that is set when the run has ended; None if
    there is nothing to wait for.
    """
    if not progress.end_wanted or not progress.context.keeps or progress.has_ended:
        return None
    if progress.phase < RunPhase.ENDING and not progress.cancel_requested:
        request_stop(
            supervisor, progress, CancelRun("its system was left before it came to a safe point")
        )
    return progress.end_of_it()


def stop_run_of(cell: Cell, request: CancelRun) -> None:
    """Ask a run to end, on behalf of something that may outlive it, such as its lease.

    A cell drops its actor at the end, so that the two do not keep each other alive.
    """
    supervisor: Any = cell.actor
    if supervisor is not None:
        supervisor.stop_run(request)


class PendingStop:
    """A run that will end at a safe point."""

    __slots__ = ("_at", "_clock", "_timer", "mode", "reason", "unfinished")

    def __init__(self, request: CancelRun, clock: Clock) -> None:
        self.mode: CancelMode = request.mode
        self.reason = request.reason
        self.unfinished = request.unfinished
        self._clock = clock
        self._at: float | None = None
        self._timer: Timer | None = None

    def join(self, request: CancelRun, over: Callable[[], object]) -> None:
        """Add another request. `over` is called at the earliest deadline of all."""
        if request.mode == "after_model":
            # The stricter one: its safe points include those of after_tools.
            self.mode = "after_model"
        self.unfinished = self.unfinished and request.unfinished
        if request.timeout is not None:
            at = self._clock.monotonic() + request.timeout
            if self._at is None or at < self._at:
                self.end()
                self._at, self._timer = at, self._clock.call_later(request.timeout, over)

    def or_rather(self, request: CancelRun) -> CancelRun:
        """Combine the pending request with a new one.

        A run that a caller ended stays ended, even if its consumer is cancelled before the safe
        point: no process may continue it.
        """
        return (
            CancelRun(self.reason, request.mode, request.timeout)
            if request.unfinished and not self.unfinished
            else request
        )

    def end(self) -> None:
        """Cancel the deadline, because the run reached a safe point or has ended."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def stopped_at(
    root: AgentCall, live: Iterable[Invocation], checkpoint_id: str | None
) -> tuple[InterruptContext, ...]:
    """Return where a run stopped, and continues if it is stored.

    The result lists each agent that was running itself, and everything that already waits for an
    answer.
    """
    contexts: list[InterruptContext] = []
    known = list(walk(root))
    for invocation in known if len(known) > 1 else _in_order(live):
        if invocation.pending:
            contexts += [pending.context for pending in invocation.pending.values()]
        elif invocation.node is not None and not invocation.playing:
            contexts.append(invocation.interrupted("cancelled", checkpoint_id))
    return tuple(contexts)


def _in_order(live: Iterable[Invocation]) -> Iterator[Invocation]:
    """Yield the running agents, callers first.

    A run that is not stored does not record which agents each has called.
    """
    below: dict[str | None, list[Invocation]] = {}
    for invocation in live:
        below.setdefault(
            None if invocation.agent_call.parent is None else invocation.agent_call.parent.id, []
        ).append(invocation)
    stack = below.get(None, [])[::-1]
    while stack:
        invocation = stack.pop()
        yield invocation
        stack += below.get(invocation.id, [])[::-1]
