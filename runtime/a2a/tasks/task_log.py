"""The current state of one task, and its unsaved changes.

Each change goes through `status` or `artifact`, which respect the table of transitions; `writes`
returns the writes that store them in one step. The task must not be changed from outside.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, TypeAlias, TypeVar

from a2a.types import a2a_pb2 as pb
from google.protobuf.struct_pb2 import Struct

from ...codec.packing import pack, unpack
from ...errors import CheckpointError
from ...stores.writes import Append, Put, Remove, Write
from .checks import AT_REST, INTERRUPTED, TERMINAL, may_follow
from .keys import Owner, TaskKeys

__all__ = ["StoredTask", "TaskLog", "Update", "join_pieces", "read_task"]

Update: TypeAlias = pb.TaskStatusUpdateEvent | pb.TaskArtifactUpdateEvent

U = TypeVar("U", pb.TaskStatusUpdateEvent, pb.TaskArtifactUpdateEvent)

_FORMAT: Final = 1
_MILLISECOND: Final = 1_000_000
_MOST_SAID: Final = 256
"""The number of messages that a task remembers, to detect repetitions."""


@dataclass(slots=True)
class StoredTask:
    """The stored data of a task that clients do not see."""

    owner: Owner
    run_id: str | None = None
    checkpoint_id: str | None = None
    # The open interrupts; the value is whether the answer must be yes or no.
    pending: dict[str, bool] = field(default_factory=dict)
    questions: int = 0  # number of questions that the task has asked so far
    # A digest of each of the client's messages, the latest last.
    said: dict[str, bool] = field(default_factory=dict)


class TaskLog:
    """An active task."""

    __slots__ = (
        "_due",
        "_index",
        "_keys",
        "_streamed",
        "_unsaved",
        "_writing",
        "at",
        "kept",
        "number",
        "task",
    )

    def __init__(
        self,
        keys: TaskKeys,
        task: pb.Task,
        kept: StoredTask,
        number: int = 0,
        index: str | None = None,
    ) -> None:
        self._keys = keys
        # Without the texts that are being streamed, which `snapshot()` includes.
        self.task = task
        # Those texts, by artifact: the chunks of its last part, because protobuf would retain a
        # copy of each length.
        self._streamed: dict[str, list[str]] = {}
        self.kept = kept
        self.number = number  # the number of the last change
        self._index = index  # the key of its index entry; None if it is not stored
        self._due: tuple[tuple[int, int], str] | None = None
        self._unsaved: list[Update] = []  # changes that are not stored
        # What `writes()` has returned last: the number of these changes, and the index entry.
        self._writing: tuple[int, str | None] = (0, index)
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
    def question(self) -> int | None:
        """The number of the change that asked the current question; None if there is none."""
        return self.number if self.is_interrupted else None

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
        """Return an independent copy of the current task."""
        copy = pb.Task()
        copy.CopyFrom(self.task)
        for artifact in copy.artifacts:
            if (pieces := self._streamed.get(artifact.artifact_id)) is not None:
                artifact.parts[-1].text = "".join(pieces)
        return copy

    def as_submitted(self, held: Sequence[Update]) -> pb.Task:
        """Return the task as it was before these changes, the first of all."""
        first, update = self.snapshot(), held[0] if held else None
        timestamp = (
            update.status.timestamp if isinstance(update, pb.TaskStatusUpdateEvent) else None
        )
        first.status.CopyFrom(pb.TaskStatus(state=pb.TASK_STATE_SUBMITTED, timestamp=timestamp))
        del first.artifacts[:]
        return first

    # --- changes ---

    def status(
        self,
        state: int,
        now: float,
        message: pb.Message | None = None,
        metadata: Struct | None = None,
    ) -> pb.TaskStatusUpdateEvent:
        """Change the state.

        The previous status message becomes part of the history; metadata belongs to the update, and
        is not retained.
        """
        task = self.task
        if not may_follow(task.status.state, state):
            names = [pb.TaskState.Name(one) for one in (task.status.state, state)]
            msg = f"a task cannot change from the state {names[0]} to {names[1]}."
            raise ValueError(msg)
        if task.status.HasField("message"):
            task.history.append(task.status.message)
        if state in AT_REST:
            for artifact in task.artifacts:
                self._end_stream(artifact)
        self._set_status(state, now, message)
        update = pb.TaskStatusUpdateEvent(
            task_id=task.id, context_id=task.context_id, status=task.status, metadata=metadata
        )
        return self._changed(update)

    def _set_status(self, state: int, now: float, message: pb.Message | None) -> None:
        self.at = max(int(now * 1_000) * _MILLISECOND, self.at)
        status = pb.TaskStatus(state=state, message=message)  # type: ignore[arg-type]  # a number of a state
        status.timestamp.FromNanoseconds(self.at)
        self.task.status.CopyFrom(status)

    def submitted(self, now: float) -> None:
        """Record the start of the task."""
        self._set_status(pb.TASK_STATE_SUBMITTED, now, None)
        self._changed(
            pb.TaskStatusUpdateEvent(
                task_id=self.task.id, context_id=self.task.context_id, status=self.task.status
            )
        )

    def was_said(self, message: pb.Message) -> bool:
        """Return whether the task has already received that message: the same id and content."""
        return _digest(message) in self.kept.said

    def said(self, message: pb.Message) -> None:
        """Add a client's message to the history."""
        task, known = self.task, self.kept.said
        known[_digest(message)] = True
        if len(known) > _MOST_SAID:
            del known[next(iter(known))]
        if task.status.HasField("message"):
            task.history.append(task.status.message)
            task.status.ClearField("message")
        copy = task.history.add()
        copy.CopyFrom(message)
        copy.task_id, copy.context_id = task.id, task.context_id

    def artifact(
        self,
        artifact: pb.Artifact,
        *,
        append: bool,
        last: bool,
        joins: bool = False,
        metadata: Struct | None = None,
    ) -> pb.TaskArtifactUpdateEvent:
        """Add an artifact, or a chunk of one.

        `joins`: its text continues that of the previous chunk, and forms one part with it in the
        task.
        """
        task, artifact_id = self.task, artifact.artifact_id
        known = next((one for one in task.artifacts if one.artifact_id == artifact_id), None)
        append = append and known is not None  # the first chunk cannot be appended
        if known is None:
            task.artifacts.add().CopyFrom(artifact)
        elif not append:
            self._streamed.pop(artifact_id, None)
            known.CopyFrom(artifact)
        elif joins and is_text(artifact.parts) and known.parts and is_text(known.parts[-1:]):
            if artifact_id not in self._streamed:
                self._streamed[artifact_id] = [known.parts[-1].text]
                known.parts[-1].text = ""
            self._streamed[artifact_id] += [part.text for part in artifact.parts]
        else:
            self._end_stream(known)
            known.parts.extend(artifact.parts)
        if last and known is not None:
            self._end_stream(known)
        update = pb.TaskArtifactUpdateEvent(
            task_id=task.id,
            context_id=task.context_id,
            artifact=artifact,
            append=append,
            last_chunk=last,
            metadata=metadata,
        )
        return self._changed(update)

    def _end_stream(self, artifact: pb.Artifact) -> None:
        pieces = self._streamed.pop(artifact.artifact_id, None)
        if pieces is not None:
            artifact.parts[-1].text = "".join(pieces)

    def replace(self, task: pb.Task) -> None:
        """Replace the task by the result of a consolidation, which is not checked."""
        own = self.task
        task.id, task.context_id = own.id, own.context_id
        if not task.status.HasField("timestamp"):
            task.status.timestamp.CopyFrom(own.status.timestamp)
        self._streamed.clear()
        own.CopyFrom(task)

    def _changed(self, update: U) -> U:
        self.number += 1
        self._unsaved.append(update)
        return update

    # --- the store ---

    def writes(self) -> list[Write]:
        """Return the writes of the unsaved changes; call `saved()` after they are written.

        A change that comes while they are written is in the next writes.
        """
        keys, task = self._keys, self.task
        records = tuple(as_record(update) for update in self._unsaved)
        index = self._due_index()
        self._writing = len(records), index
        key = keys.task(task.id)
        found: list[Write] = [
            Append(key, records, self.number - len(records)),
            Put(key, self._packed()),
        ]
        if self._index is None or self._index != index:
            found.append(Put(index, b"1"))
            if self._index is not None:
                found.append(Remove(self._index))
        return found

    def saved(self) -> None:
        """Note that the last writes are in the store."""
        count, self._index = self._writing
        del self._unsaved[:count]

    def is_read(self) -> None:
        """Note that the task is in the store as it is."""
        self._index = self._due_index()

    def _due_index(self) -> str:
        """Return the key that its index entry must have, cached until the state changes."""
        said = (self.at, self.state)
        if self._due is None or self._due[0] != said:
            task = self.task
            self._due = (
                said,
                self._keys.index(self.kept.owner, self.at, task.id, task.context_id, self.state),
            )
        return self._due[1]

    def _packed(self) -> bytes:
        kept = self.kept
        said: dict[str, Any] = {
            "v": _FORMAT,
            "task": (self.snapshot() if self._streamed else self.task).SerializeToString(),
            "n": self.number,
            "at": self.at,
            "owner": [kept.owner.tenant, kept.owner.subject],
        }
        if kept.run_id is not None:
            said["run"], said["checkpoint"] = kept.run_id, kept.checkpoint_id
        if kept.pending:
            said["pending"] = kept.pending
        if kept.questions:
            said["questions"] = kept.questions
        if kept.said:
            said["said"] = list(kept.said)
        return pack(said)


