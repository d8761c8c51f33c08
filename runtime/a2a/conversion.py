"""Conversion of the plain values to the SDK's protobuf, and back.

Protobuf represents JSON's numbers as floats: those without a fraction are converted back to
integers, and integers that a float cannot represent are refused. This is the one module that knows
both sides; it is only imported when a program serves or calls an agent.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from copy import deepcopy
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from a2a.client.card_resolver import parse_agent_card
from a2a.types import a2a_pb2 as pb
from google.protobuf.json_format import MessageToDict
from google.protobuf.struct_pb2 import ListValue, NullValue, Struct, Value

from ..errors import UsageError
from .data.card import AgentCard, AgentInterface, AgentSkill
from .data.message import A2AMessage
from .data.parts import A2APart, DataPart, FilePart, Metadata, TextPart
from .data.task import (
    Artifact,
    StreamEvent,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

__all__ = [
    "Json",
    "WireEvent",
    "artifact_from_wire",
    "artifact_to_wire",
    "card_from_wire",
    "card_to_wire",
    "data_from_wire",
    "data_to_wire",
    "event_from_wire",
    "event_to_wire",
    "message_from_wire",
    "message_to_wire",
    "metadata_from_wire",
    "metadata_to_wire",
    "part_from_wire",
    "part_to_wire",
    "state_from_wire",
    "state_to_wire",
    "status_from_wire",
    "status_to_wire",
    "task_from_wire",
    "task_to_wire",
]

Json: TypeAlias = dict[str, object] | list[object] | str | int | float | bool | None
WireEvent: TypeAlias = pb.Task | pb.Message | pb.TaskStatusUpdateEvent | pb.TaskArtifactUpdateEvent

_EXACT: Final = 2**53
"""Up to here, a float represents every integer exactly."""
_DEEPEST: Final = 28
"""The maximum depth of data.

Each level of it is up to three of protobuf, and protobuf's parsers fail at 100, including the
levels around the data.
"""


# Data: JSON values.


def data_to_wire(data: object, where: str = "data") -> Value:
    """Convert to a protobuf value. A `UsageError` names the part that cannot be converted."""
    value = Value()
    _fill(value, data, where, 0)
    return value


def _fill(value: Value, data: object, where: str, depth: int) -> None:
    if depth > _DEEPEST:
        msg = f"{where} is more than {_DEEPEST} levels deep, which clients cannot read. Flatten it."
        raise UsageError(msg)
    if data is None:
        value.null_value = NullValue.NULL_VALUE
    elif isinstance(data, bool):
        value.bool_value = data
    elif isinstance(data, int | float):
        value.number_value = _number(data, where)
    elif isinstance(data, str):
        value.string_value = _text(data)
    elif isinstance(data, Mapping):
        value.struct_value.SetInParent()
        _fill_struct(value.struct_value, data, where, depth)
    elif isinstance(data, Iterable) and not isinstance(data, bytes | bytearray | memoryview):
        value.list_value.SetInParent()
        for index, item in enumerate(data):
            _fill(value.list_value.values.add(), item, f"{where}[{index}]", depth + 1)
    else:
        msg = (
            f"{where} must be JSON data (None, a bool, a number, a string, a list or a "
            f"dict), got a {type(data).__name__}."
        )
        raise UsageError(msg)


def _fill_struct(struct: Struct, data: Mapping[Any, object], where: str, depth: int = 0) -> None:
    for key, item in data.items():
        if not isinstance(key, str):
            msg = f"{where} must have strings as keys, as in JSON, got the key {key!r}."
            raise UsageError(msg)
        _fill(struct.fields[_text(key)], item, f"{where}.{key}", depth + 1)


def _number(number: float, where: str) -> float:
    if isinstance(number, int) and abs(number) > _EXACT:
        msg = (
            f"{where} is {number}: clients round numbers of more than 53 bits. Pass it as a string."
        )
        raise UsageError(msg)
    if not math.isfinite(number):
        msg = f"{where} is {number}, which JSON cannot represent. Pass a finite number, or None."
        raise UsageError(msg)
    return float(number)


def _text(text: str) -> str:
    """Replace halves of surrogate pairs, which UTF-8 cannot represent."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def data_from_wire(value: Value) -> Json:
    """Convert a protobuf value back."""
    match value.WhichOneof("kind"):
        case "number_value":
            return _as_number(value.number_value)
        case "string_value":
            return value.string_value
        case "bool_value":
            return value.bool_value
        case "struct_value":
            return metadata_from_wire(value.struct_value)
        case "list_value":
            return _as_list(value.list_value)
    return None


def _as_number(number: float) -> int | float:
    return int(number) if number.is_integer() and abs(number) <= _EXACT else number


def _as_list(values: ListValue) -> list[object]:
    return [data_from_wire(item) for item in values.values]


