"""What one run has come to, as data: what an image is made of, and is read into.

Owns: the counters, the input, the lane outside of any Parallel, and the root of the tree of invocations. The run's supervisor writes it. It must never
know how any of it is stored, or shown.
"""

from __future__ import annotations

from ..data.agent_input import AgentInput
from .history import Lane
from .invocation import Assignment
from .run_context import RunContext

__all__ = ["RunState"]


class RunState:
    """One run, as data."""

    __slots__ = ("begins_with", "context", "input", "lane", "new_input_count", "root", "seq", "session_records_before", "transfers")

    def __init__(self, context: RunContext, run_input: AgentInput) -> None:
        self.context = context
        self.input = run_input
        self.lane = Lane()  # what is said outside of any Parallel
        self.root: Assignment | None = None  # None until an agent plays
        self.seq = 0  # of the last event that the consumer sees
        self.transfers = 0
        self.begins_with: str | None = None  # the agent that plays first; None: the root
        self.new_input_count: int | None = None  # how many messages of the input, at its end, came in this turn of a session; None outside of one
        self.session_records_before: int | None = None  # how many records the session held before that turn
