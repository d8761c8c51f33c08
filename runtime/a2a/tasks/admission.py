"""Decides whether a task accepts a client's message, before anything changes.

A repetition is not a new message, and a message from before a question does not answer it: an
answer is bound to the question that its client was shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import UnsupportedOperationError

if TYPE_CHECKING:
    from .asks import Say
    from .task_log import TaskLog

__all__ = ["Repeated", "admit"]


class Repeated(Exception):
    """The task has already received the message."""


def admit(log: TaskLog, ask: Say) -> None:
    """Raise `Repeated`, or the protocol's error, for a message that the task does not accept."""
    task_id = log.task.id
    if log.was_said(ask.message):
        raise Repeated
    if log.is_terminal:
        msg = (
            f"Task {task_id} has ended: {pb.TaskState.Name(log.task.status.state)}. Send a "
            "message without a taskId."
        )
        raise UnsupportedOperationError(msg)
    if log.question is not None and log.question != ask.question:
        msg = (
            f"Task {task_id} has asked something since the message was sent, which does not "
            "answer it. Read the task, and answer what it asks now."
        )
        raise UnsupportedOperationError(msg)
