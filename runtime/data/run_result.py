"""The status and the result of a run. A result never changes."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, Final, Generic

from msgspec import field

from .chat import Message, Usage
from .events import AgentEvent
from .interrupt import InterruptContext
from .output_type import OutputT_co
from .value import Value, compared

__all__ = ["RunResult", "RunStatus"]

_LONGEST_SHOWN: Final = 200


class RunStatus(StrEnum):
    """The status of a run. It only moves forward."""

    PENDING = "pending"  # created outside of an event loop, and not used yet
    RUNNING = "running"
    INTERRUPTED = "interrupted"  # waits for an external answer
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    DRAINED = "drained"  # paused, so that another process continues it
    STUCK = "stuck"  # quarantined, because it crashed its process too often


class RunResult(Value, Generic[OutputT_co], frozen=True):
    """The result of a run.

    `events` are the events shown, without deltas. `text` and `final_output` are the answer; if the
    run has failed or was cancelled, reading them raises `error`. `final_message` and `output` show
    how far the run came, and never raise.
    """

    NOT_COMPARED: ClassVar = ("started", "run_id")

    status: RunStatus
    error: Exception | None = None
    final_message: Message | None = None
    output: Any = None
    events: tuple[AgentEvent, ...] = ()
    interrupts: tuple[InterruptContext, ...] = ()
    usage: Usage = field(default_factory=Usage)
    session_values: dict[str, Any] = field(default_factory=dict)
    last_agent: str = ""
    started: float = 0.0
    """The start of this part of the run, in seconds since 1970; 0 if unknown."""
    run_id: str = ""
    """The id of the run in the store."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and compared(self) == compared(other)

    def __hash__(self) -> int:
        return hash(compared(self))

    @property
    def text(self) -> str:
        """The text of the last message, empty if there is none.

        Raises the error of the run, if any.
        """
        self.raise_for_error()
        return "" if self.final_message is None else self.final_message.text

    @property
    def final_output(self) -> OutputT_co:
        """The output of the run: an object of the `output_type`, or a string.

        Raises the error of the run, if any.
        """
        if self.error is not None:
            try:
                raise self.error
            finally:
                del self  # the error's traceback has this frame
        output: OutputT_co = self.output
        return output

    def __repr__(self) -> str:
        """Return the run's result in one line; `repr(result.events)` has the details."""
        if self.error is not None:
            said = f"{type(self.error).__name__}: {self.error}"
        elif self.interrupts:
            said = (
                f"waits for {len(self.interrupts)} answers"
                if len(self.interrupts) > 1
                else f"waits: {self.interrupts[0].info!r}"
            )
        else:
            said = repr("" if self.final_message is None else self.final_message.text)
        said = said if len(said) <= _LONGEST_SHOWN else f"{said[:_LONGEST_SHOWN]}..."
        by = f" by {self.last_agent}" if self.last_agent else ""
        return (
            f"<RunResult {self.status.value}{by}: {said}; {len(self.events)} "
            f"event{'' if len(self.events) == 1 else 's'}>"
        )

    def _repr_html_(self) -> str:
        """Return the result for a notebook, with its messages folded."""
        from ..observe.result_html import html_of_result  # noqa: PLC0415 -- a higher package, which builds it

        return html_of_result(self)

    def raise_for_error(self) -> None:
        """Raise the error that the run failed with or was cancelled by, if any."""
        if self.error is not None:
            try:
                raise self.error
            finally:
                del self  # the error's traceback has this frame
