"""Runs custom functions for a task, instead of an agent.

An exception of one of them fails the task, and is not shown to any client.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from a2a.types import a2a_pb2 as pb

from ...data.chat import Message, new_id
from ...errors import UsageError
from ...maybe_await import maybe_await
from ..conversion import (
    artifact_to_wire,
    message_from_wire,
    message_to_wire,
    metadata_from_wire,
    part_to_wire,
    status_to_wire,
    task_from_wire,
)
from ..data.actions import ArtifactUpdate, AuthRequired, Reject, Reply, Status
from ..data.message import A2AMessage, as_message
from ..data.task import (
    Artifact,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from .asks import End, Say
from .checks import AT_REST
from .keys import short_hash

if TYPE_CHECKING:
    from .turn import Turn

__all__ = ["HandlerPlayer", "HandlerRequest", "TaskWriter", "check_handlers"]

Written: TypeAlias = (
    Task
    | TaskStatus
    | TaskState
    | TaskStatusUpdateEvent
    | Artifact
    | TaskArtifactUpdateEvent
    | ArtifactUpdate
    | Status
    | Reject
    | AuthRequired
    | Reply
    | A2AMessage
    | Message
    | str
    | None
)
"""The values that a handler may write or return."""

_METHODS: Final = ("message", "stream", "cancel")


@dataclass(frozen=True, slots=True)
class HandlerRequest:
    """The request of a handler: a message to a task.

    The task is in the state when the message arrived, with that message in its history.
    """

    task: Task
    message: A2AMessage
    metadata: Mapping[str, object] = field(default_factory=dict)
    tenant: str = ""
    subject: str = ""


def check_handlers(handlers: object) -> None:
    """Raise UsageError if these are not valid handlers."""
    for name in _METHODS:
        method = getattr(handlers, name, None)
        if method is not None and not inspect.iscoroutinefunction(method):
            msg = f"a2a_app: {name} of handlers={handlers!r} must be an `async def`."
            raise UsageError(msg)
    if not any(getattr(handlers, name, None) for name in ("message", "stream")):
        msg = (
            "a2a_app: handlers must be an object with `async def message(request)`, or "
            f"`async def stream(request, writer)`, got {handlers!r}."
        )
        raise UsageError(msg)


class TaskWriter:
    """The writer of a streaming handler: for states, artifacts and their chunks, texts.

    Each is shown when it is written.
    """

    __slots__ = ("_turn", "end")

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.end: End | None = None  # the written value that ends the turn

    async def write(self, written: Written) -> None:
        """Write a value. After one that ends the task, nothing more can be written."""
        if self.end is not None:
            raise UsageError(
                "writer.write(): the task has ended or paused already, so it accepts no more "
                "values. Write them before the final state."
            )
        turn = self._turn
        match written:
            case TaskStatusUpdateEvent():
                await self._status(written.status)
            case TaskStatus():
                await self._status(written)
            case TaskState():
                await self._status(TaskStatus(written))
            case Status(text):
                await turn.working(turn.said(text) if text else None)
            case TaskArtifactUpdateEvent():
                await turn.artifact(
                    artifact_to_wire(written.artifact),
                    append=written.append,
                    last=written.last_chunk,
                )
            case Artifact():
                await turn.artifact(artifact_to_wire(written), append=False, last=True)
            case ArtifactUpdate(name, parts, append, last):
                artifact = pb.Artifact(
                    artifact_id=short_hash(f"{turn.log.task.id}:{name}"),
                    name=name,
                    parts=[part_to_wire(part) for part in parts],
                )
                await turn.artifact(artifact, append=append, last=last)
            case Reject(reason):
                self.end = End(pb.TASK_STATE_REJECTED, turn.said(reason) if reason else None)
            case AuthRequired(info):
                self.end = End(
                    pb.TASK_STATE_AUTH_REQUIRED, turn.said(str(info)) if info is not None else None
                )
            case Task():
                for whole in written.artifacts:
                    await turn.artifact(artifact_to_wire(whole), append=False, last=True)
                await self._status(written.status)
            case Reply(message):
                self.end = End(pb.TASK_STATE_COMPLETED, reply=message_to_wire(message))
            case A2AMessage() | Message() | str():
                self.end = End(
                    pb.TASK_STATE_COMPLETED, reply=message_to_wire(as_message(written, "agent"))
                )
            case None:
                pass
            case _:
                msg = (
                    "writer.write: the value must be a state, an artifact, a message, a "
                    "Task, ArtifactUpdate, Status, Reject, AuthRequired or Reply, got "
                    f"{written!r}."
                )
                raise UsageError(msg)

    async def _status(self, status: TaskStatus) -> None:
        wire = status_to_wire(status)
        message = wire.message if wire.HasField("message") else None
        if message is not None and not message.message_id:
            message.message_id = new_id()
        if wire.state in AT_REST:
            self.end = End(wire.state, message)
        elif wire.state == pb.TASK_STATE_WORKING:
            await self._turn.working(message)


class HandlerPlayer:
    """One turn of handlers."""

    __slots__ = ("_canceled", "_handlers", "_request", "_work")

    def __init__(self, handlers: Any) -> None:
        self._handlers = handlers
        self._work: asyncio.Task[object] | None = None
        self._canceled = False
        self._request: HandlerRequest | None = None

    def check(self, turn: Turn) -> None:
        """Accept any message."""

    async def play(self, turn: Turn) -> End:
        ask, owner, handlers = turn.ask, turn.log.kept.owner, self._handlers
        metadata = (
            metadata_from_wire(ask.metadata)
            if isinstance(ask, Say) and ask.metadata is not None
            else {}
        )
        request = self._request = HandlerRequest(
            task_from_wire(turn.log.task),
            message_from_wire(turn.message),
            metadata,
            owner.tenant,
            owner.subject,
        )
        writer = TaskWriter(turn)
        streams = isinstance(ask, Say) and ask.shows is not None
        stream: Any = getattr(handlers, "stream", None)
        message: Any = getattr(handlers, "message", None)
        working = (
            stream(request, writer)
            if stream is not None and (streams or message is None)
            else message(request)
        )
        work = self._work = turn.service.run_task(working, f"handler of task {turn.log.task.id}")
        if self._canceled:
            work.cancel()
        try:
            await asyncio.wait((work,))
        except asyncio.CancelledError:
            work.cancel()
            raise
        if work.cancelled():
            return await self._stopped(turn)
        returned: Any = work.result()
        if writer.end is None:
            await writer.write(returned)
        return writer.end or End(
            pb.TASK_STATE_CANCELED if turn.is_canceled else pb.TASK_STATE_COMPLETED
        )

    async def _stopped(self, turn: Turn) -> End:
        """Finish a cancelled turn: the custom handler may determine the task's state."""
        writer = TaskWriter(turn)
        cancel = getattr(self._handlers, "cancel", None)
        if cancel is not None:
            try:
                await writer.write(await maybe_await(cancel(self._request)))
            except Exception:
                turn.service.logger.exception(
                    "The cancel handler of task %s has failed.", turn.log.task.id
                )
        end = writer.end
        return (
            end
            if end is not None and end.state is not None and end.reply is None
            else End(pb.TASK_STATE_CANCELED)
        )

    def cancel(self) -> None:
        self._canceled = True
        if self._work is not None:
            self._work.cancel()
