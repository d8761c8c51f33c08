"""One task, as it is now, and what of it is not in the store yet.

Owns: the task's protobuf message and the number of its last change. Each change goes through `status` or `artifact`; `writes` says what has to be written so
that the store has them, in one step. It must never be changed from outside, and a change never be made that the table of states does not have.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

from a2a.types import a2a_pb2 as pb
from google.protobuf.struct_pb2 import Struct

from ...codec.packing import pack, unpack
from ...errors import CheckpointError
from ...stores.writes import Append, Put, Remove, Write
from .keys import TaskKeys
from .owner import Owner
from .states import AT_REST, INTERRUPTED, TERMINAL, may_follow

__all__ = ["StoredTask", "TaskLog", "Update", "read_task"]

Update: TypeAlias = pb.TaskStatusUpdateEvent | pb.TaskArtifactUpdateEvent

U = TypeVar("U", pb.TaskStatusUpdateEvent, pb.TaskArtifactUpdateEvent)

_FORMAT: Final = 1
_MILLISECOND: Final = 1_000_000


@dataclass(slots=True)
class StoredTask:
    """What is kept of a task beside what clients see."""

    owner: Owner
    run_id: str | None = None
    checkpoint_id: str | None = None
    pending: dict[str, bool] = field(default_factory=dict)  # the interrupts that wait for an answer: whether it is to be yes or no
    message_ids: tuple[str, ...] = ()


class TaskLog:
    """A task that something is done with."""

    __slots__ = ("_due", "_index", "_keys", "_unsaved", "at", "kept", "number", "task")

    def __init__(self, keys: TaskKeys, task: pb.Task, kept: StoredTask, number: int = 0, index: str | None = None) -> None:
        self._keys = keys
        self.task = task
        self.kept = kept
        self.number = number  # of the last change
        self._index = index  # the key of its entry in the index; None if it is not in the store
        self._due: tuple[tuple[int, int], str] | None = None
        self._unsaved: list[Update] = []  # changes that the store does not have
        self.at = 0

    @property
    def state(self) -> int:
        return self.task.status.state

    @property
    def is_terminal(self) -> bool:
        return self.state in TERMINAL

    @property
    def is_interrupted(self) -> bool:
        return self.state in INTERRUPTED

    @property
    def is_at_rest(self) -> bool:
        return self.state in AT_REST

    @property
    def is_stored(self) -> bool:
        return self._index is not None

    @property
    def has_unsaved(self) -> bool:
        return bool(self._unsaved)

    def snapshot(self) -> pb.Task:
        """The task as it is now, which nothing changes any more."""
        copy = pb.Task()
        copy.CopyFrom(self.task)
        return copy

    # --- changes ---

    def status(self, state: int, now: float, message: pb.Message | None = None, metadata: Struct | None = None) -> pb.TaskStatusUpdateEvent:
        """The task comes into that state. What it said before becomes part of its history; metadata goes with the update, and does not stay."""
        task = self.task
        if not may_follow(task.status.state, state):
            names = [pb.TaskState.Name(one) for one in (task.status.state, state)]
            msg = f"a task does not come from {names[0]} to {names[1]}."
            raise ValueError(msg)
        if task.status.HasField("message"):
            task.history.append(task.status.message)
        self._set_status(state, now, message)
        update = pb.TaskStatusUpdateEvent(task_id=task.id, context_id=task.context_id, status=task.status, metadata=metadata)
        return self._changed(update)

    def _set_status(self, state: int, now: float, message: pb.Message | None) -> None:
        self.at = max(int(now * 1_000) * _MILLISECOND, self.at)
        status = pb.TaskStatus(state=state, message=message)  # type: ignore[arg-type]  # a number of a state
        status.timestamp.FromNanoseconds(self.at)
        self.task.status.CopyFrom(status)

    def submitted(self, now: float) -> None:
        """The task begins."""
        self._set_status(pb.TASK_STATE_SUBMITTED, now, None)
        self._changed(pb.TaskStatusUpdateEvent(task_id=self.task.id, context_id=self.task.context_id, status=self.task.status))

    def said(self, message: pb.Message) -> None:
        """The client has said something to the task."""
        task = self.task
        if task.status.HasField("message"):
            task.history.append(task.status.message)
            task.status.ClearField("message")
        copy = task.history.add()
        copy.CopyFrom(message)
        copy.task_id, copy.context_id = task.id, task.context_id

    def artifact(self, artifact: pb.Artifact, *, append: bool, last: bool, joins: bool = False, metadata: Struct | None = None) -> pb.TaskArtifactUpdateEvent:
        """An artifact, or a piece of one. `joins`: its text goes on where that of the piece before it ends, and is one part with it in the task."""
        task = self.task
        known = next((one for one in task.artifacts if one.artifact_id == artifact.artifact_id), None)
        append = append and known is not None  # the first piece is never behind anything
        if known is None:
            task.artifacts.add().CopyFrom(artifact)
        elif not append:
            known.CopyFrom(artifact)
        else:
            add_parts(known, artifact, joins=joins)
        update = pb.TaskArtifactUpdateEvent(task_id=task.id, context_id=task.context_id, artifact=artifact, append=append, last_chunk=last, metadata=metadata)
        return self._changed(update)

    def replace(self, task: pb.Task) -> None:
        """Be that task from now on: what has consolidated it answers for what it has made of it."""
        own = self.task
        task.id, task.context_id = own.id, own.context_id
        if not task.status.HasField("timestamp"):
            task.status.timestamp.CopyFrom(own.status.timestamp)
        own.CopyFrom(task)

    def _changed(self, update: U) -> U:
        self.number += 1
        self._unsaved.append(update)
        return update

    # --- the store ---

    def writes(self) -> list[Write]:
        """What is to be written now; it is `saved()` when it was."""
        keys, task = self._keys, self.task
        records = tuple(as_record(update) for update in self._unsaved)
        index = self._due_index()
        key = keys.task(task.id)
        found: list[Write] = [Append(key, records, self.number - len(records)), Put(key, self._packed())]
        if self._index is None or self._index != index:
            found.append(Put(index, b"1"))
            if self._index is not None:
                found.append(Remove(self._index))
        return found

    def saved(self) -> None:
        self._unsaved.clear()
        self._index = self._due_index()

    def _due_index(self) -> str:
        """The key that its entry in the index has to have: worked out again only when something of it has changed."""
        said = (self.at, self.state)
        if self._due is None or self._due[0] != said:
            task = self.task
            self._due = said, self._keys.index(self.kept.owner, self.at, task.id, task.context_id, self.state)
        return self._due[1]

    def _packed(self) -> bytes:
        kept = self.kept
        said: dict[str, Any] = {
            "v": _FORMAT,
            "task": self.task.SerializeToString(),
            "n": self.number,
            "at": self.at,
            "owner": [kept.owner.tenant, kept.owner.subject],
        }
        if kept.run_id is not None:
            said["run"], said["checkpoint"] = kept.run_id, kept.checkpoint_id
        if kept.pending:
            said["pending"] = kept.pending
        return pack(said)


def as_record(update: Update) -> bytes:
    """A change, as the journal of a task has it: what a stream would show."""
    if isinstance(update, pb.TaskStatusUpdateEvent):
        return pb.StreamResponse(status_update=update).SerializeToString()
    return pb.StreamResponse(artifact_update=update).SerializeToString()


def add_parts(artifact: pb.Artifact, piece: pb.Artifact, *, joins: bool) -> None:
    """Put the parts of a piece behind those that are there."""
    parts: Iterable[pb.Part] = piece.parts
    if joins and artifact.parts and artifact.parts[-1].WhichOneof("content") == "text" and all(part.WhichOneof("content") == "text" for part in parts):
        artifact.parts[-1].text += "".join(part.text for part in parts)
    else:
        artifact.parts.extend(parts)


def read_task(keys: TaskKeys, data: bytes) -> TaskLog:
    """The task that the store has. Raises `CheckpointError`."""
    said: Any = unpack(data)
    try:
        if said["v"] != _FORMAT:
            msg = f"a task of Agent2Agent is kept in format {said['v']}, which this version does not know."
            raise CheckpointError(msg)
        task = pb.Task.FromString(said["task"])
        tenant, subject = said["owner"]
        kept = StoredTask(Owner(tenant, subject), said.get("run"), said.get("checkpoint"), dict(said.get("pending", {})))
        log = TaskLog(keys, task, kept, said["n"])
        log.at = said["at"]
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError("what the store has of a task of Agent2Agent is damaged.") from error
    log.saved()
    return log
