"""Swarm's values: an agent, the result of a function, and the response of a run.

Their fields and defaults are Swarm's. OpenAI's types have the names that Swarm uses, and the types
shared by the other modules here are defined, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypedDict

from openai.types.chat import chat_completion_message as _message
from openai.types.chat import chat_completion_message_tool_call as _tool_call
from pydantic import BaseModel

__all__ = [
    "Agent",
    "AgentFunction",
    "CallDict",
    "ChatCompletionMessage",
    "ChatCompletionMessageToolCall",
    "Client",
    "Function",
    "FunctionCall",
    "InitialVariables",
    "MessageDict",
    "Piece",
    "Response",
    "Result",
    "Variables",
]

ChatCompletionMessage = _message.ChatCompletionMessage
ChatCompletionMessageToolCall = _tool_call.ChatCompletionMessageToolCall
Function = _tool_call.Function

AgentFunction: TypeAlias = Callable[..., object]
"""A function that an agent can call, `def` or `async def`.

It returns a string, the next `Agent`, a `Result`, or a value that the model receives as a string.
"""

MessageDict: TypeAlias = dict[str, Any]
"""A message in Swarm's form: OpenAI's JSON, and the name of its `sender`."""

Piece: TypeAlias = dict[str, Any]
"""One item of a streamed run: OpenAI's delta as JSON, a delimiter, or finally the `Response`."""

Variables: TypeAlias = dict[Any, Any]
"""The context variables of a run. Keys and values are the user's."""

InitialVariables: TypeAlias = Mapping[Any, Any] | None
"""The context variables passed by the caller. They are copied."""


class Agent(BaseModel):
    """An agent: instructions, and functions that it can call.

    Agents with equal values are equal.
    """

    name: str = "Agent"
    model: str = "gpt-4o"
    instructions: str | Callable[..., str] = "You are a helpful agent."
    """A string, or a function that returns one.

    The function has no parameter, or receives the context variables, in which missing ones read as
    "".
    """
    functions: list[AgentFunction] = []
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool = True


class Response(BaseModel):
    """The result of a run: its messages, its last agent, and the final context variables."""

    messages: list[MessageDict] = []
    agent: Agent | None = None
    context_variables: Variables = {}


class Result(BaseModel):
    """The result of a function: a value for the model, the next agent, and changed variables."""

    value: str = ""
    agent: Agent | None = None
    context_variables: Variables = {}


class _Completions(Protocol):
    @property
    def create(self) -> Callable[..., object]: ...


class _Chat(Protocol):
    @property
    def completions(self) -> _Completions: ...


class Client(Protocol):
    """The interface of a client: `chat.completions.create(...)`, `def` or `async def`."""

    @property
    def chat(self) -> _Chat: ...


class _NamedFunction(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def arguments(self) -> str: ...


class FunctionCall(Protocol):
    """A call of a function in a reply, as OpenAI's models send it."""

    @property
    def id(self) -> str: ...
    @property
    def function(self) -> _NamedFunction: ...


class _FunctionDict(TypedDict, total=False):
    name: str | None
    arguments: str | None


class CallDict(TypedDict, total=False):
    """A call of a tool in a `MessageDict`.

    A call of another kind than "function" has no `function`.
    """

    id: str | None
    type: str | None
    function: _FunctionDict | None
