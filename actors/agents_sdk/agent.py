"""An agent by the names of the Agents SDK.

Owns: how its parameters are called. What it does is `ChatModelAgent`'s.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import GenericAlias
from typing import Any, ClassVar, Final, Self

from ...runtime.agent.context import AgentContext
from ...runtime.models import ChatModel, OpenAIChatModel
from ...runtime.models.env import environment
from ..chat_agent.chat_model_agent import ChatModelAgent

__all__ = ["Agent"]

_DEFAULT_MODEL: Final = "gpt-4.1"
_SETTABLE: Final = ("handoffs", "model", "model_settings", "output_type", "hooks", "input_guardrails", "output_guardrails")
"""What programs written for the SDK set after an agent was made."""


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
        own: dict[str, Any] = {"description": handoff_description or "", "instruction": text, "tools": tools, "handoffs": handoffs}
        super().__init__(name=name, model=_default_model() if model is None else model, **own, **options)

    __class_getitem__: ClassVar[Any] = classmethod(GenericAlias)  # `Agent[MyContext]`, for annotations

    @property
    def instructions(self) -> Any:
        return self._given["instructions"]

    @property
    def handoff_description(self) -> str:
        return self.description

    def clone(self, **changes: Any) -> Self:
        """A copy with these changes: made of all that this one was made of."""
        now = {name: getattr(self, name) for name in _SETTABLE}
        return type(self)(**{**self._given, **now, **changes})


def _default_model() -> ChatModel | None:
    """As in the SDK, a key is enough: the environment need not name a model. None: what it says of models is all that counts."""
    values = environment()
    if not values.get("OPENAI_API_KEY") or any(values.get(name) for name in ("OPENAI_MODEL", "ARK_CHAT_MODEL", "MODEL_TYPE", "OPENAI_BY_AZURE")):
        return None
    named = values.get("OPENAI_DEFAULT_MODEL") or _DEFAULT_MODEL
    return OpenAIChatModel(named, api_key=values["OPENAI_API_KEY"], base_url=values.get("OPENAI_BASE_URL") or None)


def _as_instruction(function: Callable[..., Any]) -> Callable[[AgentContext], Any]:
    """A function of the run's context and the agent, as one of the agent's context."""
    takes = len(inspect.signature(function).parameters)

    def instruction(context: AgentContext) -> Any:
        return function(context.run, context.node.agent) if takes > 1 else function(context.run)

    return instruction
