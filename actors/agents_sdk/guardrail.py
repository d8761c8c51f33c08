"""Guardrails: what looks at the input and the output of a run, and may end it.

Owns: their definitions and decorators. It must never decide what a tripped guardrail does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from ...runtime.maybe_await import maybe_await
from .exceptions import UserError
from .run_context import RunContextWrapper, TContext

if TYPE_CHECKING:
    from .agent import Agent
    from .items import TResponseInputItem

__all__ = [
    "GuardrailFunctionOutput",
    "InputGuardrail",
    "InputGuardrailResult",
    "OutputGuardrail",
    "OutputGuardrailResult",
    "input_guardrail",
    "output_guardrail",
]


@dataclass
class GuardrailFunctionOutput:
    """What a guardrail has found, and whether the run must end."""

    output_info: Any = None
    tripwire_triggered: bool = False


@dataclass
class InputGuardrailResult:
    """What an input guardrail has found."""

    guardrail: InputGuardrail[Any]
    output: GuardrailFunctionOutput


@dataclass
class OutputGuardrailResult:
    """What an output guardrail has found, and in what."""

    guardrail: OutputGuardrail[Any]
    agent_output: Any
    agent: Agent[Any]
    output: GuardrailFunctionOutput


def _checked(function: Any) -> Any:
    if not callable(function):
        msg = f"Guardrail function must be callable, got {function}"
        raise UserError(msg)
    return function


@dataclass
class InputGuardrail(Generic[TContext]):
    """Looks at the input of a run: beside the first agent, or before it begins."""

    guardrail_function: Callable[[RunContextWrapper[TContext], Agent[Any], Any], Any]
    name: str | None = None
    run_in_parallel: bool = True

    def get_name(self) -> str:
        return self.name or self.guardrail_function.__name__

    async def run(self, agent: Agent[Any], input: str | list[TResponseInputItem], context: RunContextWrapper[TContext]) -> InputGuardrailResult:
        output = await maybe_await(_checked(self.guardrail_function)(context, agent, input))
        return InputGuardrailResult(self, output)


@dataclass
class OutputGuardrail(Generic[TContext]):
    """Looks at the final output of a run."""

    guardrail_function: Callable[[RunContextWrapper[TContext], Agent[Any], Any], Any]
    name: str | None = None

    def get_name(self) -> str:
        return self.name or self.guardrail_function.__name__

    async def run(self, context: RunContextWrapper[TContext], agent: Agent[Any], agent_output: Any) -> OutputGuardrailResult:
        output = await maybe_await(_checked(self.guardrail_function)(context, agent, agent_output))
        return OutputGuardrailResult(self, agent_output, agent, output)


def input_guardrail(func: Any = None, *, name: str | None = None, run_in_parallel: bool = True) -> Any:
    """Makes a guardrail of a function of the context, the agent and the input."""

    def decorate(function: Any) -> InputGuardrail[Any]:
        return InputGuardrail(function, name or function.__name__, run_in_parallel)

    return decorate if func is None else decorate(func)


def output_guardrail(func: Any = None, *, name: str | None = None) -> Any:
    """Makes a guardrail of a function of the context, the agent and its output."""

    def decorate(function: Any) -> OutputGuardrail[Any]:
        return OutputGuardrail(function, name or function.__name__)

    return decorate if func is None else decorate(func)
