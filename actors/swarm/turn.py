"""One reply of one agent, and the functions that it calls.

The client may be synchronous or not, streaming or not. Overridden methods of a `Swarm` subclass are
used. The choice of the next agent is made elsewhere.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Iterator, Sequence
from contextlib import aclosing
from enum import Enum, auto
from functools import partial
from typing import Any, Literal, Protocol, cast

from openai.types.chat import ChatCompletion, ChatCompletionChunk
from pydantic import BaseModel

from ...runtime.agent.context import AgentContext
from ...runtime.maybe_await import maybe_await
from .call_state import VARIABLES, SwarmCall
from .function_calls import Calls
from .types import (
    Agent,
    CallDict,
    ChatCompletionMessageToolCall,
    Function,
    FunctionCall,
    MessageDict,
    Piece,
    Response,
    Variables,
)
from .util import debug_print, merge_chunk

__all__ = ["SwarmReply"]


class _End(Enum):
    END = auto()


class _Jsonable(Protocol):
    def json(self) -> str: ...


class SwarmReply:
    """One reply.

    After `ask` or `stream`, `message` is the reply, and `calls` are the calls of functions in it.
    """

    __slots__ = ("_agent", "_context", "_swarm_call", "calls", "message")

    def __init__(self, agent: Agent, swarm_call: SwarmCall, context: AgentContext) -> None:
        self._agent = agent
        self._swarm_call = swarm_call
        self._context = context
        self.message: MessageDict = {}
        self.calls: Sequence[FunctionCall] = ()

    async def _completion(self) -> Any:
        """Return the client's result: OpenAI's types, or similar ones of the user's client."""
        swarm_call = self._swarm_call
        ask = partial(
            swarm_call.swarm.get_chat_completion,
            agent=self._agent,
            history=swarm_call.history,
            context_variables=self._context.session[VARIABLES],
            model_override=swarm_call.model,
            stream=swarm_call.streaming,
            debug=swarm_call.debug,
        )
        return await swarm_call.checked(await swarm_call.do(self._context, ask))

    async def ask(self) -> None:
        """Request the whole reply at once."""
        completion: ChatCompletion = await self._completion()
        message = completion.choices[0].message
        await self.print_debug("Received completion:", message)
        self.message = {**json.loads(message.model_dump_json()), "sender": self._agent.name}
        # Calls of functions: the model is offered no other tools.
        self.calls = cast("Sequence[FunctionCall]", message.tool_calls or ())

    async def stream(self, sender: str) -> AsyncGenerator[Piece]:
        """Request the reply in deltas.

        As in Swarm, the whole message has the name of that sender, and the deltas have the name of
        this agent.
        """
        message: MessageDict = {
            "content": "",
            "sender": sender,
            "role": "assistant",
            "function_call": None,
            "tool_calls": defaultdict(_no_call),
        }
        completion = await self._completion()
        yield {"delim": "start"}
        async with aclosing(self._chunks(completion)) as chunks:
            async for chunk in chunks:
                if not chunk.choices:
                    continue  # some providers send chunks about the whole reply
                delta = _as_dict(chunk.choices[0].delta)
                yield (
                    {**delta, "sender": self._agent.name}
                    if delta.get("role") == "assistant"
                    else delta
                )
                merge_chunk(
                    message, {key: value for key, value in delta.items() if key != "sender"}
                )
        yield {"delim": "end"}
        message["tool_calls"] = list(message["tool_calls"].values()) or None
        self.message = message
        self.calls = [_as_call(call) for call in message["tool_calls"] or ()]
        await self.print_debug("Received completion:", message)

    async def _chunks(
        self, completion: Iterable[ChatCompletionChunk] | AsyncIterable[ChatCompletionChunk]
    ) -> AsyncGenerator[ChatCompletionChunk]:
        if isinstance(completion, Iterable):
            each = await self._swarm_call.do(self._context, _begin, completion)
            while (found := await self._swarm_call.do(self._context, _next, each)) is not _End.END:
                yield found
            return
        chunks = aiter(completion)
        try:
            async for chunk in chunks:
                yield chunk
        finally:
            for one in (chunks,) if chunks is completion else (chunks, completion):
                close = getattr(one, "aclose", None) or getattr(one, "close", None)
                if close is not None:
                    await maybe_await(close())

    async def call_functions(self) -> Response:
        """Make the calls of the reply."""
        swarm_call, context, swarm = self._swarm_call, self._context, self._swarm_call.swarm
        variables: Variables = context.session[VARIABLES]
        if swarm_call.has_own_calls:
            return await swarm_call.do(
                context,
                swarm.handle_tool_calls,
                self.calls,
                self._agent.functions,
                variables,
                swarm_call.debug,
            )
        calls = Calls(swarm, self.calls, self._agent.functions, variables, swarm_call.debug)
        awaitable = await swarm_call.do(context, calls.advance)
        while awaitable is not None:
            awaitable = await swarm_call.do(
                context, calls.advance, await swarm_call.checked(awaitable)
            )
        return calls.response

    async def print_debug(self, *args: object) -> None:
        """Print the arguments, if the run is debugged, in the thread that called it."""
        if self._swarm_call.debug:
            await self._swarm_call.do(self._context, debug_print, True, *args)


def _begin(chunks: Iterable[ChatCompletionChunk]) -> Iterator[ChatCompletionChunk]:
    return iter(chunks)


def _next(chunks: Iterator[ChatCompletionChunk]) -> ChatCompletionChunk | Literal[_End.END]:
    return next(chunks, _End.END)


def _no_call() -> CallDict:
    return {"function": {"arguments": "", "name": ""}, "id": "", "type": ""}


def _as_dict(delta: BaseModel | _Jsonable) -> dict[str, Any]:
    made: dict[str, object] = json.loads(
        delta.model_dump_json() if isinstance(delta, BaseModel) else delta.json()
    )
    return made


def _as_call(call: dict[str, Any]) -> ChatCompletionMessageToolCall:
    function = Function(arguments=call["function"]["arguments"], name=call["function"]["name"])
    return ChatCompletionMessageToolCall(
        id=call["id"], function=function, type=call["type"] or "function"
    )
