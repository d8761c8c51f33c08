"""An agent by the names of the Agents SDK.

Owns: the names of its parameters. It must never do anything but what `ChatModelAgent` does.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from types import GenericAlias
from typing import Final, Self, Unpack, cast

from ...runtime.agent.context import AgentContext, door_of
from ...runtime.agent.options import OptionsLike
from ...runtime.environment import environment
from ...runtime.models import ChatModel, OpenAIChatModel
from ..agent import Agent as Definition
from ..agent import AgentOptions as CommonOptions
from ..chat_agent.chat_model_agent import ChatModelAgent
from ..handoffs.handoff import Handoff
from ..tools.tool import Tool
from .options import AgentChanges, AgentOptions, AgentParameters, Instructions

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
        instructions: Instructions | None = None,
        tools: Sequence[Tool | Callable[..., object]] = (),
        handoffs: Sequence[Definition | Handoff] = (),
        model: ChatModel | str | None = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        self._made_of: AgentParameters = {
            "name": name,
            "handoff_description": handoff_description,
            "instructions": instructions,
            "tools": tools,
            "handoffs": handoffs,
            "model": model,
            **options,
        }
        super().__init__(
            name=name,
            description=handoff_description or "",
            instruction=_as_instruction(instructions) if callable(instructions) else instructions or "",
            tools=tools,
            handoffs=handoffs,
            model=_default_model() if model is None else model,
            **options,
        )

    def __class_getitem__(cls, context_type: object) -> GenericAlias:
        """`Agent[MyContext]`, for annotations."""
        return GenericAlias(cls, context_type)

    @property
    def instructions(self) -> Instructions | None:
        return self._made_of["instructions"]

    @property
    def handoff_description(self) -> str:
        return self.description

    def with_options(self, *, options: OptionsLike = None, **changes: Unpack[CommonOptions]) -> Self:
        twin = super().with_options(options=options, **changes)
        twin._made_of = {**self._made_of, **changes}
        return twin

    def clone(self, **changes: Unpack[AgentChanges]) -> Self:
        """A copy of this agent with these changes."""
        now = {name: getattr(self, name) for name in _SETTABLE}
        twin = type(self)(**cast("AgentParameters", {**self._made_of, **now, **changes}))
        twin.fixed_options = self.fixed_options
        return twin


def _default_model() -> ChatModel | None:
    """As in the SDK, a key is enough: the environment need not name a model. None: the environment names a model, or has no key."""
    values = environment()
    if not values.get("OPENAI_API_KEY") or any(values.get(name) for name in ("OPENAI_MODEL", "ARK_CHAT_MODEL", "MODEL_TYPE", "OPENAI_BY_AZURE")):
        return None
    named = values.get("OPENAI_DEFAULT_MODEL") or _DEFAULT_MODEL
    return OpenAIChatModel(named, api_key=values["OPENAI_API_KEY"], base_url=values.get("OPENAI_BASE_URL") or None)


def _as_instruction(function: Callable[..., str | Awaitable[str]]) -> Callable[[AgentContext], str | Awaitable[str]]:
    """A function of the run's context and the agent, as one of the agent's context."""
    takes = len(inspect.signature(function).parameters)

    def instruction(context: AgentContext) -> str | Awaitable[str]:
        return function(context.run, door_of(context).node.agent) if takes > 1 else function(context.run)

    return instruction
