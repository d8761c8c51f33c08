"""The base class of middleware, which wraps an agent, its model and its tools.

Its methods do nothing. The first middleware in the list is the outermost. An exception raised by a
middleware is the agent's error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, ClassVar

from ..runtime.agent.context import AgentContext
from ..runtime.data.agent_input import AgentInput
from ..runtime.data.chat import Message, ToolCall
from ..runtime.models.protocol import ModelRequest
from .tools.tool_context import ToolContext

__all__ = ["Middleware"]


class Middleware:
    """Override the methods you need; each may be `def` or `async def`."""

    overridden: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls.overridden = frozenset(
            name
            for name in vars(Middleware)
            if not name.startswith("_") and getattr(cls, name) is not getattr(Middleware, name)
        )

    def before_agent(
        self,
        context: AgentContext,
        input: AgentInput,  # noqa: A002 -- the documented name
    ) -> AgentInput | Awaitable[AgentInput | None] | None:
        """Called before the agent runs. Returns a replacement for the input, or None."""

    def after_agent(self, context: AgentContext, message: Message | None) -> object:
        """Called after the agent finishes; not if it failed, was interrupted or was cancelled."""

    def before_model(
        self, context: AgentContext, request: ModelRequest
    ) -> ModelRequest | Awaitable[ModelRequest | None] | None:
        """Called before each model call. Returns a replacement for the request, or None."""

    def after_model(
        self, context: AgentContext, message: Message
    ) -> Message | Awaitable[Message | None] | None:
        """Called after each reply of the model. Returns a replacement for the message, or None."""

    def wrap_model(
        self,
        context: AgentContext,
        request: ModelRequest,
        call: Callable[[ModelRequest], Awaitable[Message]],
    ) -> Awaitable[Message] | Message:
        """Wraps each model call: `await call(request)` makes it, any number of times."""
        return call(request)

    def wrap_tool(
        self, context: ToolContext, tool_call: ToolCall, call: Callable[[ToolCall], Awaitable[Any]]
    ) -> Any:
        """Wraps each tool call: `await call(tool_call)` makes it. Returns the result."""
        return call(tool_call)
