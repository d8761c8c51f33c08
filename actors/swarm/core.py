"""Swarm: agents that hand over to each other by the functions that they call.

Owns: the methods that users of Swarm call, and may override: how the client is asked, and what a function's result means. It must never keep anything of a
call of `run`: that is in its `SwarmCall`.
"""

# ruff: noqa: FBT001, FBT002 -- the parameters and their order are Swarm's
from __future__ import annotations

import inspect
import json
import sys
from collections import defaultdict
from collections.abc import AsyncGenerator, Generator, Sequence
from functools import cached_property
from typing import Any, Final, Literal, TypeAlias, overload

from openai import OpenAI

from ...runtime.runner import Runner
from .agents import StartAgent
from .call_state import VARIABLES, SwarmCall
from .caller_thread import CallerThread, wait_for
from .function_calls import Calls
from .types import Agent, AgentFunction, Client, FunctionCall, InitialVariables, Piece, Response, Result, Variables
from .util import debug_print, function_to_json

__all__ = ["Swarm"]

_Pieces: TypeAlias = Generator[Piece]
_AsyncPieces: TypeAlias = AsyncGenerator[Piece]

_NO_END: Final = float("inf")


class Swarm:
    """Runs agents, beginning with one, until a reply calls no function.

        swarm = Swarm()
        response = swarm.run(agent=agent, messages=[{"role": "user", "content": "Hello!"}])     # blocks, in any thread
        response = await swarm.arun(agent=agent, messages=response.messages)                    # in a coroutine

    `client` is an OpenAI client, synchronous or not, or anything with `chat.completions.create(...)`.
    """

    def __init__(self, client: Client | None = None) -> None:
        self.client: Client = client or OpenAI()

    @cached_property
    def _runner(self) -> Runner:
        # A buffer of one: a piece has been taken by the consumer when the next one is asked for.
        return Runner(StartAgent(name="Swarm"), max_transfers=sys.maxsize, event_buffer=1)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_runner"}

    # --- running ---

    @overload
    def run(
        self, agent: Agent, messages: Sequence[object], context_variables: InitialVariables = ..., model_override: str | None = ...,
        stream: Literal[False] = ..., debug: bool = ..., max_turns: float = ..., execute_tools: bool = ...
    ) -> Response: ...  # fmt: skip
    @overload
    def run(
        self, agent: Agent, messages: Sequence[object], context_variables: InitialVariables = ..., model_override: str | None = ...,
        *, stream: Literal[True], debug: bool = ..., max_turns: float = ..., execute_tools: bool = ...
    ) -> _Pieces: ...  # fmt: skip
    @overload
    def run(
        self, agent: Agent, messages: Sequence[object], context_variables: InitialVariables = ..., model_override: str | None = ...,
        stream: bool = ..., debug: bool = ..., max_turns: float = ..., execute_tools: bool = ...
    ) -> Response | _Pieces: ...  # fmt: skip

    def run(
        self,
        agent: Agent,
        messages: Sequence[object],
        context_variables: InitialVariables = None,
        model_override: str | None = None,
        stream: bool = False,
        debug: bool = False,
        max_turns: float = _NO_END,
        execute_tools: bool = True,
    ) -> Response | _Pieces:
        """Run agents, and return the response; with `stream=True`, yield the pieces as they come, and the response as the last one, `{"response": ...}`.

        It may be called in any thread, also in one where an event loop is running, and blocks it. Functions and a synchronous client are called in that thread.
        """
        if stream:
            return self.run_and_stream(agent, messages, context_variables, model_override, debug, max_turns, execute_tools)
        caller_thread: CallerThread[Piece] = CallerThread()
        swarm_call = SwarmCall(
            self,
            agent,
            messages,
            context_variables,
            model_override,
            debug,
            max_turns,
            execute_tools,
            streaming=False,
            has_own_calls=self._has_own_calls,
            caller_thread=caller_thread,
        )
        for _piece in caller_thread.attend(lambda: swarm_call.pieces(self._runner)):
            pass
        return swarm_call.response()

    def run_and_stream(
        self,
        agent: Agent,
        messages: Sequence[object],
        context_variables: InitialVariables = None,
        model_override: str | None = None,
        debug: bool = False,
        max_turns: float = _NO_END,
        execute_tools: bool = True,
    ) -> _Pieces:
        """The same as `run` with `stream=True`. Nothing happens before the caller asks for the first piece, nor between two of them."""
        caller_thread: CallerThread[Piece] = CallerThread()
        swarm_call = SwarmCall(
            self,
            agent,
            messages,
            context_variables,
            model_override,
            debug,
            max_turns,
            execute_tools,
            streaming=True,
            has_own_calls=self._has_own_calls,
            caller_thread=caller_thread,
        )
        yield from caller_thread.attend(lambda: swarm_call.pieces(self._runner))
        yield {"response": swarm_call.response()}

    @overload
    async def arun(
        self, agent: Agent, messages: Sequence[object], context_variables: InitialVariables = ..., model_override: str | None = ...,
        stream: Literal[False] = ..., debug: bool = ..., max_turns: float = ..., execute_tools: bool = ...
    ) -> Response: ...  # fmt: skip
    @overload
    async def arun(
        self, agent: Agent, messages: Sequence[object], context_variables: InitialVariables = ..., model_override: str | None = ...,
        *, stream: Literal[True], debug: bool = ..., max_turns: float = ..., execute_tools: bool = ...
    ) -> _AsyncPieces: ...  # fmt: skip
    @overload
    async def arun(
        self, agent: Agent, messages: Sequence[object], context_variables: InitialVariables = ..., model_override: str | None = ...,
        stream: bool = ..., debug: bool = ..., max_turns: float = ..., execute_tools: bool = ...
    ) -> Response | _AsyncPieces: ...  # fmt: skip

    async def arun(
        self,
        agent: Agent,
        messages: Sequence[object],
        context_variables: InitialVariables = None,
        model_override: str | None = None,
        stream: bool = False,
        debug: bool = False,
        max_turns: float = _NO_END,
        execute_tools: bool = True,
    ) -> Response | _AsyncPieces:
        """The same as `run` on the running event loop, which it does not block; with `stream=True` it returns an asynchronous generator of the pieces.

        An `AsyncOpenAI` client is awaited; functions that are plain `def`, and a synchronous client, are called in worker threads.
        """
        swarm_call = SwarmCall(
            self,
            agent,
            messages,
            context_variables,
            model_override,
            debug,
            max_turns,
            execute_tools,
            streaming=stream,
            has_own_calls=self._has_own_calls,
        )
        return swarm_call.stream(self._runner) if stream else await swarm_call.run(self._runner)

    # --- one turn ---

    def get_chat_completion(
        self, agent: Agent, history: list[object], context_variables: Variables, model_override: str | None, stream: bool, debug: bool
    ) -> object:
        """Ask the client for the agent's next reply. Returns what the client does: a completion, its chunks, or an awaitable of either."""
        messages = [{"role": "system", "content": _instructions(agent, context_variables)}, *history]
        debug_print(debug, "Getting chat completion for...:", messages)
        tools = [_without_variables(function_to_json(function)) for function in agent.functions]
        request: dict[str, object] = {
            "model": model_override or agent.model,
            "messages": messages,
            "tools": tools or None,
            "tool_choice": agent.tool_choice,
            "stream": stream,
        }
        if tools:
            request["parallel_tool_calls"] = agent.parallel_tool_calls
        return self.client.chat.completions.create(**request)

    def handle_function_result(self, result: object, debug: bool) -> Result:
        """What a function has returned, as a `Result`."""
        if isinstance(result, Result):
            return result
        if isinstance(result, Agent):
            return Result(value=json.dumps({"assistant": result.name}), agent=result)
        try:
            return Result(value=str(result))
        except Exception as error:
            msg = f"Failed to cast response to string: {result}. Make sure agent functions return a string or Result object. Error: {error}"
            debug_print(debug, msg)
            raise TypeError(msg) from error

    def handle_tool_calls(self, tool_calls: Sequence[FunctionCall], functions: Sequence[AgentFunction], context_variables: Variables, debug: bool) -> Response:
        """Make the calls of a reply, one after the other."""
        calls = Calls(self, tool_calls, functions, context_variables, debug)
        awaitable = calls.advance()
        while awaitable is not None:
            awaitable = calls.advance(wait_for(awaitable))
        return calls.response

    @property
    def _has_own_calls(self) -> bool:
        """Whether `handle_tool_calls` is overridden. Without that, a run needs no thread that blocks while a coroutine function is at work."""
        return getattr(self.handle_tool_calls, "__func__", None) is not Swarm.handle_tool_calls


def _instructions(agent: Agent, context_variables: Variables) -> str:
    instructions = agent.instructions
    if not callable(instructions):
        return instructions
    try:
        inspect.signature(instructions).bind({})
    except TypeError:
        return instructions()  # it has no parameter
    except ValueError:
        pass  # it has no signature to look at
    return instructions(defaultdict(str, context_variables))


def _without_variables(tool: dict[str, Any]) -> dict[str, Any]:
    """The schema without the context variables: the model must not set these."""
    parameters = tool["function"]["parameters"]
    parameters["properties"].pop(VARIABLES, None)
    parameters["required"] = [name for name in parameters["required"] if name != VARIABLES]
    return tool
