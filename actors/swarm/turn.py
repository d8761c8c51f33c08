"""One reply of one agent, and the functions that it calls.

Owns: how the client is asked, synchronous or not, at once or in pieces, and what is made of its answer. What is overridden in a subclass of `Swarm`
is used. It must never decide who is next.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Any, Final

from pydantic import BaseModel

from ...runtime.agent.context import AgentContext
from ...runtime.maybe_await import maybe_await
from .call_state import VARIABLES, SwarmCall
from .function_calls import Calls
from .types import Agent, ChatCompletionMessageToolCall, Function, Response
from .util import debug_print, merge_chunk

__all__ = ["SwarmReply"]

_END: Final = object()


class SwarmReply:
    """One reply. After `ask` or `stream`, `message` is what was said, and `calls` are those of functions in it."""

    __slots__ = ("_agent", "_context", "_swarm_call", "calls", "message")

    def __init__(self, agent: Agent, swarm_call: SwarmCall, context: AgentContext) -> None:
        self._agent = agent
        self._swarm_call = swarm_call
        self._context = context
        self.message: dict[str, Any] = {}
        self.calls: list[Any] = []

    async def _completion(self) -> Any:
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
        """Have the whole reply at once."""
        message = (await self._completion()).choices[0].message
        await self.say("Received completion:", message)
        self.message = {**json.loads(message.model_dump_json()), "sender": self._agent.name}
        self.calls = message.tool_calls or []

    async def stream(self, sender: str) -> AsyncGenerator[dict[str, Any]]:
        """The same in pieces. The whole message is said to be that sender's, as Swarm has it; the pieces are this agent's."""
        message: dict[str, Any] = {"content": "", "sender": sender, "role": "assistant", "function_call": None, "tool_calls": defaultdict(_no_call)}
        completion = await self._completion()
        yield {"delim": "start"}
        async with aclosing(self._chunks(completion)) as chunks:
            async for chunk in chunks:
                if not chunk.choices:
                    continue  # some providers say something about the whole in chunks of their own
                delta = _as_dict(chunk.choices[0].delta)
                yield {**delta, "sender": self._agent.name} if delta.get("role") == "assistant" else delta
                merge_chunk(message, {key: value for key, value in delta.items() if key != "sender"})
        yield {"delim": "end"}
        message["tool_calls"] = list(message["tool_calls"].values()) or None
        self.message = message
        self.calls = [_as_call(call) for call in message["tool_calls"] or ()]
        await self.say("Received completion:", message)

    async def _chunks(self, completion: Any) -> AsyncGenerator[Any]:
        swarm_call, context = self._swarm_call, self._context
        if hasattr(completion, "__iter__"):
            each = await swarm_call.do(context, iter, completion)
            while (chunk := await swarm_call.do(context, next, each, _END)) is not _END:
                yield chunk
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
        """Call what the reply wants to be called."""
        swarm_call, context, swarm = self._swarm_call, self._context, self._swarm_call.swarm
        variables = context.session[VARIABLES]
        if swarm._has_own_calls:
            response: Response = await swarm_call.do(context, swarm.handle_tool_calls, self.calls, self._agent.functions, variables, swarm_call.debug)
            return response
        calls = Calls(swarm, self.calls, self._agent.functions, variables, swarm_call.debug)
        awaitable = await swarm_call.do(context, calls.go_on)
        while awaitable is not None:
            awaitable = await swarm_call.do(context, calls.go_on, await swarm_call.checked(awaitable))
        return calls.response

    async def say(self, *args: object) -> None:
        """Print that, if the run is debugged, where whoever called it prints."""
        if self._swarm_call.debug:
            await self._swarm_call.do(self._context, debug_print, True, *args)


def _no_call() -> dict[str, Any]:
    return {"function": {"arguments": "", "name": ""}, "id": "", "type": ""}


def _as_dict(delta: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(delta.model_dump_json() if isinstance(delta, BaseModel) else delta.json())
    return made


def _as_call(call: dict[str, Any]) -> ChatCompletionMessageToolCall:
    function = Function(arguments=call["function"]["arguments"], name=call["function"]["name"])
    return ChatCompletionMessageToolCall(id=call["id"], function=function, type=call["type"] or "function")
