"""Reads the records of a session, written by a realtime session or by text agents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from ....runtime.codec.packing import unpack
from ....runtime.data.chat import Message, Usage
from ....runtime.errors import CheckpointError
from ....runtime.sessions.session_log import SessionLog
from ..items import (
    AssistantMessageItem,
    RealtimeItem,
    RealtimeToolCallItem,
    SystemMessageItem,
    UserMessageItem,
)
from .conversation import Conversation
from .replay import items_of_messages

__all__ = ["Recorded", "RecordedCall", "read_records"]


@dataclass
class RecordedCall:
    """A recorded call and its state."""

    id: str
    item_id: str
    name: str
    arguments: str
    agent: str
    output: str | None = None
    pending: bool = False
    given: str | None = None
    handoff: bool = False


@dataclass
class Recorded:
    """The content of a session."""

    values: dict[str, Any]
    items: tuple[RealtimeItem, ...] = ()
    calls: dict[str, RecordedCall] = field(default_factory=dict)
    agent: str | None = None
    always: set[tuple[str, str]] = field(default_factory=set)
    never: dict[tuple[str, str], str] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    message_ids: dict[str, str] = field(default_factory=dict)
    is_new: bool = True


def read_records(session_id: str, records: Iterable[bytes]) -> Recorded:
    """Read the records of a session. Raise `CheckpointError` if they are damaged."""
    given = list(records)
    log = SessionLog(session_id, given)
    found = Recorded(dict(log.values), is_new=not given)
    conversation = Conversation()
    loose: list[Message] = []  # of text agents
    for position, raw in enumerate(given):
        record: Any = unpack(raw)
        told = record.get("realtime")
        if told is None:
            loose.extend(record.get("messages", ()))
            continue
        conversation.fill(items_of_messages(loose))
        loose.clear()
        try:
            _apply(told, found, conversation)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            msg = (
                f"session {session_id!r} is damaged at record {position}: "
                f"{type(error).__name__}: {error}. Restore the store from a backup, or pass "
                "another session_id"
            )
            raise CheckpointError(msg) from error
    conversation.fill(items_of_messages(loose))
    found.items = conversation.snapshot()
    return found


def _apply(told: dict[str, Any], found: Recorded, conversation: Conversation) -> None:
    kind = told["kind"]
    if kind == "item":
        conversation.put(_item(told))
        found.message_ids[told["id"]] = told["message"]
    elif kind == "cut":
        conversation.mark(told["id"], status="incomplete", audio_end_ms=told["end"])
        conversation.correct(told["id"], told["text"])
    elif kind == "deleted":
        conversation.remove(told["id"])
    elif kind == "call":
        status: Any = "in_progress"
        call_id, name, arguments = told["call"], told["name"], told["arguments"]
        conversation.put(
            RealtimeToolCallItem(
                item_id=told["id"],
                previous_item_id=told["prev"],
                call_id=call_id,
                status=status,
                arguments=arguments,
                name=name,
            )
        )
        found.calls[call_id] = RecordedCall(
            call_id, told["id"], name, arguments, told["agent"], handoff=told["handoff"]
        )
    elif kind == "pending":
        found.calls[told["call"]].pending = True
    elif kind == "answer":
        call = found.calls[told["call"]]
        call.pending, call.given = False, told["given"]
        if told["always"]:
            found.always.add((call.agent, call.name))
    elif kind == "rejected":
        call = found.calls[told["call"]]
        found.never[call.agent, call.name] = told["text"]
    elif kind == "output":
        call = found.calls[told["call"]]
        call.output, call.pending = told["output"], False
        conversation.mark(call.item_id, status="completed", output=told["output"])
    elif kind == "agent":
        found.agent = told["name"]
    elif kind == "usage":
        found.usage += Usage(*told["usage"])


def _item(told: dict[str, Any]) -> RealtimeItem:
    role, text, before = (
        told["role"],
        told["text"],
        {"item_id": told["id"], "previous_item_id": told["prev"]},
    )
    if role == "assistant":
        part = (
            {"type": "audio", "transcript": text}
            if told["audio"]
            else {"type": "text", "text": text}
        )
        return AssistantMessageItem.model_validate(
            {**before, "status": "completed", "content": [part]}
        )
    if role == "system":
        return SystemMessageItem.model_validate(
            {**before, "content": [{"type": "input_text", "text": text}]}
        )
    part = (
        {"type": "input_audio", "transcript": text}
        if told["audio"]
        else {"type": "input_text", "text": text}
    )
    return UserMessageItem.model_validate({**before, "content": [part]})
