"""Validation of a request before anything is done with it, over any transport.

It refuses missing fields, numbers that JSON cannot represent, media types that the card does not
name, and long ids. Requests are never changed.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Final

from a2a.types import a2a_pb2 as pb
from a2a.utils.errors import A2AError, ContentTypeNotSupportedError, InvalidParamsError
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.message import Message as ProtoMessage
from google.protobuf.struct_pb2 import Struct, Value

__all__ = [
    "AT_REST",
    "INTERRUPTED",
    "LONGEST_ID",
    "TERMINAL",
    "TooManyMessages",
    "check_fields",
    "check_history_length",
    "check_message",
    "check_page_size",
    "may_follow",
]

LONGEST_ID: Final = 256
"""The longest id of a client, in characters."""

_LARGEST_PAGE: Final = 100
_MOST_PARTS: Final = 1_000
_DEEPEST: Final = 28
"""The maximum depth of data: deeper data could be received, but not be read from a store again."""


class TooManyMessages(A2AError):
    """A client has too many messages in progress. Over HTTP: 429."""

    message = "Too many of your messages are being worked on; send this one again later."


def check_fields(params: ProtoMessage) -> None:
    """Refuse a request that lacks a required field of the protocol."""
    validate_proto_required_fields(params)


def check_message(params: pb.SendMessageRequest, modes: Collection[str]) -> None:
    """Refuse a message that lacks something, or that contains values which cannot be forwarded or
    are not accepted. `modes`: the media types of the card.
    """
    message = params.message
    if not (message.message_id and message.role and message.parts) or params.configuration.HasField(
        "task_push_notification_config"
    ):
        validate_proto_required_fields(params)
    if message.role != pb.ROLE_USER:
        raise InvalidParamsError("message.role must be ROLE_USER in a client's message.")
    for name, value in (
        ("messageId", message.message_id),
        ("taskId", message.task_id),
        ("contextId", message.context_id),
    ):
        if len(value) > LONGEST_ID:
            msg = f"message.{name} must have at most {LONGEST_ID} characters, got {len(value)}."
            raise InvalidParamsError(msg)
    if len(message.parts) > _MOST_PARTS:
        msg = f"message.parts must have at most {_MOST_PARTS} parts, got {len(message.parts)}."
        raise InvalidParamsError(msg)
    for index, part in enumerate(message.parts):
        _check_part(part, f"message.parts[{index}]", modes)
    if params.HasField("metadata"):
        _check_struct(params.metadata, "metadata")
    if message.HasField("metadata"):
        _check_struct(message.metadata, "message.metadata")


def _check_part(part: pb.Part, where: str, modes: Collection[str]) -> None:
    kind = part.WhichOneof("content")
    if kind is None:
        msg = f"{where} must not be empty. Pass text, raw, url or data."
        raise InvalidParamsError(msg)
    if kind == "data":
        _check_values((part.data,), f"{where}.data")
    if part.HasField("metadata"):
        _check_struct(part.metadata, f"{where}.metadata")
    if part.media_type and not _is_wanted(part.media_type, modes):
        msg = (
            f"{where}: the media type {part.media_type[:100]!r} is not accepted. The card lists "
            f"{', '.join(sorted(modes))}."
        )
        raise ContentTypeNotSupportedError(msg)


def _is_wanted(media_type: str, modes: Collection[str]) -> bool:
    plain = media_type.partition(";")[0].strip().lower()
    return not modes or plain in modes or "*/*" in modes or f"{plain.partition('/')[0]}/*" in modes


def _check_struct(struct: Struct, where: str) -> None:
    _check_values(struct.fields.values(), where)


def _check_values(values: Iterable[Value], where: str) -> None:
    """Refuse infinity, NaN and very deep values.

    One of them in the store would break each list of tasks that contains it.
    """
    left = [(value, 1) for value in values]
    while left:
        value, depth = left.pop()
        if depth > _DEEPEST:
            msg = f"{where} must be nested at most {_DEEPEST} levels deep."
            raise InvalidParamsError(msg)
        kind = value.WhichOneof("kind")
        if kind == "number_value":
            if not math.isfinite(value.number_value):
                msg = f"{where} must contain only finite numbers, as in JSON."
                raise InvalidParamsError(msg)
        elif kind == "struct_value":
            left.extend((one, depth + 1) for one in value.struct_value.fields.values())
        elif kind == "list_value":
            left.extend((one, depth + 1) for one in value.list_value.values)
        elif kind is None:
            msg = f"{where} must not contain a value without a kind. Use null for no value."
            raise InvalidParamsError(msg)


def check_history_length(
    config: pb.SendMessageConfiguration | pb.GetTaskRequest | pb.ListTasksRequest,
) -> None:
    if config.history_length < 0:
        msg = f"historyLength must be 0 or more, got {config.history_length}."
        raise InvalidParamsError(msg)


def check_page_size(params: pb.ListTasksRequest) -> None:
    if params.HasField("page_size") and not 1 <= params.page_size <= _LARGEST_PAGE:
        msg = f"pageSize must be from 1 to {_LARGEST_PAGE}, got {params.page_size}."
        raise InvalidParamsError(msg)


TERMINAL: Final = frozenset(
    (pb.TASK_STATE_COMPLETED, pb.TASK_STATE_FAILED, pb.TASK_STATE_CANCELED, pb.TASK_STATE_REJECTED)
)
INTERRUPTED: Final = frozenset((pb.TASK_STATE_INPUT_REQUIRED, pb.TASK_STATE_AUTH_REQUIRED))
AT_REST: Final = TERMINAL | INTERRUPTED
"""In these states nothing runs the task: it is only in the store."""


def may_follow(state: int, following: int) -> bool:
    """Return whether a task in that state may change to the other one."""
    if state in TERMINAL or following in (pb.TASK_STATE_UNSPECIFIED, pb.TASK_STATE_SUBMITTED):
        return False
    if state in INTERRUPTED:
        return following in (
            pb.TASK_STATE_WORKING,
            pb.TASK_STATE_CANCELED,
            pb.TASK_STATE_FAILED,
            pb.TASK_STATE_REJECTED,
        )
    return True
