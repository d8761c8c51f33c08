"""OpenAI's chat completions, which most providers speak.

Owns: the call. What is sent and what comes back is translated in `openai_chat_request.py` and `openai_chat_reply.py`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, cast

from ..data.chat import Message
from .openai_chat_reply import ReplyInPieces, whole_reply
from .openai_chat_request import ChatArguments, chat_request
from .openai_errors import model_errors
from .openai_events import DONE, read
from .openai_model import OpenAIModel
from .protocol import ModelRequest, StreamItem

if TYPE_CHECKING:
    from openai import AsyncOpenAI, AsyncStream
    from openai.types.chat import ChatCompletionChunk, ChatCompletionStreamOptionsParam

__all__ = ["OpenAIChatModel"]

_OPENAI: Final = ("openai.com", "openai.azure.com")


class OpenAIChatModel(OpenAIModel):
    """A model behind OpenAI's chat completions, or another provider's that speaks them: give its `base_url`.

    The key comes from `api_key` or OPENAI_API_KEY; without a name, the model from OPENAI_MODEL. On Azure (`azure=True`), `base_url` is the address of the
    resource, and `api_version` is needed. Further arguments are the fields of `ModelSettings`; those of a request go before them. `timeout` is how many
    seconds the provider may be silent. A `client` is used as it is, and never closed.

    Nothing is tried again here: put a `RetryModel` around it. One object serves any number of calls, on any number of event loops.
    """

    async def generate(self, request: ModelRequest) -> Message:
        who = repr(self)
        with model_errors(who):
            client = await self._get_client()
            completion = await client.chat.completions.create(**self._arguments(client, request))
        return whole_reply(completion, _taken(request), who)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamItem]:
        who = repr(self)
        with model_errors(who):
            client = await self._get_client()
            chunks = await self._open(client, self._arguments(client, request))
        reply = ReplyInPieces(_taken(request), who)
        async with aclosing(read(chunks, who)) as items:
            async for chunk in items:
                if chunk is DONE:
                    reply.is_done = True
                elif (delta := reply.add(chunk)) is not None:
                    yield delta
        yield reply.message()

    async def _open(self, client: AsyncOpenAI, arguments: ChatArguments) -> AsyncStream[ChatCompletionChunk]:
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


def _taken(request: ModelRequest) -> list[str]:
    return [call.id for message in request.messages for call in message.tool_calls]
