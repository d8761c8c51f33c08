"""A store's summary of a run, without the run itself.

It holds nothing that grows with a run.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import field

from .chat import Usage
from .interrupt import InterruptContext
from .run_result import RunStatus
from .value import Value

__all__ = ["RunInfo"]


class RunInfo(Value, frozen=True):
    """A run, as `Runner.runs()` and `Runner.info()` return it. Times are in UTC."""

    id: str
    agent: str
    """The root of its agents."""
    session_id: str | None
    checkpoint_id: str
    """The id for `Runner.resume()`.

    If the run is paused, the id is bound to that checkpoint: once it was answered, the id is no
    longer accepted.
    """
    status: RunStatus
    started: datetime
    updated: datetime
    """The store's last update: the start, the end, a pause, and every 30 s between steps.

    An interrupted run has waited since then.
    """
    ended: datetime | None = None
    attempts: int = 0
    """The number of processes that the run has lost."""
    waiting: tuple[InterruptContext, ...] = ()
    """The interrupts that it waits for."""
    last_agent: str = ""
    error: str | None = None
    """The error that it failed with or was cancelled by, as text."""
    usage: Usage = field(default_factory=Usage)
    steps: int = 0
    """The number of events shown at `updated`."""
    labels: dict[str, str] = field(default_factory=dict)
