"""Handlers of the model's events.

Each changes the session's state and shows events, in the SDK's order where it defines one. No
handler waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ....runtime.data.chat import Usage
from ....runtime.errors import ModelError
from ..events import (
    RealtimeAgentEndEvent,
    RealtimeAgentStartEvent,
    RealtimeAudio,
    RealtimeAudioEnd,
    RealtimeAudioInterrupted,
    RealtimeInputAudioTimeoutTriggered,
    RealtimeRawModelEvent,
)
from ..items import AssistantAudio, AssistantMessageItem, AssistantText, RealtimeToolCallItem
from ..model_events import (
    RealtimeModelAudioDoneEvent,
    RealtimeModelAudioEvent,
    RealtimeModelAudioInterruptedEvent,
    RealtimeModelErrorEvent,
    RealtimeModelEvent,
    RealtimeModelExceptionEvent,
    RealtimeModelInputAudioTranscriptionCompletedEvent,
    RealtimeModelInputAudioTranscriptionFailedEvent,
    RealtimeModelItemAcceptedEvent,
    RealtimeModelItemDeletedEvent,
    RealtimeModelItemTruncatedEvent,
    RealtimeModelItemUpdatedEvent,
    RealtimeModelOutputTextDeltaEvent,
    RealtimeModelSpeechStartedEvent,
    RealtimeModelToolCallEvent,
    RealtimeModelTranscriptDeltaEvent,
    RealtimeModelTurnEndedEvent,
    RealtimeModelTurnStartedEvent,
    RealtimeModelUsageEvent,
)
from .interruption import interrupt_active
from .responses import Response

if TYPE_CHECKING:
    from .session_core import SessionCore

__all__ = ["Inbound"]


class Inbound:
    """Handles the events of one session's connections."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._raw = core.config.get("raw_events", "model") != "none"
        self._handlers: dict[str, Callable[[Any], None]] = {
            "audio": self._audio,
            "audio_done": self._audio_done,
            "transcript_delta": self._transcript,
            "output_text_delta": self._text,
            "turn_started": self._turn_started,
            "turn_ended": self._turn_ended,
            "usage": self._usage,
            "item_updated": self._item_updated,
            "item_accepted": self._item_accepted,
            "item_deleted": self._item_deleted,
            "item_truncated": self._item_truncated,
            "function_call": self._function_call,
            "speech_started": self._speech_started,
            "speech_stopped": self._speech_stopped,
            "audio_interrupted": self._audio_interrupted,
            "input_audio_transcription_completed": self._transcribed,
            "input_audio_transcription_failed": self._not_transcribed,
            "input_audio_timeout_triggered": self._timeout,
            "error": self._error,
            "exception": self._exception,
            "connection_status": self._status,
            "end_of_stream": self._end_of_stream,
        }

    def take(self, epoch: int, event: RealtimeModelEvent) -> None:
        """Handle an event of the connection of that epoch."""
        core = self._core
        if epoch != core.link.epoch or core.is_closing:
            return
        if self._raw:
            events = core.events
            events.put(RealtimeRawModelEvent(event, events.info()), "raw")
        handler = self._handlers.get(event.type)
        if handler is not None:
            handler(event)

    # --- output of the model ---

    def _audio(self, event: RealtimeModelAudioEvent) -> None:
        core = self._core
        response = core.responses.of(event.response_id)
        if response is None or response.interrupted:
            return
        if response.first_audio_at is None:
            response.first_audio_at = core.now()
        ms = core.playback.received(
            event.item_id, event.content_index, event.response_id, len(event.data)
        )
        if core.output_guards.holds(response):
            core.output_guards.hold(response, event, ms)
        else:
            self.show_audio(event, ms)

    def show_audio(self, event: RealtimeModelAudioEvent, ms: float) -> None:
        """Show audio to the consumer."""
        core = self._core
        events = core.events
        events.put(
            RealtimeAudio(event, event.item_id, event.content_index, events.info()), "audio", ms
        )
        if events.audio_ms > core.most_audio_ms:
            core.inputs.audio_overflow(event)

    def _audio_done(self, event: RealtimeModelAudioDoneEvent) -> None:
        core = self._core
        items = [one for one in core.playback.unheard(None) if one.item_id == event.item_id]
        response = (
            core.responses.known.get(items[0].response_id) if items else core.responses.active
        )
        if response is not None and response.interrupted:
            return
        core.output_guards.hold_end(
            event.item_id,
            lambda: core.show_now(
                RealtimeAudioEnd, item_id=event.item_id, content_index=event.content_index
            ),
        )

    def _transcript(self, event: RealtimeModelTranscriptDeltaEvent) -> None:
        self._grow(event, AssistantAudio)

    def _text(self, event: RealtimeModelOutputTextDeltaEvent) -> None:
        self._grow(event, AssistantText)

    def _grow(
        self,
        event: RealtimeModelTranscriptDeltaEvent | RealtimeModelOutputTextDeltaEvent,
        kind: type[AssistantAudio | AssistantText],
    ) -> None:
        core = self._core
        response = core.responses.of(event.response_id)
        if response is None or response.interrupted or response.out_of_band:
            return
        if core.conversation.grow(event.item_id, event.delta, kind):
            item = core.conversation.get(event.item_id)
            if item is not None:
                core.show_added(item)
        else:
            core.history_grew(event.item_id)
        core.output_guards.grew(event.item_id, response, len(event.delta))

    # --- responses ---

    def _turn_started(self, event: RealtimeModelTurnStartedEvent) -> None:
        core = self._core
        core.activity += 1
        response = core.responses.began(event.response_id, out_of_band=event.out_of_band)
        if event.out_of_band:
            return
        core.watching.response_began(response)
        core.show(RealtimeAgentStartEvent, agent=response.settings.agent, response_id=response.id)
        core.hooks(
            "on_model_start",
            response.settings.agent,
            response.settings.agent,
            core.watching.request,
        )
        if response.interrupted:
            interrupt_active(core, cancel=True)

    def _usage(self, event: RealtimeModelUsageEvent) -> None:
        core = self._core
        usage = event.usage
        core.notes.add_usage(
            usage
            if isinstance(usage, Usage)
            else Usage(usage.input_tokens, usage.output_tokens, 0, 1),
            event,
        )
        if core.responses.active is not None:
            core.responses.active.usage = usage

    def _turn_ended(self, event: RealtimeModelTurnEndedEvent) -> None:
        core = self._core
        response = core.responses.ended(event.response_id)
        if response is None or response.out_of_band:
            return
        response.status = event.status
        self.end_response(response)
        if event.status == "failed":
            said = event.error.get("message") if isinstance(event.error, dict) else event.error
            core.error(
                ModelError(
                    f"a response of the realtime model has failed: {said or event.code}. Request "
                    "another one: session.send_message(...)",
                    kind=event.code or "other",
                    retryable=True,
                ),
                code=event.code or "response_failed",
            )

    def end_response(self, response: Response) -> None:
        """Handle the end of a response."""
        core = self._core
        core.activity += 1
        core.show(
            RealtimeAgentEndEvent,
            agent=response.settings.agent,
            response_id=response.id,
            status=response.status,
            usage=response.usage,
        )
        core.output_guards.response_ended(response)
        core.calls.response_ended(response)
        core.watching.response_ended(response)

    # --- items and calls ---

    def _item_updated(self, event: RealtimeModelItemUpdatedEvent) -> None:
        core = self._core
        item = event.item
        if event.response_id is not None:
            response = core.responses.known.get(event.response_id)
            if response is not None and response.out_of_band:
                return
        core.responses.told(item.item_id)
        core.inputs.accepted(item.item_id)
        if (
            isinstance(item, AssistantMessageItem)
            and core.conversation.is_cut(item.item_id)
            and not event.done
        ):
            return
        core.put_item(item)
        if event.done and isinstance(item, AssistantMessageItem):
            core.output_guards.item_ended(item.item_id)
            if item.status == "completed":
                core.notes.record_said(item.item_id)
        elif not isinstance(item, AssistantMessageItem | RealtimeToolCallItem):
            core.notes.record_said(item.item_id)

    def _item_accepted(self, event: RealtimeModelItemAcceptedEvent) -> None:
        self._core.responses.told(event.item_id)

    def _item_deleted(self, event: RealtimeModelItemDeletedEvent) -> None:
        core = self._core
        core.playback.gone(event.item_id)
        item = core.conversation.get(event.item_id)
        if item is not None and getattr(item, "blocked", False):
            return  # it stays in the history, marked
        if core.conversation.remove(event.item_id):
            core.notes.record_deleted(event.item_id)
            core.history_changed(event.item_id)

    def _item_truncated(self, event: RealtimeModelItemTruncatedEvent) -> None:
        core = self._core
        if event.transcript:
            core.conversation.correct(event.item_id, event.transcript)
            core.notes.record_cut(event.item_id)
            core.history_changed(event.item_id)

    def _function_call(self, event: RealtimeModelToolCallEvent) -> None:
        core = self._core
        core.activity += 1
        response = core.responses.of(event.response_id)
        call = core.calls.called(event, response)
        if call is None:
            return
        if call.name in call.settings.handoffs:
            core.handoffs.called(call)
        else:
            core.calls.begin(call)

    # --- input of the user ---

    def _speech_started(self, event: RealtimeModelSpeechStartedEvent) -> None:
        core = self._core
        core.activity += 1
        core.is_speaking = True
        core.calls.user_spoke()
        detection = core.in_force.flat.get("turn_detection") or {}
        if detection.get("interrupt_response", True) is False:
            return
        interrupt_active(core, cancel=False)
        core.calls.interrupted()

    def _speech_stopped(self, event: object) -> None:
        core = self._core
        core.activity += 1
        core.is_speaking = False
        core.speech_ended_at = core.now()

    def _audio_interrupted(self, event: RealtimeModelAudioInterruptedEvent) -> None:
        """Handle an interruption by a model in the style of the SDK."""
        core = self._core
        active = core.responses.active
        ids = {
            one.response_id for one in core.playback.unheard(None if active is None else active.id)
        }
        for one in ids:
            response = core.responses.of(one)
            if response is not None:
                response.interrupted = True
        core.events.take_back(ids)
        core.show_now(
            RealtimeAudioInterrupted, item_id=event.item_id, content_index=event.content_index
        )

    def _transcribed(self, event: RealtimeModelInputAudioTranscriptionCompletedEvent) -> None:
        core = self._core
        core.activity += 1
        is_new = core.conversation.transcribe(event.item_id, event.transcript)
        item = core.conversation.get(event.item_id)
        if item is not None and is_new:
            core.show_added(item)
        else:
            core.history_changed(event.item_id)
        core.notes.record_said(event.item_id)
        core.input_guards.heard(event.item_id, event.transcript)

    def _not_transcribed(self, event: RealtimeModelInputAudioTranscriptionFailedEvent) -> None:
        core = self._core
        core.conversation.transcribe(event.item_id, None)
        core.history_changed(event.item_id)
        said = event.error.get("message") if isinstance(event.error, dict) else event.error
        core.error(
            ModelError(f"the user's speech could not be transcribed: {said}", kind="transcription"),
            code="transcription_failed",
        )
        core.input_guards.heard(event.item_id, None)

    def _timeout(self, event: object) -> None:
        self._core.show(RealtimeInputAudioTimeoutTriggered)

    # --- errors ---

    def _error(self, event: RealtimeModelErrorEvent) -> None:
        core = self._core
        if event.event_id is not None:
            left_out = core.link.replaying.pop(event.event_id, None)
            if left_out is not None:
                core.error(
                    ModelError(
                        f"the server refused the history item {left_out}, which the new "
                        f"connection now lacks: {_said(event.error)}",
                        kind="replay",
                    ),
                    code="replay_refused",
                )
                return
            if core.responses.is_cancel(event.event_id) or not core.responses.refused(
                event.event_id, event.code
            ):
                return
        error = (
            event.error
            if isinstance(event.error, Exception)
            else ModelError(
                f"the realtime server reported an error: {_said(event.error)}",
                kind=event.code or "other",
            )
        )
        core.error(error, code=event.code)

    def _exception(self, event: RealtimeModelExceptionEvent) -> None:
        self._core.lifecycle.fatal(event.exception)

    def _status(self, event: Any) -> None:
        """Ignore the connection status of a custom model.

        The model may reconnect by itself. The session ends with its stream, or with an exception.
        """
        del event

    def _end_of_stream(self, event: object) -> None:
        self._core.lifecycle.finish(None)


def _said(error: Any) -> str:
    found = error.get("message") if isinstance(error, dict) else getattr(error, "message", None)
    return str(found or error)
