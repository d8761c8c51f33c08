"""How a run is ended before its end: at once, or at the next safe point.

Owns: where it stood then, and the wishes of those who have cancelled it, and what they come to together: what is immediate wins, the earliest
deadline counts. It must never end anything itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..agent.invocation import walk
from ..agent.run_messages import CancelMode, CancelRun
from ..clock import Clock, Timer
from ..data.interrupt import InterruptContext

if TYPE_CHECKING:
    from ..agent.invocation import Assignment, Invocation

__all__ = ["PendingStop", "stopped_at"]


class PendingStop:
    """That a run is to end at a safe point."""

    __slots__ = ("_at", "_clock", "_timer", "mode", "reason", "unfinished")

    def __init__(self, request: CancelRun, clock: Clock) -> None:
        self.mode: CancelMode = request.mode
        self.reason = request.reason
        self.unfinished = request.unfinished
        self._clock = clock
        self._at: float | None = None
        self._timer: Timer | None = None

    def join(self, request: CancelRun, over: Callable[[], Any]) -> None:
        """Somebody else wishes it, too. `over` is called when the earliest deadline of all has come."""
        if request.mode == "after_model":
            self.mode = "after_model"  # which is satisfied at every point at which the other one is
        self.unfinished = self.unfinished and request.unfinished
        if request.timeout is not None:
            at = self._clock.monotonic() + request.timeout
            if self._at is None or at < self._at:
                self.end()
                self._at, self._timer = at, self._clock.call_later(request.timeout, over)

    def end(self) -> None:
        """It has come true, or does not matter any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def stopped_at(root: Assignment, live: Iterable[Invocation]) -> tuple[InterruptContext, ...]:
    """Where a run stood, and goes on from if it is kept: each agent that was at work by itself, and whatever waits for an answer already."""
    contexts: list[InterruptContext] = []
    known = list(walk(root))
    for invocation in known if len(known) > 1 else _in_order(live):
        if invocation.pending:
            contexts += [pending.context for pending in invocation.pending.values()]
        elif invocation.node is not None and not invocation.playing:
            contexts.append(invocation.interrupted("cancelled"))
    return tuple(contexts)


def _in_order(live: Iterable[Invocation]) -> Iterator[Invocation]:
    """Agents at work, those above first: for a run that is kept nowhere does not note who has cast whom."""
    below: dict[str | None, list[Invocation]] = {}
    for invocation in live:
        below.setdefault(None if invocation.assignment.parent is None else invocation.assignment.parent.id, []).append(invocation)
    stack = below.get(None, [])[::-1]
    while stack:
        invocation = stack.pop()
        yield invocation
        stack += below.get(invocation.id, [])[::-1]
