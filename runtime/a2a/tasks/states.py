"""The states of a task, and their transitions.

A task never leaves a terminal state; it leaves a paused one for WORKING, or to end.
"""

from __future__ import annotations

from typing import Final

from a2a.types import a2a_pb2 as pb

__all__ = ["AT_REST", "INTERRUPTED", "TERMINAL", "may_follow"]

TERMINAL: Final = frozenset(
    (pb.TASK_STATE_COMPLETED, pb.TASK_STATE_FAILED, pb.TASK_STATE_CANCELED, pb.TASK_STATE_REJECTED)
)
INTERRUPTED: Final = frozenset((pb.TASK_STATE_INPUT_REQUIRED, pb.TASK_STATE_AUTH_REQUIRED))
AT_REST: Final = TERMINAL | INTERRUPTED
"""In these states nothing runs the task: it is only in the store."""


def may_follow(state: int, following: int) -> bool:
    """Return whether a task in that state may change to the other one."""
    if state in TERMINAL or following in (pb.TASK_STATE_UNSPECIFIED, pb.TASK_STATE_SUBMITTED):
        return False
    if state in INTERRUPTED:
        return following in (
            pb.TASK_STATE_WORKING,
            pb.TASK_STATE_CANCELED,
            pb.TASK_STATE_FAILED,
            pb.TASK_STATE_REJECTED,
        )
    return True
