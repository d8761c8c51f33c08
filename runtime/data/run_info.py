"""What a store says of a run, without the run itself.

Owns: that summary. It must never hold anything that grows with a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from .chat import Usage
from .interrupt import InterruptContext
from .run_result import RunStatus

__all__ = ["RunInfo"]


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run, as `Runner.runs()` and `Runner.info()` show it. Times are in UTC."""

    id: str
    agent: str
    """The root of its agents."""
    session_id: str | None
    checkpoint_id: str
    """What `Runner.resume()` takes."""
    status: RunStatus
    started: datetime
    updated: datetime
    """When the store was last told of the run: at its beginning, its end, whenever it comes to rest, and every half a minute while it writes steps. One that is
    interrupted waits since then."""
    ended: datetime | None = None
    attempts: int = 0
    """How often it has lost its process."""
    waiting: tuple[InterruptContext, ...] = ()
    """What it waits for, if it is interrupted."""
    last_agent: str = ""
    error: str | None = None
    """What it failed with or was cancelled by, as a text."""
    usage: Usage = field(default_factory=Usage)
    steps: int = 0
    """How many events it had shown at `updated`."""
    labels: dict[str, str] = field(default_factory=dict)
