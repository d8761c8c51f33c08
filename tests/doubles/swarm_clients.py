"""Clients that give the replies that a test has written down: synchronous or not, at once or in
pieces, in the types that OpenAI's client has.
"""

import copy
import json
import threading
from collections import deque
from unittest.mock import MagicMock

from openai.types.chat import ChatCompletion, ChatCompletionChunk

from offbook.actors.swarm.types import (
    ChatCompletionMessage,
    ChatCompletionMessageToolCall,
    Function,
)
from tests.programs import openai_wire as wire

USER = [{"role": "user", "content": "Hello?"}]


class Exhausted(Exception):
    """Nothing more is written down."""


def call(function, call_id=None, **arguments):
    """A call of a function; its arguments may also be given as a text, `_raw`, which need not be
    JSON.
    """
    text = arguments.pop("_raw") if "_raw" in arguments else json.dumps(arguments)
    return wire.call(function, text, call_id or f"call_{function}")


def reply(text="", *calls):
    return wire.completion(text, calls=list(calls))


class ScriptedClient:
    """Each reply is a text, `reply(...)`, an exception, or a function of the request that returns
    one of these.
    """

    def __init__(self, *replies):
        self.left = deque(replies)
        self.requests = []
        self.threads = []
        self.chat = self.completions = self

    def _next(self, request):
        self.requests.append(copy.deepcopy(request))
        self.threads.append(threading.get_ident())
        if not self.left:
            raise Exhausted
        said = self.left.popleft()
        said = said(request) if callable(said) else said
        if isinstance(said, BaseException):
            raise said
        said = reply(said) if isinstance(said, str) else said
        return (
            [ChatCompletionChunk.model_validate(one) for one in wire.completion_chunks(said)]
            if request["stream"]
            else ChatCompletion.model_validate(said)
        )

    def create(self, **request):
        made = self._next(request)
        return iter(made) if request["stream"] else made


class AsyncScriptedClient(ScriptedClient):
    """The same, to be awaited."""

    async def create(self, **request):
        made = self._next(request)
        return _each(made) if request["stream"] else made


async def _each(chunks):
    for chunk in chunks:
        yield chunk


class MockOpenAIClient:
    """In the manner of the one that Swarm is tested with."""

    def __init__(self):
        self.chat = MagicMock()

    def set_response(self, response):
        self.chat.completions.create.return_value = response

    def set_sequential_responses(self, responses):
        self.chat.completions.create.side_effect = responses

    def assert_create_called_with(self, **kwargs):
        self.chat.completions.create.assert_called_with(**kwargs)


def create_mock_response(message, function_calls=(), model="gpt-4o"):
    calls = [
        ChatCompletionMessageToolCall(
            id="mock_tc_id",
            type="function",
            function=Function(name=one["name"], arguments=json.dumps(one.get("args", {}))),
        )
        for one in function_calls
    ]
    said = ChatCompletionMessage(
        role=message.get("role", "assistant"),
        content=message.get("content", ""),
        tool_calls=calls or None,
    )
    choice = {"message": said, "finish_reason": "stop", "index": 0}
    return ChatCompletion(
        id="mock_cc_id", created=1234567890, model=model, object="chat.completion", choices=[choice]
    )
