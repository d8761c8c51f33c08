"""The current state of one run, as data: checkpoints are made of it and read into it.

The run's supervisor writes it. It does not depend on how it is stored or shown.
"""

from __future__ import annotations

from ..data.agent_input import AgentInput
from ..data.chat import Message
from ..data.events import AgentEvent
from ..data.posts import Posted
from .history import Lane
from .invocation import AgentCall
from .run_context import RunContext

__all__ = ["RunState"]


class RunState:
    """One run, as data."""

    __slots__ = (
        "begins_with",
        "context",
        "input",
        "lane",
        "new_input_count",
        "opening_events",
        "posts",
        "root",
        "seq",
        "session_records_before",
        "transfers",
    )

    def __init__(self, context: RunContext, run_input: AgentInput) -> None:
        self.context = context
        self.input = run_input
        self.lane = Lane()  # messages outside of any Parallel
        self.root: AgentCall | None = None  # None until an agent runs
        self.seq = 0  # number of the last event that the consumer sees
        self.transfers = 0
        self.begins_with: str | None = None  # the agent that runs first; None: the root
        self.new_input_count: int | None = (
            # The number of messages at the end of the input that came in this session turn; None
            # outside of a session.
            None
        )
        # The posts that the turn starts with, which are part of its input, and their events.
        self.posts: tuple[tuple[Message, Posted], ...] = ()
        self.opening_events: tuple[AgentEvent, ...] = ()
        # Number of records in the session before that turn.
        self.session_records_before: int | None = None
