"""What stands between an agent and its model and tools.

Owns: the base class, whose methods do nothing. The first middleware that is registered is the outermost. What one of them raises is the agent's error.
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
    """Override what you need; each may be `def` or `async def`."""

    overridden: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls.overridden = frozenset(name for name in vars(Middleware) if not name.startswith("_") and getattr(cls, name) is not getattr(Middleware, name))

    def before_agent(self, context: AgentContext, input: AgentInput) -> AgentInput | Awaitable[AgentInput | None] | None:  # noqa: A002 -- what it is
        """Before anything else. Returns the input to go on with, or None to leave it."""

    def after_agent(self, context: AgentContext, message: Message | None) -> object:
        """After the agent has come to its end; not if it failed, or was interrupted or cancelled."""

    def before_model(self, context: AgentContext, request: ModelRequest) -> ModelRequest | Awaitable[ModelRequest | None] | None:
        """Before each call of the model. Returns the request to go on with, or None to leave it."""

    def after_model(self, context: AgentContext, message: Message) -> Message | Awaitable[Message | None] | None:
        """After each reply of the model. Returns the message to go on with, or None to leave it."""

    def wrap_model(self, context: AgentContext, request: ModelRequest, call: Callable[[ModelRequest], Awaitable[Message]]) -> Awaitable[Message] | Message:
        """Around each call of the model: `await call(request)` makes it, any number of times."""
        return call(request)

    def wrap_tool(self, context: ToolContext, tool_call: ToolCall, call: Callable[[ToolCall], Awaitable[Any]]) -> Any:
        """Around each call of a tool: `await call(tool_call)` makes it. Returns the result."""
        return call(tool_call)
