"""OpenAI's chat completions, which most providers support.

This module makes the call. `openai_chat_request.py` and `openai_chat_reply.py` translate requests
and replies.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING, ClassVar, Final, cast
from urllib.parse import urlsplit

from ..data.chat import Message
from .openai_chat_reply import ReplyInPieces, whole_reply
from .openai_chat_request import ChatArguments, chat_items, chat_options, chat_request
from .openai_errors import model_errors
from .openai_events import read
from .openai_model import OpenAIModel, counted
from .protocol import ModelRequest, StreamItem
from .wire.body import Rest
from .wire.client import WireClient
from .wire.protocol import Sent
from .wire.sse import DONE

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk, ChatCompletionStreamOptionsParam

__all__ = ["OpenAIChatModel"]

_OPENAI: Final = ("openai.com", "openai.azure.com")


class OpenAIChatModel(OpenAIModel):
    """A model behind OpenAI's chat completions, or a compatible provider: pass its `base_url`.

    The key comes from `api_key` or OPENAI_API_KEY; without a name, the model from OPENAI_MODEL. On
    Azure (`azure=True`), `base_url` is the address of the resource, and `api_version` is needed.
    Further arguments are the fields of `ModelSettings`; the settings of a request take precedence.
    `timeout` is how many seconds the provider may be silent, `max_reply_seconds` the time limit for
    a whole reply. A `client` is used as it is, and never closed.

    Nothing is retried here: wrap it in a `RetryModel`. One object serves any number of calls, on
    any number of event loops.
    """

    _items: ClassVar = "messages"

    async def generate(self, request: ModelRequest) -> Message:
        way, sent = await self._get_way(), Sent()
        if isinstance(way, WireClient):
            completion = await way.whole(*self._body(request, stream=False), sent)
        else:
            with model_errors(self):
                completion = await way.chat.completions.create(**self._arguments(way, request))
        return counted(whole_reply(completion, _taken(request), self), sent)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        way, sent = await self._get_way(), Sent()
        if isinstance(way, WireClient):
            batches = way.batches(*self._body(request, stream=True), sent)
        else:
            with model_errors(self):
                batches = read(await self._open(way, request), self)
        reply = ReplyInPieces(_taken(request), self)
        async with aclosing(batches):
            async for batch in batches:
                for chunk in batch:
                    if chunk is DONE:
                        reply.is_done = True
                    elif (delta := reply.add(chunk)) is not None:
                        yield delta
        yield counted(reply.message(), sent)

    async def _open(
        self, client: AsyncOpenAI, request: ModelRequest
    ) -> AsyncStream[ChatCompletionChunk]:
        arguments = self._arguments(client, request)
        extra = dict(arguments.pop("extra_body", {}))
        options = extra.pop("stream_options", {"include_usage": True})
        if options is not None:
            arguments["stream_options"] = cast("ChatCompletionStreamOptionsParam", options)
        if extra:
            arguments["extra_body"] = extra
        return await client.chat.completions.create(**arguments, stream=True)

    def _arguments(self, client: AsyncOpenAI, request: ModelRequest) -> ChatArguments:
        host = getattr(getattr(client, "base_url", None), "host", "")
        is_openai = self._azure or (isinstance(host, str) and host.endswith(_OPENAI))
        settings = self.settings.merged(request.settings)
        return chat_request(self.model, request, settings, is_openai=is_openai)

    # --- over HTTP ---

    @staticmethod
    async def _least(model: str, client: AsyncOpenAI) -> object:
        return await client.chat.completions.create(model=model, messages=[])

    def _body(self, request: ModelRequest, *, stream: bool) -> tuple[bytes, float | None]:
        return self._bodies.body(
            request, self.model, self.settings, self._rest, chat_items, stream=stream
        )

    def _rest(self, request: ModelRequest, stream: bool) -> Rest:  # noqa: FBT001 -- as `Bodies` calls it
        """Return all of a request except its messages."""
        settings = self.settings.merged(request.settings)
        arguments: dict[str, object] = {
            **chat_options(
                self.model, request, settings, is_openai=self._azure or self._is_at_openai()
            )
        }
        arguments.pop("timeout", None)
        extra = arguments.pop("extra_body", None)
        if stream:
            arguments |= {"stream": True, "stream_options": {"include_usage": True}}
        if extra is not None:
            arguments |= cast("Mapping[str, object]", extra)
        if arguments.get("stream_options", stream) is None:
            del arguments["stream_options"]
        return Rest(arguments, settings.timeout, items="messages")

    def _is_at_openai(self) -> bool:
        return (urlsplit(self._options().address).hostname or "").endswith(_OPENAI)


def _taken(request: ModelRequest) -> Iterator[str]:
    return (call.id for message in request.messages for call in message.tool_calls)
