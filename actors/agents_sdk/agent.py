"""An agent by the names of the Agents SDK.

Owns: how its parameters are called. What it does is `ChatModelAgent`'s.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import GenericAlias
from typing import Any, ClassVar, Self

from ...runtime.context import AgentContext
from ..chat_model_agent import ChatModelAgent

__all__ = ["Agent"]


class Agent(ChatModelAgent):
    """An agent, by the SDK's names: `instructions`, `handoff_description`, `handoffs`, `output_type`."""

    def __init__(
        self,
        name: str,
        handoff_description: str | None = None,
        *,
        instructions: str | Callable[..., Any] | None = None,
        tools: Sequence[Any] = (),
        handoffs: Sequence[Any] = (),
        model: Any = None,
        **options: Any,
    ) -> None:
        names = {"name": name, "handoff_description": handoff_description, "instructions": instructions}
        self._given = {**names, "tools": tools, "handoffs": handoffs, "model": model, **options}
        text = _as_instruction(instructions) if callable(instructions) else instructions or ""
        super().__init__(name=name, description=handoff_description or "", instruction=text, tools=tools, handoffs=handoffs, model=model, **options)

    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)  # `Agent[MyContext]`, for annotations

    @property
    def instructions(self) -> Any:
        return self._given["instructions"]

    @property
    def handoff_description(self) -> str:
        return self.description

    def clone(self, **changes: Any) -> Self:
        """A copy with these changes: made of all that this one was made of."""
        return type(self)(**{**self._given, **changes})


def _as_instruction(function: Callable[..., Any]) -> Callable[[AgentContext], Any]:
    """A function of the run's context and the agent, as one of the agent's context."""
    takes = len(inspect.signature(function).parameters)

    def instruction(context: AgentContext) -> Any:
        return function(context.run, context.node.agent) if takes > 1 else function(context.run)

    return instruction
