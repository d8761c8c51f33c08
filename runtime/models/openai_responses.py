"""OpenAI's Responses API.

Owns: the call, and the reading of its events. Each call is whole by itself: nothing is kept with the provider unless `extra={"store": True}` says so.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Final

from ..data.chat import Message, MessageDelta
from ..errors import ModelError
from .openai_chat_reply import pick
from .openai_errors import event_error, model_errors
from .openai_events import read
from .openai_model import OpenAIModel
from .openai_responses_reply import response_message
from .openai_responses_request import ResponsesArguments, responses_request
from .protocol import ModelRequest, StreamItem
from .tool_call_deltas import ToolCallMerger

__all__ = ["OpenAIResponsesModel"]

_LAST: Final = frozenset(("response.completed", "response.incomplete", "response.failed"))
_TEXT: Final = "response.output_text.delta"
_REASONING: Final = frozenset(("response.reasoning_summary_text.delta", "response.reasoning_text.delta"))


class OpenAIResponsesModel(OpenAIModel):
    """A model behind OpenAI's Responses API. Its arguments are those of `OpenAIChatModel`; `seed`, `stop` and the penalties are unknown to this API."""

    async def generate(self, request: ModelRequest) -> Message:
        who = repr(self)
        with model_errors(who):
            client = await self._get_client()
            response = await client.responses.create(**self._arguments(request))
        return response_message(response, _taken(request), who)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        who = repr(self)
        with model_errors(who):
            client = await self._get_client()
            events = await client.responses.create(**self._arguments(request), stream=True)
        pieces = ToolCallMerger(_taken(request))
        last: object = None
        async with aclosing(read(events, who)) as items:
            async for event in items:
                kind = pick(event, "type") or ""
                if kind in _LAST:
                    last = pick(event, "response")
                elif kind == "error":
                    raise event_error(event, who)
                else:
                    delta = _delta(kind, event, pieces)
                    if delta is not None:
                        yield delta
        if last is None:
            msg = f"{who}: the stream was cut off before the reply was complete."
            raise ModelError(msg, kind="connection", retryable=True)
        yield response_message(last, _taken(request), who, pieces.calls())

    def _arguments(self, request: ModelRequest) -> ResponsesArguments:
        return responses_request(self.model, request, self.settings.merged(request.settings))


def _delta(kind: str, event: object, pieces: ToolCallMerger) -> MessageDelta | None:
    if kind == _TEXT:
        return MessageDelta(pick(event, "delta") or "")
    if kind in _REASONING:
        return MessageDelta(reasoning=pick(event, "delta") or "")
    index = pick(event, "output_index")
    if kind == "response.function_call_arguments.delta":
        return MessageDelta(tool_calls=(pieces.add(index, "", "", pick(event, "delta") or ""),))
    item = pick(event, "item")
    if kind == "response.output_item.added" and pick(item, "type") == "function_call":
        return MessageDelta(tool_calls=(pieces.add(index, pick(item, "call_id") or "", pick(item, "name") or "", pick(item, "arguments") or ""),))
    return None


def _taken(request: ModelRequest) -> list[str]:
    return [call.id for message in request.messages for call in message.tool_calls]
