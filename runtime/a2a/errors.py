"""What can go wrong when another agent is asked.

    A2AError                 it could not be asked, or did not do it
    ├── A2AConnectionError   it could not be reached, or broke off: asking again may help
    ├── A2AProtocolError     what it says is not the protocol, not this version of it, or more than is allowed
    ├── A2ARequestError      it refuses what it was asked; `reason` says why, in the protocol's words
    └── RemoteTaskError      the task has ended, but not as it should: `state` says how

Owns: these classes. Their texts hold what a stranger says only cut short and in one line: they are logged, and shown.
"""

from __future__ import annotations

from typing import Final

from ..errors import AgentError
from .data.task import TaskState

__all__ = ["A2AConnectionError", "A2AError", "A2AProtocolError", "A2ARequestError", "RemoteTaskError", "one_line"]

_LONGEST: Final = 500


class A2AError(AgentError):
    """Another agent could not be asked, or did not do what it was asked."""


class A2AConnectionError(A2AError):
    """The agent could not be reached, or broke off. `was_sent` says whether the request may have arrived."""

    def __init__(self, text: str = "", *, was_sent: bool = True) -> None:
        super().__init__(text)
        self.was_sent = was_sent


class A2AProtocolError(A2AError):
    """What the other side says is not the protocol, or not a version of it that is spoken here, or more than is allowed."""


class A2ARequestError(A2AError):
    """The server refuses the request. `reason` is the protocol's word for it, such as `TASK_NOT_FOUND`."""

    def __init__(self, text: str = "", reason: str = "") -> None:
        super().__init__(text)
        self.reason = reason


class RemoteTaskError(A2AError):
    """The task has failed, was rejected, or was canceled over there."""

    def __init__(self, text: str = "", state: str = TaskState.FAILED, task_id: str = "") -> None:
        super().__init__(text)
        self.state = str(state)
        self.task_id = task_id


def one_line(text: str, longest: int = _LONGEST) -> str:
    """What a stranger says, as one line that can be shown: not too long, and without control characters."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text[: longest * 2]).split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"