def _digest(message: pb.Message) -> str:
    """Return a digest of a message: the same for its repetition.

    Some clients use one id for several messages, so the content counts, too.
    """
    only = pb.Message(message_id=message.message_id, role=message.role, parts=message.parts)
    return blake2b(only.SerializeToString(deterministic=True), digest_size=8).hexdigest()


def as_record(update: Update) -> bytes:
    """Encode a change for the journal of a task: in the form of a stream."""
    if isinstance(update, pb.TaskStatusUpdateEvent):
        return pb.StreamResponse(status_update=update).SerializeToString()
    return pb.StreamResponse(artifact_update=update).SerializeToString()


def is_text(parts: Iterable[pb.Part]) -> bool:
    """Return whether all of these are text."""
    return all(part.WhichOneof("content") == "text" for part in parts)


def join_pieces(pieces: Sequence[pb.Artifact]) -> pb.Artifact:
    """Merge chunks of one artifact: text continues the text before it.

    Each is copied once.
    """
    whole = pb.Artifact()
    whole.CopyFrom(pieces[0])
    texts: list[str] = []  # texts that continue the last part
    for piece in pieces[1:]:
        if is_text(piece.parts) and whole.parts and is_text(whole.parts[-1:]):
            texts += [part.text for part in piece.parts]
        else:
            _go_on(whole, texts)
            whole.parts.extend(piece.parts)
    _go_on(whole, texts)
    return whole


def _go_on(artifact: pb.Artifact, texts: list[str]) -> None:
    if texts:
        artifact.parts[-1].text += "".join(texts)
        texts.clear()


def read_task(keys: TaskKeys, data: bytes) -> TaskLog:
    """Decode a stored task. Raises `CheckpointError`."""
    said: Any = unpack(data)
    try:
        if said["v"] != _FORMAT:
            msg = (
                f"the stored Agent2Agent task has format {said['v']}, which this version of "
                "offbook cannot read. Update offbook."
            )
            raise CheckpointError(msg)
        task = pb.Task.FromString(said["task"])
        tenant, subject = said["owner"]
        kept = StoredTask(
            Owner(tenant, subject),
            said.get("run"),
            said.get("checkpoint"),
            dict(said.get("pending", {})),
        )
        kept.questions = said.get("questions", 0)
        kept.said = dict.fromkeys(said.get("said", ()), True)
        log = TaskLog(keys, task, kept, said["n"])
        log.at = said["at"]
        log.is_read()
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            "the stored Agent2Agent task is damaged. Restore the store from a backup."
        ) from error
    return log
