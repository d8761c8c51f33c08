"""What has become of a run.

Owns: the states of a run, and the result that is left of it. A result is complete: nothing of it changes any more.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from ..quick_init import quick
from .chat import Message, Usage
from .events import AgentEvent
from .interrupt import InterruptContext

__all__ = ["RunResult", "RunStatus"]

_LONGEST_SHOWN: Final = 200


class RunStatus(StrEnum):
    """Moves forward only."""

    PENDING = "pending"  # made outside of an event loop, and not used yet
    RUNNING = "running"
    INTERRUPTED = "interrupted"  # it waits for something from outside
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DRAINED = "drained"  # it was brought to rest: another process continues it
    STUCK = "stuck"  # it has ended its process too often, and was set aside


@quick
@dataclass(frozen=True, slots=True, repr=False)
class RunResult:
    """What is left of a run. `events` are those that were shown, but for the pieces of messages that came whole later.

    `text` and `final_output` are its answer: where there is none, because the run has failed or was cancelled, reading them raises what `error` holds.
    `final_message` and `output` say how far it came, and never raise.
    """

    status: RunStatus
    error: Exception | None = None
    final_message: Message | None = None
    output: Any = None
    events: tuple[AgentEvent, ...] = ()
    interrupts: tuple[InterruptContext, ...] = ()
    usage: Usage = field(default_factory=Usage)
    session_values: dict[str, Any] = field(default_factory=dict)
    last_agent: str = ""
    started: float = field(default=0.0, compare=False)
    """When this part of the run began, in seconds since 1970; 0 if that is not known."""

    @property
    def text(self) -> str:
        """The text of the last message, empty if there is none. Raises what the run failed with or was cancelled by, if anything."""
        self.raise_for_error()
        return "" if self.final_message is None else self.final_message.text

    @property
    def final_output(self) -> Any:
        """What the run was to find: an object of the `output_type`, or a text. Raises what the run failed with or was cancelled by, if anything."""
        if self.error is not None:
            raise self.error
        return self.output

    def __repr__(self) -> str:
        """What has become of the run, in one line: `repr(result.events)` tells the rest."""
        if self.error is not None:
            said = f"{type(self.error).__name__}: {self.error}"
        elif self.interrupts:
            said = f"waits for {len(self.interrupts)} answers" if len(self.interrupts) > 1 else f"waits: {self.interrupts[0].info!r}"
        else:
            said = repr("" if self.final_message is None else self.final_message.text)
        said = said if len(said) <= _LONGEST_SHOWN else f"{said[:_LONGEST_SHOWN]}..."
        by = f" by {self.last_agent}" if self.last_agent else ""
        return f"<RunResult {self.status.value}{by}: {said}; {len(self.events)} event{'' if len(self.events) == 1 else 's'}>"

    def _repr_html_(self) -> str:
        """For a notebook: the same, with what was said, folded."""
        from ..observe.result_html import html_of_result  # noqa: PLC0415 -- a higher room, which makes this of it

        return html_of_result(self)

    def raise_for_error(self) -> None:
        """Raise what the run failed with or was cancelled by, if anything."""
        if self.error is not None:
            raise self.error
