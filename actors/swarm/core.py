"""Swarm: agents that hand off to each other by the functions that they call.

These are the methods that users of Swarm call and may override. The state of a call of `run` is in
its `SwarmCall`.
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
from .types import (
    Agent,
    AgentFunction,
    Client,
    FunctionCall,
    InitialVariables,
    Piece,
    Response,
    Result,
    Variables,
)
from .util import debug_print, function_to_json

__all__ = ["Swarm"]

_Pieces: TypeAlias = Generator[Piece]
_AsyncPieces: TypeAlias = AsyncGenerator[Piece]

_NO_END: Final = float("inf")


class Swarm:
    """Runs agents, starting with one, until a reply calls no function.

        swarm = Swarm()
        # blocks, in any thread
        response = swarm.run(agent=agent, messages=[{"role": "user", "content": "Hello!"}])
        # in a coroutine
        response = await swarm.arun(agent=agent, messages=response.messages)

    `client` is an OpenAI client, synchronous or not, or any object with
    `chat.completions.create(...)`.
    """

    def __init__(self, client: Client | None = None) -> None:
        self.client: Client = client or OpenAI()

    @cached_property
    def _runner(self) -> Runner:
        # With a buffer of one, the consumer has taken a delta when it requests the next one.
        return Runner(StartAgent(name="Swarm"), max_transfers=sys.maxsize, event_buffer=1)

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_runner"}

    # --- running ---

    @overload
    def run(
        self,
        agent: Agent,
        messages: Sequence[object],
        context_variables: InitialVariables = ...,
        model_override: str | None = ...,
        stream: Literal[False] = ...,
        debug: bool = ...,
        max_turns: float = ...,
        execute_tools: bool = ...,
    ) -> Response: ...
    @overload
    def run(
        self,
        agent: Agent,
        messages: Sequence[object],
        context_variables: InitialVariables = ...,
        model_override: str | None = ...,
        *,
        stream: Literal[True],
        debug: bool = ...,
        max_turns: float = ...,
        execute_tools: bool = ...,
    ) -> _Pieces: ...
    @overload
    def run(
        self,
        agent: Agent,
        messages: Sequence[object],
        context_variables: InitialVariables = ...,
        model_override: str | None = ...,
        stream: bool = ...,
        debug: bool = ...,
        max_turns: float = ...,
        execute_tools: bool = ...,
    ) -> Response | _Pieces: ...

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
        """Run agents, and return the response.

        With `stream=True`, yield the deltas as they arrive, and finally the response as
        `{"response": ...}`.

        It may be called in any thread, even one with a running event loop, and blocks it. Functions
        and a synchronous client are called in that thread.
        """
        if stream:
            return self.run_and_stream(
                agent, messages, context_variables, model_override, debug, max_turns, execute_tools
            )
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
        """Do the same as `run` with `stream=True`.

        Nothing happens before the caller requests the first delta, nor between two of them.
        """
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
        self,
        agent: Agent,
        messages: Sequence[object],
        context_variables: InitialVariables = ...,
        model_override: str | None = ...,
        stream: Literal[False] = ...,
        debug: bool = ...,
        max_turns: float = ...,
        execute_tools: bool = ...,
    ) -> Response: ...
    @overload
    async def arun(
        self,
        agent: Agent,
        messages: Sequence[object],
        context_variables: InitialVariables = ...,
        model_override: str | None = ...,
        *,
        stream: Literal[True],
        debug: bool = ...,
        max_turns: float = ...,
        execute_tools: bool = ...,
    ) -> _AsyncPieces: ...
    @overload
    async def arun(
        self,
        agent: Agent,
        messages: Sequence[object],
        context_variables: InitialVariables = ...,
        model_override: str | None = ...,
        stream: bool = ...,
        debug: bool = ...,
        max_turns: float = ...,
        execute_tools: bool = ...,
    ) -> Response | _AsyncPieces: ...

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
        """Do the same as `run` on the running event loop, without blocking it.

        With `stream=True` it returns an asynchronous generator of the deltas.

        An `AsyncOpenAI` client is awaited. Functions that are plain `def`, and a synchronous
        client, are called in worker threads.
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
        self,
        agent: Agent,
        history: list[object],
        context_variables: Variables,
        model_override: str | None,
        stream: bool,
        debug: bool,
    ) -> object:
        """Ask the client for the agent's next reply.

        Returns the client's result: a completion, its chunks, or an awaitable of either.
        """
        messages = [
            {"role": "system", "content": _instructions(agent, context_variables)},
            *history,
        ]
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
        """Convert a function's return value to a `Result`."""
        if isinstance(result, Result):
            return result
        if isinstance(result, Agent):
            return Result(value=json.dumps({"assistant": result.name}), agent=result)
        try:
            return Result(value=str(result))
        except Exception as error:
            msg = (
                f"Failed to cast response to string: {result}. Make sure agent functions return "
                f"a string or Result object. Error: {error}"
            )
            debug_print(debug, msg)
            raise TypeError(msg) from error

    def handle_tool_calls(
        self,
        tool_calls: Sequence[FunctionCall],
        functions: Sequence[AgentFunction],
        context_variables: Variables,
        debug: bool,
    ) -> Response:
        """Make the calls of a reply, one after the other."""
        calls = Calls(self, tool_calls, functions, context_variables, debug)
        awaitable = calls.advance()
        while awaitable is not None:
            awaitable = calls.advance(wait_for(awaitable))
        return calls.response

    @property
    def _has_own_calls(self) -> bool:
        """Whether `handle_tool_calls` is overridden.

        If it is not, a run needs no thread that blocks while a coroutine function is running.
        """
        return getattr(self.handle_tool_calls, "__func__", None) is not Swarm.handle_tool_calls


def _instructions(agent: Agent, context_variables: Variables) -> str:
    instructions = agent.instructions
    if not callable(instructions):
        return instructions
    try:
        inspect.signature(instructions).bind({})
    except TypeError:
        return instructions()  # the function has no parameter
    except ValueError:
        pass  # the function has no signature to inspect
    return instructions(defaultdict(str, context_variables))


def _without_variables(tool: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without the context variables, which the model must not set."""
    parameters = tool["function"]["parameters"]
    parameters["properties"].pop(VARIABLES, None)
    parameters["required"] = [name for name in parameters["required"] if name != VARIABLES]
    return tool
