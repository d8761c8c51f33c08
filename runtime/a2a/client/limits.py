"""How much a stranger may say, and how long he may keep one waiting.

Owns: `ClientLimits`, with the defaults.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from ...errors import UsageError

__all__ = ["ClientLimits"]


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """Bounds for what comes from another agent: sizes in bytes, times in seconds. A stream that is quiet is no reason to give it up."""

    response: int = 16 * 1024 * 1024
    """Of one answer, or of one event in a stream."""
    values: int = 500_000
    """How many values may be in that; its commas are counted."""
    content: int = 64 * 1024 * 1024
    """Of all that one task says and makes, as far as an agent keeps it."""
    events: int = 100_000
    """In one stream."""
    artifacts: int = 1_000
    """Of one task."""
    connect: float = 10.0
    """Until a connection is there."""
    request: float = 30.0
    """Until an answer is there to what is answered at once: the card, a task as it is, a cancel."""
    quiet: float = 60.0
    """After so long without an event, the server is asked whether the task is still there."""
    cancel: float = 10.0
    """How long the end of a run waits for the task to be canceled."""
    attempts: int = 6
    """How often in a row a task is taken up again whose server cannot be reached."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
                msg = f"ClientLimits({one.name}={value!r}): give a number above 0."
                raise UsageError(msg)
