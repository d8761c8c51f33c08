"""An agent by the names of the Agents SDK.

Owns: how its parameters are called. What it does is `ChatModelAgent`'s.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

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
        text = _as_instruction(instructions) if callable(instructions) else instructions or ""
        super().__init__(name=name, description=handoff_description or "", instruction=text, tools=tools, handoffs=handoffs, model=model, **options)

    @property
    def instructions(self) -> Any:
        return self.instruction

    @property
    def handoff_description(self) -> str:
        return self.description

    def clone(self, **changes: Any) -> Agent:
        """A copy with these changes."""
        own = {name: getattr(self, name) for name in ("name", "handoff_description", "tools", "handoffs", "model", "model_settings", "output_type", "hooks")}
        own["instructions"] = self.instruction if isinstance(self.instruction, str) else getattr(self.instruction, "given", self.instruction)
        return Agent(**{**own, **changes})


def _as_instruction(function: Callable[..., Any]) -> Callable[[AgentContext], Any]:
    """A function of the run's context and the agent, as one of the agent's context."""
    takes = len(inspect.signature(function).parameters)

    def instruction(context: AgentContext) -> Any:
        return function(context.run, context.node.agent) if takes > 1 else function(context.run)

    instruction.given = function  # type: ignore[attr-defined]  # for a clone
    return instruction
