"""A run as text, for assertions and snapshots.

The text contains nothing that differs from run to run: no id, no time, no address of an object. It
includes everything that a consumer sees, except deltas, whose messages follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from ..data.events import AgentEvent
from ..data.run_result import RunResult
from ..errors import UsageError

__all__ = ["transcript"]

_ADDRESS: Final = re.compile(r" at 0x[0-9a-fA-F]+")


def transcript(of: RunResult | Iterable[AgentEvent]) -> str:
    """Return a line for each event: `[Weather] calls get_weather({"city":"Paris"})`; for a result,
    the last line is its status: `= completed`.

    The text is the same each time if the run is: compare it with a text that you have reviewed, or
    store it as a snapshot.
    """
    if not isinstance(of, RunResult | Iterable):
        msg = (
            "transcript: the argument must be the result of a run or its events, as in "
            f"transcript(run.result()), got {of!r}."
        )
        raise UsageError(msg)
    events = of.events if isinstance(of, RunResult) else of
    lines = [_line(event) for event in events if event.delta is None]
    if isinstance(of, RunResult):
        lines.append(f"= {of.status.value}")
    return "\n".join(lines)


def _line(event: AgentEvent) -> str:
    text = _ADDRESS.sub("", str(event))
    for made_up in (event.run_id, event.invocation_id):
        if made_up:
            text = text.replace(made_up, "<id>")
    return text