def metadata_to_wire(metadata: Metadata, where: str = "metadata") -> Struct:
    struct = Struct()
    _fill_struct(struct, dict(metadata), where)
    return struct


def metadata_from_wire(struct: Struct) -> dict[str, object]:
    """Convert a struct, sorted by keys.

    Protobuf's maps have no order, and the same data must always give the same text.
    """
    return {key: data_from_wire(struct.fields[key]) for key in sorted(struct.fields)}


# Messages and their parts.


def part_to_wire(part: A2APart) -> pb.Part:
    match part:
        case TextPart(text, media_type):
            wire = pb.Part(text=_text(text), media_type=media_type or "")
        case DataPart(data, media_type, name):
            wire = pb.Part(
                data=data_to_wire(data),
                media_type=media_type or "application/json",
                filename=_text(name or ""),
            )
        case FilePart(url, data, media_type, name):
            wire = pb.Part(media_type=media_type or "", filename=_text(name or ""))
            if data is not None:
                wire.raw = data
            else:
                wire.url = _text(url or "")
    _set_metadata(wire, part.metadata)
    return wire


def part_from_wire(wire: pb.Part) -> A2APart:
    media_type, metadata = wire.media_type or None, metadata_from_wire(wire.metadata)
    match wire.WhichOneof("content"):
        case "data":
            return DataPart(data_from_wire(wire.data), media_type, wire.filename or None, metadata)
        case "raw":
            return FilePart(None, wire.raw, media_type, wire.filename or None, metadata)
        case "url":
            return FilePart(wire.url, None, media_type, wire.filename or None, metadata)
    return TextPart(wire.text, media_type, metadata)


def message_to_wire(message: A2AMessage) -> pb.Message:
    wire = pb.Message(
        message_id=message.message_id,
        context_id=message.context_id or "",
        task_id=message.task_id or "",
        role=pb.ROLE_USER if message.role == "user" else pb.ROLE_AGENT,
        parts=[part_to_wire(part) for part in message.parts],
        extensions=message.extensions,
        reference_task_ids=message.reference_task_ids,
    )
    _set_metadata(wire, message.metadata)
    return wire


def message_from_wire(wire: pb.Message) -> A2AMessage:
    return A2AMessage(
        "user" if wire.role == pb.ROLE_USER else "agent",
        tuple(part_from_wire(part) for part in wire.parts),
        wire.task_id or None,
        wire.context_id or None,
        metadata_from_wire(wire.metadata),
        tuple(wire.reference_task_ids),
        tuple(wire.extensions),
        wire.message_id,
    )


def _set_metadata(
    wire: pb.Message
    | pb.Part
    | pb.Artifact
    | pb.Task
    | pb.TaskStatusUpdateEvent
    | pb.TaskArtifactUpdateEvent,
    metadata: Metadata,
) -> None:
    if metadata:
        wire.metadata.CopyFrom(metadata_to_wire(metadata))


# Tasks.


def state_to_wire(state: TaskState) -> pb.TaskState:
    name = "UNSPECIFIED" if state is TaskState.UNKNOWN else state.name
    number: pb.TaskState = getattr(pb, f"TASK_STATE_{name}")
    return number


def state_from_wire(state: int) -> TaskState:
    """Convert a state. A number that this version does not know is `UNKNOWN`."""
    if state not in pb.TaskState.values():
        return TaskState.UNKNOWN
    name = pb.TaskState.Name(state).removeprefix("TASK_STATE_")
    return TaskState.__members__.get(name, TaskState.UNKNOWN)


def status_to_wire(status: TaskStatus) -> pb.TaskStatus:
    wire = pb.TaskStatus(state=state_to_wire(status.state))
    if status.message is not None:
        wire.message.CopyFrom(message_to_wire(status.message))
    if status.timestamp is not None:
        wire.timestamp.FromDatetime(_moment(status.timestamp))
    return wire


def _moment(timestamp: str) -> datetime:
    try:
        moment = datetime.fromisoformat(timestamp)
    except ValueError as error:
        msg = (
            "TaskStatus: timestamp must be ISO 8601, such as '2026-01-31T12:00:00Z', got "
            f"{timestamp!r}."
        )
        raise UsageError(msg) from error
    return moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def status_from_wire(wire: pb.TaskStatus) -> TaskStatus:
    return TaskStatus(
        state_from_wire(wire.state),
        message_from_wire(wire.message) if wire.HasField("message") else None,
        wire.timestamp.ToJsonString() if wire.HasField("timestamp") else None,
    )


def artifact_to_wire(artifact: Artifact) -> pb.Artifact:
    wire = pb.Artifact(
        artifact_id=artifact.artifact_id,
        name=_text(artifact.name or ""),
        description=_text(artifact.description or ""),
        parts=[part_to_wire(part) for part in artifact.parts],
        extensions=artifact.extensions,
    )
    _set_metadata(wire, artifact.metadata)
    return wire


