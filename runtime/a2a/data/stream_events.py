"""What a stream shows: either one message, or a task first, and then the changes of its status and the pieces of its artifacts.

Owns: the two kinds of change, and `StreamEvent`, which is any of what a stream may show.
"""

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
    """The task has another status now."""

    task_id: str
    context_id: str
    status: TaskStatus
    metadata: Metadata = field(default_factory=dict)


@register_type(name="a2a.TaskArtifactUpdateEvent")
@dataclass(frozen=True, slots=True)
class TaskArtifactUpdateEvent:
    """An artifact of the task, or a piece of one: with `append`, its parts come behind those that are there; `last_chunk` says that no more will come."""

    task_id: str
    context_id: str
    artifact: Artifact
    append: bool = False
    last_chunk: bool = False
    metadata: Metadata = field(default_factory=dict)


StreamEvent: TypeAlias = Task | A2AMessage | TaskStatusUpdateEvent | TaskArtifactUpdateEvent
