"""The events of a stream: one message; or a task, its status changes and artifacts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from ...codec.packing import register_type
from .message import A2AMessage
from .parts import Metadata
from .task import Artifact, Task, TaskStatus

__all__ = ["StreamEvent", "TaskArtifactUpdateEvent", "TaskStatusUpdateEvent"]


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
