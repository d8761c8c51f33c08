"""A task: one piece of work that an agent does for a client, from its first message to its end.

A task never leaves a terminal state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from ...codec.packing import register_type
from .message import A2AMessage
from .parts import A2APart, Metadata, TextPart

__all__ = [
    "Artifact",
    "StreamEvent",
    "Task",
    "TaskArtifactUpdateEvent",
    "TaskState",
    "TaskStatus",
    "TaskStatusUpdateEvent",
]


class TaskState(StrEnum):
    """The state of a task."""

    SUBMITTED = "submitted"  # it was accepted
    WORKING = "working"
    INPUT_REQUIRED = "input-required"  # it waits for a message
    AUTH_REQUIRED = "auth-required"  # it waits for credentials
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"  # the agent refused it
    UNKNOWN = "unknown"  # a state that this version does not know

    @property
    def is_terminal(self) -> bool:
        """True if the task has ended."""
        return self in (
            TaskState.COMPLETED,
            TaskState.FAILED,
            TaskState.CANCELED,
            TaskState.REJECTED,
        )

    @property
    def is_paused(self) -> bool:
        """True if the task waits for its client."""
        return self in (TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED)


register_type(TaskState, name="a2a.TaskState")


@register_type(name="a2a.TaskStatus")
@dataclass(frozen=True, slots=True)
class TaskStatus:
    """The state of a task, the agent's message about it, and the time of the change.

    The time is in ISO 8601, in UTC.
    """

    state: TaskState
    message: A2AMessage | None = None
    timestamp: str | None = None


@register_type(name="a2a.Artifact")
@dataclass(frozen=True, slots=True)
class Artifact:
    """A result of a task, or a chunk of one."""

    artifact_id: str
    parts: tuple[A2APart, ...] = ()
    name: str | None = None
    description: str | None = None
    metadata: Metadata = field(default_factory=dict)
    extensions: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text parts, joined."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart))


@register_type(name="a2a.Task")
@dataclass(frozen=True, slots=True)
class Task:
    """The state of a task at one moment.

    Its `context_id` is that of the conversation to which it belongs.
    """

    id: str
    context_id: str
    status: TaskStatus
    artifacts: tuple[Artifact, ...] = ()
    history: tuple[A2AMessage, ...] = ()
    metadata: Metadata = field(default_factory=dict)


@register_type(name="a2a.TaskStatusUpdateEvent")
@dataclass(frozen=True, slots=True)
class TaskStatusUpdateEvent:
    """The task has changed its status."""

    task_id: str
    context_id: str
    status: TaskStatus
    metadata: Metadata = field(default_factory=dict)


@register_type(name="a2a.TaskArtifactUpdateEvent")
@dataclass(frozen=True, slots=True)
class TaskArtifactUpdateEvent:
    """An artifact of the task, or a chunk of one.

    With `append`, its parts follow the existing ones; `last_chunk`: no more follow.
    """

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: Metadata = field(default_factory=dict)


StreamEvent: TypeAlias = Task | A2AMessage | TaskStatusUpdateEvent | TaskArtifactUpdateEvent
