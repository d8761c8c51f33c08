"""Converts the artifacts and messages of another agent to events.

It stores the artifacts of one task as received so far, and tracks which were shown. A complete
artifact is one message; while it streams, its text is shown as deltas. The data is untrusted, and
limited in size and number.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeGuard

from ...runtime.a2a import (
    A2AMessage,
    A2APart,
    A2AProtocolError,
    Artifact,
    ClientLimits,
    DataPart,
    FilePart,
    Status,
    Task,
    TaskArtifactUpdateEvent,
    TaskStatus,
)
from ...runtime.a2a import TextPart as WireText
from ...runtime.data import chat
from ...runtime.data.chat import Message, MessageDelta
from ...runtime.data.events import AgentEvent, CustomAction
from ...runtime.errors import ModelRetry, UsageError
from ...runtime.maybe_await import maybe_await
from .task_notes import TaskNotes

__all__ = ["Due", "OutputConverter", "Outputs"]

Converted: TypeAlias = AgentEvent | Message | str | Sequence[AgentEvent | Message | str] | None
Mark: TypeAlias = Callable[[], None]
Due: TypeAlias = tuple[AgentEvent, Mark | None]
OutputConverter: TypeAlias = Callable[
    [Artifact | A2AMessage | TaskStatus], Converted | Awaitable[Converted]
]


class _Growing:
    """One artifact, as received so far."""

    def __init__(self, artifact: Artifact) -> None:
        self.head = artifact
        self.parts: list[A2APart] = []
        self.pieces: list[str] = []  # deltas of the text at its end
        self.size = 0
        self.is_last = False
        self.streamed = 0  # how much of its text was shown as deltas
        self.extend(artifact.parts)

    def extend(self, parts: Sequence[A2APart]) -> None:
        for part in parts:
            self.size += _size(part)
            if _is_plain(part):
                self.pieces.append(part.text)
            else:
                self._close_text()
                self.parts.append(part)

    def _close_text(self) -> None:
        """Join the deltas into one text part, so that equal texts compare equal."""
        if not self.pieces:
            return
        last = self.parts[-1] if self.parts else None
        if last is not None and _is_plain(last):
            self.parts.pop()
            self.pieces.insert(0, last.text)
        self.parts.append(WireText("".join(self.pieces)))
        self.pieces = []

    def whole(self) -> Artifact:
        self._close_text()
        head = self.head
        return Artifact(
            head.artifact_id,
            tuple(self.parts),
            head.name,
            head.description,
            head.metadata,
            head.extensions,
        )

    def text(self) -> str:
        self._close_text()
        return "".join(part.text for part in self.parts if isinstance(part, WireText))


class Outputs:
    """The events of one task."""

    def __init__(
        self,
        who: str,
        limits: ClientLimits,
        notes: TaskNotes,
        convert: OutputConverter | None,
        *,
        streaming: bool,
    ) -> None:
        self._who = who
        self._limits = limits
        self._notes = notes
        self._convert = convert
        self._streaming = streaming and convert is None
        self._artifacts: dict[str, _Growing] = {}
        self._shown_open: str | None = None  # the artifact whose deltas are shown
        self._attempts = 0
        self._size = 0  # of all artifacts

    # --- received events ---

    def snapshot(self, task: Task) -> list[AgentEvent]:
        """Take in the whole task, which includes the parts streamed so far."""
        events: list[AgentEvent] = []
        for artifact in task.artifacts:
            events += self._set(artifact, is_last=False)
        return events

    def update(self, update: TaskArtifactUpdateEvent) -> list[AgentEvent]:
        """Take in a part of an artifact, or a whole one."""
        artifact = update.artifact
        known = self._artifacts.get(artifact.artifact_id)
        if known is None or not update.append:
            return self._set(artifact, is_last=update.last_chunk)
        before = known.size
        known.extend(artifact.parts)
        known.is_last = update.last_chunk
        self._grow(known.size - before)
        text = "".join(part.text for part in artifact.parts if isinstance(part, WireText))
        return self._stream(artifact.artifact_id, known, text)

    def _set(self, artifact: Artifact, *, is_last: bool) -> list[AgentEvent]:
        before = self._artifacts.get(artifact.artifact_id)
        now = self._artifacts[artifact.artifact_id] = _Growing(artifact)
        now.is_last = is_last
        self._grow(now.size - (0 if before is None else before.size))
        if not self._streaming or self._notes.was_shown(
            artifact.artifact_id, _digest(now.whole().parts)
        ):
            return []
        text = now.text()
        if before is None or not before.streamed:
            return self._stream(artifact.artifact_id, now, text)
        said = before.text()[: before.streamed]
        if text.startswith(said):
            now.streamed = before.streamed
            return self._stream(artifact.artifact_id, now, text[len(said) :])
        self._attempts += 1  # the text has changed
        return [
            AgentEvent(delta=MessageDelta(), error=ModelRetry(self._attempts)),
            *self._stream(artifact.artifact_id, now, text),
        ]

    def _stream(self, artifact_id: str, growing: _Growing, text: str) -> list[AgentEvent]:
        """Return the delta to show. Of several concurrent artifacts, only the first is shown."""
        if not self._streaming or not text or self._shown_open not in (None, artifact_id):
            return []
        self._shown_open = artifact_id
        growing.streamed += len(text)
        return [AgentEvent(delta=MessageDelta(text))]

    def _grow(self, by: int) -> None:
        self._size += by
        if len(self._artifacts) > self._limits.artifacts:
            msg = (
                f"{self._who} sends more than {self._limits.artifacts:,} artifacts, which is the "
                "limit. If that is intended, raise ClientLimits(artifacts=...)."
            )
            raise A2AProtocolError(msg)
        if self._size > self._limits.content:
            msg = (
                f"{self._who} sends artifacts of more than {self._limits.content:,} bytes, which "
                "is the limit. If that is intended, raise ClientLimits(content=...)."
            )
            raise A2AProtocolError(msg)

    # --- shown events ---

    # Each event comes with a function that marks it as shown. It is called when the event is shown,
    # so the event and its mark are recorded together or not at all.

    async def whole(self, *, is_over: bool, only: str | None = None) -> list[Due]:
        """Return a message for each complete artifact that was not shown yet.

        An artifact is complete when its update says so, or when the task has ended or waits.
        """
        due: list[Due] = []
        for artifact_id, growing in (
            [(only, self._artifacts[only])] if only is not None else self._artifacts.items()
        ):
            if not (growing.is_last or is_over):
                continue
            artifact = growing.whole()
            digest = _digest(artifact.parts)
            growing.is_last = False
            is_news = not self._notes.was_shown(artifact_id, digest) and _says(artifact.parts)
            if is_news:
                due += [
                    (piece, None)
                    for piece in self._stream(
                        artifact_id, growing, growing.text()[growing.streamed :]
                    )
                ]
            if self._shown_open == artifact_id:
                self._shown_open = None
            if is_news:
                due += await self._events(
                    artifact, artifact.parts, partial(self._notes.shows, artifact_id, digest)
                )
        return due

    async def message(self, message: A2AMessage) -> list[Due]:
        """Return the message that ends the task, or that the agent sends instead of a task."""
        digest = _digest(message.parts)
        repeats = any(
            growing.whole().parts == message.parts for growing in self._artifacts.values()
        )
        if not _says(message.parts) or repeats or self._notes.was_said("message", digest):
            return []
        return await self._events(
            message, message.parts, partial(self._notes.says, "message", digest)
        )

    async def working(self, status: TaskStatus) -> list[Due]:
        """Return the agent's progress message, which is not part of the conversation."""
        message = status.message
        if message is None or not _says(message.parts):
            return []
        digest = _digest(message.parts)
        if self._notes.was_said("working", digest):
            return []
        mark = partial(self._notes.says, "working", digest)
        if self._convert is not None:
            return await self._converted(status, mark)
        return (
            [(AgentEvent.of(action=CustomAction(Status(message.text))), mark)]
            if message.text
            else []
        )

    async def _events(
        self, item: Artifact | A2AMessage, parts: Sequence[A2APart], mark: Mark
    ) -> list[Due]:
        if self._convert is not None:
            return await self._converted(item, mark)
        data = parts[0].data if len(parts) == 1 and isinstance(parts[0], DataPart) else None
        return [(AgentEvent.of(_as_message(parts), custom_output=data), mark)]

    async def _converted(self, item: Artifact | A2AMessage | TaskStatus, mark: Mark) -> list[Due]:
        assert self._convert is not None
        made: Any = await maybe_await(self._convert(item))
        several = [
            one for one in (made if isinstance(made, list | tuple) else [made]) if one is not None
        ]
        if not several:
            mark()
            return []
        events = [self._as_event(one) for one in several]
        return [*((event, None) for event in events[:-1]), (events[-1], mark)]

    def _as_event(self, made: object) -> AgentEvent:
        if isinstance(made, AgentEvent):
            return made
        if isinstance(made, Message):
            return AgentEvent.of(made)
        if isinstance(made, str):
            return AgentEvent.say(made)
        msg = (
            f"{self._who}: output_converter must return an AgentEvent, a Message, a "
            f"string, a list of these, or None, got {made!r}."
        )
        raise UsageError(msg)


