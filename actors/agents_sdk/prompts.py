"""Prompts that are kept at OpenAI.

Owns: their form, and the making of one by a function. Only models of the Responses API take them. It must never fetch one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NotRequired, TypeAlias

from typing_extensions import TypedDict

from ...runtime.maybe_await import maybe_await
from .exceptions import UserError

if TYPE_CHECKING:
    from .agent import Agent
    from .run_context import RunContextWrapper

__all__ = ["DynamicPromptFunction", "GenerateDynamicPromptData", "Prompt", "PromptUtil"]


class Prompt(TypedDict):
    """A prompt that is kept at OpenAI."""

    id: str
    version: NotRequired[str]
    variables: NotRequired[dict[str, Any]]


@dataclass
class GenerateDynamicPromptData:
    """What a function that makes a prompt is given."""

    context: RunContextWrapper[Any]
    agent: Agent[Any]


DynamicPromptFunction: TypeAlias = Callable[[GenerateDynamicPromptData], Any]


class PromptUtil:
    """Reading of prompts."""

    @staticmethod
    async def to_model_input(prompt: Any, context: RunContextWrapper[Any], agent: Agent[Any]) -> Any:
        """The prompt as a model takes it; None for none."""
        if prompt is None:
            return None
        if callable(prompt):
            prompt = await maybe_await(prompt(GenerateDynamicPromptData(context, agent)))
            if not isinstance(prompt, dict):
                msg = "Dynamic prompt function must return a Prompt"
                raise UserError(msg)
        return {"id": prompt["id"], "version": prompt.get("version"), "variables": prompt.get("variables", {})}
