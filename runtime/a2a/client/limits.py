"""Limits on the sizes and times of a remote agent's responses."""

from __future__ import annotations

from dataclasses import dataclass, fields

from ...errors import UsageError

__all__ = ["ClientLimits"]


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Limits on responses of a remote agent: sizes in bytes, times in seconds.

    A quiet stream is not given up.
    """

    response: int = 16 * 1024 * 1024
    """The size of one response, or of one event in a stream."""
    values: int = 500_000
    """The number of values in it, counted by its commas."""
    content: int = 64 * 1024 * 1024
    """The size of all messages and artifacts of one task, as far as an agent retains them."""
    events: int = 100_000
    """The number of events in one stream."""
    artifacts: int = 1_000
    """The number of artifacts of one task."""
    connect: float = 10.0
    """The time to connect."""
    request: float = 30.0
    """The time for requests that are answered at once: the card, a task's state, a cancel."""
    quiet: float = 60.0
    """The time without an event after which the server is asked whether the task still exists."""
    cancel: float = 10.0
    """How long the end of a run waits for the task to be canceled."""
    attempts: int = 6
    """The number of consecutive attempts to reach the server of a task."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
                msg = f"ClientLimits: {one.name} must be a number above 0, got {value!r}."
                raise UsageError(msg)
