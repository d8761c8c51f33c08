"""Errors of calls to remote agents.

    A2AError                 the call was impossible, or failed
    ├── A2AConnectionError   the agent was unreachable, or the connection broke: a retry may help
    ├── A2AProtocolError     the response is invalid, of another version, or exceeds a limit
    ├── A2ARequestError      the agent refused the request; `reason` is the protocol's term
    └── RemoteTaskError      the task has ended without success: `state` is its final state

Remote texts in them are truncated to one line, because errors are logged and shown.
"""

from __future__ import annotations

from typing import Final

from ..errors import AgentError
from .data.task import TaskState

__all__ = [
    "A2AConnectionError",
    "A2AError",
    "A2AProtocolError",
    "A2ARequestError",
    "RemoteTaskError",
    "one_line",
]

_LONGEST: Final = 500


class A2AError(AgentError):
    """A call to a remote agent was impossible, or failed."""


class A2AConnectionError(A2AError):
    """The agent was unreachable, or the connection broke.

    `was_sent`: whether the request may have arrived.
    """

    def __init__(self, text: str = "", *, was_sent: bool = True) -> None:
        super().__init__(text)
        self.was_sent = was_sent


class A2AProtocolError(A2AError):
    """The response is invalid, of an unsupported version, or exceeds a limit."""


class A2ARequestError(A2AError):
    """The server refuses the request.

    `reason` is the protocol's term, such as `TASK_NOT_FOUND`.
    """

    def __init__(self, text: str = "", reason: str = "") -> None:
        super().__init__(text)
        self.reason = reason


class RemoteTaskError(A2AError):
    """The remote task has failed, was rejected, or was canceled."""

    def __init__(self, text: str = "", state: str = TaskState.FAILED, task_id: str = "") -> None:
        super().__init__(text)
        self.state = str(state)
        self.task_id = task_id


def one_line(text: str, longest: int = _LONGEST) -> str:
    """Return a remote text as one truncated line, without control characters."""
    line = " ".join(
        "".join(letter if letter.isprintable() else " " for letter in text[: longest * 2]).split()
    )
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
