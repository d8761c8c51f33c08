"""OpenAI's Responses API.

Each call is self-contained: the provider stores nothing, unless `extra={"store": True}` is set.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, ClassVar, Final, cast

from ..data.chat import Message, MessageDelta
from ..errors import ModelError
from .openai_chat_reply import WRONG_SHAPE, pick, text_at, unreadable
from .openai_errors import event_error, model_errors
from .openai_events import read
from .openai_model import OpenAIModel, counted
from .openai_responses_reply import response_message
from .openai_responses_request import (
    ResponsesArguments,
    responses_items,
    responses_options,
    responses_request,
)
from .protocol import ModelRequest, StreamItem
from .tool_call_deltas import ToolCallMerger
from .wire.body import Rest
from .wire.client import WireClient
from .wire.protocol import Sent

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ["OpenAIResponsesModel"]

_LAST: Final = frozenset(("response.completed", "response.incomplete", "response.failed"))
_TEXT: Final = "response.output_text.delta"
_REASONING: Final = frozenset(
    ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")
)


class OpenAIResponsesModel(OpenAIModel):
    """A model behind OpenAI's Responses API.

    Its arguments are those of `OpenAIChatModel`; this API has no `seed`, `stop` or penalties.
    """

    _items: ClassVar = "input"

    async def generate(self, request: ModelRequest) -> Message:
        way, sent = await self._get_way(), Sent()
        if isinstance(way, WireClient):
            response = await way.whole(*self._body(request, stream=False), sent)
        else:
            with model_errors(self):
                response = await way.responses.create(**self._arguments(request))
        return counted(response_message(response, _taken(request), self), sent)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        way, sent = await self._get_way(), Sent()
        if isinstance(way, WireClient):
            batches = way.batches(*self._body(request, stream=True), sent)
        else:
            with model_errors(self):
                batches = read(
                    await way.responses.create(**self._arguments(request), stream=True), self
                )
        pieces = ToolCallMerger(_taken(request))
        last: object = None
        async with aclosing(batches):
            async for batch in batches:
                for event in batch:
                    kind = str(pick(event, "type") or "")
                    if kind in _LAST:
                        last = pick(event, "response")
                    elif kind == "error":
                        raise event_error(event, self)
                    elif (delta := _delta(kind, event, pieces, self)) is not None:
                        yield delta
        if last is None:
            msg = f"{self!r}: the provider's stream ended before the reply was complete. Try again."
            raise ModelError(msg, kind="connection", retryable=True)
        yield counted(response_message(last, _taken(request), self, pieces.calls()), sent)

    def _arguments(self, request: ModelRequest) -> ResponsesArguments:
        return responses_request(self.model, request, self.settings.merged(request.settings))

    # --- over HTTP ---

    @staticmethod
    async def _least(model: str, client: AsyncOpenAI) -> object:
        return await client.responses.create(model=model, input=[])

    def _body(self, request: ModelRequest, *, stream: bool) -> tuple[bytes, float | None]:
        return self._bodies.body(
            request, self.model, self.settings, self._rest, responses_items, stream=stream
        )

    def _rest(self, request: ModelRequest, stream: bool) -> Rest:  # noqa: FBT001 -- as `Bodies` calls it
        """Return all of a request except its messages."""
        settings = self.settings.merged(request.settings)
        arguments: dict[str, object] = {**responses_options(self.model, request, settings)}
        arguments.pop("timeout", None)
        extra = arguments.pop("extra_body", None)
        if stream:
            arguments["stream"] = True
        if extra is not None:
            arguments |= cast("Mapping[str, object]", extra)
        return Rest(arguments, settings.timeout, items="input")


def _delta(kind: str, event: object, pieces: ToolCallMerger, who: object) -> MessageDelta | None:
    if kind == _TEXT and type(text := pick(event, "delta")) is str:
        return MessageDelta(text)
    try:
        return _other_delta(kind, event, pieces)
    except WRONG_SHAPE as problem:
        raise unreadable(problem, who) from problem


def _other_delta(kind: str, event: object, pieces: ToolCallMerger) -> MessageDelta | None:
    if kind == _TEXT:
        return MessageDelta(text_at(event, "delta"))
    if kind in _REASONING:
        return MessageDelta(reasoning=text_at(event, "delta"))
    index = pick(event, "output_index")
    index = index if isinstance(index, int) else None
    if kind == "response.function_call_arguments.delta":
        return MessageDelta(tool_calls=(pieces.add(index, "", "", text_at(event, "delta")),))
    item = pick(event, "item")
    if kind == "response.output_item.added" and pick(item, "type") == "function_call":
        return MessageDelta(
            tool_calls=(
                pieces.add(
                    index,
                    text_at(item, "call_id"),
                    text_at(item, "name"),
                    text_at(item, "arguments"),
                ),
            )
        )
    return None


def _taken(request: ModelRequest) -> Iterator[str]:
    return (call.id for message in request.messages for call in message.tool_calls)
