"""Swarm's values: an agent, what a function may return, and what a run returns.

Owns: their fields and defaults, which are Swarm's; OpenAI's types under the names that Swarm has for them; and the types that the other files here share.
It must never run anything.
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
"""What an agent can call, `def` or `async def`. It returns a text, an `Agent` that is to follow, a `Result`, or what the model is told as text."""

MessageDict: TypeAlias = dict[str, Any]
"""A message as Swarm has it: the JSON of OpenAI's, and the name of its `sender`."""

Piece: TypeAlias = dict[str, Any]
"""One item of a streamed run: the JSON of OpenAI's delta, a delimiter of a reply, or at the end the `Response`."""

Variables: TypeAlias = dict[Any, Any]
"""The context variables of a run. Keys and values are the user's."""

InitialVariables: TypeAlias = Mapping[Any, Any] | None
"""The context variables as the caller passes them. They are copied."""


class Agent(BaseModel):
    """An agent: instructions, and functions that it can call. Two of the same values are equal."""

    name: str = "Agent"
    model: str = "gpt-4o"
    instructions: str | Callable[..., str] = "You are a helpful agent."
    """A text, or a function that makes it: of the context variables, of which those that are missing read as "", or of nothing."""
    functions: list[AgentFunction] = []
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool = True


class Response(BaseModel):
    """What a run returns: its messages, the agent that is active at its end, and the context variables as they are then."""

    messages: list[MessageDict] = []
    agent: Agent | None = None
    context_variables: Variables = {}


class Result(BaseModel):
    """What a function may return: what the model is told, the agent that follows, and context variables that are new or have changed."""

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
    """What Swarm needs of a client: `chat.completions.create(...)`, `def` or `async def`, as OpenAI's clients have it."""

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
    """A call of a tool in a `MessageDict`. A call of another kind than "function" has no `function`."""

    id: str | None
    type: str | None
    function: _FunctionDict | None
