"""Swarm's values: an agent, what a function may return, and what a run returns.

Owns: their fields and defaults, which are Swarm's. Beside them, what OpenAI's models send, under the names that Swarm has for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from openai.types.chat import chat_completion_message as _message
from openai.types.chat import chat_completion_message_tool_call as _tool_call
from pydantic import BaseModel

__all__ = ["Agent", "AgentFunction", "ChatCompletionMessage", "ChatCompletionMessageToolCall", "Function", "Response", "Result"]

ChatCompletionMessage = _message.ChatCompletionMessage
ChatCompletionMessageToolCall = _tool_call.ChatCompletionMessageToolCall
Function = _tool_call.Function

AgentFunction: TypeAlias = Callable[..., Any]
"""What an agent can call, `def` or `async def`. It returns a text, an `Agent` that is to follow, a `Result`, or what the model is told as text."""


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
    """What a run returns: what was said in it, who is active at its end, and the context variables as they are then."""

    messages: list[dict[str, Any]] = []
    agent: Agent | None = None
    context_variables: dict[Any, Any] = {}


class Result(BaseModel):
    """What a function may return: what the model is told, who is to follow, and context variables that are new or have changed."""

    value: str = ""
    agent: Agent | None = None
    context_variables: dict[Any, Any] = {}
