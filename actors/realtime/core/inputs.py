"""The inputs of a program to a session.

They are messages, including those that wait for a connection, raw messages, and feedback to the
model after a guardrail. All of them are sent through the outbox.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ....runtime.errors import MailboxFull, UsageError
from ..model_events import RealtimeModelAudioEvent
from ..model_inputs import (
    RealtimeModelSendAudio,
    RealtimeModelSendEvent,
    RealtimeModelSendInterrupt,
    RealtimeModelSendRawMessage,
    RealtimeModelSendResponse,
    RealtimeModelSendSessionUpdate,
    RealtimeModelSendUserInput,
)
from .interruption import interrupt_active
from .responses import Wish

if TYPE_CHECKING:
    from .call import Call
    from .session_core import SessionCore

__all__ = ["Inputs"]

_MOST_HELD: Final = 64


class Inputs:
    """The messages, events and audio that a program sends."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self.pending_inputs: dict[
            str, tuple[Any, bool]
        ] = {}  # messages that the server has not accepted yet

    def send_message(self, message: Any, interrupt: bool, respond: bool) -> None:  # noqa: FBT001 -- a message's parameters
        """Add a message, and request a response."""
        self._check_open()
        self._core.activity += 1
        self._core.calls.user_spoke()
        if interrupt:
            interrupt_active(self._core, cancel=True)
            self._core.calls.interrupted()
        if len(self.pending_inputs) >= _MOST_HELD and not self._core.link.is_ready:
            msg = (
                f"{_MOST_HELD} messages already wait for the lost connection, which is the "
                "limit. Send this one after `connection_status` is 'connected'."
            )
            raise MailboxFull(msg)
        text = (
            message
            if isinstance(message, str)
            else " ".join(str(part.get("text", "")) for part in message["content"])
        )
        self._core.input_guards.check_text(
            text, lambda: self._put_message(message, respond=respond)
        )

    def _check_open(self) -> None:
        if self._core.is_closing:
            msg = "the session is closed and can no longer send. Open another one."
            raise UsageError(msg)

    def _put_message(self, message: Any, *, respond: bool, item_id: str | None = None) -> None:
        item_id = item_id or self._core.new_item_id()
        self.pending_inputs[item_id] = (message, respond)
        if not self._core.link.is_ready:
            return
        wish = Wish(items=(item_id,))
        starts = respond and self._core.responses.request_now(wish)
        self._core.outbox.put(
            RealtimeModelSendUserInput(message, item_id, starts, wish.event_id if starts else None)
        )
        if respond and not starts:
            self._core.responses.wish(wish)

    def accepted(self, item_id: str) -> None:
        """Record that the server has an item."""
        self.pending_inputs.pop(item_id, None)

    def send_held(self) -> bool:
        """Send the messages that waited for the connection.

        Returns whether any of them needs a response.
        """
        held, self.pending_inputs = self.pending_inputs, {}
        answers = False
        for item_id, (message, respond) in held.items():
            self._put_message(message, respond=False, item_id=item_id)
            self.pending_inputs[item_id] = (message, respond)
            answers = answers or respond
        return answers

    def give_feedback(self, names: Sequence[str]) -> None:
        """Tell the model that guardrails have tripped, and request a response."""
        rule = self._core.config.get("guardrails_settings", {}).get("feedback", _default_feedback)
        if rule is None:
            return
        self._put_message(rule if isinstance(rule, str) else rule(names), respond=True)

    def send_event(self, event: RealtimeModelSendEvent) -> None:
        """Send an event from `session.model`, in order with the session's own."""
        self._check_open()
        match event:
            case RealtimeModelSendRawMessage() if event.message.get("type") == "response.create":
                other = dict(event.message.get("other_data") or {})
                response = other.get("response")
                if isinstance(response, Mapping) and response.get("conversation") == "none":
                    self._core.outbox.put(RealtimeModelSendResponse(event.event_id, None, other))
                    return
                wish = Wish(
                    "raw",
                    other_data={name: value for name, value in other.items() if name != "event_id"}
                    or None,
                )
                if isinstance(other.get("event_id"), str):
                    wish.event_id = other["event_id"]
                self._core.responses.wish(wish)
            case RealtimeModelSendRawMessage() if event.message.get("type") == "response.cancel":
                interrupt_active(self._core, cancel=True)
            case RealtimeModelSendResponse():
                self._core.responses.wish(
                    Wish("raw", tool_choice=event.tool_choice, other_data=event.other_data)
                )
            case RealtimeModelSendUserInput():
                self.send_message(event.user_input, False, event.start_response)
            case RealtimeModelSendInterrupt():
                interrupt_active(self._core, cancel=True)
            case RealtimeModelSendAudio():
                self._send_audio(event)
            case RealtimeModelSendSessionUpdate():
                self._core.child(self._core.link.send_update(event), None, "session update")
            case _:
                self._core.outbox.put_from_program(event)

    def _send_audio(self, event: RealtimeModelSendAudio) -> None:
        """Send audio without waiting.

        If the buffer is full, refuse it, or drop the oldest audio.
        """
        size = len(event.audio)
        if size and self._core.outbox.overflow == "drop_oldest":
            self._core.outbox.make_room(size)
        if size and not self._core.outbox.reserve(size):
            msg = (
                f"{size:,} bytes of audio exceed the free space of the send buffer "
                "(config['max_input_audio_ms']). Use `session.send_audio`, which waits for "
                "space, or raise the limit."
            )
            raise UsageError(msg)
        if event.commit:
            self._core.calls.user_spoke()
        self._core.outbox.put_audio(event.audio, commit=event.commit)

    def interrupt(self) -> None:
        """Interrupt the current response."""
        if self._core.is_closing:
            return
        interrupt_active(self._core, cancel=True)
        self._core.calls.interrupted()

    def audio_overflow(self, event: RealtimeModelAudioEvent) -> None:
        """Interrupt the response, because the consumer has too much unread audio."""
        interrupt_active(self._core, cancel=True, most_heard=True)
        msg = (
            f"more than {self._core.most_audio_ms} ms of audio wait for the consumer: the response "
            "was ended where the consumer has come to."
        )
        self._core.error(MailboxFull(msg), code="audio_overflow")

    def block_item(self, item_id: str) -> None:
        """Mark the user's item that a guardrail refused. It stays in the history only."""
        self._core.conversation.mark(item_id, blocked=True)
        self._core.history_changed(item_id)
        self._core.notes.record_deleted(item_id)

    def formatted_rejection(self, call: Call, default: str) -> str:
        """Return the output of a rejected call."""
        formatter = self._core.config.get("tool_error_formatter")
        if formatter is None:
            return default
        from types import SimpleNamespace  # noqa: PLC0415 -- rarely needed

        found = formatter(
            SimpleNamespace(
                kind="approval_rejected",
                tool_type="function",
                tool_name=call.name,
                call_id=call.id,
                default_message=default,
                run_context=self._core.context,
            )
        )
        return found if isinstance(found, str) else default


def _default_feedback(names: Sequence[str]) -> str:
    return f"guardrail triggered: {', '.join(names)}"