def _as_message(parts: Sequence[A2APart]) -> Message:
    """Convert the parts to an assistant message: a plain string, if they are all text or data."""
    if all(isinstance(part, WireText | DataPart) for part in parts):
        return Message("assistant", "".join(_as_text(part) for part in parts))
    return Message("assistant", tuple(_as_part(part) for part in parts))


def _as_text(part: A2APart) -> str:
    return (
        part.text
        if isinstance(part, WireText)
        else json.dumps(getattr(part, "data", None), ensure_ascii=False)
    )


def _as_part(part: A2APart) -> chat.Part:
    if not isinstance(part, FilePart):
        return chat.TextPart(_as_text(part))
    media_type = part.media_type or (None if part.data is None else "application/octet-stream")
    kind = (media_type or "").partition("/")[0]
    if kind == "image":
        return chat.ImagePart(part.url, part.data, media_type)
    if kind == "audio":
        return chat.AudioPart(part.url, part.data, media_type)
    return chat.FilePart(part.url, part.data, media_type, part.name)


def _is_plain(part: A2APart) -> TypeGuard[WireText]:
    return isinstance(part, WireText) and not part.metadata and part.media_type is None


def _says(parts: Sequence[A2APart]) -> bool:
    return any(not isinstance(part, WireText) or part.text for part in parts)


def _size(part: A2APart) -> int:
    if isinstance(part, WireText):
        return len(part.text)
    if isinstance(part, FilePart):
        return len(part.data or b"") + len(part.url or "")
    return len(repr(part.data))


def _digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode("utf-8", "surrogatepass")).hexdigest()[:16]