def artifact_from_wire(wire: pb.Artifact) -> Artifact:
    parts = tuple(part_from_wire(part) for part in wire.parts)
    return Artifact(
        wire.artifact_id,
        parts,
        wire.name or None,
        wire.description or None,
        metadata_from_wire(wire.metadata),
        tuple(wire.extensions),
    )


def task_to_wire(task: Task) -> pb.Task:
    wire = pb.Task(
        id=task.id,
        context_id=task.context_id,
        status=status_to_wire(task.status),
        artifacts=[artifact_to_wire(artifact) for artifact in task.artifacts],
        history=[message_to_wire(message) for message in task.history],
    )
    _set_metadata(wire, task.metadata)
    return wire


def task_from_wire(wire: pb.Task) -> Task:
    return Task(
        wire.id,
        wire.context_id,
        status_from_wire(wire.status),
        tuple(artifact_from_wire(artifact) for artifact in wire.artifacts),
        tuple(message_from_wire(message) for message in wire.history),
        metadata_from_wire(wire.metadata),
    )


# Streams.


def event_to_wire(event: StreamEvent) -> WireEvent:
    """Convert an event to the form of the SDK's queues."""
    match event:
        case Task():
            return task_to_wire(event)
        case A2AMessage():
            return message_to_wire(event)
        case TaskStatusUpdateEvent(task_id, context_id, status):
            update = pb.TaskStatusUpdateEvent(
                task_id=task_id, context_id=context_id, status=status_to_wire(status)
            )
            _set_metadata(update, event.metadata)
            return update
        case TaskArtifactUpdateEvent(task_id, context_id, artifact, append, last_chunk):
            piece = pb.TaskArtifactUpdateEvent(
                task_id=task_id,
                context_id=context_id,
                artifact=artifact_to_wire(artifact),
                append=append,
                last_chunk=last_chunk,
            )
            _set_metadata(piece, event.metadata)
            return piece


def event_from_wire(
    wire: pb.StreamResponse | pb.SendMessageResponse | WireEvent,
) -> StreamEvent | None:
    """Convert an event; None for a response that is empty or unknown to this version."""
    match wire:
        case pb.StreamResponse() | pb.SendMessageResponse():
            field = wire.WhichOneof("payload")
            return None if field is None else event_from_wire(getattr(wire, field))
        case pb.Task():
            return task_from_wire(wire)
        case pb.Message():
            return message_from_wire(wire)
        case pb.TaskStatusUpdateEvent():
            return TaskStatusUpdateEvent(
                wire.task_id,
                wire.context_id,
                status_from_wire(wire.status),
                metadata_from_wire(wire.metadata),
            )
        case pb.TaskArtifactUpdateEvent():
            artifact = artifact_from_wire(wire.artifact)
            return TaskArtifactUpdateEvent(
                wire.task_id,
                wire.context_id,
                artifact,
                wire.append,
                wire.last_chunk,
                metadata_from_wire(wire.metadata),
            )


# Cards.


def card_from_wire(wire: pb.AgentCard) -> AgentCard:
    return AgentCard(
        wire.name,
        wire.description,
        wire.version,
        tuple(
            AgentInterface(door.url, door.protocol_binding, door.protocol_version, door.tenant)
            for door in wire.supported_interfaces
        ),
        tuple(
            AgentSkill(
                skill.id, skill.name, skill.description, tuple(skill.tags), tuple(skill.examples)
            )
            for skill in wire.skills
        ),
        streaming=wire.capabilities.streaming,
        push_notifications=wire.capabilities.push_notifications,
        extended_card=wire.capabilities.extended_agent_card,
        input_modes=tuple(wire.default_input_modes),
        output_modes=tuple(wire.default_output_modes),
        document=MessageToDict(wire),
    )


def card_to_wire(card: AgentCard | Mapping[str, object]) -> pb.AgentCard:
    """Convert a card: from its document of any version, or from the fields of one made by hand."""
    document = card if isinstance(card, Mapping) else card.document
    if document or isinstance(card, Mapping):
        return parse_agent_card(deepcopy(dict(document)))
    return pb.AgentCard(
        name=card.name,
        description=card.description,
        version=card.version,
        supported_interfaces=[
            pb.AgentInterface(
                url=door.url,
                protocol_binding=door.transport,
                protocol_version=door.protocol_version,
                tenant=door.tenant,
            )
            for door in card.interfaces
        ],
        skills=[
            pb.AgentSkill(
                id=one.id,
                name=one.name,
                description=one.description,
                tags=one.tags,
                examples=one.examples,
            )
            for one in card.skills
        ],
        capabilities=pb.AgentCapabilities(
            streaming=card.streaming,
            push_notifications=card.push_notifications,
            extended_agent_card=card.extended_card,
        ),
        default_input_modes=card.input_modes,
        default_output_modes=card.output_modes,
    )
