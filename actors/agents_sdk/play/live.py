"""One run of the SDK while it goes on.

Owns: what a run is made with, and what has become of it so far. It is in memory alone; what has to outlive the process is in the steps that the runtime
records. It must never be shared by two runs.
"""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING, Any

from ....runtime.agent.options import Options

if TYPE_CHECKING:
    from ..run_config import RunConfig
    from ..run_state import RunState
    from ..stream_events import StreamEvent
    from .conversation import Conversation

__all__ = ["LiveRun", "StreamOutput"]


class LiveRun(Options):
    """One run. It travels with the runtime's own run as one of its options."""

    __slots__ = (
        "agent_span",
        "answers",
        "assignment",
        "begun",
        "config",
        "context",
        "conversation",
        "ended",
        "error",
        "error_handlers",
        "final_output",
        "handled_max_turns",
        "hooks",
        "is_resumed",
        "model_tools",
        "new_input",
        "output",
        "save_count",
        "session",
        "source",
        "start_hooks",
        "state",
        "task_span",
        "trace",
        "traced",
        "usage_before",
        "vars",
    )

    def __init__(self, state: RunState[Any], config: RunConfig) -> None:
        super().__init__()
        self.state = state
        self.config = config
        self.context = state.context
        self.vars = contextvars.copy_context()
        self.hooks: Any = None
        self.session: Any = None
        self.new_input: list[Any] = []
        """What the session has not been given yet of the input."""
        self.error_handlers: Any = None
        self.conversation: Conversation | None = None
        self.source: RunState[Any] | None = None
        """The state that the caller goes on from, and keeps."""
        self.is_resumed = False
        self.output: StreamOutput | None = None
        """Where events go, if the run is looked at."""
        self.trace: Any = None
        self.traced = False
        self.task_span: Any = None
        self.agent_span: Any = None
        self.usage_before: Any = None
        self.start_hooks = True
        """Whether the agent is to be told that it begins."""
        self.begun = False
        self.ended = False
        self.error: BaseException | None = None
        self.final_output: Any = None
        self.handled_max_turns = False
        self.assignment: Any = None
        """The runtime's assignment that it belongs to: several runs may be within one of the runtime's."""
        self.answers: dict[str, tuple[bool, str | None]] = {}
        """What was answered from outside about calls that wait, by their ids."""
        self.save_count = 0
        self.model_tools: list[Any] = []

    @property
    def agent(self) -> Any:
        """The agent at work."""
        return self.state.current_agent

    def show(self, event: StreamEvent) -> None:
        """Show an event, if the run is looked at."""
        if self.output is not None:
            self.output.put(event)


class StreamOutput:
    """Where the events of a run go."""

    def put(self, event: Any) -> None:
        raise NotImplementedError

    def sync(self, run: LiveRun) -> None:
        """What has become of the run so far may be read from now on."""

    def fail(self, error: BaseException) -> None:
        """The run will fail with that, as soon as what is under way has ended."""

    def is_stopping(self) -> bool:
        """Whether the run is to end before its next turn."""
        return False

    async def turn_seen(self) -> bool:
        """Wait until all that was shown of a turn was looked at. Returns whether the run is to end here."""
        return False
