"""The protocol's JSON, to and from protobuf: a faster `MessageToDict` and `ParseDict` for the
messages of this protocol.

The conversion of each field is determined once for each message type from its descriptor. The
output equals that of `MessageToDict`; unusual input is left to `ParseDict`, which also has the
error messages.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from a2a.types import a2a_pb2 as pb
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message import Message as ProtoMessage
from google.protobuf.timestamp_pb2 import Timestamp

__all__ = ["as_json_object", "read_message"]

_Kind: TypeAlias = Any  # a descriptor: protobuf's stubs have two classes for it
_Writer: TypeAlias = Callable[[Any], object]
_Reader: TypeAlias = Callable[[ProtoMessage, Any], None]


class _Unusual(Exception):
    """The input must be left to `ParseDict`."""


# Writing.


def as_json_object(message: ProtoMessage) -> dict[str, object]:
    """Return the result of `MessageToDict`, in the same order."""
    plan = _PLANS[message.DESCRIPTOR].fields
    if plan is None:
        return MessageToDict(message)
    found: dict[str, object] = {}
    for field, value in message.ListFields():
        name, write = plan[field.number]
        found[name] = write(value)
    return found


def _writer(field: FieldDescriptor) -> _Writer:
    kind: _Kind = field.message_type
    if kind is not None and kind.GetOptions().map_entry:
        raise _Unusual
    one = _writer_of_one(field, kind)
    if not _is_repeated(field):
        return one
    return list if one is _same else lambda values: [one(value) for value in values]


def _writer_of_one(field: FieldDescriptor, kind: _Kind) -> _Writer:
    match field.type:
        case FieldDescriptor.TYPE_STRING | FieldDescriptor.TYPE_BOOL | FieldDescriptor.TYPE_INT32:
            return _same
        case FieldDescriptor.TYPE_BYTES:
            return _base64
        case FieldDescriptor.TYPE_ENUM:
            values: _Kind = field.enum_type
            names = {number: value.name for number, value in values.values_by_number.items()}
            return lambda number: names.get(number, number)
        case FieldDescriptor.TYPE_MESSAGE:
            if kind.full_name == Timestamp.DESCRIPTOR.full_name:
                return Timestamp.ToJsonString
            return MessageToDict if _is_googles(kind) else as_json_object
    raise _Unusual


def _same(value: object) -> object:
    return value


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


def _is_repeated(field: FieldDescriptor) -> bool:
    """Return whether a field is repeated.

    Protobuf 5 has no `is_repeated`, and later ones warn about `label`.
    """
    described: Any = field
    return bool(
        described.is_repeated
        if hasattr(field, "is_repeated")
        else described.label == FieldDescriptor.LABEL_REPEATED
    )


def _is_googles(kind: _Kind) -> bool:
    return bool(kind.full_name.startswith("google.protobuf."))


# Reading.


def read_message(said: dict[str, object], message: ProtoMessage) -> bool:
    """Fill the message from JSON.

    False: something in it is unusual, or wrong; then the message must not be used.
    """
    try:
        _fill(message, said)
    except Exception:  # noqa: BLE001 -- `ParseDict` reports the error
        return False
    return True


def _fill(message: ProtoMessage, said: object) -> None:
    if type(said) is not dict:
        raise _Unusual
    plan = _PLANS[message.DESCRIPTOR].names
    for name, value in said.items():
        read = plan.get(name)
        if read is None or value is None:
            raise _Unusual
        read(message, value)


def _reader(field: FieldDescriptor) -> _Reader | None:
    """Return the reader of a field. None: every message with this field is unusual."""
    oneof = (
        field.containing_oneof.name
        if field.containing_oneof is not None and len(field.containing_oneof.fields) > 1
        else None
    )
    name, is_repeated = field.name, _is_repeated(field)
    if field.type == FieldDescriptor.TYPE_MESSAGE:
        return _reader_of_messages(field, field.message_type, oneof)
    types = {
        FieldDescriptor.TYPE_STRING: str,
        FieldDescriptor.TYPE_BOOL: bool,
        FieldDescriptor.TYPE_INT32: int,
        FieldDescriptor.TYPE_ENUM: str,
    }
    wanted = types.get(field.type)
    if wanted is None:
        return None
    numbers: dict[Any, int] | None = (
        {value.name: value.number for value in field.enum_type.values}
        if field.enum_type is not None
        else None
    )

    def read(message: ProtoMessage, value: Any) -> None:
        if is_repeated:
            if (
                type(value) is not list
                or any(type(one) is not wanted for one in value)
                or numbers is not None
            ):
                raise _Unusual
            getattr(message, name).extend(value)
            return
        if type(value) is not wanted or (
            oneof is not None and message.WhichOneof(oneof) is not None
        ):
            raise _Unusual
        setattr(message, name, value if numbers is None else numbers[value])

    return read


def _reader_of_messages(field: FieldDescriptor, kind: _Kind, oneof: str | None) -> _Reader | None:
    name, is_repeated, is_googles = field.name, _is_repeated(field), _is_googles(kind)
    if is_googles and (is_repeated or kind.full_name == Timestamp.DESCRIPTOR.full_name):
        return None

    def read(message: ProtoMessage, value: Any) -> None:
        if oneof is not None and message.WhichOneof(oneof) is not None:
            raise _Unusual
        inner = getattr(message, name)
        if is_repeated:
            if type(value) is not list:
                raise _Unusual
            for one in value:
                _fill(inner.add(), one)
            return
        inner.SetInParent()
        if is_googles:
            ParseDict(value, inner)
        else:
            _fill(inner, value)

    return read


# The plans, for each type of message that is written or read.


@dataclass(frozen=True, slots=True)
class _Plan:
    # None: it has features of a later version of the protocol, and is left to `MessageToDict`.
    fields: Mapping[int, tuple[str, _Writer]] | None
    names: Mapping[str, _Reader]


def _plan(kind: _Kind) -> _Plan:
    fields: Mapping[int, tuple[str, _Writer]] | None
    try:
        fields = MappingProxyType(
            {field.number: (field.json_name, _writer(field)) for field in kind.fields}
        )
    except _Unusual:
        fields = None
    return _Plan(
        fields,
        MappingProxyType(
            {
                field.json_name: reader
                for field in kind.fields
                if (reader := _reader(field)) is not None
            }
        ),
    )


def _plans(*kinds: _Kind) -> Mapping[_Kind, _Plan]:
    found: dict[_Kind, _Plan] = {}
    left = list(kinds)
    while left:
        kind = left.pop()
        if kind not in found and not _is_googles(kind):
            found[kind] = _plan(kind)
            left += [field.message_type for field in kind.fields if field.message_type is not None]
    return MappingProxyType(found)


_PLANS: Final = _plans(pb.SendMessageRequest.DESCRIPTOR, pb.StreamResponse.DESCRIPTOR)
