"""Adds the changes of a session to its records.

A call is recorded before it runs, and its output before it is sent. Only complete items are
recorded. Without a store, nothing is recorded and nothing waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ....runtime.data.chat import Message, ToolCall, Usage
from ..items import (
    AssistantMessageItem,
    AssistantText,
    InputAudio,
    RealtimeToolCallItem,
    UserMessageItem,
    text_of_item,
)

if TYPE_CHECKING:
    from .call import Call
    from .session_core import SessionCore

__all__ = ["Notes"]


class Notes:
    """The changes of a session that its records contain."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self.message_ids: dict[str, str] = {}  # of the recorded items, by the id of the message
        self.noted_usage = core.context.usage

    def _note(
        self,
        realtime: dict[str, Any],
        message: Message | None = None,
        revised: dict[str, str] | None = None,
    ) -> None:
        if self._core.record is not None and not self._core.is_closing:
            self._note_usage()
            self._core.record.note(realtime, message, revised)

    def _note_usage(self) -> None:
        usage = self._core.context.usage
        if usage == self.noted_usage or self._core.record is None:
            return
        known, self.noted_usage = self.noted_usage, usage
        grown = [
            getattr(usage, name) - getattr(known, name)
            for name in ("input_tokens", "output_tokens", "cached_tokens", "requests")
        ]
        self._core.record.note({"kind": "usage", "usage": grown})

    def record_said(self, item_id: str) -> None:
        """Record a complete message."""
        if self._core.record is None or item_id in self.message_ids:
            return
        item = self._core.conversation.get(item_id)
        if item is None or isinstance(item, RealtimeToolCallItem):
            return
        text = text_of_item(item)
        if not text:
            return  # speech without a transcript yet
        message = Message(item.role, text)
        self.message_ids[item_id] = message.id
        if isinstance(item, AssistantMessageItem):
            spoken = not isinstance(item.content[0], AssistantText)
        else:
            spoken = isinstance(item, UserMessageItem) and any(
                isinstance(part, InputAudio) for part in item.content
            )
        told = {
            "kind": "item",
            "id": item_id,
            "prev": item.previous_item_id,
            "role": item.role,
            "text": text,
            "audio": spoken,
            "message": message.id,
        }
        self._note(told, message)

    def record_cut(self, item_id: str) -> None:
        """Record that only a part of a message was heard."""
        if self._core.record is None:
            return
        item = self._core.conversation.get(item_id)
        if not isinstance(item, AssistantMessageItem):
            return
        text = text_of_item(item)
        if item_id not in self.message_ids:
            self.record_said(item_id)
        if item_id in self.message_ids:
            end = (item.model_extra or {}).get("audio_end_ms", 0)
            self._note(
                {"kind": "cut", "id": item_id, "text": text, "end": end},
                None,
                {self.message_ids[item_id]: text},
            )

    def record_deleted(self, item_id: str) -> None:
        message_id = self.message_ids.get(item_id)
        self._note(
            {"kind": "deleted", "id": item_id},
            None,
            None if message_id is None else {message_id: ""},
        )

    def record_call(self, call: Call, then: Callable[[], object]) -> None:
        """Record the start of a call. `then` is called once that is stored."""
        item = self._core.conversation.get(call.item_id)
        self._note(
            {
                "kind": "call",
                "call": call.id,
                "id": call.item_id,
                "prev": None if item is None else item.previous_item_id,
                "name": call.name,
                "arguments": call.arguments,
                "agent": call.settings.agent.name,
                "handoff": call.name in call.settings.handoffs,
            },
            Message.assistant("", (ToolCall(call.id, call.name, call.arguments),)),
        )
        self._core.after_write(then)

    def record_pending(self, call: Call) -> None:
        self._note({"kind": "pending", "call": call.id})

    def record_answer(self, call: Call, *, always: bool) -> None:
        self._note({"kind": "answer", "call": call.id, "given": call.given, "always": always})

    def record_rejection(self, call: Call, text: str) -> None:
        """Record that all later calls of that tool are rejected, too."""
        self._note({"kind": "rejected", "call": call.id, "text": text})

    def record_output(self, call: Call, then: Callable[[], object]) -> None:
        """Record the output of a call. `then` is called once that is stored."""
        self._note(
            {"kind": "output", "call": call.id, "output": call.output}, self.tool_message(call)
        )
        self._core.after_write(then)

    def tool_message(self, call: Call) -> Message:
        return Message.tool(call.output or "", call.id, call.name)

    def record_agent(self, name: str) -> None:
        self._note({"kind": "agent", "name": name})

    def add_usage(self, usage: Usage, event: object) -> None:
        del event
        self._core.context.usage += usage
        if not self._core.is_closing:
            self._note_usage()
